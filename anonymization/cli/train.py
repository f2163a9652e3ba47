"""``vp train-network``: train a network of the methods that convert by content, from speech of many speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from anonymization.methods.content_decoder.network_files import SHIPPED, NetworkFile
from anonymization.methods.content_decoder.retrained import DECODER, READ_DECODER, read_training
from anonymization.network_training.recipe import DecoderRecipe, Recipe, explain_values, read_recipes
from common import terminal
from common.errors import CommandError
from common.lock import lock_folder
from common.packages import missing_packages
from common.parameters import AsJson
from evaluation.attackers.training.corpus import read_corpus, require_sound
from evaluation.cli.arguments import read_changes, require_entries
from evaluation.formats.kaldi import read_text
from evaluation.recognizer_training import frames
from speech.model_files.devices import choose_device

_TITLES = "; ".join(f"{each.name}: {each.title}" for each in read_recipes().values())
_VALUES = "; ".join(
    each.name + (f" of {', '.join(each.recipes)}" if each.recipes else "") + f": {each.meaning}"
    for each in explain_values()
)


def train_network(
    recipe: Annotated[str, Argument(metavar="RECIPE", help=f"{_TITLES}.")],
    out: Annotated[Path, Argument(metavar="OUT", help="Folder for features, state, weights and card.")],
    data: Annotated[
        Path,
        Option(
            metavar="DIR|CSV",
            help="Speech: a folder SPEAKER/…/UTTERANCE.flac, or a CSV file with the columns path and speaker, and if "
            "known utterance_id and gender.",
        ),
    ],
    text: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="Its words (Kaldi text), for phone-recognizer, and for content-decoder with phones; may be repeated.",
        ),
    ] = None,
    decoder: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help=f"Of a finished content-decoder, for {', '.join(READ_DECODER)}; by default the one that ships.",
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, metavar="S", help="Of all that chance decides.")] = 1,
    licence: Annotated[str, Option(metavar="TEXT", help="Of the speech, with whom to name, for the card.")] = "",
    changes: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"Another value of the recipe, such as steps=500; size=full: the sizes of the papers; may be "
            f"repeated. Values: {_VALUES}.",
        ),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"], Option(help="What computes; auto: a graphics card if there is one.")
    ] = "auto",
    threads: Annotated[int, Option(min=0, metavar="N", help="Of torch; 0: as many as it takes.")] = 0,
    as_json: AsJson = False,
) -> int:
    """Train a network of the methods that convert by content, from speech of many speakers.

    content-decoder makes spectra from content by Whisper, F0 and a speaker vector, for asr-bn and others; f0-regressor
    estimates F0 and voicing from the codes of a decoder and a speaker vector, for t40; recognizer-map expects a speaker
    vector from what Whisper hears, for t18-asr; phone-recognizer says which phone is said when, for private-knn, and
    needs the words (--text); soft-units-decoder makes spectra of soft units, for ssl-content; hn-sinc-nsf makes samples
    of spectra, for b1a; world-decoder makes parameters of the vocoder WORLD, for b1-world; joint-hifigan lets a decoder
    and HiFi-GAN go on learning as one network, for the method of that name; joint-nsf-hifigan makes samples of content,
    F0 and a speaker vector, for b1b, best on a graphics card.

    The folder OUT keeps features and state, so a training that was stopped continues with the same command, and then
    weights, losses as CSV, a card that says what they were made of, and of decoders the voices of the speakers.

        vp train-network content-decoder decoder --data speech.csv --licence "CC BY 4.0, whom to name"
        vp train-network f0-regressor regressor --data speech.csv --decoder decoder --set steps=500
    """
    if sentence := missing_packages("A training", "torch"):
        raise CommandError(sentence)
    if recipe not in read_recipes():
        raise CommandError(f"RECIPE: expected one of {', '.join(read_recipes())}, found “{recipe}”.")
    plan = read_recipes()[recipe].changed(**read_changes(changes))
    utterances = read_corpus(data)
    require_sound(utterances, targets=False)
    own_decoder = _find_decoder(decoder, plan)
    texts = _read_texts(text or (), plan, [each.identifier for each in utterances])
    import torch

    from anonymization.network_training.loop import CURVE
    from anonymization.network_training.train import CARD, train

    chosen = choose_device(["torch"]) if device == "auto" else device
    if threads:
        torch.set_num_threads(threads)
    with lock_folder(out, ".lock"), terminal.ProgressBar(lines="quarters") as bar:
        card = train(utterances, plan, seed, out, licence, bar.show, chosen, texts, decoder=own_decoder)
    if as_json:
        terminal.print_json(card)
        return terminal.FINE
    learnt = card["data"]
    terminal.print_text(
        f"Trained on {learnt['utterances']} utterances of {learnt['speakers']} speakers "
        f"({learnt['seconds'] / 60:.0f} min) in {card['training_seconds']:.0f} s; {_describe_result(card)}."
    )
    curve = [CURVE] if "losses" in card else []
    terminal.print_text(f"{out}: {', '.join([*card['sha256'], *curve, CARD])}")
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
