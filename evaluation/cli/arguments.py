"""What commands share: kinds of arguments, the files that they read and write, and how they end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from typer import Option

from common import terminal
from common.errors import CommandError
from common.problems import Problem, find_first_error
from common.tables import csv_lines
from evaluation.formats.kaldi import Parsed

T = TypeVar("T")
Device = Annotated[Literal["cpu", "cuda"], Option(help="Where it runs.")]
Changes = Annotated[
    list[str] | None,
    Option("--set", metavar="NAME=VALUE", help="Another value of the recipe, such as steps=500; may be repeated."),
]


def read_changes(given: Sequence[str] | None) -> dict[str, str]:
    """Return what stands after ``--set``, by name.

    Raises:
        CommandError: something is missing.
    """
    changes = [text.partition("=") for text in given or ()]
    for name, sign, value in changes:
        if not sign or not value:
            raise CommandError(f"--set: expected NAME=VALUE, found “{name}{sign}”.")
    return {name: value for name, _, value in changes}


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
