"""Sorted scores, how far they are log-likelihood ratios, and what they could be at best.

**Sorted scores.** A metric that needs the order of the trials takes `SortedScores`, which are sorted once; drawing
trials again for a bootstrap keeps them sorted. Among equal scores nontargets come first, as in the official order.

**Calibration.** C_llr is the cost of the scores as they are; min C_llr their cost after the best monotone calibration,
which pools adjacent violators (PAV). The ROC convex hull, its equal error rate and ZEBRA come from the same pools.

Conventions: a higher score says "same speaker"; target trials compare a speaker with themselves, nontarget trials with
another one; for C_llr scores and LLRs are natural logarithms. C_llr is in bits; a higher C_llr means that an attacker
learns less.

Source: Brümmer & du Preez, "Application-independent evaluation of speaker detection", Computer Speech & Language 20
(2006); the details as in the package ``cllr`` of VoicePrivacy 2020 and 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Flags, Floats, real_numbers
from common.errors import InputError

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SortedScores:
    """The trials of one test in ascending order of their scores.

    Attributes:
        values: shape (trials,), float64, finite, ascending; equal ones nontarget before target.
        is_target: shape (trials,).
    """

    values: Floats
    is_target: Flags

    @property
    def n_target(self) -> int:
        return int(np.count_nonzero(self.is_target))

    @property
    def n_nontarget(self) -> int:
        return self.values.size - self.n_target

    @property
    def targets(self) -> Floats:
        """Return target scores, ascending."""
        return self.values[self.is_target]

    @property
    def nontargets(self) -> Floats:
        """Nontarget scores, ascending."""
        return self.values[~self.is_target]

    def repeat(self, times: NDArray[np.integer]) -> SortedScores:
        """Return the same trials, each as often as told: shape (trials,), not negative, in ascending order of the
        scores."""
        return SortedScores(np.repeat(self.values, times), np.repeat(self.is_target, times))


def sort_scores(target: ArrayLike, nontarget: ArrayLike) -> SortedScores:
    """Validate and sort the scores of a test; the only sort that its metrics need.

    Args:
        target: shape (targets,), scores of same-speaker trials.
        nontarget: shape (nontargets,), scores of different-speaker trials.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.
    """
    targets, nontargets = validate_scores(target, "target"), validate_scores(nontarget, "nontarget")
    # Values alone sort many times faster than their order, and two sorted sides merge in one sweep.
    targets, nontargets = np.sort(targets), np.sort(nontargets)
    is_target = np.zeros(targets.size + nontargets.size, dtype=np.bool_)
    is_target[np.searchsorted(nontargets, targets, side="right") + np.arange(targets.size)] = True
    values = np.empty(is_target.size)
    values[is_target], values[~is_target] = targets, nontargets
    return SortedScores(values, is_target)


def sort_order(target: Floats, nontarget: Floats) -> Indices:
    """Return where each trial in the order of `sort_scores` stood among all nontargets followed by all targets."""
    return np.argsort(np.concatenate([nontarget, target]), kind="stable")


def validate_scores(scores: ArrayLike, side: str) -> Floats:
    """Return the scores of one side as float64.

    Raises:
        InputError: as `sort_scores`.
    """
    array = real_numbers(scores, f"{side} scores")
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"Expected the {side} scores in one dimension, at least one of them, found shape {array.shape}. "
            "A test needs target and nontarget trials."
        )
    wrong = array.size - int(np.count_nonzero(np.isfinite(array)))
    if wrong:
        raise InputError(
            f"Expected finite {side} scores, found {wrong} of {array.size} that are NaN or infinite. "
            "Score these trials again."
        )
    return array


def tie_starts(values: NDArray[np.floating]) -> Indices:
    """Return where each run of equal values begins in an ascending array."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


