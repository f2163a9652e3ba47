"""``vp compare``: two results side by side, number by number, with their differences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from common.errors import CommandError
from common.parameters import AsJson
from common.problems import Severity, has_errors
from common.terminal import FINE, NONE, PROBLEMS, print_json, print_message, print_paragraph, print_table, print_text
from evaluation.cli import tables
from evaluation.formats.results import NumberIdentity, ReportedNumber
from evaluation.metrics.catalogue import Direction, find_metric
from evaluation.objective_results.recomputation import TestKey, test_key
from evaluation.objective_results.results.folders import SystemResults

Notes = Mapping[TestKey, str]


def compare(
    a: Annotated[Path, Argument(metavar="A", help="First result.")],
    b: Annotated[Path, Argument(metavar="B", help="Second result.")],
    metric: Annotated[
        str | None, Option(metavar="KEY", help="Only this metric, such as eer, wer, pitch_correlation.")
    ] = None,
    recipe: tables.RecipeFile = None,
    as_json: AsJson = False,
) -> int:
    """Show two results side by side, with their differences: the second minus the first.

    Each is a result file, a results directory, or FOLDER/SYSTEM for one of several systems in a folder.

        vp compare results/result_for_rank_a results/result_for_rank_b
    """
    own = tables.recipe_at(recipe)
    first, second = tables.one_result_at(a, own), tables.one_result_at(b, own)
    sides = [{reported.identity: reported for reported in one.reported_numbers} for one in (first, second)]
    identities = tables.in_order(dict.fromkeys([*sides[0], *sides[1]]))
    if metric:
        identities = [one for one in identities if metric in (one.metric, find_metric(one.metric, one.estimator).key)]
        if not identities:
            known = ", ".join(
                dict.fromkeys(each.identity.metric for one in (first, second) for each in one.reported_numbers)
            )
            raise CommandError(f"--metric: expected one of {known}, found “{metric}”.")
    if not any(one in sides[0] and one in sides[1] for one in identities):
        raise CommandError(
            f"{a} and {b}: expected numbers of the same tests, found none in common "
            f"({first.edition} and {second.edition}). Compare results of one edition."
        )
    same = first.system == second.system
    names = (str(a), str(b)) if same else (first.system, second.system)
    notes = _find_faulty_tests(first), _find_faulty_tests(second)
    if as_json:
        rows = [
            _row(one, sides[0], sides[1])
            | {
                f"{side}_note": found.get(test_key(one), "")
                for side, found in zip(("first", "second"), notes, strict=True)
            }
            for one in identities
        ]
        print_json({"first": names[0], "second": names[1], "numbers": rows})
    else:
        _print_all(identities, sides[0], sides[1], names, notes)
    faulty = [name for name, one in zip(names, (first, second), strict=True) if has_errors(one.problems)]
    for name in faulty:
        print_message(f"{name}: the files have errors, so the numbers may mislead; `vp verify-results` names them.")
    return PROBLEMS if faulty else FINE


def _print_all(
    identities: list[NumberIdentity],
    first: dict[NumberIdentity, ReportedNumber],
    second: dict[NumberIdentity, ReportedNumber],
    names: tuple[str, str],
    notes: tuple[Notes, Notes],
) -> None:
    for name in dict.fromkeys(tables.family(one) for one in identities):
        rows = []
        for one in (each for each in identities if tables.family(each) == name):
            a, b = first.get(one), second.get(one)
            marks = ["*" if test_key(one) in found else "" for found in notes]
            values = [
                tables.written(reported) + mark if reported else NONE
                for reported, mark in zip((a, b), marks, strict=True)
            ]
            compared = [NONE, ""] if any(marks) else [_difference(a, b), _better(a, b, names)]
            rows.append([*tables.label_of(one), *values, *compared])
        print_text(f"{name}\n")
        print_table(["data set", "gender", "test", "metric", *names, "difference", "better"], rows, indent="  ")
        print_text()

    for name, found in zip(names, notes, strict=True):
        for note in dict.fromkeys(found.values()):
            print_paragraph(f"* {name}: {note}")


def _find_faulty_tests(result: SystemResults) -> Notes:
    """Return by test what is wrong with its scores, whose numbers are then of another test or open."""
    errors: dict[str, str] = {}
    for problem in result.problems:
        if problem.severity is Severity.ERROR:
            errors.setdefault(problem.file, problem.sentence())
    return {test_key(file): errors[file.name] for file in result.scores if file.name in errors}


def _delta(a: ReportedNumber | None, b: ReportedNumber | None) -> float | None:
    return b.value - a.value if a and b else None


def _difference(a: ReportedNumber | None, b: ReportedNumber | None) -> str:
    if a is None or b is None:
        return NONE
    return f"{b.value - a.value:+z.{_decimals(a, b)}f}"


def _decimals(a: ReportedNumber, b: ReportedNumber) -> int:
    """Return those of the two numbers as shown, at least those of their metric."""
    metric = find_metric(a.identity.metric, a.identity.estimator)
    shown = [text for text in (tables.written(a), tables.written(b)) if text.lstrip("-").replace(".", "", 1).isdigit()]
    return max([metric.decimals, *(len(text.partition(".")[2]) for text in shown)])


def _better(a: ReportedNumber | None, b: ReportedNumber | None, names: tuple[str, str]) -> str:
    """Return which one the metric prefers; nothing where they agree as far as they are shown, or only one is there."""
    delta = _delta(a, b)
    if a is None or b is None or delta is None or not abs(round(delta, _decimals(a, b))) > 0:
        return ""
    direction = find_metric(a.identity.metric, a.identity.estimator).direction
    if direction not in (Direction.HIGHER, Direction.LOWER):
        return ""
    return names[int((delta > 0) == (direction is Direction.HIGHER))]


def _row(
    identity: NumberIdentity, first: dict[NumberIdentity, ReportedNumber], second: dict[NumberIdentity, ReportedNumber]
) -> dict[str, object]:
    a, b = first.get(identity), second.get(identity)
    known = a or b
    assert known is not None  # noqa: S101
    row = {
        key: value
        for key, value in tables.reported_row(known).items()
        if key not in ("value", "written", "file", "line", "counts")
    }
    values = {"first": a.value if a else None, "second": b.value if b else None, "difference": _delta(a, b)}
    return row | values
