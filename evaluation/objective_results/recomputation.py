"""Reported numbers beside those that follow from the score files of a submission and the official trials.

**Score files of a submission** (`measure_tests`). A reported number agrees where the recomputed one is printed the same
(protocol 1.2), give or take the 1e-9 by which two implementations differ. Where the trials come from is the caller's
matter: a folder of Kaldi data directories, or the lists of a corpus.

**One score file** (`measure_scores`): from a Kaldi file to its numbers in one call.

Conventions: equal error rates are in per cent, but shares as `measure_scores` gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from common.errors import InputError
from common.problems import Problem, ProblemList, Severity, shorten
from evaluation.formats.results import CATEGORIES, NumberIdentity, ReportedNumber
from evaluation.formats.scores import JoinedScores, TrialTable, join_scores, read_scores, read_trial_table
from evaluation.metrics.calibration import Compatibility
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.detection import DetectionMetrics, detection_metrics
from evaluation.metrics.exposure import Exposure, Trials, make_trials, measure_exposure
from evaluation.objective_results.results.folders import ScoreFile, SystemResults
from evaluation.objective_results.results.results_2022 import make_reported_number, parse_number
from evaluation.protocols.recipes import DataSet, list_hash

TOLERANCE = 1e-9

TestKey = tuple[str, object, object, object]  # data set; speech of training, enrolment and trials
TrialLookup = Callable[[DataSet], TrialTable]


@dataclass(frozen=True, slots=True)
class RecomputedNumber:
    """A number as reported in one place and as it follows from the files.

    Attributes:
        scores: the file that it was recomputed from.
        value: recomputed, with every digit.
        written: the same as the official scripts print it.
    """

    reported: ReportedNumber
    scores: str
    value: float
    written: str

    @property
    def agrees(self) -> bool:
        """Return whether the reported number is the recomputed number as printed."""
        return agrees(self.reported, self.value)


@dataclass(frozen=True)
class MeasuredTest:
    """One verification test as its scores say.

    Attributes:
        joined: the scores by trial, in the order of the trials.
        numbers: every reported number of it, in every place where it stands.
    """

    file: ScoreFile
    joined: JoinedScores
    metrics: DetectionMetrics
    numbers: tuple[RecomputedNumber, ...]

    @cached_property
    def trials(self) -> Trials:
        """Return the scored trials with their names."""
        return encode_trials(self.joined)

    @cached_property
    def exposure(self) -> Exposure:
        """Return what the equal error rate hides."""
        return measure_exposure(self.trials)


def measure_tests(
    system: SystemResults,
    data_sets: Mapping[str, DataSet],
    trials: TrialLookup,
    problems: ProblemList,
    files: Iterable[ScoreFile] | None = None,
) -> Iterator[MeasuredTest]:
    """Measure every score file of a submission against the trials; what is wrong is added to `problems`.

    Problems besides those of `join_scores`: ``no-scores``, ``missing-file`` (of the trials), ``wrong-trials`` (another
    list than the official one). Scores that do not cover their trials are measured as far as they do, as by Kaldi; a
    test without scores of both target and nontarget trials is not. What does not agree is the caller's to tell.

    Args:
        data_sets: of the recipe.
        trials: the list of a data set; empty where there is none.
        files: the system's score files, or an iterator over them that shows how far it is.
    """
    if not system.scores:
        remedy = "Submit the results directories with their ASV-* folders."
        problems.add(Problem("no-scores", system.system, "score files to recompute from", "none", remedy))
    reported_numbers: dict[TestKey, list[ReportedNumber]] = {}
    for reported in (*system.reported_numbers, *system.repeated):
        reported_numbers.setdefault(test_key(reported.identity), []).append(reported)
    tables: dict[str, TrialTable] = {}
    for file in system.scores if files is None else files:
        if file.data_set not in tables:
            tables[file.data_set] = trials(data_sets[file.data_set])
            check_trials(tables[file.data_set], data_sets[file.data_set], problems)
        if not len(tables[file.data_set].targets):
            continue
        joined = join_scores(read_scores(file.path, file.name), tables[file.data_set])
        problems.keep(joined.problems)
        if not joined.targets.any() or joined.targets.all():
            continue  # said by the problems of the join
        metrics = detection_metrics(joined.target_scores, joined.nontarget_scores)
        numbers = []
        for reported in reported_numbers.get(test_key(file), []):
            value = detection_value(metrics, reported.identity)
            written = make_reported_number(reported.identity, value).written
            numbers.append(RecomputedNumber(reported, file.name, value, written))
        yield MeasuredTest(file, joined, metrics, tuple(numbers))


def test_key(one: NumberIdentity | ScoreFile) -> TestKey:
    """Return what tells one verification test from another."""
    return one.data_set, one.training, one.enrolment, one.speech


def check_trials(table: TrialTable, data_set: DataSet, problems: ProblemList) -> None:
    """Add what is wrong with a trial list, and whether it is another than the edition's."""
    problems.keep(table.problems)
    remedy = "Name the organizer's data directories with --data."
    targets = int(table.targets.sum())
    found = targets, len(table.targets) - targets
    wanted = data_set.targets, data_set.nontargets
    if len(table.targets) and None not in wanted and found != wanted:
        expected, shown = (f"{one} targets and {other} nontargets" for one, other in (wanted, found))
        problems.add(Problem("wrong-trials", table.name, expected, shown, remedy))
    elif len(table.targets) and data_set.trials_hash:
        kinds = ("nontarget", "target")
        pairs = (pair.decode() for pair in table.pairs.tolist())
        digest = list_hash(f"{pair} {kinds[kind]}" for pair, kind in zip(pairs, table.targets.tolist(), strict=True))
        if digest != data_set.trials_hash:
            expected = f"the trials of {data_set.name}, hash {data_set.trials_hash}"
            problems.add(Problem("wrong-trials", table.name, expected, f"hash {digest}", remedy))


