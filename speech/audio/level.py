"""The active speech level of ITU-T P.56, method B: how loud speech is while somebody speaks, pauses left out.

The envelope of the signal is compared with thresholds 6 dB apart; each gives a share of time that counts as active,
and with it a level of the active part. The level wanted is the one that lies 15.9 dB above its own threshold.

Conventions: samples are floats with full scale 1.0, shape (n,); levels in dBov, decibels of the root mean square
relative to full scale, so that a full-scale square wave has 0 dBov and a full-scale sine −3.01 dBov.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from speech.audio.files import AudioError

TIME_CONSTANT_S = 0.03  # P.56, table 1: of each of the two exponential averages
HANGOVER_S = 0.2
MARGIN_DB = 15.9
TOLERANCE_DB = 0.01  # of a level that is asked for
MOST_STEPS = 6
THRESHOLDS = 2.0 ** np.arange(-15, 0)

Signal = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SpeechLevel:
    """`active_dbov`: level of the active part; `long_term_dbov`: of everything; `activity`: share of time, 0 to 1."""

    active_dbov: float
    long_term_dbov: float
    activity: float


def active_speech_level(signal: Signal, rate_hz: int) -> SpeechLevel:
    """Return level by ITU-T P.56 (12/2011), section 8, method B.

    Args:
        signal: shape (n,), full scale 1.0.
        rate_hz: samples per second, above 0.

    Raises:
        AudioError: nothing in the signal is speech by that measure: it is empty, silent, or shorter and quieter
            than the lowest threshold can tell.
    """
    energy = float(np.square(signal).sum())
    if not energy:
        raise _silent("nothing but silence" if signal.size else "no samples")
    envelope = _envelope(signal, rate_hz)
    active = _active_samples(envelope, round(HANGOVER_S * rate_hz))
    reached = active > 0
    if not reached.any():
        raise _silent("a signal under the lowest threshold")
    levels = 10 * np.log10(energy / active[reached])
    level = _at_margin(levels, 20 * np.log10(THRESHOLDS[reached]))
    long_term = 10 * np.log10(energy / signal.size)
    return SpeechLevel(level, float(long_term), float(min(1.0, 10 ** ((long_term - level) / 10))))


def find_gain(signal: Signal, rate_hz: int, level_dbov: float, wanted_dbov: float) -> tuple[float, float]:
    """Factor that brings a signal to an active speech level, and the level it has then.

    The thresholds of P.56 lie on a fixed ladder, so that a gain of 10 dB raises the level by 10 dB only nearly. It is
    come to within 0.01 dB, or as near as six steps lead.

    Args:
        signal: shape (n,), full scale 1.0.
        level_dbov: its active speech level.
        wanted_dbov: the level to come to.

    Raises:
        AudioError: it is silent.
    """
    gain = 1.0
    for _ in range(MOST_STEPS):
        if abs(level_dbov - wanted_dbov) < TOLERANCE_DB:
            break
        gain *= 10 ** ((wanted_dbov - level_dbov) / 20)
        level_dbov = active_speech_level(gain * signal, rate_hz).active_dbov
    return gain, level_dbov


def _envelope(signal: Signal, rate_hz: int) -> Signal:
    """Return two exponential averages of the rectified signal, one after the other (P.56, section 8.2)."""
    from scipy.signal import lfilter

    keep = np.exp(-1 / (rate_hz * TIME_CONSTANT_S))
    weights, feedback = [(1 - keep) ** 2], [1, -2 * keep, keep**2]
    return np.asarray(lfilter(weights, feedback, np.abs(signal)), dtype=np.float64)


def _active_samples(envelope: Signal, hangover: int) -> NDArray[np.int64]:
    """For each threshold, how many samples are at or above it or at most `hangover` samples behind one that is."""
    counts = []
    above = np.arange(envelope.size)
    for threshold in THRESHOLDS:
        above = above[envelope[above] >= threshold]
        counts.append(int(np.minimum(np.diff(above, append=envelope.size), hangover + 1).sum()))
    return np.array(counts)


def _at_margin(levels: Signal, thresholds: Signal) -> float:
    """Return level at which level minus threshold, which falls from threshold to threshold, equals the margin."""
    margins = levels - thresholds
    if margins[0] < MARGIN_DB:
        raise _silent("a signal hardly above the lowest threshold")
    if margins[-1] > MARGIN_DB:  # a click: all energy in less time than the highest reached threshold needs
        return float(levels[-1])
    after = int(np.argmax(margins <= MARGIN_DB))
    if not after:
        return float(levels[0])
    share = (margins[after - 1] - MARGIN_DB) / (margins[after - 1] - margins[after])
    return float(levels[after - 1] + share * (levels[after] - levels[after - 1]))


def _silent(found: str) -> AudioError:
    return AudioError("silent", "speech", found, "Send a recording in which somebody speaks, or leave it out.")
