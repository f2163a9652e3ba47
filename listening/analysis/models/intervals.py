"""Intervals that hold for other listeners *and* other utterances: two-way clustered variances, and what follows.

**Draws of listeners** (`draw_listeners`). Ratings of one listener are alike, so the bootstrap draws listeners, each
with all ratings. Every statistic of an analysis with equal listeners takes equal draws, so that differences of two
systems, and what they share with the pool of originals, are resampled jointly.

**Two-way variances** (`cluster_two_way`). Ratings share a listener, and they share an utterance. The listener-cluster
bootstrap knows the first only: where an utterance was rated by several listeners, its intervals are too short. The
variance clustered both ways is

    V = V_L + V_I − V_LI,

by listener, by utterance and by both at once, each with the correction G / (G − 1) for G clusters. It needs only how
much each rating moves a statistic (its influence), so it serves means, medians, areas and equal error rates alike.

**Stretched intervals** (`stretched_interval`). V makes a bootstrap interval honest: wider by √(V / V_L), never
narrower, and by t over normal quantiles on min(G_L, G_I) − 1 degrees of freedom; the skewness of the bootstrap stays.
Where each utterance was rated once, V = V_L and it is the plain bootstrap with the allowance for few clusters.

**Differences** (`TwoWay.of_differences`). Never narrower is a bias where listeners and utterances cancel, as in a
difference of equal error rates: V / V_L then scatters about 1, and only what lies above would count. There the interval
takes V as it comes, down to half the width of the bootstrap's; a decision over many pairs, which would find those that
came out narrow, still takes the wider one.

What none of this holds for is other speakers: the speakers of a study are taken as they are.

Conventions: draws have shape (resamples, listeners), a resampled statistic (resamples,), NaN where it is not defined.

Sources: Cameron, Gelbach & Miller, "Bootstrap-based improvements for inference with clustered errors", Review of
Economics and Statistics 90 (2008) (draws of listeners); Cameron, Gelbach & Miller, "Robust inference with multiway
clustering", Journal of Business & Economic Statistics 29 (2011) (V); Hesterberg, "What teachers should know about the
bootstrap", The American Statistician 69 (2015) (small-sample stretch); Hampel, "The influence curve and its role in
robust estimation", JASA 69 (1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from common.arrays import Floats, Ints, Texts
from listening.analysis.reading.inputs import Settings


def draw_listeners(listeners: int, settings: Settings) -> Floats | None:
    """Return how often each listener occurs in each resample.

    Returns:
        Shape (resamples, listeners), rows sum to `listeners`; None with fewer listeners than `least_clusters`.
    """
    if listeners < settings.least_clusters:
        return None
    numbers = np.random.default_rng(settings.seed)
    drawn = numbers.multinomial(listeners, np.full(listeners, 1 / listeners), size=settings.resamples)
    return drawn.astype(np.float64)


def percentile_interval(resampled: Floats, level: float) -> tuple[float, float]:
    """Return lower and upper limit by quantiles of the resamples where the statistic is defined; NaN if none is.

    Args:
        resampled: shape (resamples,), NaN where it is not defined.
        level: nominal coverage, in (0, 1).
    """
    defined = resampled[np.isfinite(resampled)]
    if not defined.size:
        return float("nan"), float("nan")
    lower, upper = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


_FURTHEST_DEVIATION = 2.5
_DECIMALS = 12  # what differs beyond was computed in another order
_NARROWEST = 0.5  # of a difference: of few clusters V may come out near 0


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """How much each rating moves a statistic.

    Attributes:
        rating: shape (n,), numbers of ratings.
        value: shape (n,), share of each in the difference of the statistic from its expectation; they sum to 0.
        listeners, items: clusters on which the statistic rests; of two classes the fewer.
        strata: of utterances, each with a mean of its own.
    """

    rating: Ints
    value: Floats
    listeners: int
    items: int
    strata: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class TwoWay:
    """Variances and covariances of statistics, clustered both ways.

    Attributes:
        listener, item, both: shape (statistics, statistics), by listener, by utterance and by both at once; `item` and
            `both` matter by their difference only.
        listeners, items: shape (statistics,), clusters; of utterances one less for each stratum but the first.
    """

    listener: Floats
    item: Floats
    both: Floats
    listeners: Ints
    items: Ints

    def variances(self) -> Floats:
        """Return V of each statistic; where it is not positive (few clusters), the larger of V_L and V_I."""
        return _total(np.diag(self.listener), np.diag(self.item), np.diag(self.both))

    def with_missed(self, missed: Floats) -> TwoWay:
        """Return the same with V_I − V_LI as given, shape (statistics, statistics)."""
        return replace(self, item=self.both + missed)

    def stretches(self) -> Floats:
        """Return √(V / V_L) of each statistic, at least 1."""
        return _stretch([np.diag(self.listener), np.diag(self.item), np.diag(self.both)])

    def degrees(self) -> Ints:
        """Return min(G_L, G_I) − 1, by listeners alone where there is one utterance only; at least 1."""
        clusters = np.where(self.items > 1, np.minimum(self.listeners, self.items), self.listeners)
        return np.asarray(np.maximum(clusters - 1, 1))

    def of_differences(self, first: int) -> tuple[Floats, Ints]:
        """Return √(V / V_L), at least a half, and degrees of freedom of (statistic `first` − each later one)."""
        parts = self._of_differences(first, slice(first + 1, None))
        degrees = self.degrees()
        return _stretch(parts, least=_NARROWEST), np.minimum(degrees[first], degrees[first + 1 :])

    def of_difference(self, first: int, second: int) -> tuple[float, float, int]:
        """Return variance, stretch and degrees of freedom of (statistic `first` − statistic `second`).

        The variance is at least the part of listeners: as an interval is never made narrower by what utterances add,
        so a test is never made sharper by it.
        """
        parts = self._of_differences(first, second)
        degrees = self.degrees()
        variance = float(np.maximum(_total(*parts), parts[0]))
        return variance, float(_stretch(parts)), int(min(degrees[first], degrees[second]))

    def _of_differences(self, first: int, others: Any) -> list[Floats]:
        """Return the variances of (statistic `first` − each of the others), by listener, by utterance and by both."""
        matrices = (self.listener, self.item, self.both)
        return [one[first, first] + np.diag(one)[others] - 2 * one[first, others] for one in matrices]


def cluster_two_way(influences: Sequence[Influence], listener: Ints, item: Ints) -> TwoWay:
    """Return the variances and covariances of statistics of the same ratings.

    Args:
        listener, item: shape (ratings,), numbers of the clusters of each rating.
    """
    _, both = np.unique(listener * (int(item.max(initial=0)) + 1) + item, return_inverse=True)
    pairs = [np.unique(both[one.rating]).size for one in influences]
    listeners = [one.listeners for one in influences]
    matrices = (
        _covariance(influences, listener, [(count, 1) for count in listeners]),
        _covariance(influences, item, [(one.items, one.strata) for one in influences]),
        _covariance(influences, both.astype(np.int64), [(count, 1) for count in pairs]),
    )
    free = [max(one.items - one.strata + 1, 1) for one in influences]
    return TwoWay(*matrices, np.array(listeners, np.int64), np.array(free, np.int64))


@lru_cache(maxsize=1024)
def small_sample_stretch(clusters: int, degrees: int, level: float) -> float:
    """Return what a bootstrap interval lacks with few clusters: √(G / (G − 1)) times t over normal quantile."""
    from scipy.special import ndtri, stdtrit

    upper = (1 + level) / 2
    return sqrt(clusters / max(clusters - 1, 1)) * float(stdtrit(degrees, upper) / ndtri(upper))


def t_limits(estimate: float, variance: float, degrees: int, level: float) -> tuple[float, float]:
    """Return estimate ± t quantile times standard error."""
    from scipy.special import stdtrit

    half_width = float(stdtrit(degrees, (1 + level) / 2)) * sqrt(max(variance, 0.0))
    return estimate - half_width, estimate + half_width


def stretched_interval(
    estimate: float, resampled: Floats, stretch: float, level: float, limits: tuple[float, float]
) -> tuple[float, float]:
    """Return a percentile interval as much wider as told, within the range of the measure.

    Further quantiles of the resamples are taken, as many normal deviations out as the stretch asks for (Hesterberg's
    expanded percentiles), so that a skewed or discrete measure stays what it is. Beyond 2.5 deviations resamples are
    too few; what is left is a stretch about the estimate.

    Args:
        resampled: shape (resamples,), NaN where the measure is not defined.
        stretch: of a normal interval.
        limits: lowest and highest value that the measure can have.
    """
    from scipy.special import ndtr, ndtri

    usual = float(ndtri((1 + level) / 2))
    wanted = stretch * usual
    taken = min(wanted, max(_FURTHEST_DEVIATION, usual))
    lower, upper = percentile_interval(resampled, float(2 * ndtr(taken) - 1))
    rest = wanted / taken
    lower, upper = estimate - rest * (estimate - lower), estimate + rest * (upper - estimate)
    lower, upper = (round(float(np.clip(end, *limits)), _DECIMALS) for end in (lower, upper))
    return lower, upper


def mean_influence(rating: Ints, score: Floats, listener: Ints, item: Ints, stratum: Ints | None = None) -> Influence:
    """Return the influence of each rating on the mean of the given ones; other arguments are those of all ratings.

    Args:
        stratum: shape (ratings,), classes whose numbers the design fixes: the mean is that of their means, and that an
            utterance was met in one of them only is no property of the utterance.
    """
    return _influence(rating, score[rating], listener, item, stratum)


def median_influence(rating: Ints, score: Floats, listener: Ints, item: Ints, stratum: Ints | None = None) -> Influence:
    """Return the influence of each rating on their median, but for a common factor (the density there).

    No ratio of variances depends on that factor.
    """
    side = np.sign(score[rating] - np.median(score[rating]))
    return _influence(rating, side, listener, item, stratum)


def number_items(utterances: Texts) -> Ints:
    """Return number utterances; a rating of an unknown one (empty) is an item of its own."""
    names, number = np.unique(utterances, return_inverse=True)
    unknown = utterances == ""
    number[unknown] = names.size + np.arange(int(unknown.sum()))
    return np.unique(number, return_inverse=True)[1].astype(np.int64)


def _influence(rating: Ints, value: Floats, listener: Ints, item: Ints, stratum: Ints | None) -> Influence:
    """Return the influence of a mean of values, or of the mean of means of strata: differences within strata."""
    _, number = np.unique(np.zeros_like(rating) if stratum is None else stratum[rating], return_inverse=True)
    sizes = np.bincount(number)
    means = np.bincount(number, value) / sizes
    moved = (value - means[number]) / (means.size * sizes[number])
    clusters = np.unique(listener[rating]).size, np.unique(item[rating]).size
    return Influence(rating, moved, *clusters, strata=means.size)


def _covariance(influences: Sequence[Influence], cluster: Ints, clusters: Sequence[tuple[int, int]]) -> Floats:
    """Return cross products of the sums by cluster, each statistic with its own correction G / (G − S) for S strata."""
    if not influences:
        return np.zeros((0, 0))
    columns = [
        np.bincount(cluster[one.rating], one.value, int(cluster.max(initial=0)) + 1)
        * sqrt(count / max(count - strata, 1))
        for one, (count, strata) in zip(influences, clusters, strict=True)
    ]
    sums = np.stack(columns, axis=1)
    return np.asarray(sums.T @ sums)


def _total(listener: Floats, item: Floats, both: Floats) -> Floats:
    total = listener + item - both
    return np.where(total > 0, total, np.maximum(listener, item))


def _stretch(parts: Sequence[Floats], least: float = 1.0) -> Floats:
    """Return √(V / V_L) from variances by listener, by utterance and by both."""
    listener, item, both = parts
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = _total(listener, item, both) / listener
    return np.sqrt(np.where(np.isfinite(ratio), np.maximum(ratio, least**2), 1.0))
