"""Tests of whether differences within listeners are zero: sign flips (permutation), Wilcoxon, and an effect size.

A difference is one listener's mean score of one system minus that of another. Swapping the two labels of a listener
flips the sign of the difference, so the permutation test flips signs of whole listeners. Single ratings are not
swapped: ratings of one listener are alike, and a swap of each on its own would take them for independent.

Conventions: differences have shape (listeners, pairs), NaN where a listener did not rate both of a pair; p-values are
two-sided, shape (pairs,), NaN where nobody rated both.
"""

from __future__ import annotations

import numpy as np

from listening.analysis.inputs import Flags, Floats

RESOLVED = 10  # fewer permutations than this beyond the observed sum do not tell how small a p-value is
MOST_EXACT = 50  # as in scipy: up to here the exact distribution of the signed-rank statistic
MOST_COUNTED = 14
_SLACK = 1e-9  # sums of equal numbers in another order are equal
_STEPS = 60
_MOST_PARTS = 6  # of the smallest difference: a finer lattice is as good as none
_LATTICE_SLACK = 1e-6
_PAIRS_AT_ONCE = 256


def permutation_p(differences: Floats, permutations: int, numbers: np.random.Generator) -> Floats:
    """Share of sign flips, the observed signs among them, whose sum is as far from zero: (k + 1) / (n + 1).

    A thousand flips cannot give less than 0.001, and a correction over the 91 pairs of 14 systems would lose every
    difference. So with up to `MOST_COUNTED` listeners whose difference is not zero all flips are counted out
    (`sign_flip_share`); with more, where fewer than `RESOLVED` of the drawn flips reach the observed sum, the share of
    all flips that do is computed by the saddlepoint method (`sign_flip_tail`). All pairs take the same flips, so a
    listener is flipped as a whole.
    """
    rated = np.isfinite(differences)
    sizes = np.where(rated, differences, 0.0)
    observed = np.abs(sizes.sum(axis=0))
    slack = _SLACK * np.abs(sizes).sum(axis=0)
    signs = numbers.integers(0, 2, size=(permutations, len(sizes)), dtype=np.int8) * 2.0 - 1.0
    reached = np.zeros(observed.size)
    for first in range(0, observed.size, _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        reached[part] = (np.abs(signs @ sizes[:, part]) >= observed[part] - slack[part]).sum(axis=0)
    result = (reached + 1) / (permutations + 1)
    is_few = (sizes != 0).sum(axis=0) <= MOST_COUNTED
    for all_flips, chosen in ((sign_flip_share, is_few), (sign_flip_tail, ~is_few & (reached < RESOLVED))):
        result[chosen] = all_flips(sizes[:, chosen])
    result[~rated.any(axis=0)] = np.nan
    return result


def sign_flip_share(sizes: Floats) -> Floats:
    """Share of all 2^n sign flips whose sum is at least as far from zero as the observed one, counted out.

    Args:
        sizes: shape (listeners, pairs), finite, at most `MOST_COUNTED` of a pair other than zero.
    """
    kept = -np.sort(-np.abs(sizes), axis=0)[:MOST_COUNTED]
    observed = np.abs(sizes.sum(axis=0)) - _SLACK * kept.sum(axis=0)
    # By symmetry the sign of the last difference stays.
    flips = np.arange(2 ** max(len(kept) - 1, 0))[:, None] >> np.arange(len(kept)) & 1
    signs = 1.0 - 2.0 * flips
    share = np.empty(observed.size)
    for first in range(0, observed.size, _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        share[part] = (np.abs(signs @ kept[:, part]) >= observed[part]).mean(axis=0)
    return share


def sign_flip_tail(sizes: Floats) -> Floats:
    """Share of all 2^n sign flips whose sum is at least as far from zero as the observed one, by saddlepoint.

    Robinson, "Saddlepoint approximations for permutation tests and confidence intervals", Journal of the Royal
    Statistical Society B 44 (1982): the sum of ±d_l has the cumulant generating function K(t) = Σ log cosh(t d_l). Its
    tail is read by the r* formula of Barndorff-Nielsen (1986), at the observed sum; where all sizes are multiples of
    one, at the sum less that one: sums then lie twice as far apart, and the value between two of them is right for such
    a lattice. Never below 2^(1 − n), the share of the flips in which all signs agree.

    Args:
        sizes: shape (listeners, pairs), finite; zeros flip nothing.
    """
    from scipy.special import ndtr

    sizes = np.abs(sizes) * np.sign(sizes * np.sign(sizes.sum(axis=0)))  # observed sums are not negative
    total, largest = sizes.sum(axis=0), np.abs(sizes).sum(axis=0)
    flipping = (sizes != 0).sum(axis=0)
    fewest = np.where(flipping > 0, 2.0 ** (1.0 - flipping), 1.0)
    all_agree = total >= largest * (1 - 1e-12)
    wanted = np.where(all_agree, 0.0, total - _lattice(np.abs(sizes)))
    place = _saddlepoint(np.abs(sizes), wanted)
    scaled = np.abs(sizes) * place
    generated = (np.logaddexp(scaled, -scaled) - np.log(2)).sum(axis=0)
    curvature = (sizes**2 / np.cosh(np.minimum(scaled, 300)) ** 2).sum(axis=0)
    root = np.sqrt(np.maximum(2 * (place * wanted - generated), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        adjusted = root + np.log(place * np.sqrt(curvature) / root) / root
    is_near_zero = root < 1e-3
    tail = np.where(is_near_zero, 0.5, ndtr(-np.where(is_near_zero, 0.0, adjusted)))
    found = np.clip(2 * tail, fewest, 1.0)
    return np.where(all_agree, fewest, np.where(wanted <= 0, 1.0, found))


def _lattice(sizes: Floats) -> Floats:
    """Of each pair what all sizes are multiples of: the smallest one, or a small part of it; 0 where there is none."""
    smallest = np.where(sizes == 0, np.inf, sizes).min(axis=0, initial=np.inf)
    found = np.zeros(smallest.size)
    for parts in range(_MOST_PARTS, 0, -1):
        unit = np.where(np.isfinite(smallest), smallest, 1.0) / parts
        multiples = sizes / unit
        is_lattice = (np.abs(multiples - np.rint(multiples)) <= _LATTICE_SLACK).all(axis=0)
        found = np.where(is_lattice & np.isfinite(smallest), unit, found)
    return found


def _saddlepoint(sizes: Floats, wanted: Floats) -> Floats:
    """The t ≥ 0 of each pair at which K'(t) = Σ d tanh(t d) is the wanted sum, by bisection; 0 if there is none."""
    has_one = (wanted > 0) & (wanted < sizes.sum(axis=0))
    scale = np.where(has_one, sizes.max(axis=0, initial=0.0), 1.0)
    low, high = np.zeros(wanted.size), np.ones(wanted.size) / scale
    for _ in range(_STEPS):
        is_short = has_one & ((sizes * np.tanh(sizes * high)).sum(axis=0) < wanted)
        if not is_short.any():
            break
        high = np.where(is_short, 2 * high, high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_short = (sizes * np.tanh(sizes * middle)).sum(axis=0) < wanted
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return np.where(has_one, (low + high) / 2, 0.0)


def wilcoxon_p(differences: Floats) -> Floats:
    """Wilcoxon's signed-rank test of each pair.

    Differences of zero are dropped, as Wilcoxon did: they speak for neither of the two. Exact with up to `MOST_EXACT`
    differences that are left without ties, and with ties up to `MOST_COUNTED`, whose signed ranks are flipped in every
    way; else the normal approximation with its correction for ties. 1 where every difference is zero.
    """
    from scipy.stats import rankdata, wilcoxon

    rated = np.isfinite(differences)
    kept = np.where(rated & (differences != 0), differences, np.nan)
    left = np.isfinite(kept).sum(axis=0)
    result = np.where(rated.any(axis=0) & (left == 0), 1.0, np.nan)
    has_ties = _have_ties(kept)
    is_exact = (left > 0) & ~has_ties & (left <= MOST_EXACT)
    is_counted = (left > 0) & has_ties & (left <= MOST_COUNTED)
    for method, chosen in (("exact", is_exact), ("approx", (left > 0) & ~is_exact & ~is_counted)):
        if chosen.any():
            result[chosen] = wilcoxon(kept[:, chosen], axis=0, nan_policy="omit", method=method).pvalue
    if is_counted.any():
        sizes = kept[:, is_counted]
        ranks = rankdata(np.abs(sizes), axis=0, nan_policy="omit")
        result[is_counted] = sign_flip_share(np.nan_to_num(ranks * np.sign(sizes)))
    return np.minimum(result, 1.0)


def rank_biserial(differences: Floats) -> Floats:
    """Matched-pairs rank-biserial correlation: (R+ − R−) / (R+ + R−), sums of the ranks of positive and negative ones.

    Shape (pairs,), in [-1, 1], 1 where every listener put the first above the second; zeros are dropped, 0 where every
    difference is zero. Kerby, "The simple difference formula", Comprehensive Psychology 3 (2014).
    """
    from scipy.stats import rankdata

    kept = np.where(differences == 0, np.nan, differences)
    ranks = rankdata(np.abs(kept), axis=0, nan_policy="omit")
    balance = np.nansum(np.sign(kept) * ranks, axis=0)
    whole = np.nansum(ranks, axis=0)
    result: Floats = np.divide(balance, whole, out=np.zeros(balance.size), where=whole > 0)
    result[~np.isfinite(differences).any(axis=0)] = np.nan
    return result


def _have_ties(differences: Floats) -> Flags:
    """Of each pair whether two differences are equal in size."""
    ordered = np.sort(np.abs(differences), axis=0)  # NaN last
    with np.errstate(invalid="ignore"):
        found: Flags = (np.diff(ordered, axis=0) == 0).any(axis=0)
    return found
