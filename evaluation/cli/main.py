"""The commands, their arguments and how they end.

Exit code 0: done; 1: done, but with problems that are errors; 2: bad usage or an input that cannot be read, said in one
sentence on standard error. Numbers are computed by `evaluation.metrics`; heavy
libraries are imported there, when they are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from common.errors import InputError
from common.terminal import Parser, run_command

PROGRAM = "python -m evaluation"
# name: one line for the help
COMMANDS = {
    "score": "every detection metric of a Kaldi score file, with intervals and a DET figure",
    "pitch": "pitch correlation of original and anonymised speech",
    "verify": "check a result file, results directory or submission: problems, averages, conditions",
    "compare": "two results side by side with their differences",
    "attack": "attack anonymised speech: vectors, scores of every trial, EERs with intervals, voices",
    "naturalness": "naturalness as a network predicts it (DNSMOS), of a folder of speech",
    "recognize": "transcribe speech with a recogniser, and count word errors with intervals",
    "retrain-recognizer": "phone error rates by a recogniser that was trained on the anonymised speech, and by one not",
    "models": "model files of attackers and recognisers: which are present; fetch the others",
    "train-attacker": "train a speaker recogniser on anonymised speech, as a semi-informed attacker would",
    "list": "metrics, editions and estimators",
}
_EPILOGUE = "Exit code: 0 done, 1 problems found, 2 bad usage or unreadable input. Results go to standard output."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never raises for what a person typed or sent."""
    return run_command(lambda: _parser().run(arguments), InputError)


def _parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="The objective numbers of the VoicePrivacy challenges from files.",
        epilog=_EPILOGUE,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    for name, line in COMMANDS.items():
        module = import_module(f"evaluation.cli.{'listing' if name == 'list' else name.replace('-', '_')}")
        one = commands.add_parser(name, help=line, description=module.DESCRIPTION, epilog=_EPILOGUE, allow_abbrev=False)
        module.add_arguments(one)
        one.add_argument("--json", action="store_true", help="machine-readable, with every digit")
        one.set_defaults(run=module.run)
    return parser
