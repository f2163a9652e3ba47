"""Can listeners tell: DET curves and equal error rates from ratings.

Naturalness and intelligibility: the targets of every system are all ratings of original speech, one pool that all
systems share, and the nontargets those of the system; a higher rate is a better system. Verifiability: targets are
pairs of one speaker and nontargets pairs of two, both processed by the system; near 0.5 is private. Verifiability of
the originals shows whether listeners can do the task at all.

Intervals draw listeners with all their ratings, the shared originals jointly for all systems, and are stretched where
utterances were rated by several listeners (`clustered`). Two systems are told apart where the interval of the
difference of their rates, corrected over all pairs of the task, leaves out 0; the correction is the one-step max-t
method: the quantile, over resamples, of the largest studentised difference of any pair.

Conventions: a higher score says "target"; rates are shares in [0, 1], interpolated on the DET polygon; C_llr in bits.
Sources: VoicePrivacy 2022 evaluation plan, 5.3; Romano & Wolf, "Stepwise multiple testing as formalized data snooping",
Econometrica 73 (2005), for max-t; DeLong, DeLong & Clarke-Pearson, Biometrics 44 (1988), for the influence on areas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.metrics.detection import det_curve
from listening.analysis.calibration import Cost, Judgements, best_cost, cross_validated_cost, folds_of
from listening.analysis.clustered import (
    Influence,
    item_numbers,
    small_sample_stretch,
    stretched_interval,
    two_way,
)
from listening.analysis.contents import DET, DETECTION, EER_DIFFERENCES
from listening.analysis.draws import listener_draws
from listening.analysis.eer_pairs import Rate, compare_rates
from listening.analysis.inputs import ORIGINAL, Flags, Floats, Ints, Scored
from listening.analysis.settings import Settings
from listening.analysis.tables import Table
from listening.analysis.weighted_histograms import areas, equal_error_rates, listener_histograms, of_resamples

Row = dict[str, Any]

VERIFIABILITY = "verifiability"
# The part of a DET curve, on either side of the equal error rate, from which its slope is read.
_SLOPE_REACH = 0.1
# Above this a mean cost of listeners does not come: the largest |l| is the logarithm of their number.
_MOST_BITS = 64.0


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """Who is to be detected among whom: numbers of the ratings of targets and of nontargets."""

    task: str
    system: str
    target: Ints
    nontarget: Ints

    @property
    def has_both(self) -> bool:
        return bool(self.target.size and self.nontarget.size)

    @property
    def rating(self) -> Ints:
        """Of both, targets first."""
        return np.concatenate([self.target, self.nontarget])

    @property
    def is_target(self) -> Flags:
        return np.arange(self.target.size + self.nontarget.size) < self.target.size


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A measure of a test: its value, its resamples (empty without draws), and how each rating moves it."""

    value: float
    resampled: Floats
    influence: Influence


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What was found in a test.

    Attributes:
        eer, auc: rates in [0, 1].
        cllr: in bits; None where nothing can be calibrated.
    """

    test: Test
    eer: Measured
    auc: Measured
    cllr: Measured | None

    @property
    def has_interval(self) -> bool:
        return bool(self.eer.resampled.size)


def tests_of(scored: Scored, task: str) -> list[Test]:
    """The tests of a task: of each system, and of the originals where voices are compared."""
    ratings = scored.ratings
    of_task = ratings.task == task
    if task == VERIFIABILITY:
        return [
            Test(
                task,
                system,
                np.flatnonzero(of_task & (ratings.system == system) & (ratings.is_target == 1)),
                np.flatnonzero(of_task & (ratings.system == system) & (ratings.is_target == 0)),
            )
            for system in scored.systems(task)
        ]
    pool = np.flatnonzero(of_task & (ratings.system == ORIGINAL))
    return [
        Test(task, system, pool, np.flatnonzero(of_task & (ratings.system == system)))
        for system in scored.systems(task)
        if system != ORIGINAL
    ]


def class_histograms(scored: Scored, test: Test) -> tuple[Floats, Floats, Floats]:
    """Distinct scores of a test, ascending, and how often each listener gave each to targets and to nontargets."""
    values, place = np.unique(scored.score[test.rating], return_inverse=True)
    sizes = {"listeners": scored.listeners.size, "values": values.size}
    target, nontarget = place[: test.target.size], place[test.target.size :]
    return (
        values,
        listener_histograms(scored.listener[test.target], target, **sizes),
        listener_histograms(scored.listener[test.nontarget], nontarget, **sizes),
    )


def detection_tables(scored: Scored, settings: Settings) -> list[Table]:
    """The tables ``detection``, ``det`` and ``eer_differences``."""
    drawn = listener_draws(scored.listeners.size, settings)
    draws = None if drawn is None else drawn.astype(np.float64)
    item = item_numbers(scored.ratings.utterance)
    rows: list[Row] = []
    curves: list[Row] = []
    differences: list[Row] = []
    for task in scored.tasks:
        tests = tests_of(scored, task)
        found = [find(scored, test, _training(tests, test), settings, draws, item) for test in tests if test.has_both]
        clustering = two_way([one.eer.influence for one in found], scored.listener, item)
        rates = [Rate(one.test.system, one.eer.value, one.eer.resampled) for one in found]
        letters, pairs = compare_rates(rates, clustering, settings)
        of = {one.test.system: one for one in found}
        intervals = interval_columns(found, scored.listener, item, settings)
        for test in tests:
            row = _counts(scored, test) | {"remark": _remark(test, of.get(test.system), scored, settings)}
            if test.system in of:
                row |= _points(of[test.system], scored) | intervals[test.system]
                row["group"] = letters.get(test.system, "")
                curves += _curve(scored, test)
            rows.append(row)
        differences += [{"task": task} | pair for pair in pairs]
    return [DETECTION.table(rows), DET.table(curves), EER_DIFFERENCES.table(differences)]


def find(
    scored: Scored, test: Test, training: Test | None, settings: Settings, draws: Floats | None, item: Ints
) -> Found:
    """Rate, area and C_llr of a test, with what their intervals need.

    Args:
        test: has ratings of both classes.
        training: what ratings are calibrated on; None if there is nothing.
        draws: shape (resamples, listeners) or None: no intervals.
        item: shape (ratings,), numbers of the utterances.
    """
    _, target, nontarget = class_histograms(scored, test)
    whole = target.sum(0, keepdims=True), nontarget.sum(0, keepdims=True)
    clusters = _fewer(scored.listener, test), _fewer(item, test)
    if clusters[0] < settings.least_clusters:
        draws = None
    none = np.empty(0)
    eers, aucs = (none, none) if draws is None else of_resamples(draws, target, nontarget, equal_error_rates, areas)
    eer, auc = float(equal_error_rates(*whole)[0]), float(areas(*whole)[0])
    place = np.unique(scored.score[test.rating], return_inverse=True)[1]

    def measured(value: float, resampled: Floats, of_target: Floats, of_nontarget: Floats) -> Measured:
        """With the influence of each rating, from what it adds to the mean of its class."""
        added = np.concatenate(
            [(of_target - of_target.mean()) / of_target.size, (of_nontarget - of_nontarget.mean()) / of_nontarget.size]
        )
        return Measured(value, resampled, Influence(test.rating, added, *clusters))

    levels = place[: test.target.size], place[test.target.size :]
    on_eer, on_auc = _eer_influence(whole[0][0], whole[1][0]), _auc_influence(whole[0][0], whole[1][0])
    cost, is_target = _cost(scored, test, training, draws, settings), test.is_target
    return Found(
        test,
        measured(eer, eers, on_eer[0][levels[0]], on_eer[1][levels[1]]),
        measured(auc, aucs, on_auc[0][levels[0]], on_auc[1][levels[1]]),
        measured(cost.value, cost.resampled, cost.each[is_target] / 2, cost.each[~is_target] / 2) if cost else None,
    )


def interval_columns(found: Sequence[Found], listener: Ints, item: Ints, settings: Settings) -> dict[str, Row]:
    """The columns of the intervals of rate, area and C_llr, by system."""
    columns: dict[str, Row] = {one.test.system: {} for one in found}
    for name, limits in (("eer", (0.0, 1.0)), ("auc", (0.0, 1.0)), ("cllr", (0.0, _MOST_BITS))):
        measures = {one.test.system: getattr(one, name) for one in found if one.has_interval}
        known: dict[str, Measured] = {system: one for system, one in measures.items() if one is not None}
        clustering = two_way([one.influence for one in known.values()], listener, item)
        for (system, one), stretch, degrees in zip(
            known.items(), clustering.stretches(), clustering.degrees(), strict=True
        ):
            stretch *= small_sample_stretch(one.influence.listeners, int(degrees), settings.level)
            low, high = stretched_interval(one.value, one.resampled, stretch, settings.level, limits)
            columns[system] |= {f"{name}_low": low, f"{name}_high": high}
    return columns


def _training(tests: Sequence[Test], test: Test) -> Test | None:
    """What ratings are calibrated on: see `calibration`."""
    if test.task != VERIFIABILITY:
        return test
    return next((one for one in tests if one.system == ORIGINAL and one.has_both), None)


def _cost(scored: Scored, test: Test, training: Test | None, draws: Floats | None, settings: Settings) -> Cost | None:
    if training is None:
        return None
    folds = folds_of(scored.listeners.size, settings.seed)
    return cross_validated_cost(_judgements(scored, training), _judgements(scored, test), folds, draws)


def _judgements(scored: Scored, test: Test) -> Judgements:
    return Judgements(scored.score[test.rating], test.is_target, scored.listener[test.rating])


def _fewer(cluster: Ints, test: Test) -> int:
    """Different clusters of the class that has fewer."""
    return min(np.unique(cluster[test.target]).size, np.unique(cluster[test.nontarget]).size)


def _eer_influence(target: Floats, nontarget: Floats) -> tuple[Floats, Floats]:
    """What a target and a nontarget of each distinct score add to the rate, but for a constant.

    At the crossing with slopes f_T and f_N of misses and false alarms, a change of the rates moves the equal error rate
    by (f_N ΔP_miss + f_T ΔP_fa) / (f_T + f_N). Slopes are read over a stretch of the curve: those of one segment say
    nothing where scores hardly repeat.
    """
    missed, accepted = target / target.sum(), nontarget / nontarget.sum()
    step = missed + accepted
    rise = np.cumsum(step) - 1
    crossed = int(np.argmax(rise >= 0))
    part = (step[crossed] - rise[crossed]) / step[crossed]
    near = slice(int(np.argmax(rise >= -_SLOPE_REACH)), max(int(np.argmax(rise >= _SLOPE_REACH)), crossed) + 1)
    weight = accepted[near].sum() / step[near].sum()
    side = np.arange(target.size) - crossed
    is_missed = np.where(side < 0, 1.0, np.where(side == 0, part, 0.0))
    return weight * is_missed, (1 - weight) * (1 - is_missed)


def _auc_influence(target: Floats, nontarget: Floats) -> tuple[Floats, Floats]:
    """What a target and a nontarget of each distinct score add to the area: how much of the other class they beat."""
    target, nontarget = target / target.sum(), nontarget / nontarget.sum()
    return np.cumsum(nontarget) - nontarget / 2, 1 - np.cumsum(target) + target / 2


def _counts(scored: Scored, test: Test) -> Row:
    return {
        "task": test.task,
        "system": test.system,
        "n_target": test.target.size,
        "n_nontarget": test.nontarget.size,
        "listeners": np.unique(scored.listener[test.rating]).size,
    }


def _points(found: Found, scored: Scored) -> Row:
    _, target, nontarget = class_histograms(scored, found.test)
    best = best_cost(target.sum(0), nontarget.sum(0))
    return {
        "eer": found.eer.value,
        "auc": found.auc.value,
        "cllr": None if found.cllr is None else found.cllr.value,
        "min_cllr": best.min_cllr,
        "rocch_eer": best.rocch_eer,
    }


def _curve(scored: Scored, test: Test) -> list[Row]:
    """A point for each distinct score, and the end where none is accepted."""
    curve = det_curve(scored.score[test.target], scored.score[test.nontarget])
    points = zip(curve.thresholds, curve.miss_rate, curve.false_alarm_rate, strict=True)
    return [
        {"task": test.task, "system": test.system, "threshold": threshold, "miss_rate": miss, "false_alarm_rate": alarm}
        for threshold, miss, alarm in points
    ]


def _remark(test: Test, found: Found | None, scored: Scored, settings: Settings) -> str:
    if found is None:
        missing = " or ".join(
            words for words, ratings in zip(_class_words(test), (test.target, test.nontarget), strict=True)
            if not ratings.size
        )  # fmt: skip
        return f"No rate: there are no ratings of {missing}."
    said = []
    if not found.has_interval:
        clusters = _fewer(scored.listener, test)
        said.append(f"No intervals: {clusters} listeners of one class, {settings.least_clusters} are needed.")
    if found.cllr is None:
        said.append(
            "No C_llr: there are too few original pairs of one speaker and of two to calibrate ratings on."
            if test.task == VERIFIABILITY
            else "No C_llr: too few listeners to calibrate ratings on those of others."
        )
    return " ".join(said)


def _class_words(test: Test) -> tuple[str, str]:
    if test.task == VERIFIABILITY:
        return "pairs of one speaker", "pairs of two speakers"
    return "original speech", "this system"
