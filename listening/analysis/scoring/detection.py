"""Can listeners tell: DET curves and equal error rates from ratings.

**The tests** (`list_tests`). Naturalness and intelligibility: the targets of every system are all ratings of original
speech, one pool that all systems share, and the nontargets those of the system; a higher rate is a better system.
Verifiability: targets are pairs of one speaker and nontargets pairs of two, both processed by the system; near 0.5 is
private. Verifiability of the originals shows whether listeners can do the task at all.

**Intervals** (`make_intervals`) draw listeners with all their ratings, the shared originals jointly for all systems,
and are stretched where utterances were rated by several listeners (`intervals`).

**Differences** (`compare_rates`). Two systems differ significantly where the interval of the difference of their rates,
corrected over all pairs of the task, leaves out 0.

**Estimates without intervals** (`estimate_points`) are quick: for monitors, previews and what exclusions change.

Conventions: a higher score says "target"; rates are shares in [0, 1], interpolated on the DET polygon; C_llr in bits.

Sources: VoicePrivacy 2022 evaluation plan, 5.3; DeLong, DeLong & Clarke-Pearson, Biometrics 44 (1988), for the
influence on areas; of the corrections see `compare_rates`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.tables import DataTable
from evaluation.metrics.detection import det_curve, interpolated_eers
from listening.analysis.models.grouping import assign_letters
from listening.analysis.models.intervals import (
    Influence,
    TwoWay,
    cluster_two_way,
    draw_listeners,
    number_items,
    small_sample_stretch,
    stretched_interval,
)
from listening.analysis.reading.inputs import ORIGINAL, Scored, Settings
from listening.analysis.scoring import resampled
from listening.analysis.scoring.calibration import Judgements, best_cost, cross_validated_cost, deal_folds
from listening.analysis.scoring.resampled import measure_areas, measure_resamples
from listening.analysis.tables import Row, make_table

_DECIMALS = 12  # what differs beyond was computed in another order
_NO_INTERVAL = {"remark": "No interval: one of the two has none."}


@dataclass(frozen=True, slots=True, eq=False)
class Rate:
    """The rate of a system with its resamples, empty where it has no interval."""

    system: str
    value: float
    resampled: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """The differences of one system from each later one.

    Attributes:
        value, error: shape (later,), the latter by the bootstrap.
        stretch, cautious: shape (later,), by how much the interval is stretched, and the limit of the decision.
        resampled: shape (resamples, later).
    """

    value: Floats
    resampled: Floats
    error: Floats
    stretch: Floats
    cautious: Floats


def compare_rates(rates: Sequence[Rate], clustering: TwoWay, settings: Settings) -> tuple[dict[str, str], list[Row]]:
    """Return letters of systems without significant differences, the highest first, and rows of ``eer_differences``.

    The interval of a difference is that of one pair alone. Whether a pair differs is decided over all pairs at once:
    the difference is divided by its bootstrap standard error, and the limit is the quantile, over resamples, of the
    largest such deviation of any pair (one-step max-t), stretched like the interval but never made smaller (`intervals`
    says why). With hundreds of pairs a Bonferroni correction would ask for quantiles that no number of resamples can
    give.

    Args:
        rates: resampled with the same draws.
        clustering: of these rates, in their order.

    Returns:
        A rate without resamples has no letters and differences alone.

    Sources: Romano & Wolf, "Stepwise multiple testing as formalized data snooping", Econometrica 73 (2005), and "Exact
    and approximate stepdown methods for multiple hypothesis testing", JASA 100 (2005).
    """
    if not any(rate.resampled.size for rate in rates):
        return {}, [_row(first, second) for place, first in enumerate(rates) for second in rates[place + 1 :]]
    of_first = {
        place: _against_later(rates, place, clustering, settings)
        for place, rate in enumerate(rates[:-1])
        if rate.resampled.size
    }
    limit = _limit(of_first.values(), settings.level)
    rows: list[Row] = []
    for place, first in enumerate(rates):
        for number, second in enumerate(rates[place + 1 :]):
            is_known = place in of_first and second.resampled.size
            told = _interval(of_first[place], number, limit, settings.level) if is_known else _NO_INTERVAL
            rows.append(_row(first, second) | told)
    apart = {frozenset((row["first"], row["second"])) for row in rows if row.get("is_told_apart")}
    ordered = sorted((one for one in rates if one.resampled.size), key=lambda rate: (-rate.value, rate.system))
    return assign_letters([rate.system for rate in ordered], lambda a, b: frozenset((a, b)) in apart), rows


def _limit(of_first: Collection[_Pair], level: float) -> float:
    """Return the quantile of the largest studentised deviation of any pair."""
    deviations = []
    for pairs in of_first:
        with np.errstate(invalid="ignore", divide="ignore"):
            deviation = np.abs(pairs.resampled - pairs.value) / pairs.error
        # Not finite: not defined in this resample, or a pair that never varies.
        deviations.append(np.where(np.isfinite(deviation), deviation, 0.0).max(axis=1))
    return float(np.quantile(np.max(deviations, axis=0), level)) if deviations else 0.0


def _against_later(rates: Sequence[Rate], place: int, clustering: TwoWay, settings: Settings) -> _Pair:
    """Return the differences of a rate from the later ones; NaN where one of them has no resamples."""
    first, later = rates[place], rates[place + 1 :]
    missing = np.full(first.resampled.size, np.nan)
    others = np.stack([rate.resampled if rate.resampled.size else missing for rate in later], axis=1)
    resampled = np.round(first.resampled[:, None] - others, _DECIMALS)
    stretches, degrees = clustering.of_differences(place)
    small = np.array(
        [
            small_sample_stretch(int(min(clustering.listeners[place], clusters)), int(degree), settings.level)
            for clusters, degree in zip(clustering.listeners[place + 1 :], degrees, strict=True)
        ]
    )
    defined = np.isfinite(resampled)
    number = defined.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.where(defined, resampled, 0).sum(axis=0) / number
        error = np.sqrt(np.where(defined, (resampled - centre) ** 2, 0).sum(axis=0) / (number - 1))
    values = np.round([first.value - rate.value for rate in later], _DECIMALS)
    return _Pair(values, resampled, error, stretches * small, np.maximum(stretches, 1.0) * small)


def _row(first: Rate, second: Rate) -> Row:
    return {"first": first.system, "second": second.system, "difference": round(first.value - second.value, _DECIMALS)}


def _interval(pairs: _Pair, number: int, limit: float, level: float) -> Row:
    value, stretch = float(pairs.value[number]), float(pairs.stretch[number])
    low, high = stretched_interval(value, pairs.resampled[:, number], stretch, level, (-1.0, 1.0))
    is_apart = abs(value) > limit * float(pairs.cautious[number]) * float(pairs.error[number])
    return {"difference_low": low, "difference_high": high, "is_told_apart": int(is_apart)}


# The part of a DET curve, on either side of the equal error rate, from which its slope is read.
_SLOPE_REACH = 0.1
# Above this a mean cost of listeners does not come: the largest |l| is the logarithm of their number.
_MOST_BITS = 64.0


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """Who is to be detected among whom: numbers of the ratings of targets and of nontargets.

    `compares_voices`: they are pairs of one speaker and of two, of one system; else originals and the system.
    """

    task: str
    system: str
    target: Ints
    nontarget: Ints
    compares_voices: bool

    @property
    def has_both(self) -> bool:
        return bool(self.target.size and self.nontarget.size)

    @property
    def rating(self) -> Ints:
        """Return the ratings of both, targets first."""
        return np.concatenate([self.target, self.nontarget])

    @property
    def is_target(self) -> Flags:
        return np.arange(self.target.size + self.nontarget.size) < self.target.size


@dataclass(frozen=True, slots=True, eq=False)
class ResampledMeasure:
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
    eer: ResampledMeasure
    auc: ResampledMeasure
    cllr: ResampledMeasure | None

    @property
    def has_interval(self) -> bool:
        return bool(self.eer.resampled.size)


def list_tests(scored: Scored, task: str) -> list[Test]:
    """Return the tests of a task: of each system, and of the originals where voices are compared."""
    ratings = scored.ratings
    of_task = ratings.task == task
    if task in scored.comparing:
        pairs = [(system, of_task & (ratings.system == system)) for system in scored.systems(task)]
        return [
            Test(
                task,
                system,
                np.flatnonzero(of_system & (ratings.is_target == 1)),
                np.flatnonzero(of_system & (ratings.is_target == 0)),
                compares_voices=True,
            )
            for system, of_system in pairs
        ]
    pool = np.flatnonzero(of_task & (ratings.system == ORIGINAL))
    return [
        Test(task, system, pool, np.flatnonzero(of_task & (ratings.system == system)), compares_voices=False)
        for system in scored.systems(task)
        if system != ORIGINAL
    ]


def count_by_class(scored: Scored, test: Test) -> tuple[Floats, Floats, Floats]:
    """Return the distinct scores of a test, ascending, and how often each listener gave each, by class."""
    rating, is_target, listeners = test.rating, test.is_target, scored.listeners.size
    return resampled.count_by_class(scored.score[rating], is_target, scored.listener[rating], listeners)


def make_detection_tables(scored: Scored, settings: Settings) -> list[DataTable]:
    """Return the tables ``detection``, ``det`` and ``eer_differences``."""
    draws = draw_listeners(scored.listeners.size, settings)
    item = number_items(scored.ratings.utterance)
    rows: list[Row] = []
    curves: list[Row] = []
    differences: list[Row] = []
    for task in scored.tasks:
        tests = list_tests(scored, task)
        usable = [(test, _training(tests, test)) for test in tests if test.has_both]
        found = [measure_test(scored, test, training, settings, draws, item) for test, training in usable]
        clustering = cluster_two_way([one.eer.influence for one in found], scored.listener, item)
        rates = [Rate(one.test.system, one.eer.value, one.eer.resampled) for one in found]
        letters, pairs = compare_rates(rates, clustering, settings)
        of = {one.test.system: one for one in found}
        intervals = make_intervals(found, scored.listener, item, settings)
        for test in tests:
            row = _counts(scored, test) | {"remark": _note(test, of.get(test.system), scored, settings)}
            if test.system in of:
                row |= _points(of[test.system], scored) | intervals[test.system]
                row["group"] = letters.get(test.system, "")
                curves += _curve(scored, test)
            rows.append(row)
        differences += [{"task": task} | pair for pair in pairs]
    return [make_table("detection", rows), make_table("det", curves), make_table("eer_differences", differences)]


def measure_test(
    scored: Scored, test: Test, training: Test | None, settings: Settings, draws: Floats | None, item: Ints
) -> Found:
    """Return the rate, area and C_llr of a test, with what their intervals need.

    Args:
        test: has ratings of both classes.
        training: what ratings are calibrated on; None if there is nothing.
        draws: shape (resamples, listeners) or None: no intervals.
        item: shape (ratings,), numbers of the utterances.
    """
    _, target, nontarget = count_by_class(scored, test)
    whole = target.sum(0, keepdims=True), nontarget.sum(0, keepdims=True)
    clusters = _fewer(scored.listener, test), _fewer(item, test)
    if clusters[0] < settings.least_clusters:
        draws = None
    eers = aucs = np.empty(0)
    if draws is not None:
        eers, aucs = measure_resamples(draws, target, nontarget, interpolated_eers, measure_areas)
    eer, auc = float(interpolated_eers(*whole)[0]), float(measure_areas(*whole)[0])
    place = np.unique(scored.score[test.rating], return_inverse=True)[1]

    def measured(value: float, resampled: Floats, of_target: Floats, of_nontarget: Floats) -> ResampledMeasure:
        """Return a measure with the influence of each rating, from what it adds to the mean of its class."""
        added = np.concatenate(
            [(of_target - of_target.mean()) / of_target.size, (of_nontarget - of_nontarget.mean()) / of_nontarget.size]
        )
        return ResampledMeasure(value, resampled, Influence(test.rating, added, *clusters))

    levels = place[: test.target.size], place[test.target.size :]
    on_eer, on_auc = _eer_influence(whole[0][0], whole[1][0]), _auc_influence(whole[0][0], whole[1][0])
    cost, is_target = None, test.is_target
    if training is not None:
        folds = deal_folds(scored.listeners.size, settings.seed)
        cost = cross_validated_cost(_judgements(scored, training), _judgements(scored, test), folds, draws)
    return Found(
        test,
        measured(eer, eers, on_eer[0][levels[0]], on_eer[1][levels[1]]),
        measured(auc, aucs, on_auc[0][levels[0]], on_auc[1][levels[1]]),
        measured(cost.value, cost.resampled, cost.each[is_target] / 2, cost.each[~is_target] / 2) if cost else None,
    )


def make_intervals(found: Sequence[Found], listener: Ints, item: Ints, settings: Settings) -> dict[str, Row]:
    """Return the columns of the intervals of rate, area and C_llr, by system."""
    columns: dict[str, Row] = {one.test.system: {} for one in found}
    for name, limits in (("eer", (0.0, 1.0)), ("auc", (0.0, 1.0)), ("cllr", (0.0, _MOST_BITS))):
        measures = {one.test.system: getattr(one, name) for one in found if one.has_interval}
        known: dict[str, ResampledMeasure] = {system: one for system, one in measures.items() if one is not None}
        clustering = cluster_two_way([one.influence for one in known.values()], listener, item)
        for (system, one), stretch, degrees in zip(
            known.items(), clustering.stretches(), clustering.degrees(), strict=True
        ):
            stretch *= small_sample_stretch(one.influence.listeners, int(degrees), settings.level)
            low, high = stretched_interval(one.value, one.resampled, stretch, settings.level, limits)
            columns[system] |= {f"{name}_low": low, f"{name}_high": high}
    return columns


def _training(tests: Sequence[Test], test: Test) -> Test | None:
    """Return what ratings are calibrated on: see `calibration`."""
    if not test.compares_voices:
        return test
    return next((one for one in tests if one.system == ORIGINAL and one.has_both), None)


def _judgements(scored: Scored, test: Test) -> Judgements:
    return Judgements(scored.score[test.rating], test.is_target, scored.listener[test.rating])


def _fewer(cluster: Ints, test: Test) -> int:
    """Return how many different clusters there are in the class that has fewer."""
    return min(np.unique(cluster[test.target]).size, np.unique(cluster[test.nontarget]).size)


def _eer_influence(target: Floats, nontarget: Floats) -> tuple[Floats, Floats]:
    """Return what a target and a nontarget of each distinct score add to the rate, but for a constant.

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
    """Return what targets and nontargets of each score add to the area: what of the other class they exceed."""
    target, nontarget = target / target.sum(), nontarget / nontarget.sum()
    return np.cumsum(nontarget) - nontarget / 2, 1 - np.cumsum(target) + target / 2


