"""The commands, their arguments and how they end.

Exit code 0: done; 1: done, but for utterances or with findings that are errors; 2: bad usage or an input that cannot be
read, said in one sentence on standard error; 130: interrupted.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from anonymization.cli import listing, run, train, voices
from anonymization.cli.records import FULL
from anonymization.methods.contract import MethodError
from common.errors import CommandError, InputError
from common.terminal import Parser, run_command

PROGRAM = "python -m anonymization"

# name: module with `DESCRIPTION`, `add_arguments` and `run`, and one line for the help
COMMANDS = {
    "run": (run, "anonymise a folder or Kaldi data directories; continues where an earlier call ended"),
    "voices": (voices, "voices of all speakers, as a table or CSV; or check such a file"),
    "list": (listing, "the methods with their parameters and options, and what is missing on this machine"),
    "train": (train, "train a network of the methods that convert by content; continues where it was stopped"),
}
_EPILOGUE = (
    "Exit code: 0 done, 1 done but with errors, 2 bad usage or unreadable input, 130 interrupted. "
    "Results go to standard output."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never raises for what a person typed or sent."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return run_command(lambda: _parser().parse_args(given), MethodError, InputError)


def _parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Anonymise speech by the methods of the VoicePrivacy challenges or your own.",
        epilog=_EPILOGUE,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, (module, line) in COMMANDS.items():
        one = commands.add_parser(name, help=line, description=module.DESCRIPTION, epilog=_EPILOGUE, allow_abbrev=False)
        module.add_arguments(one)
        one.add_argument("--json", action="store_true", help="machine-readable, with every digit")
        one.set_defaults(run=_flush_after(module.run))
    return parser


def _flush_after(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Return the command, with a sentence where what it prints cannot be written."""

    def run_and_flush(options: argparse.Namespace) -> int:
        try:
            code = command(options)
            sys.stdout.flush()
        except OSError as error:
            if error.filename is not None or error.errno not in (*FULL, errno.EIO):
                raise
            _discard_output()
            raise CommandError(
                f"Standard output: expected space for what is printed, found “{error.strerror}”. Make space."
            ) from error
        return code

    return run_and_flush


def _discard_output() -> None:
    """What still waits to be printed would fail again as Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
