"""``compare``: two results side by side, number by number, with their differences."""

from __future__ import annotations

import argparse
from pathlib import Path

from evaluation.commands.inputs import add_recipe_argument, one_result_at, recipe_at
from evaluation.commands.tables import claim_row, family, in_order, label_of, written
from evaluation.commands.terminal import (
    FINE,
    NONE,
    PROBLEMS,
    CommandError,
    say,
    say_json,
    say_table,
    warn,
)
from evaluation.formats.claims import Claim, ClaimIdentity
from evaluation.formats.problems import has_errors
from evaluation.formats.results import SystemResults
from evaluation.metrics.catalogue import Direction, find_metric

DESCRIPTION = (
    "Two results side by side. Each is a result file, a results directory, or FOLDER/SYSTEM for one of several systems "
    "in a folder. The difference is the second less the first."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("first", type=Path, metavar="A", help="a result")
    parser.add_argument("second", type=Path, metavar="B", help="another one")
    parser.add_argument("--metric", metavar="KEY", help="only this metric, such as eer, wer, pitch_correlation")
    add_recipe_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Compare every number; the exit code."""
    recipe = recipe_at(options.recipe)
    first, second = one_result_at(options.first, recipe), one_result_at(options.second, recipe)
    sides = [{claim.identity: claim for claim in one.claims} for one in (first, second)]
    identities = in_order(dict.fromkeys([*sides[0], *sides[1]]))
    if options.metric:
        identities = [one for one in identities if options.metric in _keys(one)]
        if not identities:
            known = ", ".join(dict.fromkeys(each.identity.metric for one in (first, second) for each in one.claims))
            raise CommandError(f"--metric: expected one of {known}, found “{options.metric}”.")
    if not any(one in sides[0] and one in sides[1] for one in identities):
        raise CommandError(
            f"{options.first} and {options.second}: expected numbers of the same tests, found none in common "
            f"({first.edition} and {second.edition}). Compare results of one edition."
        )
    names = _names(first, second, options)
    if options.json:
        rows = [_row(one, sides[0], sides[1]) for one in identities]
        say_json({"first": names[0], "second": names[1], "numbers": rows})
    else:
        _say(identities, sides[0], sides[1], names)
    return _verdict(first, second)


def _keys(identity: ClaimIdentity) -> set[str]:
    return {identity.metric, find_metric(identity.metric, identity.estimator).key}


def _names(first: SystemResults, second: SystemResults, options: argparse.Namespace) -> tuple[str, str]:
    if first.system != second.system:
        return first.system, second.system
    return str(options.first), str(options.second)


def _say(
    identities: list[ClaimIdentity],
    first: dict[ClaimIdentity, Claim],
    second: dict[ClaimIdentity, Claim],
    names: tuple[str, str],
) -> None:
    for name in dict.fromkeys(family(one) for one in identities):
        rows = []
        for one in (each for each in identities if family(each) == name):
            a, b = first.get(one), second.get(one)
            values = [written(claim) if claim else NONE for claim in (a, b)]
            rows.append([*label_of(one), *values, _difference(a, b), _better(a, b, names)])
        say(f"{name}\n")
        say_table(["data set", "gender", "test", "metric", *names, "difference", "better"], rows, indent="  ")
        say()


def _delta(a: Claim | None, b: Claim | None) -> float | None:
    return b.value - a.value if a and b else None


def _difference(a: Claim | None, b: Claim | None) -> str:
    if a is None or b is None:
        return NONE
    return f"{b.value - a.value:+z.{_decimals(a, b)}f}"


def _decimals(a: Claim, b: Claim) -> int:
    """Those of the two numbers as shown, at least those of their metric."""
    metric = find_metric(a.identity.metric, a.identity.estimator)
    shown = [text for text in (written(a), written(b)) if text.lstrip("-").replace(".", "", 1).isdigit()]
    return max([metric.decimals, *(len(text.partition(".")[2]) for text in shown)])


def _better(a: Claim | None, b: Claim | None, names: tuple[str, str]) -> str:
    """Which one the metric prefers; nothing where they agree as far as they are shown, or only one is there."""
    delta = _delta(a, b)
    if a is None or b is None or delta is None or not abs(round(delta, _decimals(a, b))) > 0:
        return ""
    direction = find_metric(a.identity.metric, a.identity.estimator).direction
    if direction not in (Direction.HIGHER, Direction.LOWER):
        return ""
    return names[int((delta > 0) == (direction is Direction.HIGHER))]


def _row(
    identity: ClaimIdentity, first: dict[ClaimIdentity, Claim], second: dict[ClaimIdentity, Claim]
) -> dict[str, object]:
    a, b = first.get(identity), second.get(identity)
    known = a or b
    assert known is not None  # noqa: S101
    row = {
        key: value
        for key, value in claim_row(known).items()
        if key not in ("value", "written", "file", "line", "counts")
    }
    values = {"first": a.value if a else None, "second": b.value if b else None, "difference": _delta(a, b)}
    return row | values


def _verdict(*systems: SystemResults) -> int:
    faulty = [system.system for system in systems if has_errors(system.problems)]
    for name in faulty:
        warn(f"{name}: the files have errors, so the numbers may mislead; `verify` names them.")
    return PROBLEMS if faulty else FINE
