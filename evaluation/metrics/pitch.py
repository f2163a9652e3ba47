"""Pitch correlation ρF0 of an original utterance and its anonymised version (VoicePrivacy 2022).

The official form correlates all frames, zeros included, after a rotation by the best lag; the
described form looks at the jointly voiced frames only, at the same lag. Two unrelated utterances
reach about 0.25 in the official form.

Conventions: contours in Hz, 0 is unvoiced; a positive lag moves the anonymised contour later;
higher is better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.arrays import real_numbers
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.f0 import CEILING_HZ, FLOOR_HZ

# The 2022 evaluation plan asks each data set and gender for a mean above this.
MINIMUM_OF_2022 = 0.3

# Below some forty seconds the direct correlation costs next to nothing beside the F0 extraction.
_FFT_FROM_FRAMES = 4096


@dataclass(frozen=True, slots=True)
class PitchCorrelation:
    """Pitch correlation of one utterance pair.

    Attributes:
        rho: official form, in [-1, 1]; 0 where a contour is constant, such as one without a voiced
            frame.
        rho_voiced: Pearson correlation over the jointly voiced frames at the same lag, as the
            papers describe it; None where fewer than two such frames exist or one side of them is
            constant.
        lag_frames: frames by which the anonymised contour was rotated.
        n_frames_original, n_frames_anonymised: lengths before stretching.
        n_voiced_original, n_voiced_anonymised: voiced frames before stretching.
        n_jointly_voiced: frames voiced in both after stretching and rotation.
    """

    rho: float
    rho_voiced: float | None
    lag_frames: int
    n_frames_original: int
    n_frames_anonymised: int
    n_voiced_original: int
    n_voiced_anonymised: int
    n_jointly_voiced: int


def pitch_correlation(f0_original: NDArray[np.floating], f0_anonymised: NDArray[np.floating]) -> PitchCorrelation:
    """Compare two F0 contours as ``pitch_correlation.py`` of the VoicePrivacy 2022 recipe does.

    The shorter contour is stretched linearly to the longer, values outside of 75 to 500 Hz become
    0, the raw cross-correlation (not mean-removed, first maximum) gives the lag, and the anonymised
    contour is rotated by it.

    Args:
        f0_original: shape (frames,), Hz, 0 where unvoiced.
        f0_anonymised: shape (frames,), Hz, 0 where unvoiced; may differ in length.

    Raises:
        MetricInputError: a contour that is empty, not one-dimensional, negative or not finite.

    Example:
        >>> contour = np.array([0.0, 100.0, 120.0, 0.0])
        >>> pitch_correlation(contour, np.roll(contour, 1)).lag_frames
        -1
    """
    raw_original = validate_contour(f0_original, "original")
    raw_anonymised = validate_contour(f0_anonymised, "anonymised")
    frames = max(raw_original.size, raw_anonymised.size)
    original = clip_to_range(_stretch(raw_original, frames))
    anonymised = clip_to_range(_stretch(raw_anonymised, frames))
    lag = best_lag(original, anonymised)
    rotated = np.roll(anonymised, lag)
    voiced = (original > 0) & (rotated > 0)
    rho = pearson(original, rotated)
    return PitchCorrelation(
        rho=0.0 if rho is None else rho,
        rho_voiced=pearson(original[voiced], rotated[voiced]),
        lag_frames=lag,
        n_frames_original=raw_original.size,
        n_frames_anonymised=raw_anonymised.size,
        n_voiced_original=int(np.count_nonzero(raw_original)),
        n_voiced_anonymised=int(np.count_nonzero(raw_anonymised)),
        n_jointly_voiced=int(np.count_nonzero(voiced)),
    )


def best_lag(original: NDArray[np.float64], anonymised: NDArray[np.float64]) -> int:
    """The lag that numpy's ``argmax(correlate(original, anonymised, "full")) - (frames - 1)`` gives.

    Exactly that, ties included: long contours are correlated by FFT first, which leaves only the
    lags whose value lies within the rounding of both methods of the largest; these few are then
    computed by the same dot products as `numpy.correlate` takes, and the first maximum wins.

    Args:
        original, anonymised: shape (frames,), both of the same length, finite and not negative.
    """
    frames = original.size
    lags = _contending_lags(original, anonymised) if frames >= _FFT_FROM_FRAMES else None
    if lags is None:
        return int(np.argmax(np.correlate(original, anonymised, "full"))) - (frames - 1)
    return int(lags[int(np.argmax([_product_at(original, anonymised, lag) for lag in lags.tolist()]))])


def _product_at(original: NDArray[np.float64], anonymised: NDArray[np.float64], lag: int) -> float:
    """One value of ``numpy.correlate(…, "full")``: the same dot product of the same overlap."""
    frames = original.size
    return float(np.dot(original[max(lag, 0) : frames + min(lag, 0)], anonymised[max(-lag, 0) : frames - max(lag, 0)]))


def _contending_lags(original: NDArray[np.float64], anonymised: NDArray[np.float64]) -> NDArray[np.intp] | None:
    """The lags that may have the largest product, ascending; None where these are too many to gain.

    A dot product of n terms is off by at most n roundings of ‖a‖‖b‖, a convolution by FFT by a few
    for each stage of its three transforms (Higham (2002), section 3.1 and theorem 24.2; 32 is
    generous). A lag that has the largest computed product is thus within twice the sum of both of
    the largest value by FFT.
    """
    frames = original.size
    scale = float(np.linalg.norm(original) * np.linalg.norm(anonymised))
    if scale == 0.0:
        return np.array([1 - frames])  # nothing voiced on one side: all products are 0, the first one wins
    size = 1 << (2 * frames - 2).bit_length()
    spectrum = np.fft.rfft(original, size) * np.fft.rfft(anonymised[::-1], size)
    products = np.fft.irfft(spectrum, size)[: 2 * frames - 1]
    rounding = float(np.finfo(np.float64).eps) * scale * (frames + 3 * 32 * size.bit_length())
    contending = np.flatnonzero(products >= products.max() - 2 * rounding)
    return contending - (frames - 1) if contending.size <= frames // 8 else None


def validate_contour(f0: NDArray[np.floating], side: str) -> NDArray[np.float64]:
    """The contour as float64.

    Raises:
        MetricInputError: empty, not one-dimensional, not of real numbers, negative or not finite; `side` names it.
    """
    contour = real_numbers(f0, f"{side} F0 contour")
    if contour.ndim != 1 or contour.size == 0:
        raise MetricInputError(
            f"The {side} F0 contour must have the shape (frames,) with at least one frame, found {contour.shape}."
        )
    wrong = int(np.count_nonzero(~np.isfinite(contour) | (contour < 0)))
    if wrong:
        raise MetricInputError(
            f"The {side} F0 contour must be finite and not negative (0 is unvoiced), "
            f"found {wrong} of {contour.size} frames that are not."
        )
    return contour


def _stretch(contour: NDArray[np.float64], frames: int) -> NDArray[np.float64]:
    """Linear interpolation to another number of frames, end points fixed."""
    if contour.size == frames:
        return contour
    positions = np.linspace(1, contour.size, num=frames)
    return np.interp(positions, np.arange(1, contour.size + 1), contour)


def clip_to_range(contour: NDArray[np.float64]) -> NDArray[np.float64]:
    """The contour with 0 where it lies outside of 75 to 500 Hz."""
    return np.where((contour < FLOOR_HZ) | (contour > CEILING_HZ), 0.0, contour)


def pearson(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Pearson correlation, None where it is not defined (no frame, or a constant side)."""
    if first.size == 0 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    first = first - first.mean()
    second = second - second.mean()
    norm = float(np.sqrt(first @ first) * np.sqrt(second @ second))
    return float(np.clip(first @ second / norm, -1.0, 1.0))
