"""Arguments that several commands share, and what they mean: a method with its options, a source, its voices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from anonymization.cli import sources
from anonymization.methods.contract import Anonymizer, MethodError, Option, OptionValue, complete_options
from anonymization.methods.registry import explain_missing, find_method
from anonymization.methods.voices.pseudo_speakers import Level, Role
from anonymization.methods.voices.targets import DEFAULT_SELECTION, SELECTIONS
from common.errors import CommandError

_YES, _NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}

MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME|FILE.toml",
        help="A method that “vp methods” shows, or the description of a command of your own.",
    ),
]
MethodOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="A setting of the method (“vp methods” shows them); may be repeated."
    ),
]
Seed = Annotated[int | None, typer.Option(metavar="S", help="Seed of the voices.")]
VoiceLevel = Annotated[
    Level | None,
    typer.Option(help="What has a voice of its own, by default each utterance for training, else each speaker."),
]
SpeakerRole = Annotated[Role | None, typer.Option(help="Role of all utterances, by default from lists and names.")]
Split = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Split, such as dev or test, by default from the name of a Kaldi directory."),
]
NamedBy = Annotated[
    sources.SpeakerFrom | None,
    typer.Option(help="What names the speaker of a file: its folder, or its name up to the first - or _."),
]
Container = Annotated[sources.Container, typer.Option("--format", help="Format of the output.")]
Limit = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Anonymise only the first N utterances, to try it.")
]
TargetFolder = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Speech of the target speakers, for methods that need some.")
]
TargetSelection = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help=f"Who gets which target: {', '.join(SELECTIONS)}; by default {DEFAULT_SELECTION}."
    ),
]
Genders = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File spk2gender of the input's speakers, by default the one in the input."),
]


def require_reading(split: str | None, suffix: str = "") -> None:
    """Raise CommandError for an empty split, or a suffix that is no part of a name."""
    if split is not None and not split.strip():
        raise CommandError("--split: expected the name of a split, found an empty one.")
    if "/" in suffix or "\\" in suffix or "\0" in suffix:
        raise CommandError(f"--suffix: expected an ending for names of folders, found “{suffix}”.")


def read_options(method: Anonymizer, given: Sequence[str]) -> dict[str, OptionValue]:
    """Return all options of the method, those of ``--option name=value`` as given.

    Raises:
        CommandError: not of the form name=value, or an option twice.
        MethodError: none of the method's options, or a value that it cannot take.
    """
    known = {option.name: option for option in method.options}
    read: dict[str, OptionValue] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            raise CommandError(f"--option: expected name=value, found “{text}”.")
        if name in read:
            raise CommandError(f"--option: expected {name} once, found it twice.")
        read[name] = _value(known[name], value) if name in known else value
    return complete_options(method, read)


def _value(option: Option, text: str) -> OptionValue:
    if option.choices:
        return text
    if isinstance(option.default, bool):
        word = text.lower()
        return word in _YES if word in _YES | _NO else text
    try:
        return float(text)
    except ValueError:
        return text


def find_named_method(name: str) -> Anonymizer:
    """Return the method of that name, or of the file that describes it.

    Raises:
        MethodError: there is none, or it cannot be used.
        CommandError: the name of a folder.
    """
    if os.path.isdir(name):  # noqa: PTH112 (false for a name that nothing can have; Path.is_dir raises)
        raise CommandError(
            f"--method {name}: expected a method of the list or a file such as anonymizer.toml, found a folder. "
            f"Name the file in it."
        )
    return find_method(name)


def require_usable(method: Anonymizer) -> None:
    """Raise MethodError where this machine lacks what the method needs."""
    if missing := explain_missing(method):
        raise MethodError(f"{method.name} cannot run here. {missing}")


def find_description(name: str) -> Path | None:
    """Return the file that describes the method, where the name is that of a file."""
    path = Path(name)
    return path if path.suffix == ".toml" and path.is_file() else None