def _counts(scored: Scored, test: Test) -> Row:
    listeners = np.unique(scored.listener[test.rating]).size
    counts = {"n_target": test.target.size, "n_nontarget": test.nontarget.size, "listeners": listeners}
    return {"task": test.task, "system": test.system, **counts}


def _points(found: Found, scored: Scored) -> Row:
    _, target, nontarget = count_by_class(scored, found.test)
    cllr = None if found.cllr is None else found.cllr.value
    rates = {"eer": found.eer.value, "auc": found.auc.value, "cllr": cllr}
    return rates | best_cost(target.sum(0), nontarget.sum(0))


def _curve(scored: Scored, test: Test) -> list[Row]:
    """Return a point for each distinct score, and the end where none is accepted."""
    curve = det_curve(scored.score[test.target], scored.score[test.nontarget])
    points = zip(curve.thresholds, curve.miss_rate, curve.false_alarm_rate, strict=True)
    return [
        {"task": test.task, "system": test.system, "threshold": threshold, "miss_rate": miss, "false_alarm_rate": alarm}
        for threshold, miss, alarm in points
    ]


def _note(test: Test, found: Found | None, scored: Scored, settings: Settings) -> str:
    if found is None:
        pairs = ("pairs of one speaker", "pairs of two speakers")
        classes = pairs if test.compares_voices else ("original speech", "this system")
        sides = zip(classes, (test.target, test.nontarget), strict=True)
        return f"No rate: there are no ratings of {' or '.join(words for words, ratings in sides if not ratings.size)}."
    said = []
    if not found.has_interval:
        clusters = _fewer(scored.listener, test)
        said.append(f"No intervals: {clusters} listeners of one class, {settings.least_clusters} are needed.")
    if found.cllr is None:
        said.append(
            "No C_llr: there are too few original pairs of one speaker and of two to calibrate ratings on."
            if test.compares_voices
            else "No C_llr: too few listeners to calibrate ratings on those of others."
        )
    return " ".join(said)


