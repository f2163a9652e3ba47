"""F0 by YAAPT: what its package finds, in time, without its errors, and of recordings of any length.

Source: Zahorian, Hu (2008), "A spectral/temporal method for robust fundamental frequency tracking",
JASA 123(6); pYAAPT of the package AMFM_decompy, with its defaults but for the range.

Conventions: samples are mono, 16 kHz, floating point; frame i stands at sample 160·i; F0 in Hz, 0 is
an unvoiced frame. F0 is 16 kHz over a whole number of samples, or now and then a guess by the spectrum.
"""

from __future__ import annotations

import warnings

import numpy as np

from common.arrays import Floats

PACKAGE = "amfm_decompy"
RATE_HZ = 16_000
STEP = 160
# Samples of its frames of 35 ms, and by how many its band-pass filter of order 150 comes late.
_FRAME, _DELAY = 560, 75
# Frames at once, and what they see to both sides: the package keeps 8 MB for each second.
_BLOCK, _MARGIN = 4000, 100


def track_contour(samples: Floats, floor_hz: float, ceiling_hz: float) -> Floats:
    """Return F0, shape (frames,), a frame for each 160 samples and one more.

    Longer than 40 s, it is found in blocks of that length with a second of context on both sides.

    Args:
        samples: shape (n,), at least 500, finite.
    """
    frames = samples.size // STEP + 1
    contour = np.zeros(frames)
    for first in range(0, frames, _BLOCK):
        last, start = min(first + _BLOCK, frames), max(0, first - _MARGIN)
        block = samples[start * STEP : (last + _MARGIN) * STEP]
        contour[first:last] = _track_block(block, floor_hz, ceiling_hz)[first - start : last - start]
    return contour


def _track_block(samples: Floats, floor_hz: float, ceiling_hz: float) -> Floats:
    frames = samples.size // STEP + 1
    largest = np.abs(samples).max()
    if not largest:
        return np.zeros(frames)
    from amfm_decompy import basic_tools, pYAAPT

    # Its first frame begins with the samples and is heard late; and its thresholds are of loud speech.
    before = _FRAME // 2 - _DELAY
    after = _FRAME + frames * STEP - before - samples.size
    signal = basic_tools.SignalObj(np.pad(samples / largest, (before, after)), RATE_HZ)
    # It divides by the energy of silent frames, and takes means of voiced frames where there are none.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = pYAAPT.yaapt(signal, f0_min=floor_hz, f0_max=ceiling_hz)
    return _correct_periods(np.asarray(found.samp_values, dtype=np.float64))


def _correct_periods(hz: Floats) -> Floats:
    """Return F0 without the sample that the package counts too many in each period (a voice of 220 Hz has 216).

    Where correlation found not one period, the guesses by the spectrum are no F0: nothing is voiced.
    """
    periods = np.divide(RATE_HZ, hz, out=np.zeros_like(hz), where=hz > 0)
    measured = (hz > 0) & (np.abs(periods - np.round(periods)) < 1e-6)
    if not measured.any():
        return np.zeros_like(hz)
    corrected: Floats = np.divide(RATE_HZ, periods - 1, out=hz.copy(), where=measured)
    return corrected
