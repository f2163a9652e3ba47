"""ZEBRA: what an attacker gains from the scores on average (population) and at worst (individual).

Conventions: lower protects better; population in bits, from 0 to 0.7213; individual as a base-10 logarithm of the
strongest likelihood ratio, with its category from ``0`` (perfect privacy) over ``A`` to ``F``.
Source: Nautsch et al., "The Privacy ZEBRA: Zero Evidence Biometric Recognition Assessment", Interspeech 2020; the
details as in the package ``zebra`` of VoicePrivacy 2022.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Flags, Floats
from common.errors import InputError
from evaluation.formats.results import CATEGORIES
from evaluation.metrics import calibration

# The highest individual value of each category (Nautsch et al. 2020, table 1: likelihood ratios of 10, 10², 10⁴ …).
# That of “0” is the rounding of the logarithm; above the last one everything is the worst.
_HIGHEST = (float(np.finfo(np.float64).eps), 1.0, 2.0, 4.0, 5.0, 6.0)


@dataclass(frozen=True, slots=True)
class Zebra:
    """Privacy disclosed by the scores of a test.

    Attributes:
        population_bit: expected disclosure, in bits, from 0 to 0.7213.
        individual_log10: worst-case disclosure: base-10 logarithm of the strongest likelihood ratio.
        category: letter of the worst case.
    """

    population_bit: float
    individual_log10: float
    category: str


def zebra(target: ArrayLike, nontarget: ArrayLike, *, compatibility: calibration.Compatibility = "documented") -> Zebra:
    """Population and individual disclosure of calibrated scores.

    Population takes plain PAV with tied targets before nontargets (pessimistic: all scores tied give 0); individual
    takes Laplace PAV with tied nontargets before targets.

    Args:
        target, nontarget: shape (trials,), scores of any scale.
        compatibility: ``official`` raises where the official code stops with an IndexError (one target not below one
            nontarget).

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.

    Example:
        >>> zebra([2.0, 3.0], [0.0, 1.0]).category
        'A'
    """
    return compute_zebra(calibration.sort_scores(target, nontarget), compatibility=compatibility)


def zebra_category(individual_log10: float, *, compatibility: calibration.Compatibility = "documented") -> str:
    """Return the category of a worst-case disclosure: the first whose limit is not below it.

    Args:
        individual_log10: 0 or above; infinite is ``F``.
        compatibility: ``official`` raises for exactly 0, as the official code does; the default is ``0``.

    Raises:
        InputError: a value that is negative or NaN.
    """
    if not individual_log10 >= 0:
        raise InputError(f"Expected an individual disclosure of 0 or above, found {individual_log10}.")
    if calibration.is_official(compatibility) and individual_log10 == 0:
        raise InputError("The official code has no category for exactly 0. Ask for the documented one instead.")
    return CATEGORIES[bisect_left(_HIGHEST, individual_log10)]


def compute_zebra(
    scores: calibration.SortedScores,
    plain: calibration.Pools | None = None,
    *,
    compatibility: calibration.Compatibility = "documented",
) -> Zebra:
    """ZEBRA of sorted scores; `plain` are the pools of `scores.is_target` if they are at hand."""
    labels = targets_first(scores)
    if plain is None or labels is not scores.is_target:
        plain = calibration.pool_adjacent_violators(labels)
    if calibration.is_official(compatibility):
        calibration.refuse_single_pools(calibration.pool_adjacent_violators(scores.is_target))
    strongest = _strongest_llr(calibration.pool_adjacent_violators(scores.is_target, laplace=True)) / float(np.log(10))
    return Zebra(_population(plain, labels), strongest, zebra_category(strongest, compatibility=compatibility))


def targets_first(scores: calibration.SortedScores) -> Flags:
    """`is_target` with tied targets before tied nontargets; the same array where no scores are tied."""
    starts = calibration.tie_starts(scores.values)
    if starts.size == scores.values.size:
        return scores.is_target
    sizes = np.diff(starts, append=scores.values.size)
    tied_targets = np.add.reduceat(scores.is_target, starts, dtype=np.int64)
    return np.asarray(np.arange(scores.values.size) < np.repeat(starts + tied_targets, sizes))


def _population(pools: calibration.Pools, is_target: Flags) -> float:
    target_ramps, nontarget_ramps = calibration.mean_ramps(pools, is_target)
    target_part = _disclosure(pools.llr + target_ramps, pools.targets)
    nontarget_part = _disclosure(-(pools.llr + nontarget_ramps), pools.nontargets)
    return (target_part + nontarget_part) / float(np.log(2))


def _disclosure(llr: Floats, counts: calibration.Counts) -> float:
    """Z = ¼ + ½ mean g(llr) with g(a) = (a - b) / b², b = e^a - 1; its limits are -½ at 0 and 0 at infinity."""
    g = np.where(np.abs(llr) <= calibration.RAMP, -0.5, 0.0)
    regular = np.isfinite(llr) & (np.abs(llr) > calibration.RAMP)
    a = llr[regular]
    b = np.expm1(a)
    g[regular] = (a - b) / (b * b)
    return 0.25 + 0.5 * float(g @ counts) / int(counts.sum())


def _strongest_llr(pools: calibration.Pools) -> float:
    """Return the largest |llr| of all trials: at the first or the last trial of a pool, because the ramp rises."""
    first, last = pools.edges[:-1], pools.edges[1:] - 1
    real = last >= first
    step = calibration.RAMP / int(pools.edges[-1])
    ends = np.abs([pools.llr[real] + step * first[real], pools.llr[real] + step * last[real]])
    return float(ends.max())
