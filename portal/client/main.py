"""The commands of ``vp``, their arguments and how they end.

Exit code 0: done; 1: done, but what was looked at has errors; 2: it cannot be done, said in one sentence on standard
error. A command is a module of this package with `DESCRIPTION`, `add_arguments` and `run`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from common.errors import Refused, Unreachable
from common.terminal import Parser, run_command

PROGRAM = "vp"
# name: one line for the help
COMMANDS = {
    "login": "save the address of a portal and your access token",
    "data": "fetch the speech and the lists of an edition, check and unpack them",
    "run": "anonymise the speech by a built-in method or a command of your own",
    "pack": "make the archive that the edition requires, and check it",
    "verify": "check an archive or a folder before it is sent: every problem at once",
    "submit": "send an archive, resuming after any interruption, and read its report",
    "status": "your submissions, or one of them: timeline, problems, progress",
    "study": "make a listening test of a folder of recordings, or of the systems of an edition",
    "results": "the numbers of a system, next to the reported ones",
}
_EPILOGUE = "Exit code: 0 fine, 1 errors found, 2 bad usage or something that cannot be read or reached."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, or print the help; returns the exit code and never raises for what a person typed or sent."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    return run_command(lambda: _parser(given).parse_args(given), Refused, Unreachable)


def _parser(given: Sequence[str]) -> Parser:
    """Knows the arguments of the command that is asked for; of the others their names, without importing them."""
    parser = Parser(
        prog=PROGRAM, description="The VoicePrivacy Portal from the shell.", epilog=_EPILOGUE, allow_abbrev=False
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, line in COMMANDS.items():
        if name not in given:
            commands.add_parser(name, help=line)
            continue
        module = import_module(f"portal.client.{name}")
        one = commands.add_parser(name, help=line, description=module.DESCRIPTION, epilog=_EPILOGUE, allow_abbrev=False)
        module.add_arguments(one)
        one.set_defaults(run=module.run)
    return parser
