"""What each system scored: means, medians, spread, and how sure one can be of them.

Intervals of means and medians draw listeners with all their ratings and are stretched where utterances were rated by
several listeners (`intervals`, `clustering`). Beside them stand four standard errors of the
mean, so that a reader sees what each assumption costs: as if ratings were independent, by listener, by utterance, and
clustered both ways.

Conventions: scores of one kind, raw or normalised; quantiles interpolate linearly (Hyndman & Fan, type 7); whiskers end
at the last score within 1.5 interquartile ranges of the box (Tukey).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.tables import DataTable
from common.wording import counted
from listening.analysis.models.clustering import ALL, RatedCell, class_strata, cluster_means, make_cells
from listening.analysis.models.grouping import assign_letters
from listening.analysis.models.intervals import (
    cluster_two_way,
    draw_listeners,
    median_influence,
    number_items,
    small_sample_stretch,
    stretched_interval,
    t_limits,
)
from listening.analysis.reading.inputs import NORMALISED, Scored, Settings
from listening.analysis.scoring.resampled import count_by_listener, find_medians, split_resamples
from listening.analysis.tables import Row, make_table

_BINS = 20
_MOST_POINTS = 30  # of a scale that gets a bin for each
_WHISKER = 1.5
_NOISE = 1e-12  # relative: smaller differences are those of rounding
_ITEM_STREAM = 1  # of random numbers, beside that of listeners


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """What all cells are computed from. `draws`: shape (resamples, listeners), None with too few listeners."""

    scored: Scored
    settings: Settings
    item: Ints
    is_known: Flags
    draws: Floats | None


def make_summary_tables(scored: Scored, settings: Settings, differences: DataTable) -> list[DataTable]:
    """Return the tables ``summary`` and ``histogram``.

    Args:
        differences: of the same scores; letters say which are not significant.
    """
    utterance = scored.ratings.utterance
    draws = draw_listeners(scored.listeners.size, settings)
    shared = _Shared(scored, settings, number_items(utterance), utterance != "", draws)
    cells = make_cells(scored)
    rows = [_points(cell, shared) for cell in cells]
    with_mean = [(row, cell) for row, cell in zip(rows, cells, strict=True) if "mean" in row]
    _add_intervals(with_mean, shared)
    for (row, _), error in zip(with_mean, _item_errors([cell for _, cell in with_mean], shared), strict=True):
        row["se_item"] = error
    for task in scored.tasks:
        of_all = [row for row in rows if row["task"] == task and row["kind"] == ALL]
        means = {row["system"]: _mean_of_kinds(rows, row) for row in of_all}
        letters = _letters(means, differences.records(task=task))
        for row in of_all:
            row["group"] = letters.get(row["system"], "")
    return [
        make_table("summary", rows),
        make_table("histogram", [bin_ for cell in cells for bin_ in _bins(cell, scored)]),
    ]


def _mean_of_kinds(rows: Sequence[Row], of_all: Row) -> float:
    """Return by what a system is sorted: its mean, where kinds of pairs have means of their own that of these."""
    names = of_all["task"], of_all["system"]
    return float(np.mean([row["mean"] for row in rows if (row["task"], row["system"]) == names and "mean" in row]))


def _points(cell: RatedCell, shared: _Shared) -> Row:
    """Return all but intervals; of all pairs of voices no score, which would tell how many are of one speaker."""
    scored = shared.scored
    score = scored.score[cell.rating]
    lower, median, upper = np.quantile(score, [0.25, 0.5, 0.75])
    reach = _WHISKER * (upper - lower)
    spread = _spread(score) if score.size > 1 else None
    listeners = np.unique(scored.listener[cell.rating]).size
    items = np.unique(scored.ratings.utterance[cell.rating][shared.is_known[cell.rating]]).size
    low_whisker, high_whisker = score[score >= lower - reach].min(), score[score <= upper + reach].max()
    counts = {"n": score.size, "listeners": listeners, "items": items, "remark": _note(cell, shared)}
    if cell.kind == ALL and cell.task in scored.comparing and (scored.ratings.is_target[cell.rating] >= 0).any():
        return cell.names | counts
    return (
        cell.names
        | counts
        | {"mean": score.mean(), "median": median, "q1": lower, "q3": upper, "sd": spread}
        | {"low_whisker": low_whisker, "high_whisker": high_whisker}
        | {"se_naive": None if spread is None else spread / sqrt(score.size)}
    )


def _note(cell: RatedCell, shared: _Shared) -> str:
    listeners = np.unique(shared.scored.listener[cell.rating]).size
    items = np.unique(shared.item[cell.rating]).size
    least = shared.settings.least_clusters
    if listeners < least:
        return f"No intervals: {counted(listeners, 'listener')}, {least} are needed."
    if not shared.is_known[cell.rating].all():
        return "Which utterances were rated is not known of all: intervals hold for other listeners only."
    if items == 1:
        return "One utterance: intervals and letters hold for other listeners only."
    if items < least:
        return f"Few utterances ({items}): the mean of other utterances may differ much."
    return ""


def _add_intervals(of_cells: Sequence[tuple[Row, RatedCell]], shared: _Shared) -> None:
    """Add intervals and standard errors by listener and clustered both ways, where there are listeners enough."""
    scored, settings = shared.scored, shared.settings
    clustered = cluster_means(scored, [cell for _, cell in of_cells], settings)
    by = scored.listener, shared.item
    ratings = scored.score, *by, class_strata(scored)
    of_means = clustered.means
    of_medians = cluster_two_way([median_influence(cell.rating, *ratings) for cell in clustered.cells], *by)
    stretches = [of_means.stretches(), of_medians.stretches()]
    if scored.kind == NORMALISED:
        # Ranks of one listener move together, so what carries over to a mean carries over to a median.
        stretches[1] = np.maximum(*stretches)
    row_of = {id(cell): row for row, cell in of_cells}
    for place, cell in enumerate(clustered.cells):
        row = row_of[id(cell)]
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


def _spread(values: Floats) -> float:
    """Return the standard deviation, NaN left out; 0 where values differ by rounding only."""
    if np.nanmax(values) - np.nanmin(values) <= _NOISE * np.nanmax(np.abs(values)):
        return 0.0
    return float(np.nanstd(values, ddof=1))


def _resampled(cell: RatedCell, shared: _Shared) -> tuple[Floats, Floats]:
    """Return the mean and median of each resample of listeners, NaN where none who rated the system was drawn."""
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


def _item_errors(cells: Sequence[RatedCell], shared: _Shared) -> list[float | None]:
    """Return the standard error of each mean over resamples of utterances; None where too few or not all are known."""
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


def _letters(means: Mapping[str, float], differences: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the letters of the systems of a task, the highest mean first; none where no decided pair holds one."""
    told = {frozenset((one["first"], one["second"])): one["is_told_apart"] for one in differences}
    compared = frozenset[str]().union(*(pair for pair, one in told.items() if one is not None))
    ordered = sorted(compared.intersection(means), key=lambda system: (-means[system], system))
    return assign_letters(ordered, lambda a, b: bool(told.get(frozenset((a, b)))))


def _bins(cell: RatedCell, scored: Scored) -> list[Row]:
    """Return how often each part of the scale was used: its points if they are few whole numbers, else twenty parts."""
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
