"""A method of this folder with networks of a training of the operator or user.

A TOML description names the method and the folders that `vp train-network` left; `docs/anonymizers.md`
explains its keys. All that does not fit is told at once. Shapes are compared with those of what ships, by the headers
of the files, so that no torch is loaded to list a method. Weights are files of safetensors, which run no code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from anonymization.methods.content_decoder import method as content_decoder
from anonymization.methods.content_decoder.method import ContentMethod
from anonymization.methods.content_decoder.network_files import SHAPES, SHIPPED, NetworkFile, Shape
from anonymization.methods.contract import Anonymizer, Block, Described, MethodError
from anonymization.methods.external.description import TomlTable, is_list, is_name, read_table
from common.errors import InputError
from speech.model_files.checkpoints import Shapes, differences, read_header

CARD, VOICES = "card.json", "voices"
DECODER, REGRESSOR, GENERATOR, MAP = "content-decoder", "f0-regressor", "joint-nsf-hifigan", "recognizer-map"
SOFT_UNITS, SOURCE_FILTER, HIFIGAN = "soft-units-decoder", "hn-sinc-nsf", "joint-hifigan"
WORLD = "world-decoder"
# By recipe: the files of `Networks`, by their names in a folder.
FILES = {
    DECODER: {"decoder": "weights.safetensors", VOICES: "voices.safetensors"},
    REGRESSOR: {"regressor": "weights.safetensors"},
    GENERATOR: {"generator": "weights.safetensors"},
    SOFT_UNITS: {"soft_units_decoder": "weights.safetensors", VOICES: "voices.safetensors"},
    SOURCE_FILTER: {"source_filter": "weights.safetensors"},
    HIFIGAN: {"joint_hifigan": "weights.safetensors"},
    WORLD: {"world_decoder": "weights.safetensors"},
    MAP: {"recognizer_map": "weights.safetensors"},
}
_SLOTS = {
    DECODER: ("content", "synthesis"),
    SOFT_UNITS: ("content", "synthesis"),
    REGRESSOR: ("prosody",),
    GENERATOR: ("synthesis",),
    SOURCE_FILTER: ("synthesis",),
    HIFIGAN: ("synthesis",),
    WORLD: ("synthesis",),
    MAP: ("voice",),
}
# The recipes whose networks read the content that a decoder makes.
READ_DECODER = (REGRESSOR, GENERATOR, HIFIGAN, WORLD)
_SPEAKER_ENCODER = "ge2e"
_FEWEST_SPEAKERS = 2
# How many rows they have is what the speech has of speakers.
_OF_SPEAKERS = ("vectors", "f0", "residuals")
T = TypeVar("T")


@dataclass(frozen=True)
class FinishedTraining:
    """A folder of a training that has ended. files: by their names in `Networks`; card: as `card.json` says it."""

    folder: Path
    recipe: str
    files: Mapping[str, NetworkFile]
    card: Mapping[str, Any]

    def describe(self) -> str:
        """Return what was learnt, and from which speech."""
        data = self.card["data"]
        licence = f" ({data['licence']})" if data.get("licence") else ""
        return f"{self.recipe} of {data['utterances']} utterances of {data['speakers']} speakers{licence}"


def find_retrained(method: Anonymizer) -> Mapping[str, str]:
    """Of a method's networks that do not ship the SHA-256, for the record of a run; none of most methods."""
    return method.retrained if isinstance(method, ContentMethod) else {}


def is_described(path: Path) -> bool:
    """Return whether a file names a built-in method, and so no command. Raises MethodError where it cannot be read."""
    return "method" in read_table(path)[0].keys


def list_files(path: Path) -> tuple[Path, ...]:
    """Return the files beside a description that decide what becomes of it; none of what cannot be read."""
    try:
        named = read_table(path)[0].keys.get("trained")
    except MethodError:
        return ()
    folders = [_folder(path, each) for each in named or ()] if is_list(named, str) else []
    names = sorted({name for files in FILES.values() for name in files.values()})
    return tuple(folder / name for folder in folders for name in (CARD, *names))


