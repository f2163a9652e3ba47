"""Pitch of one utterance pair from its samples to its correlation, with the estimator that was used.

Conventions: samples are mono, int16 or floating point in [-1, 1]; both sides are tracked by the same
estimator; higher is better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.f0 import F0Track, track_f0
from evaluation.metrics.pitch import PitchCorrelation, pitch_correlation
from evaluation.metrics.pitch_dtw import BAND_S, RealignedPitch, Steps, realigned_pitch_correlation


@dataclass(frozen=True, slots=True, eq=False)
class PitchOfPair:
    """Everything about the pitch of one pair.

    Attributes:
        original, anonymised: the F0 contours; `F0Track.estimator` names program and versions.
        correlation: official form and form of the papers.
        realigned: after dynamic time warping; None where it was not asked for.
    """

    original: F0Track
    anonymised: F0Track
    correlation: PitchCorrelation
    realigned: RealignedPitch | None

    @property
    def estimator(self) -> str:
        """Program, versions, method and range; the same for both contours."""
        return self.original.estimator


def compare_pitch(
    original: NDArray[np.generic],
    anonymised: NDArray[np.generic],
    rate: int,
    *,
    rate_anonymised: int | None = None,
    estimator: str = "praat",
    realign: bool = False,
    steps: Steps = "slope-limited",
    band_s: float | None = BAND_S,
) -> PitchOfPair:
    """Track both sides and correlate them.

    Different lengths are stretched onto each other, different rates are no obstacle (contours are
    in Hz every 10 ms), a side that is silent or unvoiced gives a correlation of 0.

    Args:
        original, anonymised: shape (samples,), int16, or floating point in [-1, 1].
        rate: samples per second, of the anonymised side too unless `rate_anonymised` is given.
        estimator: a key of `evaluation.metrics.f0.ESTIMATORS`; the challenge's is ``praat``.
        realign: also correlate after warping, with `steps` and `band_s` of
            `realigned_pitch_correlation`.

    Raises:
        MetricInputError: what `track_f0` refuses (shorter than 40 ms, not mono, not finite, …); the
            sentence names the side.
    """
    first = _track(original, rate, estimator, "original")
    second = _track(anonymised, rate if rate_anonymised is None else rate_anonymised, estimator, "anonymised")
    realigned = realigned_pitch_correlation(first.hz, second.hz, steps=steps, band_s=band_s) if realign else None
    return PitchOfPair(first, second, pitch_correlation(first.hz, second.hz), realigned)


def _track(samples: NDArray[np.generic], rate: int, estimator: str, side: str) -> F0Track:
    try:
        return track_f0(samples, rate, estimator)
    except MetricInputError as error:
        raise MetricInputError(f"The {side} utterance: {error}") from None
