"""Anchors of MUSHRA: the original, low-passed at 3.5 and 7 kHz (ITU-R BS.1534-3).

Of the low anchor the recommendation wants a ripple of at most ±0.1 dB up to 3.5 kHz, and at least 25 dB at 4 kHz and
50 dB at 4.5 kHz. The filter here is 60 dB down from 4 kHz on; that of the mid anchor has the same shape at twice the
frequencies. It has a linear phase, and its delay is removed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ANCHORS_HZ = (3500, 7000)
_STOP_DB = 60.0
_STOPPED_FROM, _REQUIRED_TO = 4000 / 3500, 4500 / 3500  # parts of the highest frequency that passes


def name_anchor(low_pass_hz: int) -> str:
    """Return the code of an anchor, such as ``anchor-3.5k``."""
    return f"anchor-{low_pass_hz / 1000:g}k"


def rate_of_anchor(low_pass_hz: int) -> int:
    """Return the lowest rate in Hz whose sound reaches beyond all that the recommendation wants of the anchor."""
    return round(2 * _REQUIRED_TO * low_pass_hz)


def list_anchors(rate_hz: int) -> list[int]:
    """Return the frequencies in Hz of the anchors that stimuli of this rate can have."""
    return [low_pass_hz for low_pass_hz in ANCHORS_HZ if rate_hz >= rate_of_anchor(low_pass_hz)]


def make_anchor(samples: NDArray[np.float64], rate_hz: int, low_pass_hz: int) -> NDArray[np.float64]:
    """Return the samples without what lies above `low_pass_hz`.

    Args:
        samples: float64, shape (n, channels).

    Raises:
        ValueError: the rate is too low for it.
    """
    from scipy.signal import firwin, kaiserord, oaconvolve

    if rate_hz < rate_of_anchor(low_pass_hz):
        raise ValueError(f"expected at least {rate_of_anchor(low_pass_hz)} Hz, found {rate_hz} Hz")
    stop_hz = _STOPPED_FROM * low_pass_hz
    taps, beta = kaiserord(_STOP_DB, (stop_hz - low_pass_hz) / (rate_hz / 2))
    response = firwin(taps | 1, (low_pass_hz + stop_hz) / 2, window=("kaiser", beta), fs=rate_hz)
    filtered: NDArray[np.float64] = oaconvolve(samples, response[:, None], mode="same", axes=0)
    return filtered
