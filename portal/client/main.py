"""The program ``vp``: its commands, each loaded when it is asked for, and how they end.

Exit code 0: done; 1: done, but what was looked at has errors; 2: it cannot be done, said in one sentence on standard
error; 130: interrupted. A command is a function: its parameters are the arguments, its docstring is the help.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from textwrap import dedent, indent
from typing import Any, cast

from typer import Exit, Typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from common.errors import CommandError, InputError, Refused, Unreachable
from common.packages import describe_missing
from common.terminal import FINE, run_command
from portal.client.commands import COMMANDS, GROUPS, OURS

PROGRAM = "vp"
_TARGETS = {f"{PROGRAM} {name}": target for commands in COMMANDS.values() for name, (target, _) in commands.items()}
_EPILOGUE = "Exit code: 0 fine, 1 problems found, 2 bad usage or something that cannot be read or reached."
_SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyGroup(TyperGroup):
    """Commands known by name, of which only the one that runs is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if target := _TARGETS.get(f"{ctx.command_path} {name}"):
            module, _, function_name = target.partition(":")
            function = getattr(import_module(module), function_name)
            app = Typer(add_completion=False, context_settings=_SETTINGS)
            app.command(name, help=_write_help(inspect.getdoc(function) or ""))(function)
            command = get_command(app)
        return name, command, rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, or print the help; returns the exit code and never raises for what a person typed or sent."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    return run_command(lambda: _run(words), InputError, Refused, Unreachable)


def _run(words: list[str]) -> int:
    program = make_program()
    named = " ".join((PROGRAM, *words[: 2 if words[0] in GROUPS else 1]))
    if f"_{PROGRAM.upper()}_COMPLETE" in os.environ:  # a shell asks what may follow
        program(prog_name=PROGRAM)
    try:
        with program.make_context(PROGRAM, words) as context:
            code: int = program.invoke(context)
    except Exit as ended:  # after the help
        return ended.exit_code
    except SystemExit:  # of rich: the reader of the help, such as `head`, has seen enough
        return FINE
    except ModuleNotFoundError as error:  # vp as one file brings what most commands need
        if str(error.name).partition(".")[0] in OURS:
            raise
        raise CommandError(describe_missing(named, str(error.name).partition(".")[0])) from error
    except TyperException as error:
        asked = getattr(getattr(error, "ctx", None), "command_path", named)
        sentence = error.format_message()
        end = "" if sentence.endswith((".", "?")) else "."
        raise CommandError(f"{asked}: {sentence}{end} See {asked} --help.") from error
    return code


def make_program() -> TyperGroup:
    """Return the program with all commands by their names."""
    about = "The VoicePrivacy Portal from the shell."
    app = Typer(cls=LazyGroup, help=about, context_settings=_SETTINGS, epilog=_EPILOGUE)
    groups = {"": app}
    for panel, commands in COMMANDS.items():
        for name, (_, line) in commands.items():
            group, _, own_name = name.rpartition(" ")
            if group not in groups:
                groups[group] = Typer(cls=LazyGroup, context_settings=_SETTINGS, epilog=_EPILOGUE)
                app.add_typer(groups[group], name=group, help=GROUPS[group], rich_help_panel=panel)
            groups[group].command(own_name, help=line, rich_help_panel=panel)(_stand_in)
    return cast("TyperGroup", get_command(app))


def _write_help(docstring: str) -> str:
    """Return the docstring with one line for each paragraph, which terminals wrap, and a heading of the examples."""
    *paragraphs, examples = docstring.split("\n\n")
    parts = [paragraph.replace("\n", " ") for paragraph in paragraphs]
    return "\n\n".join([*parts, f"Examples:\n{indent(dedent(examples), '    ')}", _EPILOGUE])


def _stand_in() -> None:
    """Hold the place of a command whose module is not imported yet."""
