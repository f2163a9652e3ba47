"""Do listeners agree, with each other and with themselves? On the bridge set, and on items that were rated repeatedly.

With one rating an item, as in the layout of 2022 for 13 systems, there is nothing to compare and no index exists; a
bridge set, a few items that everybody rates and that enter no scores, is the remedy. The measures are those of
`agreement_measures`. Only the first rating of an item by a listener is compared with others; the later ones tell how
far the listener agrees with himself.

Conventions: ratings of the bridge set are on the scale of the study; normalised, each becomes the score that its
listener's scored ratings of that task give to the same rating, interpolated between the two ratings beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from listening.analysis.agreement_measures import (
    Votes,
    krippendorff_alpha,
    mean_raters,
    of_mean,
    one_way_icc,
    ordinal,
    two_way_icc,
)
from listening.analysis.contents import RELIABILITY
from listening.analysis.draws import listener_draws, percentile_interval
from listening.analysis.inputs import BRIDGE, RATED, Floats, Ints, Ratings, Scored, Texts
from listening.analysis.settings import Settings
from listening.analysis.tables import Table

BRIDGE_SET, REPEATEDLY_RATED, REPEATS = "bridge set", "all items rated more than once", "repeats by one listener"
ALPHA, ALPHA_ORDINAL = "Krippendorff's alpha (interval)", "Krippendorff's alpha (ordinal)"
REPEAT_DIFFERENCE, REPEAT_WITHIN_ONE = "Mean absolute difference", "Share within one point"
_Row = dict[str, Any]
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


def reliability_tables(all_ratings: Ratings, scored: Scored, settings: Settings) -> list[Table]:
    """`contents.RELIABILITY`: for each task the bridge set, repeatedly rated items, and repeats; or why there is none.

    Args:
        all_ratings: of every purpose, for those of the bridge set.
    """
    drawn = listener_draws(scored.listeners.size, settings)
    maker = _Rows(scored, None if drawn is None else drawn.astype(np.float64), settings)
    rows: list[_Row] = []
    for task in RATED:
        given, bridge = given_of(scored, task), bridge_of(all_ratings, scored, task)
        if given.item.size or bridge.item.size:
            rows += maker.of_bridge_set(task, bridge)
            rows += maker.of_repeatedly_rated(task, given, has_bridge_set=bool(bridge.item.size))
            rows += maker.of_repeats(task, repeats_of(given, bridge))
    return [RELIABILITY.table(rows)]


def given_of(scored: Scored, task: str) -> Given:
    """The ratings of a task that count."""
    chosen = scored.ratings.task == task
    ratings = scored.ratings
    return Given(scored.listener[chosen], ratings.item[chosen], scored.score[chosen], ratings.rating[chosen])


def bridge_of(all_ratings: Ratings, scored: Scored, task: str) -> Given:
    """The ratings of the bridge set in a task, of listeners who have scored ratings of it and count."""
    is_bridge = (all_ratings.purpose == BRIDGE) & (all_ratings.task == task) & (all_ratings.excluded == "")
    given = given_of(scored, task)
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


def votes_of(given: Given, listeners: int) -> Votes:
    """The first rating of each listener for each item."""
    items, item = np.unique(given.item, return_inverse=True)
    _, first = np.unique(item.astype(np.int64) * max(listeners, 1) + given.listener, return_index=True)
    return Votes(item[first].astype(np.int64), given.listener[first], given.score[first], items.size, listeners)


def repeats_of(*parts: Given) -> Repeats:
    """Each rating beside the one that its listener gave to the same item before, over all parts."""
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

    def of_bridge_set(self, task: str, bridge: Given) -> list[_Row]:
        row = {"task": task, "over": BRIDGE_SET}
        if not bridge.item.size:
            return [row | {"measure": ALPHA, "remark": "There is no bridge set: no items that everybody was to rate."}]
        votes = votes_of(bridge, self.scored.listeners.size)
        rows = self._alphas(row, votes)
        matrix, complete = complete_matrix(votes)
        counts = {"n": matrix.size, "listeners": complete.size, "items": len(matrix)}
        remark = _no_matrix(matrix)
        if left_out := np.unique(votes.listener).size - complete.size:
            remark = remark or f"{left_out} listeners did not rate the whole bridge set and are left out."
        single = self._row(
            row | counts | {"measure": "ICC(2,1)"}, lambda w: two_way_icc(matrix, w[:, complete]), remark
        )
        k = complete.size
        mean = row | counts | {"measure": "ICC(2,k)"}
        of_k = self._row(mean, lambda w: of_mean(two_way_icc(matrix, w[:, complete]), k), remark or f"k = {k}")
        return [*rows, single, of_k]

    def of_repeatedly_rated(self, task: str, given: Given, *, has_bridge_set: bool) -> list[_Row]:
        row = {"task": task, "over": REPEATEDLY_RATED}
        votes = votes_of(given, self.scored.listeners.size)
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

    def of_repeats(self, task: str, repeats: Repeats) -> list[_Row]:
        row = {"task": task, "over": REPEATS}
        if not len(repeats):
            return [row | {"measure": REPEAT_DIFFERENCE, "n": 0, "remark": "No listener rated an item more than once."}]
        counts = {
            "n": len(repeats), "listeners": np.unique(repeats.listener).size, "items": np.unique(repeats.item).size,
        }  # fmt: skip
        is_within = (repeats.rating_difference <= 1).astype(np.float64)
        return [
            self._row(row | counts | {"measure": name}, self._mean_over(repeats.listener, values))
            for name, values in ((REPEAT_DIFFERENCE, repeats.score_difference), (REPEAT_WITHIN_ONE, is_within))
        ]

    def _alphas(self, row: _Row, votes: Votes, remark: str = "") -> list[_Row]:
        """Both alphas; in resamples the ranks of ordinal votes stay those of all votes."""
        counts, ranked = _counts(votes), ordinal(votes)
        if not (np.bincount(votes.item) > 1).any():
            remark = "No item was rated by two listeners."
        elif np.ptp(votes.value) == 0:
            remark = "All ratings are equal: agreement cannot be told from chance."
        return [
            self._row(row | counts | {"measure": name}, partial(krippendorff_alpha, of), remark)
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

    def _row(self, row: _Row, measure: _Measure, remark: str = "") -> _Row:
        """The row with the measure of the data, and its interval over resamples if it has enough listeners."""
        value = float(measure(np.ones((1, self.scored.listeners.size)))[0])
        found = row | {"value": value, "remark": remark.strip()}
        if not np.isfinite(value):
            return found
        if self.draws is None or row["listeners"] < self.settings.least_clusters:
            short = f"{row['listeners']} listeners: no interval under {self.settings.least_clusters}."
            return found | {"remark": f"{found['remark']} {short}".strip()}
        low, high = percentile_interval(measure(self.draws), self.settings.level)
        return found | {"value_low": low, "value_high": high}


def complete_matrix(votes: Votes) -> tuple[Floats, Ints]:
    """The items × listeners matrix of those who rated every item, and who they are."""
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


def _counts(votes: Votes) -> _Row:
    return {
        "n": votes.value.size, "listeners": np.unique(votes.listener).size, "items": np.unique(votes.item).size,
    }  # fmt: skip