def load_retrained(path: Path, built_in: Iterable[Anonymizer]) -> Described:
    """Return the method that a description names, with its networks.

    Raises:
        MethodError: the description or a training cannot be used; says all that is wrong.
    """
    table, _ = read_table(path)
    problems: list[str] = []
    name = _told(problems, lambda: str(table.take("name", "small letters, digits and hyphens", is_name)))
    title = _told(problems, lambda: table.text("title", longest=120))
    method = _told(problems, lambda: _find_method(table, built_in))
    named = _told(problems, lambda: table.texts("trained", "a list of folders of trainings")) or ()
    _told(problems, table.finish)
    trainings: dict[str, FinishedTraining] = {}
    for folder in (_folder(path, each) for each in named):
        training = _told(problems, lambda folder=folder: read_training(folder))  # type: ignore[misc]
        if training is None or method is None:
            continue
        if training.recipe not in method.trained_by:
            problems.append(
                f"{folder}: {method.name} reads no {training.recipe}, but {', '.join(method.trained_by)}. Leave it out."
            )
        elif training.recipe in trainings:
            problems.append(f"{folder}: expected one {training.recipe}, found two. Leave one out.")
        else:
            trainings[training.recipe] = training
    if not named and not problems:
        problems.append(f"{path}: trained: expected a list of folders of trainings, found none.")
    if method is not None:
        problems += _list_mismatches(method, trainings)
    if problems or name is None or title is None or method is None:
        raise MethodError(" ".join(problems))
    return _make(method, name, title, trainings)


def retrain(method: Anonymizer, trainings: Iterable[FinishedTraining], title: str) -> Described:
    """Return a method that ships with the networks of trainings, one of a recipe, under its own name; no file is read.

    Raises:
        MethodError: it reads no such networks, or these are for another decoder; says all that is wrong.
    """
    named = {each.recipe: each for each in trainings}
    if not isinstance(method, ContentMethod) or not named.keys() <= set(method.trained_by):
        raise MethodError(f"{method.name} reads no {next(iter(named))}.")
    if problems := _list_mismatches(method, named):
        raise MethodError(" ".join(problems))
    return _make(method, method.name, title, named)


def describe_training(folder: Path, card: Mapping[str, Any]) -> FinishedTraining:
    """Return what a training left in a folder, as its card says it."""
    recipe = card["recipe"]["name"]
    shape = _find_shape(card)
    files = {
        network: NetworkFile(
            folder / name, str(card["sha256"].get(name, "")), False, shape if network != VOICES else None
        )
        for network, name in FILES[recipe].items()
    }
    return FinishedTraining(folder, recipe, files, card)


def _find_shape(card: Mapping[str, Any]) -> Shape | None:
    """Return the sizes of the network of a card; None of one without steps. TypeError for sizes that are none of its
    kind."""
    kind = SHAPES.get(card["recipe"]["name"])
    return kind(**card["recipe"].get("shape", {})) if kind else None


def read_training(folder: Path) -> FinishedTraining:
    """Return what a training left in a folder, its files verified.

    Raises:
        MethodError: there is none, it has not ended, or a file is not that which its card names; says all.
    """
    card = _read_card(folder)
    found = describe_training(folder, card)
    problems: list[str] = []
    for network, file in found.files.items():
        try:
            like = getattr(SHIPPED, network)
            problem = _told_difference(file.verify(), like.path, is_other_size=file.shape != like.shape)
        except MethodError as error:
            problem = str(error)
        problems += [problem] * bool(problem)
    if (encoder := card.get("speaker_encoder")) != _SPEAKER_ENCODER:
        problems.append(f"{folder}: expected vectors of speakers by {_SPEAKER_ENCODER}, found {encoder}. Train again.")
    if problems:
        raise MethodError(" ".join(problems))
    return found


def _read_card(folder: Path) -> Mapping[str, Any]:
    path = folder / CARD
    if not folder.is_dir():
        raise MethodError(f"{folder}: expected a folder of a training, found none.")
    if not path.is_file():
        raise MethodError(f"{folder} has no {CARD}: no training has ended there. Repeat its command, which goes on.")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        recipe, _ = str(card["recipe"]["name"]), dict(card["sha256"])
        _ = card["data"]["speakers"], card["data"]["utterances"], _find_shape(card)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MethodError(f"{path}: expected the card of a training, found another file. Train again.") from error
    if recipe not in FILES:
        raise MethodError(f"{folder}: expected a training of {', '.join(FILES)}, found one of {recipe}.")
    found: Mapping[str, Any] = card
    return found


