"""Do listeners agree, with each other and with themselves? On the bridge set, and on items that were rated repeatedly.

**What is compared.** With one rating an item, as in the layout of 2022 for 13 systems, there is nothing to compare and
no index exists; a bridge set, a few items that everybody rates and that enter no scores, is the remedy. Only the first
rating of an item by a listener is compared with others; the later ones tell how far the listener agrees with himself.

**How.** By Krippendorff's alpha and intraclass correlations. Everything is computed from sums over items, so thousands
of items with missing cells cost nothing, and for all resamples of listeners at once. A resample holds some listeners
several times. A listener agrees with itself, so copies of one listener are never compared with each other; without
that, every resample would look more reliable than the data.

Conventions: ratings of the bridge set are on the scale of the study; normalised, each becomes the score that its
listener's scored ratings of that task give to the same rating, interpolated between the two ratings beside it.
`weights` has shape (resamples, listeners), how often each listener counts, ones for the data themselves; measures have
shape (resamples,), 1 is full agreement, NaN where there is nothing to compare.

Sources: Krippendorff, "Computing Krippendorff's alpha-reliability" (2011); Shrout & Fleiss, "Intraclass correlations:
uses in assessing rater reliability", Psychological Bulletin 86 (1979); McGraw & Wong, Psychological Methods 1 (1996);
for items with unequal numbers of raters, Donner, International Statistical Review 54 (1986).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from common.arrays import Floats, Ints, Texts
from common.tables import DataTable
from listening.analysis.models.intervals import draw_listeners, percentile_interval
from listening.analysis.reading.inputs import BRIDGE, Ratings, Scored, Settings
from listening.analysis.tables import Row, make_table

_CELLS_AT_ONCE = 200_000  # small enough to stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Votes:
    """Ratings of items, at most one of each listener for each item.

    Attributes:
        item, listener: shape (votes,), numbers from 0. `value`: shape (votes,), finite.
        items, listeners: how many there are.
    """

    item: Ints
    listener: Ints
    value: Floats
    items: int
    listeners: int


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of each resample and item, shape (resamples, items), items with votes of two different listeners only.

    n: Σw. squares: Σw². x, xx: Σwv and Σwv², of values less their mean.
    """

    n: Floats
    squares: Floats
    x: Floats
    xx: Floats


def ordinal(votes: Votes) -> Votes:
    """Return the same votes with their values as ranks, which turns the interval distance into the ordinal one.

    Krippendorff's ordinal distance of two values is the number of votes between them, each end counted half; that is
    the distance of their average ranks among the votes that can be compared.
    """
    comparable = np.bincount(votes.item, minlength=votes.items)[votes.item] > 1
    compared = np.sort(votes.value[comparable])
    below, upto = (np.searchsorted(compared, votes.value, side) for side in ("left", "right"))
    return Votes(votes.item, votes.listener, (below + upto) / 2, votes.items, votes.listeners)


def krippendorff_alpha(votes: Votes, weights: Floats) -> Floats:
    """Return 1 − observed / expected disagreement with squared distances (interval); of `ordinal` votes, ordinal.

    Observed: mean squared difference of two listeners in an item, items weighted by their votes. Expected: that of any
    two votes. Items with one vote do not count. NaN where all votes are equal.
    """
    return np.concatenate([_alpha(sums) for sums in _sums(votes, weights)])


def one_way_icc(votes: Votes, weights: Floats) -> Floats:
    """Return ICC(1,1), the share of variance due to items, where each has other raters, and not equally many.

    One-way random effects by analysis of variance: within = Σ_i SS_i / Σ_i (n_i − 1); between by the method of moments,
    σ²_b = (SS_between − (I − 1) within) / (N − Σ n_i² / N); ICC = σ²_b / (σ²_b + within). With n_0 = (N − Σ n_i² / N) /
    (I − 1) that is (MS_b − MS_w) / (MS_b + (n_0 − 1) MS_w), and with equal n_i the ICC(1,1) of Shrout & Fleiss. In a
    resample, degrees of freedom count different listeners.
    """
    return np.concatenate([_one_way(sums) for sums in _sums(votes, weights)])


