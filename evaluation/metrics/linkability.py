"""Linkability D_sys: how well scores tell mated pairs from others, over histograms of both.

Conventions: in [0, 1], lower protects better; a higher score says "same speaker", but D_sys rewards an attacker whose
scores are inverted as well.
Source: Gomez-Barrero et al., "General framework to evaluate unlinkability in biometric template protection systems",
IEEE Trans. Information Forensics and Security 13(6), 2018; Maouche et al., "A comparative study of speech anonymization
metrics", Interspeech 2020; the details as in the package ``anonymization_metrics`` of VoicePrivacy 2022.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Floats
from evaluation.metrics import calibration

TARGETS_PER_BIN = 10
MAX_BINS = 100
# With fewer, the half bins that are lost at both ends and the chance of each bin weigh too much to compare systems.
FEW_TARGETS = 200
FEW = "unreliable"
FEW_TARGETS_EXPLANATION = (
    f"Linkability sorts scores into a bin for each {TARGETS_PER_BIN} target trials. With fewer than {FEW_TARGETS} it "
    "is unreliable: scores that separate every speaker stay below 1, and fewer than 20 target trials give 0 for any "
    "scores."
)
_LARGEST = float(np.finfo(np.float64).max)


def linkability(
    target: ArrayLike, nontarget: ArrayLike, *, compatibility: calibration.Compatibility = "documented"
) -> float:
    """Return D_sys with equal weights of mated and non-mated pairs (ω = 1), over at most 100 bins of equal width.

    Half of the first and the last bin is lost to the trapezoidal rule over bin centres, so that separable scores stay
    below 1; fewer than 20 targets always give 0; one outlier can make it meaningless. Compare it only at equal sizes.

    Args:
        target, nontarget: shape (trials,), scores of any scale.
        compatibility: ``official`` gives NaN where the official code does (20 targets or more, all scores equal), and
            above 1 where scores differ by their rounding alone; the default is 0 in the first case, since equal
            scores link nobody, and 1 at most.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.

    Example:
        >>> round(linkability(np.arange(100.0) + 100, np.arange(100.0)), 6)
        0.9
    """
    return compute_linkability(calibration.sort_scores(target, nontarget), compatibility=compatibility)


def compute_linkability(
    scores: calibration.SortedScores, *, compatibility: calibration.Compatibility = "documented"
) -> float:
    """Return D_sys of sorted scores."""
    official = calibration.is_official(compatibility)
    targets, nontargets = scores.targets, scores.nontargets
    bins = min(targets.size // TARGETS_PER_BIN, MAX_BINS)
    if bins < 2:
        return 0.0
    lowest, highest = scores.values[0], scores.values[-1]
    if lowest == highest and official:
        return float("nan")
    # Halved where the range would overflow; D_sys does not depend on the scale.
    scale = 0.5 if highest / 2 - lowest / 2 > _LARGEST / 2 else 1.0
    edges = np.linspace(lowest * scale, highest * scale, bins + 1)
    mated = _shares(targets * scale, edges)
    other = _shares(nontargets * scale, edges)
    # (LR - 1) / (LR + 1) of the likelihood ratio, 1 without others, 0 where both are absent.
    total = mated + other
    linked = np.divide(np.maximum(mated - other, 0.0), total, out=np.zeros(bins), where=total > 0) * mated
    value = float(linked @ _trapezoid_weights(edges))
    return value if official else min(value, 1.0)


def note_few_targets(targets: int) -> str:
    """Return the note that D_sys of so many target trials carries wherever it stands; empty where it needs none."""
    return f"{FEW}: {targets} target trials" if targets < FEW_TARGETS else ""


def _shares(ascending: Floats, edges: Floats) -> Floats:
    """Share of the values in each bin, counted as `numpy.histogram` does."""
    below = np.searchsorted(ascending, edges[:-1], side="left")
    return np.diff(below, append=np.searchsorted(ascending, edges[-1], side="right")) / ascending.size


def _trapezoid_weights(edges: Floats) -> Floats:
    """Return what a share of each bin adds to the integral of its density over the bin centres: 1, at the two ends ½.

    Less exactly so where the scores are close to each other but far from 0, because edges are rounded.
    """
    widths, gaps = np.diff(edges), np.diff((edges[:-1] + edges[1:]) / 2)
    covered = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2
    return np.asarray(np.divide(covered, widths, out=np.zeros(widths.size), where=widths > 0))
