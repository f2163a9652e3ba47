"""Fundamental frequency (F0) of an utterance, and which estimator found it.

The estimator of the challenge is Praat's autocorrelation method with the settings of the official
2022 script. A contour carries its estimator and frame times, so that it can be stored and drawn.

Conventions: frequencies in Hz, 0 is an unvoiced frame; times in seconds from the start of the file;
samples are mono, int16 or floating point in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.samples import to_unit_scale

FLOOR_HZ = 75.0
CEILING_HZ = 500.0
STEP_S = 0.01
# Praat analyses windows of three periods of the floor: 40 ms, 640 samples at 16 kHz.
WINDOW_MS = 40


@dataclass(frozen=True, slots=True)
class F0Track:
    """An F0 contour on a regular time grid.

    Attributes:
        hz: shape (frames,), float64; 0 where unvoiced.
        start_s: centre of the first frame.
        step_s: distance between frame centres.
        estimator: program, versions, method and range, such as
            ``praat 6.1.38 (parselmouth 0.4.7) to-pitch-ac 75-500 Hz``.
    """

    hz: NDArray[np.float64]
    start_s: float
    step_s: float
    estimator: str

    @property
    def times_s(self) -> NDArray[np.float64]:
        """Centres of the frames, shape (frames,)."""
        return self.start_s + self.step_s * np.arange(self.hz.size, dtype=np.float64)


def praat_estimator() -> str:
    """Name of the Praat estimator with the versions that are installed."""
    import parselmouth

    return (
        f"praat {parselmouth.PRAAT_VERSION} (parselmouth {parselmouth.__version__}) "
        f"to-pitch-ac {FLOOR_HZ:g}-{CEILING_HZ:g} Hz"
    )


def track_f0_praat(samples: NDArray[np.generic], rate: int) -> F0Track:
    """F0 contour by Praat's "To Pitch": step 10 ms, floor 75 Hz, ceiling 500 Hz, else its defaults.

    Source: Boersma (1993), "Accurate short-term analysis of the fundamental frequency and the
    harmonics-to-noise ratio of a sampled sound"; settings of ``pitch_correlation.py`` of the
    VoicePrivacy 2022 recipe.

    Args:
        samples: shape (samples,), int16, or floating point in [-1, 1].
        rate: samples per second.

    Raises:
        MetricInputError: not mono, another type, not finite, or shorter than 40 ms (640 samples
            at 16 kHz).
    """
    signal = to_unit_scale(samples)
    _validate(signal, rate)
    import parselmouth

    pitch = parselmouth.Sound(signal, sampling_frequency=float(rate)).to_pitch(
        time_step=STEP_S, pitch_floor=FLOOR_HZ, pitch_ceiling=CEILING_HZ
    )
    hz = np.array(pitch.selected_array["frequency"], dtype=np.float64)
    return F0Track(hz, float(pitch.x1), float(pitch.dx), praat_estimator())


def f0_praat(samples: NDArray[np.generic], rate: int) -> NDArray[np.float64]:
    """The contour alone of `track_f0_praat`: shape (frames,), Hz, 0 where unvoiced."""
    return track_f0_praat(samples, rate).hz


def _validate(signal: NDArray[np.float64], rate: int) -> None:
    if rate <= 0:
        raise MetricInputError(f"F0 needs a positive sampling rate, found {rate}.")
    shortest = -(-rate * WINDOW_MS // 1000)
    if signal.size < shortest:
        raise MetricInputError(
            f"F0 by Praat needs at least {shortest} samples ({WINDOW_MS} ms at {rate} Hz), "
            f"found {signal.size}. Leave this utterance out or give a longer one."
        )
    if not np.isfinite(signal).all():
        count = int(np.count_nonzero(~np.isfinite(signal)))
        raise MetricInputError(
            f"F0 needs finite samples, found {count} of {signal.size} that are NaN or infinite. "
            "Write the file again."
        )