def single_precision(values: Floats) -> NDArray[np.float32]:
    """Return the scores as Kaldi and SpeechBrain hold them; beyond 3.4e38 they are infinite and thus tied."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


Compatibility = Literal["documented", "official"]
Counts = NDArray[np.int64]

# The official code adds this in all over the sorted trials, so that no two LLRs are equal.
RAMP = 1e-6
# Beyond it e^x overflows and the official sigmoid underflows.
_LARGEST_EXPONENT = float(np.log(np.finfo(np.float64).max))


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """The pools of adjacent violators of a test, ascending: the segments of its ROC convex hull.

    Attributes:
        edges: shape (pools + 1,), positions of the first trial of each pool in the sorted order, and the end.
        targets, nontargets: shape (pools,), trials of each kind.
        llr: shape (pools,), natural log-likelihood ratio without the ramp; -inf and inf where a kind is absent.
    """

    edges: Indices
    targets: Counts
    nontargets: Counts
    llr: Floats


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedScores:
    """Calibrated natural LLRs of the target and the nontarget trials, each in the order of the input."""

    target: Floats
    nontarget: Floats


def is_official(compatibility: Compatibility) -> bool:
    """Return whether the value of the official code is asked for where it differs.

    Raises:
        InputError: another word than ``documented`` or ``official``.
    """
    if compatibility not in get_args(Compatibility):
        raise InputError(f"Expected the compatibility documented or official, found {compatibility!r}.")
    return compatibility == "official"


def cllr(target: ArrayLike, nontarget: ArrayLike, *, compatibility: Compatibility = "documented") -> float:
    """Cost of scores as log-likelihood ratios, in bits: ½ (mean log2(1 + e^-t) + mean log2(1 + e^n)).

    0 is perfect, 1 is what no information costs; unbounded above. All scores tied at 0 cost 1.

    Args:
        target, nontarget: shape (trials,), natural log-likelihood ratios.
        compatibility: ``official`` gives inf where the official code overflows (a target below -709.78, a nontarget
            above 709.78); the default is finite there.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.

    Example:
        >>> cllr([0.0], [0.0])
        1.0
    """
    targets, nontargets = validate_scores(target, "target"), validate_scores(nontarget, "nontarget")
    if is_official(compatibility) and max(-targets.min(), nontargets.max()) > _LARGEST_EXPONENT:
        return float("inf")
    # Divided before they are summed: a sum of huge costs overflows where their mean does not.
    target_cost = float(np.sum(_softplus(-targets) / targets.size))
    nontarget_cost = float(np.sum(_softplus(nontargets) / nontargets.size))
    return (0.5 * target_cost + 0.5 * nontarget_cost) / float(np.log(2))


def min_cllr(target: ArrayLike, nontarget: ArrayLike, *, compatibility: Compatibility = "documented") -> float:
    """C_llr after calibration by PAV, in bits: 0 for separable scores, 1 for useless or inverted ones.

    Tied scores sit nontarget before target, which is optimistic: all scores tied give 0, as officially. The official
    ramp makes it 1.00000018 at chance.

    Args:
        target, nontarget: shape (trials,), scores of any scale.
        compatibility: ``official`` raises where the official code stops with an IndexError (one target and one
            nontarget not below each other); the default gives the mathematical value, 0.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.

    Example:
        >>> round(min_cllr([1.0, 3.0], [0.0, 2.0]), 6)
        0.5
    """
    scores = sort_scores(target, nontarget)
    pools = pool_adjacent_violators(scores.is_target)
    if is_official(compatibility):
        refuse_single_pools(pools)
    return compute_min_cllr(pools, scores.is_target)


def rocch_eer(target: ArrayLike, nontarget: ArrayLike, *, compatibility: Compatibility = "documented") -> float:
    """Return equal error rate on the convex hull of the ROC, in [0, 0.5]: below the other estimators.

    Tied scores sit nontarget before target, which is optimistic: all scores tied give 0, as officially.
    Source: package ``cllr``; Provost & Fawcett, "Robust classification for imprecise environments" (2001).

    Args:
        target, nontarget: shape (trials,), scores of any scale.
        compatibility: as `min_cllr`.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.

    Example:
        >>> rocch_eer([1.0, 3.0], [0.0, 2.0])
        0.25
    """
    pools = pool_adjacent_violators(sort_scores(target, nontarget).is_target)
    if is_official(compatibility):
        refuse_single_pools(pools)
    return compute_rocch_eer(pools)


def calibrated_llrs(target: ArrayLike, nontarget: ArrayLike, *, laplace: bool = False) -> CalibratedScores:
    """Return Log-likelihood ratios by PAV, with the official ramp of 1e-6 over the sorted trials.

    Plain ones are infinite in a pool of one kind; the Laplace variant puts a target and a nontarget before and after
    all trials (prior odds stay those of the trials), so that all are finite.

    Args:
        target, nontarget: shape (trials,), scores of any scale.
        laplace: as G_VD, De-Identification and ZEBRA "individual" want it.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.
    """
    targets, nontargets = validate_scores(target, "target"), validate_scores(nontarget, "nontarget")
    order = sort_order(targets, nontargets)
    pools = pool_adjacent_violators(order >= nontargets.size, laplace=laplace)
    llrs = np.empty(order.size)
    llrs[order] = np.repeat(pools.llr, np.diff(pools.edges)) + ramp(order.size)
    return CalibratedScores(target=llrs[nontargets.size :], nontarget=llrs[: nontargets.size])


def pool_adjacent_violators(is_target: Flags, *, laplace: bool = False) -> Pools:
    """Pool sorted trials while the share of targets of a pool is not below that of the next one.

    Args:
        is_target: shape (trials,), in ascending order of the scores; both kinds occur.
        laplace: with a target and a nontarget more before and after the trials. They count in `targets` and
            `nontargets`, not in `edges`, and not in the prior odds; a pool of them alone has no width.
    """
    from scipy.optimize import isotonic_regression

    n_target = int(np.count_nonzero(is_target))
    prior_log_odds = np.log(n_target / (is_target.size - n_target))
    labels = np.concatenate([[True, False], is_target, [True, False]]) if laplace else is_target
    # Targets and the nontargets that follow them always end in one pool; the rest is left to the regression.
    starts = np.concatenate([[0], np.flatnonzero(labels[1:] > labels[:-1]) + 1, [labels.size]])
    sizes = np.diff(starts)
    group_targets = np.add.reduceat(labels, starts[:-1], dtype=np.int64)
    blocks = isotonic_regression(group_targets / sizes, weights=sizes).blocks
    targets = np.add.reduceat(group_targets, blocks[:-1])
    edges = starts[blocks]
    nontargets = np.diff(edges) - targets
    with np.errstate(divide="ignore"):
        llr = np.log(targets / nontargets) - prior_log_odds
    if laplace:
        edges = np.clip(edges - 2, 0, is_target.size)
    return Pools(edges, targets, nontargets, llr)


def pool_histograms(target: Floats, nontarget: Floats) -> Pools:
    """Pool the trials of a test by distinct score, tied ones of both kinds together.

    Unlike the official order of ties (nontarget first, optimistic), this counts on no order within them: for scores
    that are ratings, ties are little else. All tied are one pool.

    Args:
        target, nontarget: shape (values,), how many trials have each distinct score, ascending; both have some.
    """
    from scipy.optimize import isotonic_regression

    both = target + nontarget
    target, nontarget, both = target[both > 0], nontarget[both > 0], both[both > 0]
    starts = isotonic_regression(target / both, weights=both).blocks[:-1]
    targets = np.add.reduceat(target, starts).astype(np.int64)
    nontargets = np.add.reduceat(nontarget, starts).astype(np.int64)
    with np.errstate(divide="ignore"):
        llr = np.log(targets / nontargets) - np.log(target.sum() / nontarget.sum())
    return Pools(np.concatenate([[0], np.cumsum(targets + nontargets)]), targets, nontargets, llr)


def ramp(trials: int) -> Floats:
    """Return what the official code adds to the LLRs of sorted trials to make each differ: 0 to 1e-6."""
    return np.arange(trials, dtype=np.float64) * (RAMP / trials)


def mean_ramps(pools: Pools, is_target: Flags) -> tuple[Floats, Floats]:
    """Return the mean of the ramp over the targets and over the nontargets of each pool, 0 where it has none.

    Within a pool the ramp moves an LLR by 1e-6 at most, so a mean over its trials is that at the mean ramp to 1e-13.
    """
    position_sums = np.concatenate([[0], np.cumsum(np.flatnonzero(is_target))])
    target_sums = np.diff(position_sums[np.concatenate([[0], np.cumsum(pools.targets)])])
    first, last = pools.edges[:-1], pools.edges[1:] - 1
    nontarget_sums = (first + last) * (last - first + 1) // 2 - target_sums
    step = RAMP / is_target.size
    return (
        step * target_sums / np.maximum(pools.targets, 1),
        step * nontarget_sums / np.maximum(pools.nontargets, 1),
    )


def compute_min_cllr(pools: Pools, is_target: Flags) -> float:
    """min C_llr of plain pools of sorted trials."""
    target_ramps, nontarget_ramps = mean_ramps(pools, is_target)
    target_cost = _softplus(-(pools.llr + target_ramps)) @ _shares(pools.targets)
    nontarget_cost = _softplus(pools.llr + nontarget_ramps) @ _shares(pools.nontargets)
    return 0.5 * float(target_cost + nontarget_cost) / float(np.log(2))


def compute_rocch_eer(pools: Pools) -> float:
    """ROCCH-EER of plain pools: the largest crossing with P_miss = P_fa of a segment in which both change."""
    miss = np.concatenate([[0.0], np.cumsum(pools.targets) / pools.targets.sum()])
    passed = np.concatenate([[0], np.cumsum(pools.nontargets)])
    false_alarm = (passed[-1] - passed) / passed[-1]
    mixed = (pools.targets > 0) & (pools.nontargets > 0)
    x0, x1 = false_alarm[:-1][mixed], false_alarm[1:][mixed]
    y0, y1 = miss[:-1][mixed], miss[1:][mixed]
    return float(np.max((x0 * y1 - x1 * y0) / ((y1 - y0) + (x0 - x1)), initial=0.0))


def refuse_single_pools(pools: Pools) -> None:
    """Say so where the official code has no value: its loop runs out of bounds if every trial is its own pool.

    Raises:
        InputError: no pool holds more than one trial.
    """
    if pools.llr.size == pools.edges[-1]:
        raise InputError(
            f"The official code stops with an IndexError here: each of the {pools.llr.size} trials is a pool of its "
            "own. Ask for the documented value instead."
        )


def _shares(counts: Counts) -> Floats:
    return np.asarray(counts / counts.sum())


def _softplus(values: Floats) -> Floats:
    """ln(1 + e^x) without overflow; 0 at inf too, which only pools have that hold no such trial."""
    finite = np.where(np.isposinf(values), 0.0, values)
    return np.asarray(np.maximum(finite, 0.0) + np.log1p(np.exp(-np.abs(finite))))