def agrees(reported: ReportedNumber, value: float) -> bool:
    """Return whether a reported number is a recomputed value as the official scripts print it."""
    if not math.isfinite(value):
        return reported.value == value
    slack = TOLERANCE * max(1.0, abs(value))
    low, high = (_printed(reported, value + side) for side in (-slack, slack))
    return low <= reported.value <= high


def detection_value(measured: DetectionMetrics, identity: NumberIdentity) -> float:
    """Return the value of a metric of speaker verification; a ZEBRA category counts 0 for “0” and 1 to 6 for A to F."""
    if identity.metric == "zebra_category":
        return float(CATEGORIES.index(measured.zebra.category))
    return measured.values()[find_metric(identity.metric, identity.estimator).key]


def unlike(one: RecomputedNumber, code: str) -> Problem:
    """That a reported number is not the number that follows from the files."""
    reported = one.reported
    metric = find_metric(reported.identity.metric, reported.identity.estimator)
    expected = f"{one.written} for {metric.label} of {reported.identity.data_set}, recomputed from {one.scores}"
    remedy = "Submit the scores and the numbers of one run."
    return Problem(code, reported.file, expected, f"“{reported.written}”", remedy, line=reported.line)


def _printed(reported: ReportedNumber, value: float) -> float:
    """Return the number that is left of a value in print."""
    return (
        value
        if reported.identity.metric == "zebra_category"
        else parse_number(make_reported_number(reported.identity, value).written)
    )


def join_files(scores: Path | str, trials: Path | str) -> JoinedScores:
    """Return the trials of a list with their scores, and every problem of both files."""
    return join_scores(read_scores(Path(scores), str(scores)), read_trial_table(Path(trials), str(trials)))


def encode_trials(joined: JoinedScores) -> Trials:
    """Scored trials as `evaluation.metrics.exposure` takes them.

    Raises:
        InputError: no target or no nontarget trial among them.
    """
    models, utterances = ([name.decode() for name in side.tolist()] for side in (joined.models, joined.utterances))
    return make_trials(joined.scores, joined.targets, models, utterances)


def measure_scores(
    scores: Path | str, trials: Path | str, *, compatibility: Compatibility = "documented"
) -> DetectionMetrics:
    """Return every detection metric of a Kaldi ``scores`` file.

    Args:
        scores: lines of ``<model> <utterance> <score>``; a higher score means more alike.
        trials: lines of ``<model> <utterance> target|nontarget``.
        compatibility: as in `detection_metrics`.

    Raises:
        InputError: any error in the files; the first of each kind are named, the others counted. (`join_files`
            gives all problems and what can be had of the files.)

    Example:
        measured = measure_scores("ASV-libri_test_enrolls-libri_test_trials_f/scores", "libri_test_trials_f/trials")
        print(measured.kaldi_eer, measured.min_cllr)
    """
    joined = join_files(scores, trials)
    problems = [problem.sentence() for problem in shorten(joined.problems) if problem.severity is Severity.ERROR]
    if problems:
        raise InputError("\n".join(problems))
    return detection_metrics(joined.target_scores, joined.nontarget_scores, compatibility=compatibility)
