"""Bounds of an equal error rate that equal scores leave undetermined, and the sentences on them.

Where targets and nontargets share a score, their order decides the equal error rate, and nobody knows it. Kaldi lets
the nontarget pass first, the package ``cllr`` (ROCCH-EER, min C_llr, ZEBRA) the target, so that of one score for all
trials the first finds an EER near 100 % and the second one of 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

LARGEST_GAP, LARGEST_STEPS = 0.01, 2  # of an EER that equal scores leave open: share, and in target trials
FEW_EER_TRIALS = 20  # with fewer on a side, one trial moves the equal error rate by more than five points


def bound_eer(target: NDArray[np.floating], nontarget: NDArray[np.floating]) -> tuple[float, float]:
    """Return the lowest and the highest equal error rate that any order of equal scores gives.

    Args:
        target, nontarget: shape (trials,), at least one each, no NaN; equal is what is so in single precision.

    Returns:
        Shares in [0, 1]; the same twice where no target and nontarget at the crossing are equal.

    Example:
        >>> bound_eer(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
        (0.0, 1.0)
    """
    with np.errstate(over="ignore"):
        targets, nontargets = (np.sort(side.astype(np.float32)) for side in (target, nontarget))
    first, last = 0, targets.size - 1
    while first < last:  # the first target up to which, equal ones included, at least as many are missed as pass
        middle = (first + last) // 2
        missed, passed = _rates(targets, nontargets, targets[middle], "right")
        first, last = (first, middle) if missed >= passed else (middle + 1, last)
    below, from_here = _rates(targets, nontargets, targets[first], "left")
    up_to_here, above = _rates(targets, nontargets, targets[first], "right")
    lowest = max(below, above)
    return lowest, max(lowest, min(up_to_here, from_here))


def describe_open_eer(
    target: NDArray[np.floating], nontarget: NDArray[np.floating], *, steps: int = LARGEST_STEPS
) -> str:
    """Return what equal scores leave open of the equal error rate, in words; empty where that is next to nothing.

    Next to nothing is a percent, or two target trials where these are more; one score for all trials leaves all open.

    Args:
        target, nontarget: as in `bound_eer`.
        steps: target trials that are next to nothing; 0 tells of all that is more than a percent, to warn of it.
    """
    lowest, highest = bound_eer(target, nontarget)
    if highest - lowest <= max(LARGEST_GAP, steps / target.size) and (lowest, highest) != (0.0, 1.0):
        return ""
    return f"equal scores leave the EER anywhere from {100 * lowest:.1f} to {100 * highest:.1f} %"


def note_few_trials(targets: int, nontargets: int) -> str:
    """Return the note that an equal error rate of so few trials carries; empty where it needs none."""
    sides = (("target", targets), ("nontarget", nontargets))
    few = [f"{n} {side} trial{'' if n == 1 else 's'}" for side, n in sides if n < FEW_EER_TRIALS]
    return f"unreliable: {' and '.join(few)}" if few else ""


def _rates(
    targets: NDArray[np.float32],
    nontargets: NDArray[np.float32],
    threshold: np.float32,
    side: Literal["left", "right"],
) -> tuple[float, float]:
    """Return the shares of targets missed and of nontargets passed; with ``left``, what equals the threshold passes."""
    missed = float(np.searchsorted(targets, threshold, side)) / targets.size
    return missed, 1 - float(np.searchsorted(nontargets, threshold, side)) / nontargets.size
