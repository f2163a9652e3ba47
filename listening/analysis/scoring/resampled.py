"""Correlations with weights, for many resamples at once.

Conventions: rows are resamples, columns what is correlated; a weight says how often a column occurs, 0 that it does not
(its values are then ignored). A row without two columns, or in which one side is constant, has no correlation: NaN.
"""

from __future__ import annotations

import numpy as np

from listening.analysis.inputs import Floats

_CONSTANT = 1e-20  # squared deviations below this share of the squared values are rounding


def weighted_pearson(first: Floats, second: Floats, weight: Floats) -> Floats:
    """Pearson's product-moment correlation of each row.

    Args:
        first, second: shape (resamples, columns), or (1, columns) if all resamples have the same.
        weight: shape (resamples, columns).

    Returns:
        Shape (resamples,), in [-1, 1].

    Example:
        >>> one = np.array([[1.0, 2.0, 4.0]])
        >>> weighted_pearson(one, -one, np.ones((1, 3)))
        array([-1.])
    """
    first, second = _deviations(first, weight), _deviations(second, weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        together = (weight * first * second).sum(1)
        found = together / np.sqrt((weight * first**2).sum(1) * (weight * second**2).sum(1))
    return np.asarray(np.clip(found, -1, 1))


def _deviations(values: Floats, weight: Floats) -> Floats:
    """From the weighted mean of the row; zeros where the row is constant, so that its correlation is 0 / 0."""
    values = np.where(weight > 0, values, 0.0)  # which gives each resample its row
    with np.errstate(invalid="ignore", divide="ignore"):
        away = values - (weight * values).sum(1, keepdims=True) / weight.sum(1, keepdims=True)
    varies = (weight * away**2).sum(1) > _CONSTANT * (weight * values**2).sum(1)
    return np.where(varies[:, None], away, 0.0)


def weighted_ranks(values: Floats, weight: Floats) -> Floats:
    """Rank of each value in its row as if it stood there as often as its weight says; ties share the mean rank.

    With weights of 1 these are average ranks less 1/2.

    Args:
        values: shape (resamples, columns), or (1, columns) if all resamples have the same.
        weight: shape (resamples, columns).

    Returns:
        Shape (resamples, columns); what has no weight gets the rank it would have.
    """
    if not weight.size:
        return np.zeros_like(weight)
    order = np.argsort(values, axis=1)  # ties in any order: they share their rank
    in_order = np.take_along_axis(values, order, axis=1)
    starts = np.ones(values.shape, np.bool_)
    starts[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    order, starts = np.broadcast_to(order, weight.shape), np.broadcast_to(starts, weight.shape)
    of_order = np.take_along_axis(weight, order, axis=1)
    tie = np.cumsum(starts.ravel()) - 1  # numbered over all rows, since each row starts one
    of_tie = np.bincount(tie, of_order.ravel())
    below = (np.cumsum(of_order, axis=1) - of_order)[starts]
    ranks = np.empty_like(of_order)
    np.put_along_axis(ranks, order, (below + of_tie / 2)[tie].reshape(weight.shape), axis=1)
    return ranks


def weighted_spearman(first: Floats, second: Floats, weight: Floats) -> Floats:
    """Spearman's rank correlation of each row: Pearson's of the ranks.

    Args:
        first, second, weight: as for `weighted_pearson`; finite wherever the weight is positive.
    """
    return weighted_pearson(weighted_ranks(first, weight), weighted_ranks(second, weight), weight)
