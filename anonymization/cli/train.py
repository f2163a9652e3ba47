"""``train``: train the decoder of the methods that convert by content, from speech of many speakers."""

from __future__ import annotations

import argparse
from pathlib import Path

from anonymization.training.recipe import read_recipes
from common import terminal
from common.errors import CommandError, MetricInputError
from common.lock import lock_folder
from common.packages import missing_packages
from evaluation.attackers.training.corpus import read_corpus, require_sound

DESCRIPTION = (
    "Trains the network that asr-bn and b1-lite make spectra with: from content by Whisper, F0 and a speaker vector. "
    "The folder OUT keeps features and state, so a training that was stopped continues with the same command, and "
    "then weights, voices of the speakers, losses as CSV, and a card that says what they were made of."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    recipes = read_recipes()
    titles = "; ".join(f"{one.name}: {one.title}" for one in recipes.values())
    parser.add_argument("recipe", choices=list(recipes), help=titles)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for features, state, weights and card")
    parser.add_argument(
        "--data",
        required=True,
        type=Path,
        metavar="DIR|CSV",
        help="speech: a folder SPEAKER/…/UTTERANCE.flac, or a CSV file with the columns path and speaker, and if known "
        "utterance_id and gender",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that chance decides (default 1)")
    parser.add_argument("--licence", default="", metavar="TEXT", help="of the speech, with whom to name, for the card")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE", help="other values of the recipe, such as steps=500"
    )
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="of torch (default: as many as it takes)")


def run(options: argparse.Namespace) -> int:
    """Train, report; the exit code."""
    if sentence := missing_packages("A training", "torch"):
        raise CommandError(sentence)
    if options.seed < 0 or options.threads < 0:
        raise CommandError(f"--seed and --threads: expected 0 or more, found {options.seed} and {options.threads}.")
    changes = dict(_change(text) for text in options.set)
    recipe = read_recipes()[options.recipe].changed(**changes)
    utterances = read_corpus(options.data)
    require_sound(utterances, targets=False)
    import torch

    from anonymization.training.loop import CURVE, VOICES, WEIGHTS, train

    if options.threads:
        torch.set_num_threads(options.threads)
    with lock_folder(options.out, ".lock"), terminal.ProgressBar(lines="quarters") as bar:
        card = train(utterances, recipe, options.seed, options.out, options.licence, bar.show)
    if options.json:
        terminal.print_json(card)
        return terminal.FINE
    data = card["data"]
    terminal.print_text(
        f"Trained on {data['utterances']} utterances of {data['speakers']} speakers ({data['seconds'] / 60:.0f} min) "
        f"in {card['training_seconds']:.0f} s; difference of spectra {card['losses']['spectrum']:.3f}."
    )
    terminal.print_text(f"{options.out}: {WEIGHTS}, {VOICES}, {CURVE}, card.json")
    return terminal.FINE


def _change(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not value:
        raise MetricInputError(f"--set: expected NAME=VALUE, found “{text}”.")
    return name, value
