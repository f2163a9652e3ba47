"""Score files of a submission as they will be measured: read whole, and held against the organizer's trials if known.

A file that passes is measured; one with an error is not, because leaving trials out changes the number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.problems import Problem, Severity, has_errors
from evaluation.formats.scores import JoinedScores, TrialTable, join_scores, list_score_problems, read_scores
from evaluation.metrics.calibration import single_precision
from evaluation.metrics.detection import kaldi_eer
from evaluation.protocols.recipes import DataSet

TrialLookup = Callable[[DataSet], TrialTable | None]
_LARGEST_GAP, _LARGEST_STEPS = 0.01, 2  # of an EER that equal scores leave open: share, and in target trials


def check_score_file(path: Path, name: str, data_set: DataSet, trials: TrialTable | None) -> tuple[Problem, ...]:
    """Every error of a score file; without the organizer's trials, of what the file alone tells.

    Problems: those of `join_scores` or `list_score_problems`, ``wrong-score-count`` and ``equal-scores``.
    """
    scores = read_scores(path, name)
    if trials is not None and len(trials.lines):
        joined = join_scores(scores, trials)
        of_the_list = {id(problem) for problem in trials.problems}
        found = [one for one in joined.problems if id(one) not in of_the_list and one.severity is not Severity.WARNING]
        found = [_in_scores(one, name) if one.file == trials.name else one for one in found]
        return (*found, *find_equal_scores(joined, name))
    problems, wanted = list_score_problems(scores), data_set.trials
    if wanted is None or wanted == len(scores.lines) or (has_errors(problems) and not len(scores.lines)):
        return problems
    remedy = "Kaldi drops a trial silently where a speaker vector is missing: score all of them."
    return (*problems, Problem("wrong-score-count", name, f"{wanted} lines", f"{len(scores.lines)}", remedy))


def _in_scores(problem: Problem, name: str) -> Problem:
    """What is said of a line of the trial list, as a problem of the score file, which is the team's."""
    if problem.line is None:
        return replace(problem, file=name)
    wanted = problem.expected.partition(" for this trial")[0]
    return replace(problem, file=name, line=None, expected=f"{wanted}, line {problem.line} of {problem.file}")


def find_equal_scores(joined: JoinedScores, name: str) -> tuple[Problem, ...]:
    """An error where so many trials have one score that their order, which nobody knows, decides the EER.

    Kaldi lets a nontarget trial pass before a target trial of the same score: one score for all trials gives an EER
    near 100 %, and a target better by next to nothing one near 0 %.
    """
    targets, nontargets = (single_precision(one) for one in (joined.target_scores, joined.nontarget_scores))
    if not (joined.complete and targets.size and nontargets.size):
        return ()
    highest = kaldi_eer(targets, nontargets)
    lowest = kaldi_eer(np.nextafter(targets, np.float32(np.inf)), nontargets)
    if highest - lowest <= max(_LARGEST_GAP, _LARGEST_STEPS / targets.size):
        return ()
    found = f"equal scores leave the EER anywhere from {100 * lowest:.1f} to {100 * highest:.1f} %"
    expected, remedy = (
        "scores that differ between trials",
        "Write the scores with all of their digits, one for each trial.",
    )
    return (Problem("equal-scores", name, expected, found, remedy),)
