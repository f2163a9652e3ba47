"""Words after ``vp``: read as the program reads them, and run."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

from portal.client.main import PROGRAM, main, make_program


def run_study(*words: object) -> int:
    """Run a command of ``vp study``; returns its exit code."""
    return main(["study", *map(str, words)])


def read_words(words: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of the command by name; raises what the program says of words that it does not take."""
    command: Any = make_program()
    name, rest, context = PROGRAM, list(words), None
    while isinstance(command, TyperGroup):
        context = command.make_context(name, list(rest), parent=context)
        name, command, rest = command.resolve_command(context, rest)
    return command.make_context(name, rest, parent=context).params
