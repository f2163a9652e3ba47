"""Score files of a submission as they will be measured: read whole, and held against the organizer's trials if known.

A file that passes is measured; one with an error is not, because leaving trials out changes the number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from common.problems import Problem, has_errors
from evaluation.formats.scores import TrialTable, join_scores, list_score_problems, read_scores
from evaluation.protocols.recipes import DataSet

TrialLookup = Callable[[DataSet], TrialTable | None]


def check_score_file(path: Path, name: str, data_set: DataSet, trials: TrialTable | None) -> tuple[Problem, ...]:
    """Return every error of a score file; without the organizer's trials, of what the file alone tells.

    Problems: those of `join_scores` but the sign of the scores, or of `list_score_problems`, and
    ``wrong-score-count``.
    """
    scores = read_scores(path, name)
    if trials is not None and len(trials.lines):
        joined = join_scores(scores, trials)
        of_the_list = {id(problem) for problem in trials.problems}
        found = [one for one in joined.problems if id(one) not in of_the_list and one.code != "inverted-scores"]
        return tuple(_in_scores(one, name) if one.file == trials.name else one for one in found)
    problems, wanted = list_score_problems(scores), data_set.trials
    if wanted is None or wanted == len(scores.lines) or (has_errors(problems) and not len(scores.lines)):
        return problems
    remedy = "Kaldi drops a trial silently where a speaker vector is missing: score all of them."
    return (*problems, Problem("wrong-score-count", name, f"{wanted} lines", f"{len(scores.lines)}", remedy))


def _in_scores(problem: Problem, name: str) -> Problem:
    """Return what is said of a line of the trial list, as a problem of the score file, which is the team's."""
    if problem.line is None:
        return replace(problem, file=name)
    wanted = problem.expected.partition(" for this trial")[0]
    return replace(problem, file=name, line=None, expected=f"{wanted}, line {problem.line} of {problem.file}")
