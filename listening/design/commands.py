"""The commands of ``python -m listening.design``: ``plan`` makes a design of a CSV of trials, ``check`` checks one.

Exit code 0: the certificate passes; 1: it does not; 2: bad usage, an unreadable file, or a request that cannot be met.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from evaluation.commands.running import Parser, run_command
from evaluation.commands.terminal import FINE, PROBLEMS, CommandError, say
from listening.design.allocation import allocate
from listening.design.certificate import Certificate, certify
from listening.design.plan import DesignError, DesignRequest
from listening.design.saving import COLUMNS, read_candidates, read_design, write_design

PROGRAM = "python -m listening.design"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never raises for what a person typed or sent."""
    return run_command(lambda: _parser().parse_args(arguments), DesignError)


def _parser() -> Parser:
    parser = Parser(prog=PROGRAM, description="Designs of listening tests and their balance certificates.")
    commands = parser.add_subparsers(metavar="command", required=True)
    plan = commands.add_parser("plan", help="make a design of a CSV of trials and print its certificate")
    plan.add_argument("candidates", type=Path, help=f"CSV with the columns {', '.join(COLUMNS)}")
    plan.add_argument("--evaluators", type=int, default=52)
    plan.add_argument("--trials", type=int, default=52, help="of each evaluator")
    plan.add_argument("--originals", type=int, default=26, help="among the trials of each evaluator")
    plan.add_argument("--seed", type=int, default=2022)
    plan.add_argument("--sources-may-repeat", action="store_true", help="trial utterances in a session")
    plan.add_argument("--enrolments-may-repeat", action="store_true", help="enrolment utterances in a session")
    plan.add_argument("--sexes-as-in-pool", action="store_true", help="instead of half of each sex")
    plan.add_argument("--out", type=Path, help="file for the design with its request, to be checked again")
    plan.set_defaults(run=_plan)
    check = commands.add_parser("check", help="check a saved design again")
    check.add_argument("design", type=Path, help="file that plan --out wrote")
    check.set_defaults(run=_check)
    for command in (plan, check):
        command.add_argument("--json", action="store_true", help="the certificate as JSON")
    return parser


def _plan(options: argparse.Namespace) -> int:
    candidates = read_candidates(_read(options.candidates).splitlines(), str(options.candidates))
    request = DesignRequest(
        evaluators=options.evaluators,
        trials=options.trials,
        originals=options.originals,
        systems=tuple(sorted({candidate.system for candidate in candidates} - {""})),
        candidates=candidates,
        seed=options.seed,
        sources_may_repeat=options.sources_may_repeat,
        enrolments_may_repeat=options.enrolments_may_repeat,
        sexes_as_in_pool=options.sexes_as_in_pool,
    )
    design = allocate(request)
    if options.out is not None:
        try:
            options.out.write_text(write_design(request, design), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{options.out}: {error.strerror}.") from None
    return _show(certify(request, design), as_json=options.json)


def _check(options: argparse.Namespace) -> int:
    request, design = read_design(_read(options.design), str(options.design))
    return _show(certify(request, design), as_json=options.json)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: expected UTF-8 text.") from None


def _show(certificate: Certificate, *, as_json: bool) -> int:
    if as_json:
        say(json.dumps(certificate.as_json(), indent=1))
    else:
        say(f"Balance certificate: {'passes' if certificate.passes else 'DOES NOT PASS'}")
        say(f"SHA-256 {certificate.sha256}, seed {certificate.seed}, version {certificate.design_version}")
        say(", ".join(f"{value} {name}" for name, value in certificate.numbers.items()))
        for sentence in certificate.relaxed:
            say(f"relaxed  {sentence}")
        for check in certificate.checks:
            say(f"{'ok      ' if check.passed else 'NOT MET '} {check.sentence}")
    return FINE if certificate.passes else PROBLEMS
