"""Rank normalisation: what a rating says within its listener and task, in [0, 1], whatever part of the scale was used.

Over the ratings x_1 … x_n of one listener in one task, with average ranks r_i (ties share the mean of their ranks)::

    rank01/avg   z_i = (r_i − 1) / (n − 1)     the usual one
    midrank      z_i = (r_i − 1/2) / n

Both have the mean 1/2. With ties the ends are not 0 and 1, which is as it should be: nothing is stretched. A single
rating, or ratings that are all equal, say nothing about order: they become 1/2 and are flagged. Published results give
only the range (0 lowest, 1 highest), so the formula is named in every file; a changed formula gets a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from listening.analysis.inputs import Flags, Floats, Ints

FORMULAS: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    # A single rating has rank 1 of 1: 0 / 0 is avoided, and `normalised_ranks` makes it 1/2.
    "rank01/avg": lambda rank, count: (rank - 1) / np.maximum(count - 1, 1),
    "midrank": lambda rank, count: (rank - 0.5) / count,
}


@dataclass(frozen=True, eq=False)
class NormalisedRanks:
    """Attributes:
    score: shape (ratings,), in [0, 1].
    is_flat: shape (ratings,), whether the group of the rating holds one rating, or equal ones only.
    """

    score: Floats
    is_flat: Flags


def normalised_ranks(rating: Floats, group: Ints, formula: str) -> NormalisedRanks:
    """Normalised ranks of ratings within their groups.

    Args:
        rating: shape (ratings,), finite.
        group: shape (ratings,), from 0: the listener and task to which a rating belongs.
        formula: a name in `FORMULAS`.

    Raises:
        KeyError: there is no such formula.

    Example:
        >>> normalised_ranks(np.array([1.0, 5.0, 5.0, 10.0]), np.zeros(4, int), "rank01/avg").score.tolist()
        [0.0, 0.5, 0.5, 1.0]
    """
    of = FORMULAS[formula]
    if not rating.size:
        return NormalisedRanks(np.empty(0), np.empty(0, np.bool_))
    ranks, counts = _average_ranks(rating, group)
    lowest = np.full(int(group.max()) + 1, np.inf)
    highest = np.full(lowest.size, -np.inf)
    np.minimum.at(lowest, group, rating)
    np.maximum.at(highest, group, rating)
    is_flat = (lowest == highest)[group]
    return NormalisedRanks(np.where(is_flat, 0.5, of(ranks, counts)), is_flat)


def _average_ranks(rating: Floats, group: Ints) -> tuple[Floats, Floats]:
    """Rank of each rating in its group, from 1, ties sharing the mean; and how many ratings the group has."""
    order = np.lexsort((rating, group))
    in_group, in_order = group[order], rating[order]
    counts = np.bincount(group).astype(np.float64)
    first_of_group = np.concatenate(([0.0], np.cumsum(counts)[:-1]))
    starts_run = np.concatenate(([True], (np.diff(in_group) != 0) | (np.diff(in_order) != 0)))
    starts = np.flatnonzero(starts_run)
    ends = np.append(starts[1:], rating.size)
    run = np.cumsum(starts_run) - 1
    ranks = np.empty(rating.size)
    # A run from place a up to place b, both from 0, b not in it: the ranks a+1 … b have the mean (a + 1 + b) / 2.
    ranks[order] = ((starts + 1 + ends) / 2)[run] - first_of_group[in_group]
    return ranks, counts[group]
