"""Arguments that several commands share, and what they mean: a method with its options, a source, its voices."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from anonymization.cli.sources import Reading
from anonymization.methods.contract import Anonymizer, MethodError, Option, OptionValue, complete_options
from anonymization.methods.registry import explain_missing, find_method
from anonymization.methods.voices.pseudo_speakers import Level, Role
from common.errors import CommandError

_YES, _NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def add_method(parser: argparse._ActionsContainer) -> None:
    method_help = "a method that “list” shows, or the description of a command of your own"
    parser.add_argument("--method", required=True, metavar="NAME|FILE.toml", help=method_help)


def add_options(parser: argparse._ActionsContainer, *, listed_by: str = "python -m anonymization list") -> None:
    option_help = f"a setting of the method; may be repeated ({listed_by} shows them)"
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=option_help)


def add_reading(parser: argparse._ActionsContainer) -> None:
    """How a source is read, and which voices it gets."""
    parser.add_argument("--role", choices=get_args(Role), help="role of all utterances (default: from lists and names)")
    parser.add_argument("--split", help="split, such as dev or test (default: from the name of a Kaldi directory)")
    level_help = "what has a voice of its own (default: each utterance for training, else each speaker)"
    parser.add_argument("--level", choices=get_args(Level), help=level_help)
    speaker_help = "what names the speaker of a file: its folder, or its name up to the first - or _"
    parser.add_argument("--speaker-from", choices=("folder", "prefix"), help=speaker_help)


def read_reading(options: argparse.Namespace) -> Reading:
    """Return what was said about reading the source.

    Raises:
        CommandError: an empty split, or a suffix that is no part of a name.
    """
    if options.split is not None and not options.split.strip():
        raise CommandError("--split: expected the name of a split, found an empty one.")
    suffix = getattr(options, "suffix", "")
    if "/" in suffix or "\\" in suffix or "\0" in suffix:
        raise CommandError(f"--suffix: expected an ending for names of folders, found “{suffix}”.")
    return Reading(options.role, options.split, options.speaker_from, getattr(options, "format", None) or "wav", suffix)


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


def _whole_number(text: str, pattern: str, expected: str) -> int:
    if not re.fullmatch(pattern, text):
        raise argparse.ArgumentTypeError(f"expected {expected}, found “{text[:40]}”")
    return int(text)


def count(text: str) -> int:
    """Return a number of things, from 1."""
    return _whole_number(text, "(?=.{1,9}$)0*[1-9][0-9]*", "a number from 1")


def seed(text: str) -> int:
    """Return any whole number that Python reads at a reasonable cost."""
    return _whole_number(text, "-?[0-9]{1,100}", "a whole number")


def jobs(text: str) -> int:
    """Return a number of processes; 0 for one on each core."""
    return _whole_number(text, "[0-9]{1,4}", "a number of processes") or len(os.sched_getaffinity(0))


def find_description(name: str) -> Path | None:
    """Return the file that describes the method, where the name is that of a file."""
    path = Path(name)
    return path if path.suffix == ".toml" and path.is_file() else None
