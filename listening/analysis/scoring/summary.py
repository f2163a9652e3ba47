"""What each system scored: means, medians, spread, and how sure one can be of them.

Intervals of means and medians draw listeners with all their ratings and are stretched where utterances were rated by
several listeners (`intervals`; for normalised ranks `estimate_missed`). Beside them stand four standard errors of the
mean, so that a reader sees what each assumption costs: as if ratings were independent, by listener, by utterance, and
clustered both ways.

Conventions: scores of one kind, raw or normalised; quantiles interpolate linearly (Hyndman & Fan, type 7); whiskers end
at the last score within 1.5 interquartile ranges of the box (Tukey).

Utterances move a mean of normalised ranks in two ways (`estimate_missed`). A normalised rank compares a rating with all
others of its listener and task. So an utterance that is easy to like raises the ranks of its own ratings and lowers all
others of those who rated it: of a study in which half of all ratings are of originals, the mean rank of the originals
says as much about the utterances of the systems as about their own. Clustering ratings by their own utterance, as for
raw scores, leaves that out.

With c(x, y) = 1, 1/2, 0 for x above, equal to and below y, the mean of the ranks of cell S is, but for a constant,

    1/n_S · Σ_l 1/(n_l − 1) · Σ_{j in S} Σ_{k not in S} c(x_j, x_k)        (sums over ratings of listener l),

a sum over listeners of functions of the utterances that each heard. Two listeners covary through the utterances they
share: the product of what such an utterance adds to either (Hájek projection), summed over pairs of listeners, is the
variance that clustering by listener misses. For raw scores it is V_I − V_LI of `intervals`.
Source: van der Vaart, "Asymptotic Statistics" (1998), chapters 11 and 12 (projections, U-statistics).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.tables import DataTable
from listening.analysis.models.comparisons import adjust_p
from listening.analysis.models.grouping import assign_letters
from listening.analysis.models.intervals import (
    TwoWay,
    cluster_two_way,
    draw_listeners,
    mean_influence,
    median_influence,
    number_items,
    small_sample_stretch,
    stretched_interval,
    t_limits,
)
from listening.analysis.reading.inputs import Scored, Settings
from listening.analysis.scoring.resampled import count_by_listener, find_medians, split_resamples
from listening.analysis.scoring.scores import NORMALISED
from listening.analysis.tables import Row, make_table

_DENOMINATOR_LESS = {"rank01/avg": 1, "midrank": 0}


def estimate_missed(scored: Scored, members: Sequence[Ints], item: Ints, normalisation: str) -> Floats:
    """Variances and covariances of the means of cells that clustering by listener misses; they may be negative.

    Args:
        scored: normalised scores.
        members: of each cell, numbers of its ratings, all of one task.
        item: shape (ratings,), numbers of the utterances.
        normalisation: formula by which ranks were normalised.

    Returns:
        Shape (cells, cells); 0 between cells of different tasks, which are not compared.
    """
    missed = np.zeros((len(members), len(members)))
    tasks = [str(scored.ratings.task[rating[0]]) for rating in members]
    for task in dict.fromkeys(tasks):
        cells = [place for place, name in enumerate(tasks) if name == task]
        rating = np.flatnonzero(scored.ratings.task == task)
        is_member = np.zeros((rating.size, len(cells)), dtype=np.bool_)
        for column, cell in enumerate(cells):
            is_member[np.searchsorted(rating, members[cell]), column] = True
        added = _added(scored.score[rating], scored.listener[rating], is_member, less=_DENOMINATOR_LESS[normalisation])
        added -= _expected(added, scored, rating)
        missed[np.ix_(cells, cells)] = _between_listeners(added, scored.listener[rating], item[rating])
    return missed


def _added(score: Floats, listener: Ints, is_member: Flags, less: int) -> Floats:
    """What each rating adds to the mean of each cell, by winning or losing against ratings on the other side."""
    added = np.zeros(is_member.shape)
    for one in np.unique(listener):
        own = np.flatnonzero(listener == one)
        inside = is_member[own].astype(np.float64)
        beats = np.greater.outer(score[own], score[own]) + 0.5 * np.equal.outer(score[own], score[own])
        against = beats @ inside
        won = beats.sum(axis=1, keepdims=True) - against
        lost = inside.sum(axis=0) - against
        added[own] = np.where(inside > 0, won, lost) / max(own.size - less, 1)
    return np.asarray(added / is_member.sum(axis=0))


def _expected(added: Floats, scored: Scored, rating: Ints) -> Floats:
    """The mean over ratings of the same system and class: what is no matter of the utterance."""
    names, system = np.unique(scored.ratings.system[rating], return_inverse=True)
    group = system + names.size * (scored.ratings.is_target[rating] > 0)
    count = np.maximum(np.bincount(group), 1)
    means = [np.bincount(group, column)[group] / count[group] for column in added.T]
    return np.stack(means, axis=1)


def _between_listeners(added: Floats, listener: Ints, item: Ints) -> Floats:
    """Σ over utterances of the products of what two different listeners got from them, shape (cells, cells)."""
    _, both = np.unique(item * (int(listener.max()) + 1) + listener, return_inverse=True)
    found = np.zeros((added.shape[1], added.shape[1]))
    for cluster, sign in ((item, 1), (both, -1)):
        count = np.unique(cluster).size
        sums = np.stack([np.bincount(cluster, one) for one in added.T], axis=1)
        found += sign * count / max(count - 1, 1) * (sums.T @ sums)
    return found


_PairP = dict[frozenset[str], float]

ALL, TARGET, NONTARGET = "all", "target", "nontarget"
_BINS = 20
_MOST_POINTS = 30  # of a scale that gets a bin for each
_WHISKER = 1.5
_NOISE = 1e-12  # relative: smaller differences are those of rounding
_ITEM_STREAM = 1  # of random numbers, beside that of listeners


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """The ratings of a system in a task, of one kind of pairs: their numbers."""

    task: str
    system: str
    kind: str
    rating: Ints

    @property
    def names(self) -> Row:
        """The first columns of each row about it."""
        return {"task": self.task, "system": self.system, "kind": self.kind}


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """What all cells are computed from. `draws`: shape (resamples, listeners), None with too few listeners."""

    scored: Scored
    settings: Settings
    item: Ints
    is_known: Flags
    draws: Floats | None


def make_summary_tables(scored: Scored, settings: Settings, differences: DataTable) -> list[DataTable]:
    """The tables ``summary`` and ``histogram``.

    Args:
        differences: of the same scores; its adjusted permutation p tells systems apart, together with a t test
            clustered both ways. Either decides alone where the other cannot be made.
    """
    utterance = scored.ratings.utterance
    draws = draw_listeners(scored.listeners.size, settings)
    shared = _Shared(scored, settings, number_items(utterance), utterance != "", draws)
    cells = make_cells(scored)
    rows = [_points(cell, shared) for cell in cells]
    of_pairs = _add_intervals(rows, cells, shared)
    for row, error in zip(rows, _item_errors(cells, shared), strict=True):
        row["se_item"] = error
    for task in scored.tasks:
        of_all = [row for row in rows if row["task"] == task and row["kind"] == ALL]
        below = round(1 - settings.level, 10)
        letters = _letters(of_all, differences.records(task=task), of_pairs.get(task, {}), below)
        for row in of_all:
            row["group"] = letters.get(row["system"], "")
    return [
        make_table("summary", rows),
        make_table("histogram", [bin_ for cell in cells for bin_ in _bins(cell, scored)]),
    ]


def make_cells(scored: Scored) -> list[Cell]:
    """All ratings of each task and system; where voices are compared, targets and nontargets too."""
    ratings = scored.ratings
    cells = []
    for task in scored.tasks:
        of_task = ratings.task == task
        for system in scored.systems(task):
            chosen = of_task & (ratings.system == system)
            cells.append(Cell(task, system, ALL, np.flatnonzero(chosen)))
            if task == "verifiability":
                for kind, is_target in ((TARGET, 1), (NONTARGET, 0)):
                    rating = np.flatnonzero(chosen & (ratings.is_target == is_target))
                    if rating.size:
                        cells.append(Cell(task, system, kind, rating))
    return cells


def _points(cell: Cell, shared: _Shared) -> Row:
    """Everything without an interval."""
    scored = shared.scored
    score = scored.score[cell.rating]
    lower, median, upper = np.quantile(score, [0.25, 0.5, 0.75])
    reach = _WHISKER * (upper - lower)
    spread = _spread(score) if score.size > 1 else None
    listeners = np.unique(scored.listener[cell.rating]).size
    items = np.unique(scored.ratings.utterance[cell.rating][shared.is_known[cell.rating]]).size
    low_whisker, high_whisker = score[score >= lower - reach].min(), score[score <= upper + reach].max()
    return (
        cell.names
        | {"n": score.size, "listeners": listeners, "items": items, "remark": _note(cell, shared)}
        | {"mean": score.mean(), "median": median, "q1": lower, "q3": upper, "sd": spread}
        | {"low_whisker": low_whisker, "high_whisker": high_whisker}
        | {"se_naive": None if spread is None else spread / sqrt(score.size)}
    )


def _note(cell: Cell, shared: _Shared) -> str:
    listeners = np.unique(shared.scored.listener[cell.rating]).size
    items = np.unique(shared.item[cell.rating]).size
    least = shared.settings.least_clusters
    if listeners < least:
        return f"No intervals: {listeners} listeners, {least} are needed."
    if not shared.is_known[cell.rating].all():
        return "Which utterances were rated is not known of all: intervals hold for other listeners only."
    if items == 1:
        return "One utterance: intervals and letters hold for other listeners only."
    if items < least:
        return f"Few utterances ({items}): little can be said of others."
    return ""


def _add_intervals(rows: Sequence[Row], cells: Sequence[Cell], shared: _Shared) -> dict[str, _PairP]:
    """Intervals and standard errors by listener and clustered both ways, where there are listeners enough.

    Returns:
        By task `_two_way_p` of its systems.
    """
    scored, settings = shared.scored, shared.settings
    kept = [
        (row, cell)
        for row, cell in zip(rows, cells, strict=True)
        if shared.draws is not None and row["listeners"] >= settings.least_clusters
    ]
    by = scored.listener, shared.item
    # Where voices are compared, how many pairs of either class an utterance is in was chosen, not found.
    stratum = np.where(scored.ratings.task == "verifiability", scored.ratings.is_target, 0)
    ratings = scored.score, *by, stratum
    of_means = cluster_two_way([mean_influence(cell.rating, *ratings) for _, cell in kept], *by)
    of_medians = cluster_two_way([median_influence(cell.rating, *ratings) for _, cell in kept], *by)
    stretches = [of_means.stretches(), of_medians.stretches()]
    if scored.kind == NORMALISED and kept:
        missed = estimate_missed(scored, [cell.rating for _, cell in kept], shared.item, settings.normalisation)
        of_means = of_means.with_missed(missed)
        # Ranks of one listener move together, so what carries over to a mean carries over to a median.
        stretches = [of_means.stretches(), np.maximum(stretches[1], of_means.stretches())]
    for place, (row, cell) in enumerate(kept):
        means, middles = _resampled(cell, shared)
        row["se_listener"] = _spread(means)
        small = small_sample_stretch(int(of_means.listeners[place]), int(of_means.degrees()[place]), settings.level)
        for name, resampled, stretch in zip(("mean", "median"), (means, middles), stretches, strict=True):
            row[f"{name}_low"], row[f"{name}_high"] = stretched_interval(
                row[name], resampled, small * float(stretch[place]), settings.level, scored.scale[cell.task]
            )
        if of_means.items[place] > 1:
            variance = float(of_means.variances()[place])
            degrees = int(of_means.degrees()[place])
            row["se_two_way"] = sqrt(variance)
            row["two_way_low"], row["two_way_high"] = t_limits(row["mean"], variance, degrees, settings.level)
    return {task: _two_way_p(task, kept, of_means, settings) for task in scored.tasks}


def _two_way_p(task: str, kept: Sequence[tuple[Row, Cell]], clustering: TwoWay, settings: Settings) -> _PairP:
    """Of each two systems the t test of their means for other listeners and other utterances, corrected over pairs.

    Left out are systems of which one utterance only was rated: nothing can be said of others.
    """
    from scipy.special import stdtr

    places = [
        place
        for place, (_, cell) in enumerate(kept)
        if cell.task == task and cell.kind == ALL and clustering.items[place] > 1
    ]
    pairs = [(first, second) for number, first in enumerate(places) for second in places[number + 1 :]]
    found = np.empty(len(pairs))
    for number, (first, second) in enumerate(pairs):
        variance, degrees = clustering.of_difference(first, second)
        means = kept[first][0]["mean"], kept[second][0]["mean"]
        difference = abs(means[0] - means[1])
        if difference <= _NOISE * max(map(abs, means)):
            found[number] = 1.0
        else:
            found[number] = 2 * stdtr(degrees, -difference / sqrt(variance)) if variance > 0 else 0.0
    names = [frozenset((kept[first][1].system, kept[second][1].system)) for first, second in pairs]
    return dict(zip(names, adjust_p(found, settings.correction).tolist(), strict=True))


def _spread(values: Floats) -> float:
    """Standard deviation, NaN left out; 0 where values differ by rounding only."""
    if np.nanmax(values) - np.nanmin(values) <= _NOISE * np.nanmax(np.abs(values)):
        return 0.0
    return float(np.nanstd(values, ddof=1))


def _resampled(cell: Cell, shared: _Shared) -> tuple[Floats, Floats]:
    """Mean and median of each resample of listeners, NaN where none who rated the system was drawn."""
    draws = shared.draws
    if draws is None:
        return np.empty(0), np.empty(0)
    values, place = np.unique(shared.scored.score[cell.rating], return_inverse=True)
    counts = count_by_listener(shared.scored.listener[cell.rating], place, listeners=draws.shape[1], values=values.size)
    means, middles = np.empty(len(draws)), np.empty(len(draws))
    for part in split_resamples(len(draws), values.size):
        histograms = draws[part] @ counts
        with np.errstate(invalid="ignore", divide="ignore"):
            means[part] = (histograms @ values) / histograms.sum(1)
        middles[part] = find_medians(histograms, values)
    return means, middles


def _item_errors(cells: Sequence[Cell], shared: _Shared) -> list[float | None]:
    """Standard error of each mean over resamples of utterances; None where too few, or not all, are known."""
    settings = shared.settings
    names = np.unique(shared.item[shared.is_known])
    if names.size < 2:
        return [None] * len(cells)
    sums, counts = np.zeros((names.size, len(cells))), np.zeros((names.size, len(cells)))
    usable = []
    for column, cell in enumerate(cells):
        known = cell.rating[shared.is_known[cell.rating]]
        place = np.searchsorted(names, shared.item[known])
        sums[:, column] = np.bincount(place, shared.scored.score[known], names.size)
        counts[:, column] = np.bincount(place, minlength=names.size)
        usable.append(known.size == cell.rating.size and np.count_nonzero(counts[:, column]) >= settings.least_clusters)
    numbers = np.random.default_rng([settings.seed, _ITEM_STREAM])
    shares = np.full(names.size, 1 / names.size)
    means = np.empty((settings.resamples, len(cells)))
    for part in split_resamples(settings.resamples, names.size):
        drawn = numbers.multinomial(names.size, shares, size=part.stop - part.start).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[part] = (drawn @ sums) / (drawn @ counts)
    return [_spread(means[:, column]) if use else None for column, use in enumerate(usable)]


def _letters(
    rows: Sequence[Row], differences: Sequence[Mapping[str, Any]], of_pairs: _PairP, below: float
) -> dict[str, str]:
    """Letters of the systems of a task, the highest mean first; none where nothing can tell systems apart.

    Two are told apart where both tests do: the permutation within listeners, which takes the utterances as they are,
    and the one clustered by listener and utterance (`_two_way_p`), which asks whether others would say the same. Where
    only one can be made (at most one listener rated both; too few listeners or utterances), that one decides.
    """
    within: _PairP = {
        frozenset((one["first"], one["second"])): one["permutation_adjusted"]
        for one in differences
        if one["permutation_adjusted"] is not None and one["listeners"] != 1
    }
    if not within and not of_pairs:
        return {}

    def is_apart(first: str, second: str) -> bool:
        pair = frozenset((first, second))
        found = [p for p in (within.get(pair), of_pairs.get(pair)) if p is not None]
        return bool(found) and max(found) < below

    ordered = sorted(rows, key=lambda row: (-row["mean"], row["system"]))
    return assign_letters([row["system"] for row in ordered], is_apart)


def _bins(cell: Cell, scored: Scored) -> list[Row]:
    """How often each part of the scale was used: its points if they are few whole numbers, else twenty parts."""
    low, high = scored.scale[cell.task]
    score = scored.score[cell.rating]
    of_task = scored.score[scored.ratings.task == cell.task]
    is_whole = scored.kind == "raw" and bool((of_task == np.rint(of_task)).all()) and float(low).is_integer()
    if is_whole and high - low < _MOST_POINTS:
        edges = np.arange(low - 0.5, high + 1)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    # A hair above, for a score that lies on an edge but for rounding belongs to the bin that begins there.
    place = np.floor((score - edges[0]) / (edges[1] - edges[0]) + 1e-9)
    counts = np.bincount(np.clip(place, 0, edges.size - 2).astype(np.int64), minlength=edges.size - 1)
    return [
        cell.names | {"lower": lower, "upper": upper, "count": count, "share": count / score.size}
        for lower, upper, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
