"""``train``: train a network of the methods that convert by content, from speech of many speakers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonymization.methods.content_decoder.network_files import SHIPPED, NetworkFile
from anonymization.methods.content_decoder.retrained import DECODER, READ_DECODER, read_training
from anonymization.network_training.recipe import DecoderRecipe, Recipe, explain_values, read_recipes
from common import terminal
from common.errors import CommandError
from common.lock import lock_folder
from common.packages import missing_packages
from evaluation.attackers.training.corpus import read_corpus, require_sound
from evaluation.cli.arguments import read_change, require_entries
from evaluation.formats.kaldi import read_text
from evaluation.recognizer_training import frames
from speech.model_files.devices import choose_device

DESCRIPTION = (
    "Trains a network of the methods that convert by content. content-decoder makes spectra from content by Whisper, "
    "F0 and a speaker vector, for asr-bn and others; f0-regressor estimates F0 and voicing from the codes of a "
    "decoder and a speaker vector, for t40; recognizer-map expects a speaker vector from what Whisper "
    "hears, for t18-asr; phone-recognizer says which phone is said when, for private-knn, and needs the words "
    "(--text); soft-units-decoder makes spectra of soft units, for ssl-content; hn-sinc-nsf makes samples of "
    "spectra, for b1a; world-decoder makes parameters of the vocoder WORLD, for b1-world; joint-hifigan lets a decoder "
    "and HiFi-GAN go on learning as one network, for "
    "the method of that name; joint-nsf-hifigan makes samples of content, F0 and a speaker vector, for b1b, best on a "
    "graphics card. The folder OUT keeps features and state, so a training that was stopped continues "
    "with the same command, and then weights, losses as CSV, a card that says what they were made of, and of "
    "decoders the voices of the speakers."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    recipes = read_recipes()
    titles = "; ".join(f"{one.name}: {one.title}" for one in recipes.values())
    values = "; ".join(
        one.name + (f" of {', '.join(one.recipes)}" if one.recipes else "") + f": {one.meaning}"
        for one in explain_values()
    )
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
    parser.add_argument(
        "--text",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE",
        help="its words (Kaldi text), for phone-recognizer, and for content-decoder with phones",
    )
    parser.add_argument(
        "--decoder",
        type=Path,
        metavar="FOLDER",
        help=f"of a finished content-decoder, for {', '.join(READ_DECODER)} (default: the decoder that ships)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that chance decides (default 1)")
    parser.add_argument("--licence", default="", metavar="TEXT", help="of the speech, with whom to name, for the card")
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help=f"other values of the recipe, such as steps=500; size=full: the sizes of the papers. Values: {values}",
    )
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="what computes (auto: a card if there is one)"
    )
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="of torch (default: as many as it takes)")


def run(options: argparse.Namespace) -> int:
    """Train, report; the exit code."""
    if sentence := missing_packages("A training", "torch"):
        raise CommandError(sentence)
    if options.seed < 0 or options.threads < 0:
        raise CommandError(f"--seed and --threads: expected 0 or more, found {options.seed} and {options.threads}.")
    changes = dict(read_change(text) for text in options.set)
    recipe = read_recipes()[options.recipe].changed(**changes)
    utterances = read_corpus(options.data)
    require_sound(utterances, targets=False)
    decoder = _find_decoder(options.decoder, recipe)
    texts = _read_texts(options.text, recipe, [one.identifier for one in utterances])
    import torch

    from anonymization.network_training.loop import CURVE
    from anonymization.network_training.train import CARD, train

    device = choose_device(["torch"]) if options.device == "auto" else options.device
    if options.threads:
        torch.set_num_threads(options.threads)
    with lock_folder(options.out, ".lock"), terminal.ProgressBar(lines="quarters") as bar:
        card = train(
            utterances, recipe, options.seed, options.out, options.licence, bar.show, device, texts, decoder=decoder
        )
    if options.json:
        terminal.print_json(card)
        return terminal.FINE
    data = card["data"]
    terminal.print_text(
        f"Trained on {data['utterances']} utterances of {data['speakers']} speakers ({data['seconds'] / 60:.0f} min) "
        f"in {card['training_seconds']:.0f} s; {_describe_result(card)}."
    )
    curve = [CURVE] if "losses" in card else []
    terminal.print_text(f"{options.out}: {', '.join([*card['sha256'], *curve, CARD])}")
    return terminal.FINE


def _find_decoder(folder: Path | None, recipe: Recipe) -> NetworkFile:
    """Return the decoder whose content is learnt from."""
    if folder is None:
        return SHIPPED.decoder
    if not recipe.reads_decoder:
        raise CommandError(f"--decoder: {recipe.name} reads no decoder. Leave it out.")
    training = read_training(folder)
    if training.recipe != DECODER:
        raise CommandError(f"--decoder: expected a folder of {DECODER}, found one of {training.recipe}.")
    return training.files["decoder"]


def _read_texts(paths: Sequence[Path], recipe: Recipe, names: Sequence[str]) -> dict[str, str] | None:
    """Return the words by utterance, where the recipe needs them."""
    if not recipe.needs_texts:
        if paths:
            without = " without phones (--set phones=0.3)" if isinstance(recipe, DecoderRecipe) else ""
            raise CommandError(f"--text: {recipe.name}{without} learns from no words. Leave it out.")
        return None
    if sentence := frames.missing():
        raise CommandError(sentence)
    texts: dict[str, str] = {}
    for path in paths:
        entries: dict[str, str] = require_entries(read_text(path, str(path)))
        texts |= entries
    if not any(texts.get(name) for name in names):
        found = f"none of {len(names)} utterances, such as {names[0]}, has one" if paths else "no file of them"
        raise CommandError(f"--text: expected transcripts for {recipe.name}, found {found}. Name files of Kaldi text.")
    return texts


def _describe_result(card: Mapping[str, Any]) -> str:
    if "held_out" not in card:
        name, value = next(iter(card["losses"].items()))
        return f"difference of {name} {value:.3f}"
    found = card["held_out"]
    if "phone_error_rate" in found:
        rate = found["phone_error_rate"]
        return "no utterance was held out" if rate is None else f"on utterances held out, {rate:.1%} phone errors"
    if "cosine" in found:
        if found["cosine"] is None:
            return "the speakers who were held out have too little speech"
        return (
            f"on {found['pieces']} pieces of speakers who were held out, the cosine to their vectors is "
            f"{found['cosine']:.3f} (of the mean voice: {found['null_cosine']:.3f})"
        )
    if found["rmse_semitones"] is None:
        return "the speakers who were held out have no voiced speech"
    correlation = "" if found["correlation"] is None else f", correlation {found['correlation']:.2f}"
    return (
        f"on {found['utterances']} utterances of speakers who were held out, F0 is off by "
        f"{found['rmse_semitones']:.2f} semitones (their mean F0: {found['null_rmse_semitones']:.2f}){correlation}; "
        f"voicing errors in {found['voicing_error']:.1%} of the frames"
    )
