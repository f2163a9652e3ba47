"""The anonymisers by name: those of this package, plug-ins of other packages, and external commands.

A plug-in is an entry point of the group `voiceprivacy.anonymizers` that gives an `Anonymizer`, a class or function that
makes one, or a sequence of them. A TOML file in the folder of the variable PORTAL_ANONYMIZERS_DIR describes a command,
or names a built-in method and networks that were trained for it. What cannot be used is listed by `broken` and harms no
other. Importing this module imports no heavy library.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from anonymization.methods.content_decoder import method as content_decoder
from anonymization.methods.content_decoder import retrained
from anonymization.methods.contract import (
    MOST_PARAMETERS,
    Anonymizer,
    MethodError,
    Option,
    Parameter,
    find_missing_members,
)
from anonymization.methods.external.description import LONGEST_NAME, NAME
from anonymization.methods.external.method import load_command
from anonymization.methods.mcadams import method as mcadams
from anonymization.methods.nearest_frames import method as nearest_frames
from anonymization.methods.pitch_shift import method as pitch_shift
from anonymization.methods.recognize_and_speak import method as recognize_and_speak
from anonymization.methods.world import method as world_voice

GROUP = "voiceprivacy.anonymizers"
FOLDER_VARIABLE = "PORTAL_ANONYMIZERS_DIR"
LONGEST_VERSION = 40
DESCRIPTIONS = ("*.toml", "*/anonymizer.toml")


@dataclass(frozen=True)
class BrokenPlugin:
    """A plug-in or command that cannot be used. source: the entry point or file; reason: a sentence."""

    source: str
    reason: str


State = tuple[int, int, int]
Found = tuple[str, Anonymizer] | BrokenPlugin  # where a method comes from, and the method


def methods() -> tuple[Anonymizer, ...]:
    """Return all methods, in the order in which they are to be offered: built-in, plug-ins, descriptions."""
    return _known()[0]


def broken() -> tuple[BrokenPlugin, ...]:
    """Return all plug-ins and commands that cannot be used, for the operator."""
    return _known()[1]


def get_method(name: str) -> Anonymizer:
    """Return the method of that name. Raises MethodError, which lists the known names."""
    known = {method.name: method for method in methods()}
    if name not in known:
        hint = f" {len(broken())} more cannot be used: {broken()[0].reason}" if broken() else ""
        raise MethodError(f'There is no anonymisation method "{name}". Known methods: {", ".join(known)}.{hint}')
    return known[name]


def find_method(name_or_path: str) -> Anonymizer:
    """Return the method of that name, or that which a file ending in `.toml` describes.

    Raises:
        MethodError: there is none, or the description cannot be used.
    """
    if name_or_path.endswith(".toml"):
        method = _load_description(Path(name_or_path))
        if method.name in {each.name for each in _built_in()}:
            raise MethodError(
                f'{name_or_path}: name: expected a name of its own, found that of the built-in "{method.name}".'
            )
        return method
    return get_method(name_or_path)


def explain_missing(method: Anonymizer) -> str:
    """Return why a method cannot run on this machine, a sentence; empty where it can. For plug-ins that raise, too."""
    try:
        return str(method.missing())
    except Exception as error:  # a stranger's code
        return f"{method.name} could not say what it lacks: {_told(error)}."


def _known() -> tuple[tuple[Anonymizer, ...], tuple[BrokenPlugin, ...]]:
    found: list[Found] = [*((method.name, method) for method in _built_in()), *_plug_ins()]
    if folder := os.environ.get(FOLDER_VARIABLE, "").strip():
        found += _load_descriptions(Path(folder).expanduser())
    taken: dict[str, str] = {}
    kept: list[Anonymizer] = []
    problems = [each for each in found if isinstance(each, BrokenPlugin)]
    for source, method in (each for each in found if not isinstance(each, BrokenPlugin)):
        if method.name in taken:
            reason = f'{source}: its name "{method.name}" is that of {taken[method.name]}. Give it another.'
            problems.append(BrokenPlugin(source, reason))
        else:
            taken[method.name] = "a built-in method" if method.name == source else source
            kept.append(method)
    return tuple(kept), tuple(problems)


def _built_in() -> tuple[Anonymizer, ...]:
    signal = (*mcadams.METHODS, *pitch_shift.METHODS, *world_voice.METHODS)
    return (*signal, *recognize_and_speak.METHODS, *nearest_frames.METHODS, *content_decoder.METHODS)


@cache
def _plug_ins() -> tuple[Found, ...]:
    """Return those of the installed packages; read once, as a package that is installed needs a new start anyway."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(found for point in points for found in _load(point))


