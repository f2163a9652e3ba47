"""From a Kaldi score file to its numbers in one call."""

from __future__ import annotations

from pathlib import Path

from evaluation.formats.problem_list import shorten
from evaluation.formats.problems import Severity
from evaluation.formats.scores import JoinedScores, join_scores, read_scores, read_trial_table
from evaluation.metrics.calibration import Compatibility
from evaluation.metrics.detection import DetectionMetrics, detection_metrics
from evaluation.metrics.errors import MetricInputError


def join_files(scores: Path | str, trials: Path | str) -> JoinedScores:
    """The trials of a list with their scores, and every fault of both files."""
    return join_scores(read_scores(Path(scores), str(scores)), read_trial_table(Path(trials), str(trials)))


def measure_scores(
    scores: Path | str, trials: Path | str, *, compatibility: Compatibility = "documented"
) -> DetectionMetrics:
    """Every detection metric of a Kaldi ``scores`` file.

    Args:
        scores: lines of ``<model> <utterance> <score>``; a higher score means more alike.
        trials: lines of ``<model> <utterance> target|nontarget``.
        compatibility: as in `detection_metrics`.

    Raises:
        MetricInputError: any fault of the files; the first of each kind are named, the others counted. (`join_files`
            gives all faults and what can be had of the files.)

    Example:
        measured = measure_scores("ASV-libri_test_enrolls-libri_test_trials_f/scores", "libri_test_trials_f/trials")
        print(measured.kaldi_eer, measured.min_cllr)
    """
    joined = join_files(scores, trials)
    faults = [problem.sentence() for problem in shorten(joined.problems) if problem.severity is Severity.ERROR]
    if faults:
        raise MetricInputError("\n".join(faults))
    return detection_metrics(joined.target_scores, joined.nontarget_scores, compatibility=compatibility)
