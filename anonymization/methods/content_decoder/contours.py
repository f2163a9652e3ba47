"""F0 of an original at the frames of a spectrum, and as the voice of somebody else has it.

Conventions: samples are int16, mono, 16 kHz; frames are those of `speech.conversion.content_decoder` (22,050 Hz, 256
samples a frame); F0 in Hz, 0 where unvoiced.
"""

from __future__ import annotations

import numpy as np

from anonymization.methods.spectra import RATE_HZ
from common.arrays import Floats, Samples
from speech.conversion.nearest_frames import HOP_SAMPLES, VOCODER_HZ
from speech.pitch.estimators import track_f0

# Fewer voiced frames have no spread of their own.
_LEAST_VOICED_S = 0.3
_SHORTEST_SAMPLES = 640  # of a contour
_CEILING_HZ, _FLOOR_HZ = 600.0, 50.0


def find_contour(samples: Samples, estimator: str = "praat") -> Floats:
    """Return F0 at the frames of the spectrum, shape (frames,); of less than 40 ms nothing is voiced.

    Args:
        estimator: a key of `speech.pitch.estimators.ESTIMATORS`.

    Raises:
        InputError: the package of the estimator is not installed.
    """
    from speech.conversion.content_decoder import contour_at_spectra, count_spectra

    count = count_spectra(samples.size)
    if samples.size < _SHORTEST_SAMPLES:
        return np.zeros(count)
    return contour_at_spectra(track_f0(samples, RATE_HZ, estimator), count)


def move_contour(hz: Floats, mean: float, spread: float) -> Floats:
    """Return F0 with another mean and spread of its logarithm, shape (frames,); 0 stays, and little of it keeps its
    spread.

    Args:
        mean, spread: of the natural logarithm of hertz.
    """
    voiced = hz > 0
    if not voiced.any():
        return hz
    logs = np.log(hz[voiced])
    own = float(logs.std())
    factor = spread / own if voiced.sum() >= _LEAST_VOICED_S * VOCODER_HZ / HOP_SAMPLES and own > 0 else 1.0
    moved = np.zeros_like(hz)
    # An octave error would be a scream: nothing moves more than twice as far as it was.
    moved[voiced] = np.exp(mean + min(factor, 2.0) * (logs - logs.mean()))
    return limit_contour(moved)


def limit_contour(hz: Floats) -> Floats:
    """Return F0 as somebody may have it; 0 stays."""
    return np.where(hz > 0, np.clip(hz, _FLOOR_HZ, _CEILING_HZ), 0.0)
