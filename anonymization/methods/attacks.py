"""Attacks of speech: bursts of plosives, clicks, hard onsets: what changing the time scale must not smear or double.

Conventions: signals are float32, mono, at the rate of `pitch_track`; times are in its samples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anonymization.methods.pitch_track import RATE_HZ

_BIN = round(0.001 * RATE_HZ)
# Energy of the next 3 ms against that of the 10 ms that ended 2 ms ago, of which it must be 13 dB above.
_AHEAD, _BACK, _GUARD = 3, 10, 2
_RISE = 20.0
# Nothing more than 40 dB below the loudest is an attack, and of those within 20 ms only the sharpest.
_QUIETEST = 1e-4
_NEIGHBOURS = 20


def find_attacks(signal: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Times of the highest samples of all attacks, rising, shape (attacks,)."""
    bins = signal.size // _BIN
    if bins < _BACK + _GUARD + _AHEAD:
        return np.zeros(0, np.int64)
    blocks = signal[: bins * _BIN].reshape(bins, _BIN)
    energy = np.einsum("ij,ij->i", blocks, blocks).astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(energy)])
    place = np.arange(_BACK + _GUARD, bins - _AHEAD + 1)
    ahead = (total[place + _AHEAD] - total[place]) / _AHEAD
    back = (total[place - _GUARD] - total[place - _GUARD - _BACK]) / _BACK
    loudest = ahead.max()
    if loudest <= 0.0:
        return np.zeros(0, np.int64)
    # The running sum rounds: what is below this part of the loudest is as good as silent.
    rise = ahead / (np.maximum(back, 0.0) + 1e-7 * loudest)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(rise, _NEIGHBOURS), 2 * _NEIGHBOURS + 1).max(axis=1)
    found = np.flatnonzero((rise >= _RISE) & (rise == around) & (ahead >= _QUIETEST * loudest))
    starts = place[found] * _BIN
    reach = np.arange((_AHEAD + 1) * _BIN)
    nearby = np.minimum(starts[:, np.newaxis] + reach, signal.size - 1)
    times = nearby[np.arange(found.size), np.abs(signal[nearby]).argmax(axis=1)]
    return np.unique(times).astype(np.int64)