def mean_raters(votes: Votes) -> float:
    """Return n_0 of `one_way_icc`: the number of raters of an item that stands for unequal ones."""
    counts = np.bincount(votes.item, minlength=votes.items)
    counts = counts[counts > 1]
    total = counts.sum()
    return float((total - (counts**2).sum() / total) / (counts.size - 1)) if counts.size > 1 else float("nan")


def of_mean(reliability: Floats, raters: float) -> Floats:
    """Return the reliability of the mean of that many raters (Spearman-Brown).

    That is ICC(1,k) from ICC(1,1), and ICC(2,k) from ICC(2,1). A share of variance below 0 counts as 0: stepped up, it
    would have no lower bound.
    """
    share = np.maximum(reliability, 0.0)
    return np.asarray(raters * share / (1 + (raters - 1) * share))


def two_way_icc(matrix: Floats, weights: Floats) -> Floats:
    """Return ICC(2,1): absolute agreement of single ratings, where every listener rated every item.

    In terms of the items × listeners matrix: c, mean covariance over items of two different listeners; v, mean variance
    over items of a listener; b, variance over listeners of their means. MS_items = v + (k − 1) c, MS_error = v − c,
    MS_listeners = n b, and ICC(2,1) = c / (v + b − (v − c) / n).

    Args:
        matrix: shape (items, listeners), complete.
    """
    items, listeners = matrix.shape
    if items < 2 or listeners < 2:
        return np.full(len(weights), np.nan)
    covariance = np.atleast_2d(np.cov(matrix, rowvar=False))
    means = matrix.mean(axis=0)
    n, squares = weights.sum(axis=1), (weights**2).sum(axis=1)
    pairs = n**2 - squares
    own = np.diag(covariance)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = (np.einsum("rl,rl->r", weights @ covariance, weights) - weights**2 @ own) / pairs
        variance = weights @ own / n
        between = (n * (weights @ means**2) - (weights @ means) ** 2) / pairs
        found: Floats = shared / (variance + between - (variance - shared) / items)
    return np.where(np.isfinite(found), found, np.nan)


