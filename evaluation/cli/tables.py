"""The numbers of a result as tables: a family of metrics each, a line for each data set and test.

Used by ``vp verify-results`` and ``vp compare``, which read the result that a person names here, too: a file, a
directory, or one system among several. Conventions: originals are “original”, anonymised speech “anonymised”.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

from typer import Option

from common.errors import CommandError
from common.file_names import plain_name
from common.problems import Severity
from common.terminal import NONE, print_table, print_text
from evaluation.formats.results import AttackModel, Gender, NumberIdentity, ReportedNumber, Speech
from evaluation.metrics.catalogue import find_metric, format_heading, format_value
from evaluation.objective_results.results.folders import SystemResults, read_published, read_results
from evaluation.protocols.recipes import Recipe, load_recipe, read_recipe, shipped_editions

FAMILIES = ("Averages", "Speaker verification", "Speech recognition", "Emotion recognition", "Pitch and voices")
_GENDERS = {Gender.FEMALE: "f", Gender.MALE: "m", Gender.MIXED: "f and m", Gender.ALL: "all"}
_WITH_ESTIMATOR = {"wer"}
_LONGEST_NUMBER = 10

T = TypeVar("T")
RecipeFile = Annotated[
    Path | None,
    Option("--recipe", metavar="FILE", help="An organizer's custom recipe (TOML), from the page of its edition."),
]


def family(identity: NumberIdentity) -> str:
    """Return the table that a number stands in."""
    if identity.data_set.startswith("average_"):
        return FAMILIES[0]
    if identity.enrolment is not None:
        return FAMILIES[1]
    if identity.metric == "wer":
        return FAMILIES[2]
    return FAMILIES[3] if identity.metric == "uar" or identity.metric.startswith("accuracy_") else FAMILIES[4]


def attack(identity: NumberIdentity) -> str:
    """Return the attack model of a verification test; the models and speech of any other."""
    model = identity.attack_model
    if model is None:
        return "" if identity.training is None else f"{identity.training} model, {identity.speech} speech"
    retrained = identity.training is Speech.ANONYMISED and model is not AttackModel.SEMI_INFORMED
    return f"{model}, retrained" if retrained else str(model)


def column(identity: NumberIdentity) -> str:
    """Return the heading that a number stands under, with its unit."""
    metric = find_metric(identity.metric, identity.estimator)
    return format_heading(metric, detail=identity.estimator if identity.metric in _WITH_ESTIMATOR else "")


def written(reported: ReportedNumber) -> str:
    """Return the number as its file has it; one with all digits of a float is cut to those that mean something."""
    if len(reported.written) <= _LONGEST_NUMBER:
        return reported.written
    return format_value(reported.value, find_metric(reported.identity.metric, reported.identity.estimator))


def print_reported(reported_numbers: Iterable[ReportedNumber]) -> None:
    """Every number as it was written, a table for each family."""
    for name, members in _by_family(reported_numbers, lambda reported: reported.identity).items():
        columns = list(dict.fromkeys(column(reported.identity) for reported in members))
        rows: dict[NumberIdentity, dict[str, str]] = {}  # what was tested, whatever the metric: one line of a table
        for reported in members:
            test = replace(reported.identity, metric="", estimator="")
            rows.setdefault(test, {})[column(reported.identity)] = written(reported)
        print_text(f"\n{name}\n")
        tests = any(attack(test) for test in rows)
        header = ["data set", "gender", *(["test"] if tests else []), *columns]
        lines = [
            [
                test.data_set,
                _GENDERS[test.gender],
                *([attack(test)] if tests else []),
                *(cells.get(each, NONE) for each in columns),
            ]
            for test, cells in rows.items()
        ]
        print_table(header, lines, indent="  ")


def reported_row(reported: ReportedNumber) -> dict[str, object]:
    """Return one number for JSON, with everything that identifies it."""
    identity = reported.identity
    row = {name: getattr(identity, name) for name in ("data_set", "gender", "metric", "estimator")}
    row["key"] = find_metric(identity.metric, identity.estimator).key
    row |= {name: getattr(identity, name) for name in ("training", "enrolment", "speech", "attack_model")}
    row |= {name: getattr(reported, name) for name in ("value", "unit", "written", "file", "line")}
    if reported.counts:
        names = ("errors", "words", "insertions", "deletions", "substitutions")
        row["counts"] = {name: getattr(reported.counts, name) for name in names}
    return row


def in_order(identities: Iterable[NumberIdentity]) -> list[NumberIdentity]:
    """Identities by family, then as they came."""
    return [one for members in _by_family(identities, lambda each: each).values() for one in members]


def label_of(identity: NumberIdentity) -> Sequence[str]:
    """Return data set, gender, test and metric, in words."""
    return identity.data_set, _GENDERS[identity.gender], attack(identity), column(identity)


def _by_family(items: Iterable[T], identity_of: Callable[[T], NumberIdentity]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {name: [] for name in FAMILIES}
    for item in items:
        found[family(identity_of(item))].append(item)
    return {name: members for name, members in found.items() if members}


_UNREADABLE = {"no-results", "empty-file", "wrong-encoding", "not-text", "long-line", "missing-file", "not-a-file"}


def recipe_at(path: Path | None) -> Recipe | None:
    """Return the recipe of ``--recipe``; None where it was not given.

    Raises:
        ProblemsError: it cannot be read, or is none.
    """
    return None if path is None else read_recipe(path)


def recipe_of(system: SystemResults, own: Recipe | None) -> Recipe:
    """Return what the results of a system were held against."""
    return own or load_recipe(system.edition)


def results_at(path: Path, edition: str | None = None, recipe: Recipe | None = None) -> tuple[SystemResults, ...]:
    """Return everything that lies at a path; ``FOLDER/SYSTEM`` is one system of a folder of published files.

    Args:
        recipe: an organizer's own, in place of an edition's.

    Raises:
        CommandError: nothing there, or nothing that can be read as results.
    """
    if os.path.exists(path):  # noqa: PTH110 (false where a folder above may not be entered; Path.exists raises)
        return _readable(path, read_results(path, edition=edition, recipe=recipe))
    folder = path.parent
    found = read_published(folder, edition=edition, recipe=recipe) if folder != Path() else ()
    chosen = tuple(one for one in found if one.system == plain_name(path.name) and one.reported_numbers)
    if not chosen:
        known = ", ".join(one.system for one in found if one.reported_numbers)
        hint = f"{folder} holds the systems {known}." if known else "Name a result file or a results directory."
        raise CommandError(f"{path}: expected results, found no such file, directory or system. {hint}")
    return chosen


def one_result_at(path: Path, recipe: Recipe | None = None) -> SystemResults:
    """Return the only system at a path.

    Raises:
        CommandError: as `results_at`, or several systems.
    """
    found = results_at(path, recipe=recipe)
    if len(found) > 1:
        names = ", ".join(one.system for one in found)
        raise CommandError(f"{path}: expected one system, found {names}. Name one, such as {path / found[0].system}.")
    return found[0]


def _readable(path: Path, found: tuple[SystemResults, ...]) -> tuple[SystemResults, ...]:
    if not any(one.reported_numbers for one in found):
        problems = [problem for one in found for problem in one.problems]
        first = next((one for one in problems if one.code in _UNREADABLE), problems[0] if problems else None)
        reason = f" {first.sentence()}" if first else ""
        if {one.code for one in problems if one.severity is Severity.ERROR} <= {"unknown-line"}:
            reason = f" No line is one of a result file of {', '.join(shipped_editions())}. Name such a file."
        raise CommandError(f"{path}: expected results of a challenge, found no number.{reason}")
    return found
