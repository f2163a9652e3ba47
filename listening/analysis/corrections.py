"""p-values corrected for how many tests were made: Holm (family-wise error) and Benjamini-Hochberg (false discoveries).

Sources: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979);
Benjamini & Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57 (1995).
Conventions: arrays of p-values in [0, 1]; NaN is a test that could not be made, it stays NaN and does not count.
"""

from __future__ import annotations

import numpy as np

from listening.analysis.inputs import Floats
from listening.analysis.settings import Correction


def adjusted(p: Floats, correction: Correction) -> Floats:
    """p-values corrected over all tests of the array, in its order; shape (tests,)."""
    return holm(p) if correction == "holm" else benjamini_hochberg(p)


def holm(p: Floats) -> Floats:
    """Step-down: the i-th smallest of m is multiplied by m − i + 1, and is no smaller than those before it.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
        [0.03, 0.06, 0.06]
    """
    result = np.full(p.shape, np.nan)
    order = _order_of_tests(p)
    factors = np.arange(order.size, 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return result


def benjamini_hochberg(p: Floats) -> Floats:
    """Step-up: the i-th smallest of m is multiplied by m / i, and is no larger than those after it.

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(2).tolist()
        [0.03, 0.04, 0.04]
    """
    result = np.full(p.shape, np.nan)
    order = _order_of_tests(p)
    factors = order.size / np.arange(1, order.size + 1)
    result[order] = np.minimum(np.minimum.accumulate((p[order] * factors)[::-1])[::-1], 1.0)
    return result


def _order_of_tests(p: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Places of the p-values that are defined, smallest first."""
    return np.argsort(p, kind="stable")[: int(np.isfinite(p).sum())]
