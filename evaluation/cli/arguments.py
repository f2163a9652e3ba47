"""What commands share: kinds of arguments, the files that they read and write, and how they end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from common import terminal
from common.errors import CommandError, InputError
from common.problems import Problem, find_first_error
from common.tables import csv_lines
from evaluation.formats.kaldi import Parsed

T = TypeVar("T")


def number_from(least: int, what: str, most: int = sys.maxsize) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number; `what` says so in the sentence that refuses another
    one."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"expected {what}, found “{text}”")
        return number

    return parse


def read_change(text: str) -> tuple[str, str]:
    """Name and value of NAME=VALUE after ``--set``.

    Raises:
        InputError: something is missing.
    """
    name, sign, value = text.partition("=")
    if not sign or not value:
        raise InputError(f"--set: expected NAME=VALUE, found “{text}”.")
    return name, value


def require_entries(parsed: Parsed[T]) -> T:
    """Return what a listing holds.

    Raises:
        CommandError: nothing in it that can be read.
    """
    if not parsed.content:
        raise CommandError(find_first_error(parsed.problems).sentence())
    return parsed.content


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which file it was that could not be written.

    Raises:
        CommandError
    """
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path}: expected a file that can be written, found “{error.strerror}”.") from error


def write_csv(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Write a table, the names of its columns first among the rows.

    Raises:
        CommandError: the file cannot be written.
    """
    with writing(path), path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(csv_lines(rows, "\n"))


def finish(failures: Sequence[str], problems: Sequence[Problem]) -> int:
    """Tell what failed, a sentence each, then the problems of the input; the exit code."""
    for sentence in failures:
        terminal.print_message(f"error: {sentence}")
    code = terminal.print_problems(problems)
    return terminal.PROBLEMS if failures else code