@dataclass(frozen=True, slots=True)
class Point:
    """Attributes:
    listeners, n: different listeners, and ratings, of a system.
    mean: of their scores; None of pairs of voices, where it would tell how many are of one speaker.
    eer: in [0, 1], as `detection` defines it; None for originals that are no test, and where a class is missing.
    """

    listeners: int
    n: int
    mean: float | None
    eer: float | None


def estimate_points(scored: Scored) -> dict[tuple[str, str], Point]:
    """Estimate a point of each task and system that was rated, in the order of the tables."""
    points = {}
    for task in scored.tasks:
        tests = {test.system: test for test in list_tests(scored, task)}
        of_task = scored.ratings.task == task
        for system in scored.systems(task):
            chosen = of_task & (scored.ratings.system == system)
            is_pooled = task in scored.comparing and bool((scored.ratings.is_target[chosen] >= 0).any())
            mean = None if is_pooled else float(scored.score[chosen].mean())
            listeners = int(np.unique(scored.listener[chosen]).size)
            points[task, system] = Point(listeners, int(chosen.sum()), mean, _eer(scored, tests.get(system)))
    return points


def _eer(scored: Scored, test: Test | None) -> float | None:
    if test is None or not test.has_both:
        return None
    _, target, nontarget = count_by_class(scored, test)
    return float(interpolated_eers(target.sum(0, keepdims=True), nontarget.sum(0, keepdims=True))[0])
