"""Scores of a speaker verification test, sorted once for every metric that reads them.

A metric that needs the order of the trials takes `SortedScores`; drawing trials again for a bootstrap keeps them
sorted, so that no resample is sorted anew.

Conventions: a higher score says "same speaker"; target trials compare a speaker with themselves, nontarget trials with
another one; among equal scores nontargets come first, as in the official order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluation.metrics.arrays import real_numbers
from evaluation.metrics.errors import MetricInputError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
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
        """Target scores, ascending."""
        return self.values[self.is_target]

    @property
    def nontargets(self) -> Floats:
        """Nontarget scores, ascending."""
        return self.values[~self.is_target]

    def repeat(self, times: NDArray[np.integer]) -> SortedScores:
        """The same trials, each as often as told: shape (trials,), not negative, in ascending order of the scores."""
        return SortedScores(np.repeat(self.values, times), np.repeat(self.is_target, times))


def sort_scores(target: ArrayLike, nontarget: ArrayLike) -> SortedScores:
    """Validate and sort the scores of a test; the only sort that its metrics need.

    Args:
        target: shape (targets,), scores of same-speaker trials.
        nontarget: shape (nontargets,), scores of different-speaker trials.

    Raises:
        MetricInputError: a side that is empty, not one-dimensional, not of real numbers or not finite.
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
    """Where each trial in the order of `sort_scores` stood among all nontargets followed by all targets."""
    return np.argsort(np.concatenate([nontarget, target]), kind="stable")


def validate_scores(scores: ArrayLike, side: str) -> Floats:
    """The scores of one side as float64.

    Raises:
        MetricInputError: as `sort_scores`.
    """
    array = real_numbers(scores, f"{side} scores")
    if array.ndim != 1 or array.size == 0:
        raise MetricInputError(
            f"Expected the {side} scores in one dimension, at least one of them, found shape {array.shape}. "
            "A test needs target and nontarget trials."
        )
    wrong = array.size - int(np.count_nonzero(np.isfinite(array)))
    if wrong:
        raise MetricInputError(
            f"Expected finite {side} scores, found {wrong} of {array.size} that are NaN or infinite. "
            "Score these trials again."
        )
    return array


def tie_starts(values: NDArray[np.floating]) -> Indices:
    """Where each run of equal values begins in an ascending array."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


def single_precision(values: Floats) -> NDArray[np.float32]:
    """The scores as Kaldi and SpeechBrain hold them; beyond 3.4e38 they are infinite and thus tied."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)