def _told_difference(path: Path, like: Path, *, is_other_size: bool) -> str:
    """In what names and shapes of a file differ from those of one that ships, a sentence; empty where they agree.

    Of a network of another size it says nothing: torch knows its shapes, which compares them when it is loaded.
    """
    try:
        (found, texts), (expected, _) = read_header(path), read_header(like)
    except InputError as error:
        return f"{path.parent}: {error}"
    if not is_other_size and (problem := differences(_without_speakers(expected), _without_speakers(found))):
        return f"{path} does not hold the network of this version: {problem}. Train again."
    if "names" in read_header(like)[1]:
        count = found["vectors"][0]
        if count < _FEWEST_SPEAKERS:
            return f"{path}: expected voices of at least {_FEWEST_SPEAKERS} speakers, found {count}. Train with others."
        if found["f0"][0] != count or any(len(texts.get(key, "").split(" ")) != count for key in ("names", "genders")):
            return f"{path}: expected a name without spaces for each of its {count} speakers. Rename them, train again."
    return ""


def _without_speakers(shapes: Shapes) -> Shapes:
    return {name: (0, *shape[1:]) if name in _OF_SPEAKERS else shape for name, shape in shapes.items()}


def _find_method(table: TomlTable, built_in: Iterable[Anonymizer]) -> ContentMethod:
    known = {method.name: method for method in built_in}
    name = table.text("method", "the name of a built-in method")
    found = known.get(name)
    if isinstance(found, ContentMethod):
        return found
    takers = ", ".join(each.name for each in content_decoder.METHODS)
    if found is None:
        raise MethodError(f'{table.where}: method: expected one of {takers}, found "{name}", which is not built in.')
    raise MethodError(f"{table.where}: method: {name} reads no trained network; expected one of {takers}.")


def _list_mismatches(method: ContentMethod, trainings: Mapping[str, FinishedTraining]) -> list[str]:
    """Return networks that read the content of another decoder than that of the method."""
    own = trainings.get(DECODER)
    decoder = own.files["decoder"] if own else method.networks.decoder
    found = []
    for recipe in (each for each in READ_DECODER if each in method.trained_by):
        training = trainings.get(recipe)
        if training is None and own is not None:
            found.append(
                f"{method.name} also needs the {recipe} of {own.folder}: that which ships was trained for another "
                f"decoder. Train one: vp train-network {recipe} OUT --decoder {own.folder} --data …"
            )
        elif training is not None and training.card.get("decoder_sha256") != decoder.sha256:
            whose = str(own.folder) if own else "the decoder that ships"
            option = f" --decoder {own.folder}" if own else ""
            found.append(
                f"{training.folder}: expected a {recipe} that was trained for {whose}, found one for another decoder. "
                f"Train one: vp train-network {recipe} OUT{option} --data …"
            )
    return found


def _make(method: ContentMethod, name: str, title: str, trainings: Mapping[str, FinishedTraining]) -> Described:
    files = {network: file for each in trainings.values() for network, file in each.files.items()}
    hashes = {network: file.sha256 for network, file in files.items()}
    digest = hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()
    return replace(
        method,
        name=name,
        title=title,
        version=f"{method.version}+{digest[:8]}",
        reference=f"{method.reference}; {method.name} with {'; '.join(each.describe() for each in trainings.values())}",
        pipeline=_retrained_pipeline(method.pipeline, trainings),
        networks=replace(method.networks, **files),
    )


def _retrained_pipeline(parts: Sequence[Block], trainings: Mapping[str, FinishedTraining]) -> tuple[Block, ...]:
    """Return the parts, those that were retrained named so; the pool is that of the speakers of an own decoder."""
    slots = {slot for recipe in trainings for slot in _SLOTS[recipe]}
    found = [replace(part, state="retrained") if part.slot in slots else part for part in parts]
    if decoder := trainings.get(DECODER) or trainings.get(SOFT_UNITS):
        speakers = f"{decoder.card['data']['speakers']} speakers"
        found = [
            replace(part, title=part.title.replace("250 speakers", speakers)) if part.slot == "voice" else part
            for part in found
        ]
    return tuple(found)


def _told(problems: list[str], take: Callable[[], T]) -> T | None:
    """Return what a function gives; what it refuses is added to the problems."""
    try:
        return take()
    except MethodError as error:
        problems.append(str(error))
        return None


def _folder(description: Path, text: str) -> Path:
    return Path(os.path.normpath(description.absolute().parent / os.path.expanduser(text)))  # noqa: PTH111 - never raises