def _sums(votes: Votes, weights: Floats) -> Iterator[_Sums]:
    """Yield the sums over the items that two listeners rated, for a few resamples at a time; values less their mean."""
    from scipy.sparse import csr_array

    kept = np.bincount(votes.item, minlength=votes.items)[votes.item] > 1
    value = votes.value[kept] - (votes.value[kept].mean() if kept.any() else 0.0)
    items, item = np.unique(votes.item[kept], return_inverse=True)
    place, shape = (item, votes.listener[kept]), (items.size, votes.listeners)
    once, x, xx = (csr_array((one, place), shape=shape) for one in (np.ones(value.size), value, value**2))
    step = max(1, _CELLS_AT_ONCE // max(items.size, 1))
    for first in range(0, len(weights), step):
        part = np.ascontiguousarray(weights[first : first + step].T, np.float64)
        yield _Sums((once @ part).T, (once @ part**2).T, (x @ part).T, (xx @ part).T)


def _alpha(sums: _Sums) -> Floats:
    pairs = sums.n**2 - sums.squares
    is_compared = pairs > 0.5
    n = np.where(is_compared, sums.n, 0.0)
    total = n.sum(axis=1)
    distances = np.divide(2 * (sums.n * sums.xx - sums.x**2), pairs, out=np.zeros(pairs.shape), where=is_compared)
    x, xx = (np.where(is_compared, one, 0.0).sum(axis=1) for one in (sums.x, sums.xx))
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = (n * distances).sum(axis=1) / total
        expected = 2 * (total * xx - x**2) / (total * (total - 1))
        found: Floats = 1 - observed / np.where(expected > _nothing(total, xx), expected, np.nan)
    return found


def _one_way(sums: _Sums) -> Floats:
    is_compared = sums.n**2 - sums.squares > 0.5
    n, squares, x, xx = (np.where(is_compared, one, 0.0) for one in (sums.n, sums.squares, sums.x, sums.xx))
    per_item = np.where(is_compared, sums.n, 1.0)
    total = n.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (n - squares / per_item).sum(axis=1)
        within = (xx - x**2 / per_item).sum(axis=1) / freedom
        between = (x**2 / per_item).sum(axis=1) - x.sum(axis=1) ** 2 / total
        noise = within * ((squares / per_item).sum(axis=1) - squares.sum(axis=1) / total)
        of_items = (between - noise) / (total - (n**2).sum(axis=1) / total)
        both = of_items + within
        found: Floats = of_items / np.where(both > _nothing(total, xx.sum(axis=1)), both, np.nan)
    return np.where(np.isfinite(found), found, np.nan)


def _nothing(total: Floats, squares: Floats) -> Floats:
    """Return the variance that is nothing but rounding."""
    return 1e-12 * (1 + squares / np.maximum(total, 1.0))


BRIDGE_SET, REPEATEDLY_RATED, REPEATS = "bridge set", "all items rated more than once", "repeats by one listener"
ALPHA, ALPHA_ORDINAL = "Krippendorff's alpha (interval)", "Krippendorff's alpha (ordinal)"
REPEAT_DIFFERENCE, REPEAT_WITHIN_ONE = "Mean absolute difference", "Share within one point"
_Measure = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Given:
    """Ratings of one task that can be compared: those that count for scores, or those of the bridge set.

    Attributes, each of shape (ratings,): `listener` numbers `Scored.listeners`; `score` is raw or normalised as there;
    `rating` on the scale of the study.
    """

    listener: Ints
    item: Texts
    score: Floats
    rating: Floats


@dataclass(frozen=True, eq=False)
class Repeats:
    """Items that a listener rated more than once: each rating beside the one before it. Shape (repeats,)."""

    listener: Ints
    item: Texts
    score_difference: Floats
    rating_difference: Floats

    def __len__(self) -> int:
        return int(self.listener.size)


def make_reliability_tables(all_ratings: Ratings, scored: Scored, settings: Settings) -> list[DataTable]:
    """Make ``reliability``: for each task the bridge set, repeatedly rated items, and repeats; or why there is none.

    Args:
        all_ratings: of every purpose, for those of the bridge set.
    """
    maker = _Rows(scored, draw_listeners(scored.listeners.size, settings), settings)
    rows: list[Row] = []
    for task in scored.scale:
        given, bridge = select_given(scored, task), select_bridge(all_ratings, scored, task)
        if given.item.size or bridge.item.size:
            rows += maker.of_bridge_set(task, bridge)
            rows += maker.of_repeatedly_rated(task, given, has_bridge_set=bool(bridge.item.size))
            rows += maker.of_repeats(task, find_repeats(given, bridge))
    return [make_table("reliability", rows)]


def select_given(scored: Scored, task: str) -> Given:
    """Return the ratings of a task that count."""
    chosen = scored.ratings.task == task
    ratings = scored.ratings
    return Given(scored.listener[chosen], ratings.item[chosen], scored.score[chosen], ratings.rating[chosen])


def select_bridge(all_ratings: Ratings, scored: Scored, task: str) -> Given:
    """Return the ratings of the bridge set in a task, of listeners who have scored ratings of it and count."""
    is_bridge = (all_ratings.purpose == BRIDGE) & (all_ratings.task == task) & (all_ratings.excluded == "")
    given = select_given(scored, task)
    known = scored.listeners[np.unique(given.listener)]
    chosen: Ratings = all_ratings.rows(is_bridge & np.isin(all_ratings.listener, known))
    listener = np.searchsorted(scored.listeners, chosen.listener).astype(np.int64)
    score = chosen.rating.copy()
    if scored.kind != "raw":
        for one in np.unique(listener):
            of_one, own = listener == one, given.listener == one
            ratings, first = np.unique(given.rating[own], return_index=True)
            score[of_one] = np.interp(chosen.rating[of_one], ratings, given.score[own][first])
    return Given(listener, chosen.item, score, chosen.rating)


def take_first_votes(given: Given, listeners: int) -> Votes:
    """Return the first rating of each listener for each item."""
    items, item = np.unique(given.item, return_inverse=True)
    _, first = np.unique(item.astype(np.int64) * max(listeners, 1) + given.listener, return_index=True)
    return Votes(item[first].astype(np.int64), given.listener[first], given.score[first], items.size, listeners)


def find_repeats(*parts: Given) -> Repeats:
    """Return each rating beside the one that its listener gave to the same item before, over all parts."""
    listener, item, score, rating = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("listener", "item", "score", "rating")
    )
    _, number = np.unique(item, return_inverse=True)
    order = np.lexsort((number, listener))  # stable: equal ones stay in the order in which they were given
    is_repeat = (np.diff(number[order]) == 0) & (np.diff(listener[order]) == 0)
    before, after = order[:-1][is_repeat], order[1:][is_repeat]
    return Repeats(
        listener[after], item[after], np.abs(score[after] - score[before]), np.abs(rating[after] - rating[before])
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Makes rows; `draws`: shape (resamples, listeners), None where there are too few listeners for intervals."""

    scored: Scored
    draws: Floats | None
    settings: Settings

    def of_bridge_set(self, task: str, bridge: Given) -> list[Row]:
        row = {"task": task, "over": BRIDGE_SET}
        if not bridge.item.size:
            return [row | {"measure": ALPHA, "remark": "There is no bridge set: no items that everybody was to rate."}]
        votes = take_first_votes(bridge, self.scored.listeners.size)
        rows = self._alphas(row, votes)
        matrix, complete = complete_matrix(votes)
        counts = {"n": matrix.size, "listeners": complete.size, "items": len(matrix)}
        note = _no_matrix(matrix)
        if left_out := np.unique(votes.listener).size - complete.size:
            note = note or f"{left_out} listeners did not rate the whole bridge set and are left out."
        single = self._row(row | counts | {"measure": "ICC(2,1)"}, lambda w: two_way_icc(matrix, w[:, complete]), note)
        k = complete.size
        mean = row | counts | {"measure": "ICC(2,k)"}
        of_k = self._row(mean, lambda w: of_mean(two_way_icc(matrix, w[:, complete]), k), note or f"k = {k}")
        return [*rows, single, of_k]

    def of_repeatedly_rated(self, task: str, given: Given, *, has_bridge_set: bool) -> list[Row]:
        row = {"task": task, "over": REPEATEDLY_RATED}
        votes = take_first_votes(given, self.scored.listeners.size)
        raters = np.bincount(votes.item, minlength=votes.items)
        if not (raters > 1).any():
            remedy = "see the bridge set." if has_bridge_set else "a bridge set that everybody rates is the remedy."
            told = f"Each item was rated by one listener, so no index can be computed; {remedy}"
            return [row | {"measure": ALPHA, "n": 0, "listeners": 0, "items": 0, "remark": told}]
        kept = raters[votes.item] > 1
        compared = Votes(votes.item[kept], votes.listener[kept], votes.value[kept], votes.items, votes.listeners)
        share = "" if kept.all() else f"{int((raters > 1).sum())} of {votes.items} items were rated more than once."
        counts = _counts(compared)
        n0 = mean_raters(compared)
        once: dict[int, Floats] = {}  # by the number of resamples, so that both rows rest on one pass

        def icc(weights: Floats) -> Floats:
            if len(weights) not in once:
                once[len(weights)] = one_way_icc(compared, weights)
            return once[len(weights)]

        single, mean = (row | counts | {"measure": name} for name in ("ICC(1,1)", "ICC(1,k)"))
        return [
            *self._alphas(row, compared, share),
            self._row(single, icc, share),
            self._row(mean, lambda weights: of_mean(icc(weights), n0), f"k = {n0:.2f}, unequal raters. {share}"),
        ]

    def of_repeats(self, task: str, repeats: Repeats) -> list[Row]:
        row = {"task": task, "over": REPEATS}
        if not len(repeats):
            return [row | {"measure": REPEAT_DIFFERENCE, "n": 0, "remark": "No listener rated an item more than once."}]
        listeners, items = np.unique(repeats.listener).size, np.unique(repeats.item).size
        counts = {"n": len(repeats), "listeners": listeners, "items": items}
        is_within = (repeats.rating_difference <= 1).astype(np.float64)
        return [
            self._row(row | counts | {"measure": name}, self._mean_over(repeats.listener, values))
            for name, values in ((REPEAT_DIFFERENCE, repeats.score_difference), (REPEAT_WITHIN_ONE, is_within))
        ]

    def _alphas(self, row: Row, votes: Votes, note: str = "") -> list[Row]:
        """Return both alphas; in resamples the ranks of ordinal votes stay those of all votes."""
        counts, ranked = _counts(votes), ordinal(votes)
        if not (np.bincount(votes.item) > 1).any():
            note = "No item was rated by two listeners."
        elif np.ptp(votes.value) == 0:
            note = "All ratings are equal: agreement and chance cannot be distinguished."
        return [
            self._row(row | counts | {"measure": name}, partial(krippendorff_alpha, of), note)
            for name, of in ((ALPHA, votes), (ALPHA_ORDINAL, ranked))
        ]

    def _mean_over(self, listener: Ints, values: Floats) -> _Measure:
        sums = np.bincount(listener, values, self.scored.listeners.size)
        counts = np.bincount(listener, minlength=self.scored.listeners.size).astype(np.float64)

        def measure(weights: Floats) -> Floats:
            weight = weights @ counts
            means: Floats = np.divide(weights @ sums, weight, out=np.full(len(weights), np.nan), where=weight > 0)
            return means

        return measure

    def _row(self, row: Row, measure: _Measure, note: str = "") -> Row:
        """Return the row with the measure of the data, and its interval over resamples if it has enough listeners."""
        value = float(measure(np.ones((1, self.scored.listeners.size)))[0])
        found = row | {"value": value, "remark": note.strip()}
        if not np.isfinite(value):
            return found
        if self.draws is None or row["listeners"] < self.settings.least_clusters:
            short = f"{row['listeners']} listeners: no interval under {self.settings.least_clusters}."
            return found | {"remark": f"{found['remark']} {short}".strip()}
        low, high = percentile_interval(measure(self.draws), self.settings.level)
        return found | {"value_low": low, "value_high": high}


def complete_matrix(votes: Votes) -> tuple[Floats, Ints]:
    """Return the items × listeners matrix of those who rated every item, and who they are."""
    matrix = np.full((votes.items, votes.listeners), np.nan)
    matrix[votes.item, votes.listener] = votes.value
    complete = np.flatnonzero(np.isfinite(matrix).all(axis=0)).astype(np.int64)
    return matrix[:, complete], complete


def _no_matrix(matrix: Floats) -> str:
    if matrix.shape[1] < 2:
        return "Fewer than two listeners rated the whole bridge set."
    if len(matrix) < 2:
        return "The bridge set has one item."
    return "All ratings are equal." if np.ptp(matrix) == 0 else ""


def _counts(votes: Votes) -> Row:
    listeners, items = np.unique(votes.listener).size, np.unique(votes.item).size
    return {"n": votes.value.size, "listeners": listeners, "items": items}
