"""Rates and medians of many resamples at once: how often each listener occurs, times what each listener gave.

Ratings take few different values. So the ratings of a resample are a histogram over them, and the histograms of all
resamples are one product, (resamples × listeners) @ (listeners × values); equal error rate, area under the curve and
median of every resample follow from cumulative sums. Nothing is sorted or drawn again.

Conventions: `target` and `nontarget` are histograms of shape (resamples, values), not negative, values ascending; a
higher value says "target". Rates are shares in [0, 1], NaN for a resample that lacks targets or nontargets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from listening.analysis.inputs import Floats, Ints

Measure = Callable[[Floats, Floats], Floats]

_CELLS_AT_ONCE = 4_000_000  # of a histogram: 32 MB


def listener_histograms(listener: Ints, value: Ints, *, listeners: int, values: int) -> Floats:
    """How often each listener gave each value.

    Args:
        listener: shape (ratings,), numbers below `listeners`.
        value: shape (ratings,), places among the distinct values, below `values`.

    Returns:
        Shape (listeners, values).
    """
    cells = np.bincount(listener * values + value, minlength=listeners * values)
    return cells.reshape(listeners, values).astype(np.float64)


def in_chunks(resamples: int, values: int) -> Iterator[slice]:
    """Ranges of resamples whose histograms fit into little memory."""
    step = max(1, _CELLS_AT_ONCE // max(1, values))
    for start in range(0, resamples, step):
        yield slice(start, min(start + step, resamples))


def of_resamples(draws: Floats, target: Floats, nontarget: Floats, *measures: Measure) -> list[Floats]:
    """Measures of two histograms in every resample, in chunks that take little memory.

    Args:
        draws: shape (resamples, listeners), how often each listener occurs.
        target, nontarget: shape (listeners, values).

    Returns:
        Of each measure, shape (resamples,).
    """
    found: list[list[Floats]] = [[] for _ in measures]
    for part in in_chunks(len(draws), target.shape[1]):
        histograms = draws[part] @ target, draws[part] @ nontarget
        for values, measure in zip(found, measures, strict=True):
            values.append(measure(*histograms))
    return [np.concatenate(values) for values in found]


def equal_error_rates(target: Floats, nontarget: Floats) -> Floats:
    """Where misses and false alarms are equal on the polygon of each DET curve, by linear interpolation.

    The polygon has a point for each distinct value, where scores at or above it are accepted, and its two ends; values
    that targets and nontargets share are one straight segment. Not on the convex hull: it goes up to 1, and is not
    biased near 0.5. All values tied give 0.5.

    Example:
        >>> equal_error_rates(np.array([[0.0, 1, 3]]), np.array([[2.0, 2, 0]]))
        array([0.16666667])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        missed = target / target.sum(1, keepdims=True)
        rejected = nontarget / nontarget.sum(1, keepdims=True)
    # Misses minus false alarms rise from -1 to 1; `crossed` is the first value after which they are not negative.
    rise = np.cumsum(missed + rejected, axis=1) - 1
    crossed = np.argmax(rise >= 0, axis=1)
    rows = np.arange(len(target))
    step = missed[rows, crossed] + rejected[rows, crossed]
    below = np.where(np.arange(target.shape[1]) < crossed[:, None], missed, 0.0).sum(1)
    with np.errstate(invalid="ignore"):
        part = (step - rise[rows, crossed]) / step
    return np.asarray(below + part * missed[rows, crossed])


def areas(target: Floats, nontarget: Floats) -> Floats:
    """Area under each ROC curve: the chance that a target is above a nontarget, ties counted half."""
    with np.errstate(invalid="ignore", divide="ignore"):
        missed = target / target.sum(1, keepdims=True)
        share = nontarget / nontarget.sum(1, keepdims=True)
    above = 1 - np.cumsum(missed, axis=1) + 0.5 * missed
    return np.asarray((share * above).sum(1))


def medians(counts: Floats, values: Floats) -> Floats:
    """Median of each histogram; the middle of the two middle values where the number is even. NaN where it is empty.

    Args:
        counts: shape (resamples, values), whole numbers.
        values: shape (values,), ascending.
    """
    below = np.cumsum(counts, axis=1)
    total = below[:, -1]
    lower = np.argmax(below > ((total - 1) // 2)[:, None], axis=1)
    upper = np.argmax(below > (total // 2)[:, None], axis=1)
    return np.where(total > 0, (values[lower] + values[upper]) / 2, np.nan)
