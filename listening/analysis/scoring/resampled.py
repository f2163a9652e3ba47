"""Areas, medians and correlations of many resamples at once: how often each listener occurs, times what each gave.

Ratings take few different values. So the ratings of a resample are a histogram over them, and the histograms of all
resamples are one product, (resamples × listeners) @ (listeners × values); equal error rate, area under the curve and
median of every resample follow from cumulative sums. Nothing is sorted or drawn again.

Conventions: `target` and `nontarget` are histograms of shape (resamples, values), not negative, values ascending; a
higher value says "target". Rates are shares in [0, 1], NaN for a resample that lacks targets or nontargets.

Correlations have weights: rows are resamples, columns what is correlated; a weight says how often a column occurs, 0
that it does not (its values are then ignored). A row without two columns, or in which one side is constant, has no
correlation: NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from common.arrays import Flags, Floats, Ints

Measure = Callable[[Floats, Floats], Floats]

_CELLS_AT_ONCE = 4_000_000  # of a histogram: 32 MB


def count_by_listener(listener: Ints, value: Ints, *, listeners: int, values: int) -> Floats:
    """Return how often each listener gave each value.

    Args:
        listener: shape (ratings,), numbers below `listeners`.
        value: shape (ratings,), places among the distinct values, below `values`.

    Returns:
        Shape (listeners, values).
    """
    cells = np.bincount(listener * values + value, minlength=listeners * values)
    return cells.reshape(listeners, values).astype(np.float64)


def count_by_class(score: Floats, is_target: Flags, listener: Ints, listeners: int) -> tuple[Floats, Floats, Floats]:
    """Return distinct scores, ascending, and how often each listener gave each to targets and to nontargets.

    Args:
        score, is_target, listener: shape (ratings,), the last numbers below `listeners`.

    Returns:
        Shape (values,), and twice (listeners, values).
    """
    values, place = np.unique(score, return_inverse=True)
    target, nontarget = (
        count_by_listener(listener[side], place[side], listeners=listeners, values=values.size)
        for side in (is_target, ~is_target)
    )
    return values, target, nontarget


def split_resamples(resamples: int, values: int) -> Iterator[slice]:
    """Split resamples into ranges whose histograms fit into little memory."""
    step = max(1, _CELLS_AT_ONCE // max(1, values))
    for start in range(0, resamples, step):
        yield slice(start, min(start + step, resamples))


def measure_resamples(draws: Floats, target: Floats, nontarget: Floats, *measures: Measure) -> list[Floats]:
    """Measure two histograms in every resample, in chunks that take little memory.

    Args:
        draws: shape (resamples, listeners), how often each listener occurs.
        target, nontarget: shape (listeners, values).

    Returns:
        Of each measure, shape (resamples,).
    """
    found: list[list[Floats]] = [[] for _ in measures]
    for part in split_resamples(len(draws), target.shape[1]):
        histograms = draws[part] @ target, draws[part] @ nontarget
        for values, measure in zip(found, measures, strict=True):
            values.append(measure(*histograms))
    return [np.concatenate(values) for values in found]


def measure_areas(target: Floats, nontarget: Floats) -> Floats:
    """Return the area under each ROC curve: the chance that a target is above a nontarget, ties counted half."""
    with np.errstate(invalid="ignore", divide="ignore"):
        missed = target / target.sum(1, keepdims=True)
        share = nontarget / nontarget.sum(1, keepdims=True)
    above = 1 - np.cumsum(missed, axis=1) + 0.5 * missed
    return np.asarray((share * above).sum(1))


def find_medians(counts: Floats, values: Floats) -> Floats:
    """Find the median of each histogram; the mean of the two middle values if the number is even. NaN if empty.

    Args:
        counts: shape (resamples, values), whole numbers.
        values: shape (values,), ascending.
    """
    below = np.cumsum(counts, axis=1)
    total = below[:, -1]
    lower = np.argmax(below > ((total - 1) // 2)[:, None], axis=1)
    upper = np.argmax(below > (total // 2)[:, None], axis=1)
    return np.where(total > 0, (values[lower] + values[upper]) / 2, np.nan)


_CONSTANT = 1e-20  # squared deviations below this share of the squared values are rounding


def weighted_pearson(first: Floats, second: Floats, weight: Floats) -> Floats:
    """Return Pearson's product-moment correlation of each row.

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
    """Return deviations from the weighted mean of the row; zeros where it is constant: its correlation is 0 / 0."""
    values = np.where(weight > 0, values, 0.0)  # which gives each resample its row
    with np.errstate(invalid="ignore", divide="ignore"):
        away = values - (weight * values).sum(1, keepdims=True) / weight.sum(1, keepdims=True)
    varies = (weight * away**2).sum(1) > _CONSTANT * (weight * values**2).sum(1)
    return np.where(varies[:, None], away, 0.0)


def weighted_ranks(values: Floats, weight: Floats) -> Floats:
    """Return the rank of each value as if it stood there as often as its weight says; ties share the mean rank.

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
    """Return Spearman's rank correlation of each row: Pearson's of the ranks.

    Args:
        first, second, weight: as for `weighted_pearson`; finite wherever the weight is positive.
    """
    return weighted_pearson(weighted_ranks(first, weight), weighted_ranks(second, weight), weight)
