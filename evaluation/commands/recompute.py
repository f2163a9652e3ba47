"""Claimed numbers beside those that follow from the score files of a submission and the official trials.

A claimed number agrees where the recomputed one is printed the same (protocol 1.2), give or take the 1e-9 by which two
implementations differ. Conventions: equal error rates in per cent; data directories as in Kaldi, `trials` in each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.commands.terminal import CommandError, with_progress
from evaluation.formats.claims import Claim, ClaimIdentity
from evaluation.formats.data_directories import list_hash
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem
from evaluation.formats.result_lines import CATEGORIES
from evaluation.formats.results import ScoreFile, SystemResults
from evaluation.formats.results_2022 import claim_value, new_claim
from evaluation.formats.scores import JoinedScores, TrialTable, join_scores, read_scores, read_trial_table
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.detection import DetectionMetrics, detection_metrics
from evaluation.protocols.recipes import DataSet, load_recipe

TOLERANCE = 1e-9
_OFFICIAL = "Name the organizer's data directories with --data."

_TestKey = tuple[str, object, object, object]  # data set; speech of training, enrolment and trials


@dataclass(frozen=True, slots=True)
class RecomputedNumber:
    """A number as claimed in one place and as it follows from the scores.

    Attributes:
        scores: the score file.
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
        if not math.isfinite(self.value):
            return self.claim.value == self.value
        slack = TOLERANCE * max(1.0, abs(self.value))
        low, high = (_printed(self.claim.identity, self.value + side) for side in (-slack, slack))
        return low <= self.claim.value <= high


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What the score files of a submission say.

    Attributes:
        files: score files that were measured.
        numbers: every claimed number of them, in every place where it stands.
        problems: faults of scores and trials, and ``unlike-scores`` for every number that does not agree.
    """

    files: tuple[str, ...]
    numbers: tuple[RecomputedNumber, ...]
    problems: tuple[Problem, ...]


def recompute(system: SystemResults, data: Path) -> Recomputation:
    """Measure every score file of a submission against the trials in `data`.

    Faults besides those of `join_scores`: ``no-scores``, ``missing-file`` (of the trials), ``wrong-trials`` (another
    list than the official one) and ``unlike-scores``. Scores that do not cover their trials are measured as far as they
    do, as by Kaldi; a test without scores of both target and nontarget trials is not.

    Raises:
        CommandError: `data` is no folder.
    """
    if not data.is_dir():
        raise CommandError(f"--data {data}: expected the folder of the Kaldi data directories, found none.")
    data_sets = load_recipe(system.edition).data_sets if system.edition else {}
    problems = ProblemList()
    if not system.scores:
        remedy = "Hand in the results directories with their ASV-* folders."
        problems.add(Problem("no-scores", system.system, "score files to recompute from", "none", remedy))
    claims: dict[_TestKey, list[Claim]] = {}
    for claim in (*system.claims, *system.repeated):
        claims.setdefault(_test(claim.identity), []).append(claim)
    tables: dict[str, TrialTable] = {}
    files: list[str] = []
    numbers: list[RecomputedNumber] = []
    for file in with_progress(system.scores, len(system.scores), "score files"):
        if file.data_set not in tables:
            tables[file.data_set] = _trials(data, data_sets[file.data_set], problems)
        if not len(tables[file.data_set].targets):
            continue
        joined = join_scores(read_scores(file.path, file.name), tables[file.data_set])
        problems.keep(joined.problems)
        if not joined.targets.any() or joined.targets.all():
            continue  # said by the problems of the join
        files.append(file.name)
        numbers += _numbers(file, joined, claims.get(_test(file), []))
    problems.keep(_unlike(one) for one in numbers if not one.agrees)
    return Recomputation(tuple(files), tuple(numbers), problems.report())


def _test(one: ClaimIdentity | ScoreFile) -> _TestKey:
    return one.data_set, one.training, one.enrolment, one.speech


def _trials(data: Path, data_set: DataSet, problems: ProblemList) -> TrialTable:
    name = str(data / data_set.name / "trials")
    table = read_trial_table(Path(name), name)
    problems.keep(table.problems)
    targets = int(table.targets.sum())
    found = targets, len(table.targets) - targets
    wanted = data_set.targets, data_set.nontargets
    if len(table.targets) and None not in wanted and found != wanted:
        expected, shown = (f"{one} targets and {other} nontargets" for one, other in (wanted, found))
        problems.add(Problem("wrong-trials", name, expected, shown, _OFFICIAL))
    elif len(table.targets) and data_set.trials_hash:
        kinds = ("nontarget", "target")
        pairs = (pair.decode() for pair in table.pairs.tolist())
        digest = list_hash(f"{pair} {kinds[kind]}" for pair, kind in zip(pairs, table.targets.tolist(), strict=True))
        if digest != data_set.trials_hash:
            expected = f"the trials of {data_set.name}, hash {data_set.trials_hash}"
            problems.add(Problem("wrong-trials", name, expected, f"hash {digest}", _OFFICIAL))
    return table


def _numbers(file: ScoreFile, joined: JoinedScores, claims: Sequence[Claim]) -> Iterator[RecomputedNumber]:
    measured = detection_metrics(joined.target_scores, joined.nontarget_scores)
    for claim in claims:
        value = _value(measured, claim.identity)
        yield RecomputedNumber(claim, file.name, value, new_claim(claim.identity, value).written)


def _value(measured: DetectionMetrics, identity: ClaimIdentity) -> float:
    if identity.metric == "zebra_category":
        return float(CATEGORIES.index(measured.zebra.category))
    return measured.values()[find_metric(identity.metric, identity.estimator).key]


def _printed(identity: ClaimIdentity, value: float) -> float:
    """The number that is left of a value in print."""
    return value if identity.metric == "zebra_category" else claim_value(new_claim(identity, value).written)


def _unlike(one: RecomputedNumber) -> Problem:
    claim = one.claim
    metric = find_metric(claim.identity.metric, claim.identity.estimator)
    expected = f"{one.written} for {metric.label} of {claim.identity.data_set}, recomputed from {one.scores}"
    remedy = "Hand in the scores and the numbers of one run."
    return Problem("unlike-scores", claim.file, expected, f"“{claim.written}”", remedy, line=claim.line)
