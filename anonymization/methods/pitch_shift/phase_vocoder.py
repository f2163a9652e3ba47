"""Pitch shifting by a phase vocoder: short-time spectra of the resampled speech are laid out anew in time.

Source: Laroche and Dolson (1999), "Improved phase vocoder time-scale modification of audio", IEEE Transactions on
Speech and Audio Processing 7(3), identity phase locking. As Puckette (1995), "Phase-locked vocoder", does, the advance
of a phase is read from two spectra one output hop apart, so that no phase is ever unwrapped. A peak that rises by
10 dB or more within a hop is new and takes the phase that it has, which keeps attacks sharp (in the manner of
Röbel 2003, "A new approach to transient processing in the phase vocoder").

Conventions: windows of 64 ms, a quarter of which is the hop; frame k is centred on output sample k · hop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from anonymization.methods.attacks import find_attacks
from anonymization.methods.pitch_track import RATE_HZ, signal_for_tracking

if TYPE_CHECKING:
    from anonymization.methods.pitch_source import PitchSource

HOP_S = 0.016
_HOPS_PER_WINDOW = 4
# Hops are multiples of this, so that the transforms have small factors.
_HOP_UNIT = 32
_FRAMES_PER_BLOCK = 512
_NEW_PEAK_RISE = 10.0
# So long before and after an attack time is not stretched, and as long again it takes to be back where it was.
_ATTACK_HELD_S, _ATTACK_EASED_S = 0.024, 0.032
# Sum of the squared windows that overlap on a sample.
_OVERLAP = 1.5

Floats = npt.NDArray[np.float32]


def hop_samples(rate: int) -> int:
    """Output hop: 256 samples at 16 kHz, near 16 ms at other rates."""
    return _HOP_UNIT * max(1, round(HOP_S * rate / _HOP_UNIT))


def shift_by_vocoder(source: PitchSource, ratio: float) -> Floats:
    """The utterance with F0 and formants times `ratio`, float32, shape (n,)."""
    from anonymization.methods import _phase_vocoder_kernel as kernel

    hop = hop_samples(source.rate)
    window = _window(_HOPS_PER_WINDOW * hop)
    output = np.zeros(source.samples.size, np.float32)
    before = np.zeros(window.size // 2 + 1, np.complex64)
    # From the first frame that reaches the first sample to the last that reaches the last.
    clock = _clock(source, ratio)
    first, last = 1 - _HOPS_PER_WINDOW // 2, -(-output.size // hop) + _HOPS_PER_WINDOW // 2
    for start in range(first, last, _FRAMES_PER_BLOCK):
        centres = hop * np.arange(start, min(start + _FRAMES_PER_BLOCK, last))
        here, back = _analyse(source, ratio, clock(centres), window, hop)
        kernel.lock_phases(here, back, before, _NEW_PEAK_RISE)
        frames = np.fft.irfft(here, window.size) * (window / np.float32(_OVERLAP))
        kernel.overlap_add(frames, int(centres[0]) - window.size // 2, hop, output)
    return output


def _analyse(
    source: PitchSource, ratio: float, times: npt.NDArray[np.float64], window: Floats, hop: int
) -> tuple[npt.NDArray[np.complex64], npt.NDArray[np.complex64]]:
    """Spectra at the given times of the utterance, and one hop before in the resampled one, shape (frames, bins)."""
    reach = int((window.size + hop) * ratio) + 1
    start = int(times[0]) - reach
    part, origin = source.part(start, int(times[-1]) + reach, ratio)
    places = np.rint((times - start) / ratio + origin).astype(np.int64) - window.size // 2
    frames = np.lib.stride_tricks.sliding_window_view(part, window.size)
    here, back = (np.fft.rfft(frames[at] * window) for at in (places, places - hop))
    return here.astype(np.complex64, copy=False), back.astype(np.complex64, copy=False)


def _clock(source: PitchSource, ratio: float) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]:
    """What time of the utterance the output plays at a time: the same, but that attacks run at the resampled speed.

    Then all frames that hold an attack put it at one place. What is gained or lost is made good before and after.
    """
    signal = signal_for_tracking(source.samples, source.rate)
    attacks = find_attacks(signal) * (source.rate / RATE_HZ)
    held, eased = _ATTACK_HELD_S * source.rate, (_ATTACK_HELD_S + _ATTACK_EASED_S) * source.rate
    apart = np.diff(attacks, prepend=-np.inf) > 2 * eased
    attacks = attacks[apart]
    end = float(source.samples.size) + 2 * eased
    played = (attacks[:, np.newaxis] + np.array([-eased, -held, held, eased])).ravel()
    meant = (attacks[:, np.newaxis] + np.array([-eased, -held * ratio, held * ratio, eased])).ravel()
    played = np.concatenate([[-end], played, [2 * end]])
    meant = np.concatenate([[-end], meant, [2 * end]])

    def clock(times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        meant_times: npt.NDArray[np.float64] = np.interp(times, played, meant)
        return meant_times

    return clock


@cache
def _window(length: int) -> Floats:
    """Periodic Hann window."""
    return np.hanning(length + 1)[:-1].astype(np.float32)
