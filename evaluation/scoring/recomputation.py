"""Claimed numbers beside those that follow from the score files of a submission and the official trials.

A claimed number agrees where the recomputed one is printed the same (protocol 1.2), give or take the 1e-9 by which two
implementations differ. Where the trials come from is the caller's matter: a folder of Kaldi data directories, or the
lists of a corpus. Convention: equal error rates in per cent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.formats.claims import Claim, ClaimIdentity
from evaluation.formats.data_directories import list_hash
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem
from evaluation.formats.result_lines import CATEGORIES
from evaluation.formats.results import ScoreFile, SystemResults
from evaluation.formats.results_2022 import claim_value, new_claim
from evaluation.formats.scores import JoinedScores, TrialTable, join_scores, read_scores
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.detection import DetectionMetrics, detection_metrics
from evaluation.protocols.recipes import DataSet

TOLERANCE = 1e-9

TestKey = tuple[str, object, object, object]  # data set; speech of training, enrolment and trials
TrialLookup = Callable[[DataSet], TrialTable]


@dataclass(frozen=True, slots=True)
class RecomputedNumber:
    """A number as claimed in one place and as it follows from the files.

    Attributes:
        scores: the file that it was recomputed from.
        value: recomputed, with every digit.
        written: the same as the official scripts print it.
    """

    claim: Claim
    scores: str
    value: float
    written: str

    @property
    def agrees(self) -> bool:
        """Whether the claim is the recomputed number as printed."""
        return agrees(self.claim, self.value)


@dataclass(frozen=True, slots=True)
class MeasuredTest:
    """One verification test as its scores say.

    Attributes:
        joined: the scores by trial, in the order of the trials.
        numbers: every claimed number of it, in every place where it stands.
    """

    file: ScoreFile
    joined: JoinedScores
    metrics: DetectionMetrics
    numbers: tuple[RecomputedNumber, ...]


def measure_tests(
    system: SystemResults, data_sets: Mapping[str, DataSet], trials: TrialLookup, problems: ProblemList,
    files: Iterable[ScoreFile] | None = None,
) -> Iterator[MeasuredTest]:  # fmt: skip
    """Measure every score file of a submission against the trials; what is wrong is added to `problems`.

    Faults besides those of `join_scores`: ``no-scores``, ``missing-file`` (of the trials), ``wrong-trials`` (another
    list than the official one). Scores that do not cover their trials are measured as far as they do, as by Kaldi; a
    test without scores of both target and nontarget trials is not. What does not agree is the caller's to tell.

    Args:
        data_sets: of the recipe.
        trials: the list of a data set; empty where there is none.
        files: the system's score files, or an iterator over them that shows how far it is.
    """
    if not system.scores:
        remedy = "Hand in the results directories with their ASV-* folders."
        problems.add(Problem("no-scores", system.system, "score files to recompute from", "none", remedy))
    claims: dict[TestKey, list[Claim]] = {}
    for claim in (*system.claims, *system.repeated):
        claims.setdefault(test_key(claim.identity), []).append(claim)
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
        numbers = tuple(_numbers(file, metrics, claims.get(test_key(file), [])))
        yield MeasuredTest(file, joined, metrics, numbers)


def test_key(one: ClaimIdentity | ScoreFile) -> TestKey:
    """What tells one verification test from another."""
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


def agrees(claim: Claim, value: float) -> bool:
    """Whether a claim is a recomputed value as the official scripts print it."""
    if not math.isfinite(value):
        return claim.value == value
    slack = TOLERANCE * max(1.0, abs(value))
    low, high = (_printed(claim, value + side) for side in (-slack, slack))
    return low <= claim.value <= high


def detection_value(measured: DetectionMetrics, identity: ClaimIdentity) -> float:
    """The value of a metric of speaker verification; a ZEBRA category counts 0 for “0” and 1 to 6 for A to F."""
    if identity.metric == "zebra_category":
        return float(CATEGORIES.index(measured.zebra.category))
    return measured.values()[find_metric(identity.metric, identity.estimator).key]


def unlike(one: RecomputedNumber, code: str) -> Problem:
    """That a claim is not the number that follows from the files."""
    claim = one.claim
    metric = find_metric(claim.identity.metric, claim.identity.estimator)
    expected = f"{one.written} for {metric.label} of {claim.identity.data_set}, recomputed from {one.scores}"
    remedy = "Hand in the scores and the numbers of one run."
    return Problem(code, claim.file, expected, f"“{claim.written}”", remedy, line=claim.line)


def _numbers(file: ScoreFile, measured: DetectionMetrics, claims: Sequence[Claim]) -> Iterator[RecomputedNumber]:
    for claim in claims:
        value = detection_value(measured, claim.identity)
        yield RecomputedNumber(claim, file.name, value, new_claim(claim.identity, value).written)


def _printed(claim: Claim, value: float) -> float:
    """The number that is left of a value in print."""
    return value if claim.identity.metric == "zebra_category" else claim_value(new_claim(claim.identity, value).written)
