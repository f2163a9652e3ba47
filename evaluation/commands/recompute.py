"""Claimed numbers beside those that follow from score files and the trials of Kaldi data directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluation.commands.terminal import CommandError, with_progress
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem
from evaluation.formats.recomputation import RecomputedNumber, measure_tests, unlike
from evaluation.formats.results import SystemResults
from evaluation.formats.scores import TrialTable, read_trial_table
from evaluation.protocols.recipes import DataSet, Recipe, load_recipe


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What the score files of a submission say.

    Attributes:
        files: score files that were measured.
        numbers: every claimed number of them, in every place where it stands.
        problems: faults of scores and trials, and ``unlike-scores`` in every place that does not agree.
    """

    files: tuple[str, ...]
    numbers: tuple[RecomputedNumber, ...]
    problems: tuple[Problem, ...]


def recompute(system: SystemResults, data: Path, recipe: Recipe | None = None) -> Recomputation:
    """Measure every score file of a submission against the trials in `data`, as `measure_tests` does.

    Args:
        recipe: an organizer's own, in place of that of the system's edition.

    Raises:
        CommandError: `data` is no folder.
    """
    if not data.is_dir():
        raise CommandError(f"--data {data}: expected the folder of the Kaldi data directories, found none.")
    recipe = recipe or (load_recipe(system.edition) if system.edition else None)
    data_sets = recipe.data_sets if recipe else {}
    problems = ProblemList()
    files = with_progress(system.scores, len(system.scores), "score files")
    tests = list(measure_tests(system, data_sets, lambda one: _trials(data, one), problems, files))
    numbers = tuple(number for test in tests for number in test.numbers)
    problems.keep(unlike(one, "unlike-scores") for one in numbers if not one.agrees)
    return Recomputation(tuple(test.file.name for test in tests), numbers, problems.report())


def _trials(data: Path, data_set: DataSet) -> TrialTable:
    name = str(data / data_set.name / "trials")
    return read_trial_table(Path(name), name)
