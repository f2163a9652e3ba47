"""How far listeners agree, in numbers: Krippendorff's alpha, intraclass correlations, and listeners with themselves.

Everything is computed from sums over items, so thousands of items with missing cells cost nothing, and for all
resamples of listeners at once. A resample holds some listeners several times. A listener agrees with itself, so copies
of one listener are never compared with each other; without that, every resample would look more reliable than the data.

Sources: Krippendorff, "Computing Krippendorff's alpha-reliability" (2011); Shrout & Fleiss, "Intraclass correlations:
uses in assessing rater reliability", Psychological Bulletin 86 (1979); McGraw & Wong, Psychological Methods 1 (1996);
for items with unequal numbers of raters, Donner, International Statistical Review 54 (1986).

Conventions: `weights` has shape (resamples, listeners), how often each listener counts, ones for the data themselves;
measures have shape (resamples,), 1 is full agreement, NaN where there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from listening.analysis.inputs import Floats, Ints

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
    """The same votes with their values as ranks, which turns the interval distance into the ordinal one.

    Krippendorff's ordinal distance of two values is the number of votes between them, each end counted half; that is
    the distance of their average ranks among the votes that can be compared.
    """
    comparable = np.bincount(votes.item, minlength=votes.items)[votes.item] > 1
    compared = np.sort(votes.value[comparable])
    below, upto = (np.searchsorted(compared, votes.value, side) for side in ("left", "right"))
    return Votes(votes.item, votes.listener, (below + upto) / 2, votes.items, votes.listeners)


def krippendorff_alpha(votes: Votes, weights: Floats) -> Floats:
    """1 − observed / expected disagreement with squared distances (interval); with `ordinal` votes, ordinal.

    Observed: mean squared difference of two listeners in an item, items weighted by their votes. Expected: that of any
    two votes. Items with one vote do not count. NaN where all votes are equal.
    """
    return np.concatenate([_alpha(sums) for sums in _sums(votes, weights)])


def one_way_icc(votes: Votes, weights: Floats) -> Floats:
    """ICC(1,1): share of the variance that is due to items, where each item has other raters, and not equally many.

    One-way random effects by analysis of variance: within = Σ_i SS_i / Σ_i (n_i − 1); between by the method of moments,
    σ²_b = (SS_between − (I − 1) within) / (N − Σ n_i² / N); ICC = σ²_b / (σ²_b + within). With n_0 = (N − Σ n_i² / N) /
    (I − 1) that is (MS_b − MS_w) / (MS_b + (n_0 − 1) MS_w), and with equal n_i the ICC(1,1) of Shrout & Fleiss. In a
    resample, degrees of freedom count different listeners.
    """
    return np.concatenate([_one_way(sums) for sums in _sums(votes, weights)])


def mean_raters(votes: Votes) -> float:
    """n_0 of `one_way_icc`: the number of raters of an item that stands for unequal ones."""
    counts = np.bincount(votes.item, minlength=votes.items)
    counts = counts[counts > 1]
    total = counts.sum()
    return float((total - (counts**2).sum() / total) / (counts.size - 1)) if counts.size > 1 else float("nan")


def of_mean(reliability: Floats, raters: float) -> Floats:
    """Reliability of the mean of that many raters (Spearman-Brown): ICC(1,k) from ICC(1,1), ICC(2,k) from ICC(2,1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        stepped = raters * reliability / (1 + (raters - 1) * reliability)
    return np.where(reliability > -1 / max(raters - 1, 1e-12), stepped, np.nan)


def two_way_icc(matrix: Floats, weights: Floats) -> Floats:
    """ICC(2,1): absolute agreement of single ratings, where every listener rated every item.

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
    """Sums over the items that two listeners rated, for a few resamples at a time; values less their mean."""
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
    """Variance that is nothing but rounding."""
    return 1e-12 * (1 + squares / np.maximum(total, 1.0))
