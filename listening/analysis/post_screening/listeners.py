"""One row a listener and task: level, spread, bias, agreement with the others and with himself, and what rules say.

Listeners whom a rule in force leaves out have rows too, compared with those who count; so an organizer sees on one page
what a rule did and what it would do. Repeats come from `reliability`.

Conventions: a *cell* is a system, and in the task of verifiability a system with one class of pairs (same speaker or
not), as the two lie far apart. The others are the listeners that count; a listener whom a rule in force leaves out is
compared with them too, but is nobody's other. Values have shape (listeners,), NaN where there is nothing to look at.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.tables import DataTable
from listening.analysis.agreement.reliability import find_repeats, select_bridge, select_given
from listening.analysis.reading.inputs import Ratings, Scored
from listening.analysis.tables import Row, make_table


def add_left_out(scored: Scored, with_excluded: Scored) -> Scored:
    """Return the scores that count, and after them those of listeners of whom nothing counts.

    A listener with two sessions, one of them left out, is told about by the one that counts.
    """
    is_out = ~np.isin(with_excluded.ratings.listener, scored.listeners)
    rows = with_excluded.ratings.rows(is_out)
    ratings = Ratings(
        *(np.concatenate([getattr(scored.ratings, one.name), getattr(rows, one.name)]) for one in fields(Ratings))
    )
    score = np.concatenate([scored.score, with_excluded.score[is_out]])
    listeners, listener = np.unique(ratings.listener, return_inverse=True)
    return Scored(scored.kind, ratings, score, listener.astype(np.int64), listeners, scored.scale, scored.comparing)


LEAST_CELLS = 3
_DECIMALS = 10  # beyond, mathematically equal sums differ


@dataclass(frozen=True, eq=False)
class Rated:
    """Scores of one task.

    Attributes:
        listener: shape (ratings,), place in `listeners`. listeners: how many.
        cell, item: shape (ratings,), numbers from 0.
        score: shape (ratings,).
        counts: shape (ratings,), whether no rule in force leaves the rating out.
    """

    listener: Ints
    listeners: int
    cell: Ints
    item: Ints
    score: Floats
    counts: Flags


@dataclass(frozen=True, eq=False)
class Deviations:
    """Attributes, each of shape (listeners,):
    bias: mean deviation from the mean of the item or cell. inconsistency: standard deviation of that deviation.
    """

    bias: Floats
    inconsistency: Floats


def select_rated(scored: Scored, task: str) -> Rated:
    """Return the scores of a task, with its cells and items numbered."""
    ratings = scored.ratings.rows(scored.ratings.task == task)
    _, cell = np.unique(ratings.system, return_inverse=True)
    if task in scored.comparing:
        _, cell = np.unique(cell * 3 + ratings.is_target, return_inverse=True)
    _, item = np.unique(ratings.item, return_inverse=True)
    chosen = scored.ratings.task == task
    listener, numbers = scored.listener[chosen], (cell.astype(np.int64), item.astype(np.int64))
    return Rated(listener, int(scored.listeners.size), *numbers, scored.score[chosen], ratings.excluded == "")


def measure_agreement(rated: Rated) -> tuple[Floats, Ints]:
    """Return the Pearson correlation of a listener's scores with others' cell means, and over how many cells.

    Each score is paired with the mean that the others together gave to its cell (leave-one-out). NaN with fewer than
    `LEAST_CELLS` cells that others rated too, or where the scores or those means are all equal.
    """
    cells = int(rated.cell.max()) + 1 if rated.cell.size else 0
    place, size = rated.listener * cells + rated.cell, rated.listeners * cells
    sums, counts = (
        np.bincount(place[rated.counts], weights, size).reshape(rated.listeners, cells)
        for weights in (rated.score[rated.counts], None)
    )
    other_sums, other_counts = (one.sum(axis=0) - one for one in (sums, counts))
    means = np.divide(other_sums, other_counts, out=np.full(sums.shape, np.nan), where=other_counts > 0)
    beside = means[rated.listener, rated.cell]
    known = np.isfinite(beside)
    is_met = np.zeros(size, np.bool_)
    is_met[place[known]] = True
    common = is_met.reshape(rated.listeners, cells).sum(axis=1)
    listener = rated.listener[known]
    own, others = (_centred(listener, values[known], rated.listeners) for values in (rated.score, beside))
    product, own_square, other_square = (
        np.bincount(listener, values, rated.listeners) for values in (own * others, own**2, others**2)
    )
    lengths = np.sqrt(own_square * other_square)
    is_told = (common >= LEAST_CELLS) & (lengths > 1e-9)
    found = np.divide(product, lengths, out=np.full(rated.listeners, np.nan), where=is_told)
    return np.clip(found, -1.0, 1.0), common.astype(np.int64)


def measure_deviations(rated: Rated) -> Deviations:
    """Measure bias and inconsistency in the manner of ITU-T P.913, Annex E.

    There, a rating less the mean of its stimulus over all subjects; bias is the mean of that over the stimuli of a
    subject, inconsistency its standard deviation once the bias is taken off. Here the mean is that of the item where
    two or more listeners who count rated it, else that of its cell.
    """
    counted = rated.counts
    item_means, _ = _means(rated.item, rated.score, counted)
    cell_means, _ = _means(rated.cell, rated.score, counted)
    pairs = np.unique(rated.item[counted].astype(np.int64) * rated.listeners + rated.listener[counted])
    raters = np.bincount(pairs // max(rated.listeners, 1), minlength=item_means.size)
    centre = np.where(raters[rated.item] > 1, item_means[rated.item], cell_means[rated.cell])
    deviation = rated.score - centre
    known = np.isfinite(deviation)
    bias, count = _means(rated.listener, deviation, known, rated.listeners)
    squares = np.bincount(rated.listener[known], (deviation - bias[rated.listener])[known] ** 2, rated.listeners)
    spread = np.divide(squares, count - 1, out=np.full(rated.listeners, np.nan), where=count > 1)
    return Deviations(np.round(bias, _DECIMALS), np.sqrt(spread))


def _means(group: Ints, values: Floats, chosen: Flags, groups: int = 0) -> tuple[Floats, Ints]:
    """Return the mean of the chosen values of each group, NaN where it has none; and how many there are."""
    size = max(groups, int(group.max()) + 1 if group.size else 0)
    counts = np.bincount(group[chosen], minlength=size)
    sums = np.bincount(group[chosen], values[chosen], size)
    return np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0), counts.astype(np.int64)


def _centred(group: Ints, values: Floats, groups: int) -> Floats:
    """Return values less the mean of their group."""
    means, _ = _means(group, values, np.ones(values.size, np.bool_), groups)
    found: Floats = values - means[group]
    return found


def make_listener_tables(
    all_ratings: Ratings,
    scored: Scored,
    scored_with_excluded: Scored,
    screening: DataTable,
) -> list[DataTable]:
    """Make ``listeners``: by listener, then by task.

    Args:
        all_ratings: of every purpose, for repeats in the bridge set and for sessions that are left out.
        screening: as `make_screening_table` gives it.
    """
    everyone = add_left_out(scored, scored_with_excluded)
    reasons = _reasons(all_ratings)
    caught = screening.records(is_caught=1)
    rows = [row for task in everyone.tasks for row in _rows_of_task(task, everyone, all_ratings)]
    rows.sort(key=lambda row: row["listener"])
    for row in rows:
        name = row["listener"]
        row["excluded"] = reasons.get(name, "")
        own = [one for one in caught if one["listener"] == name and one["task"] in (None, row["task"])]
        row["caught"] = ", ".join(one["rule"] for one in own)
    return [make_table("listeners", rows)]


def _rows_of_task(task: str, everyone: Scored, all_ratings: Ratings) -> list[Row]:
    rated = select_rated(everyone, task)
    correlation, _ = measure_agreement(rated)
    deviating = measure_deviations(rated)
    repeated = _repeated(task, everyone, all_ratings)
    rows = []
    for listener in np.unique(rated.listener).tolist():
        scores = rated.score[rated.listener == listener]
        sd = scores.std(ddof=1) if scores.size > 1 else None
        row = {"listener": str(everyone.listeners[listener]), "task": task, "correlation": correlation[listener]}
        row |= {"n": scores.size, "mean": scores.mean(), "sd": sd}
        row |= {"bias": deviating.bias[listener], "inconsistency": deviating.inconsistency[listener]}
        rows.append(row | repeated.get(listener, {"repeats": 0}))
    return rows


def _repeated(task: str, everyone: Scored, all_ratings: Ratings) -> dict[int, Row]:
    """Return cells about items that a listener rated more than once, those of the bridge set among them."""
    out = ~np.isin(everyone.listeners, everyone.listeners[everyone.listener[everyone.ratings.excluded == ""]])
    is_of_one_out = np.isin(all_ratings.listener, everyone.listeners[out])
    told_about = replace(all_ratings, excluded=np.where(is_of_one_out, "", all_ratings.excluded))
    repeats = find_repeats(select_given(everyone, task), select_bridge(told_about, everyone, task))
    found = {}
    for listener in np.unique(repeats.listener).tolist():
        own = repeats.listener == listener
        found[listener] = {
            "repeats": int(own.sum()),
            "repeat_difference": repeats.score_difference[own].mean(),
            "repeat_within_one": (repeats.rating_difference[own] <= 1).mean(),
        }
    return found


def _reasons(ratings: Ratings) -> dict[str, str]:
    """Return why sessions of a listener are left out, by listener; how many of them where others count."""
    found: dict[str, str] = {}
    for name in np.unique(ratings.listener[ratings.excluded != ""]).tolist():
        own = ratings.listener == name
        why = dict(zip(ratings.session[own].tolist(), ratings.excluded[own].tolist(), strict=True))
        told = "; ".join(dict.fromkeys(reason for reason in why.values() if reason))
        out = sum(bool(reason) for reason in why.values())
        found[name] = told if out == len(why) else f"{out} of {len(why)} sessions: {told}"
    return found