def _load(point: EntryPoint) -> list[Found]:
    package = f" of {point.dist.name}" if point.dist else ""
    source = f'plug-in "{point.name}"{package}'
    try:
        given = _given(point.load())
        if problem := next(filter(None, map(_find_problem, given)), ""):
            return [BrokenPlugin(source, f"The {source} cannot be used: {problem}. Its author must correct it.")]
    except (Exception, SystemExit) as error:  # a stranger's code
        reason = f"The {source} could not be loaded: {_told(error)}. Install what it needs, or remove it."
        return [BrokenPlugin(source, reason)]
    return [(source, method) for method in given]


def _given(thing: object) -> tuple[Anonymizer, ...]:
    """Return the anonymisers that an entry point gives."""
    if callable(thing) and (isinstance(thing, type) or find_missing_members(thing)):
        thing = thing()
    things = thing if isinstance(thing, Sequence) and not isinstance(thing, str) else (thing,)
    if not things:
        raise MethodError("expected at least one anonymiser, found an empty list")
    for each in things:
        if find_missing_members(each):
            raise MethodError(f"expected an Anonymizer, a class of one, or a list of them, found {type(each).__name__}")
    return tuple(things)


def _find_problem(method: Anonymizer) -> str:
    """Return what of its description does not fit the contract; empty where all does."""
    if not isinstance(method.name, str) or not NAME.fullmatch(method.name) or len(method.name) > LONGEST_NAME:
        return f"name: expected small letters, digits and hyphens, found {method.name!r}"
    for attribute in ("title", "version", "reference"):
        if not isinstance(value := getattr(method, attribute), str) or not value.strip():
            return f"{attribute}: expected a text, found {value!r}"
    if len(method.version) > LONGEST_VERSION:
        return f"version: expected at most {LONGEST_VERSION} letters, found {len(method.version)}"
    for attribute, kind in (("parameters", Parameter), ("options", Option)):
        values = getattr(method, attribute)
        if not isinstance(values, tuple) or not all(isinstance(each, kind) for each in values):
            return f"{attribute}: expected a tuple of {kind.__name__}, found {values!r}"
        names = [each.name for each in values]
        if len(set(names)) < len(names):
            return f"{attribute}: expected a name of its own for each, found {', '.join(names)}"
    if len(method.parameters) > MOST_PARAMETERS:
        return f"parameters: expected at most {MOST_PARAMETERS}, found {len(method.parameters)}"
    for parameter in method.parameters:
        if not parameter.low < parameter.high:
            return f"{parameter.name}: expected low below high, found {parameter.low:g} and {parameter.high:g}"
    for attribute in ("is_deterministic", "needs_gpu"):
        if not isinstance(getattr(method, attribute), bool):
            return f"{attribute}: expected True or False, found {getattr(method, attribute)!r}"
    return ""


def _load_descriptions(folder: Path) -> list[Found]:
    """Return the methods that a folder describes, in files `NAME.toml` or `NAME/anonymizer.toml`.

    Files that are new, changed or removed count at once, those of a training too; the others are not read again.
    """
    if not folder.is_dir():
        reason = f"{folder} is no folder that can be read. Make it, or fix {FOLDER_VARIABLE}."
        return [BrokenPlugin(str(folder), reason)]
    return [_described(path) for pattern in DESCRIPTIONS for path in sorted(folder.glob(pattern))]


def _described(path: Path) -> Found:
    state = _state(path)
    return _read(path, (state, *map(_state, _list_files(path, state))))


def _state(path: Path) -> State:
    """Changes whenever the file does, a second write within the same instant included where its size differs."""
    try:
        about = path.stat()
    except (OSError, ValueError):  # a name that no file can have
        return (0, 0, 0)
    return (about.st_mtime_ns, about.st_size, about.st_ino)


@lru_cache(maxsize=1000)
def _list_files(path: Path, state: State) -> tuple[Path, ...]:  # noqa: ARG001 - the state is part of the key
    return retrained.list_files(path)


@lru_cache(maxsize=1000)
def _read(path: Path, states: tuple[State, ...]) -> Found:  # noqa: ARG001 - the states are part of the key
    try:
        method = _load_description(path)
    except MethodError as error:
        return BrokenPlugin(str(path), str(error))
    if getattr(method, "confinement", "") == "none":
        reason = f"{path}: isolation: expected full or limited for commands of the portal, found none."
        return BrokenPlugin(str(path), reason)
    return str(path), method


def _load_description(path: Path) -> Anonymizer:
    if retrained.is_described(path):
        return retrained.load_retrained(path, _built_in())
    return load_command(path)


def _told(error: BaseException) -> str:
    """Return an error of a stranger's code in a line."""
    first = " ".join(str(error).split())[:300].rstrip(".")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
