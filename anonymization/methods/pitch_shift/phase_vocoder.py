"""Pitch shifting by a phase vocoder: short-time spectra of the resampled speech are laid out again in time.

Source: Laroche and Dolson (1999), "Improved phase vocoder time-scale modification of audio", IEEE Transactions on
Speech and Audio Processing 7(3), identity phase locking. As Puckette (1995), "Phase-locked vocoder", does, the advance
of a phase is read from two spectra one output hop apart, so that no phase is ever unwrapped. A peak that rises by
10 dB or more within a hop is new and takes the phase that it has, which keeps attacks sharp (in the manner of
Röbel 2003, "A new approach to transient processing in the phase vocoder").

Conventions: windows of 64 ms, a quarter of which is the hop; frame k is centred on output sample k · hop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from anonymization.methods.pitch_shift.marks import PitchSource, find_onsets
from common.arrays import Floats, Floats32
from common.numba_loops import entry, inner
from speech.pitch.autocorrelation import RATE_HZ, signal_for_tracking

HOP_S = 0.016
_HOPS_PER_WINDOW = 4
# Hops are multiples of this, so that the transforms have small factors.
_HOP_UNIT = 32
_FRAMES_PER_BLOCK = 512
_NEW_PEAK_RISE = 10.0
# So long before and after an onset time is not stretched, and as long again it takes to be back where it was.
_ONSET_HELD_S, _ONSET_EASED_S = 0.024, 0.032
# Sum of the squared windows that overlap on a sample.
_OVERLAP = 1.5
# A product of two bins below this is no more than the rounding of silence.
_NOTHING = 1e-12

Spectra = npt.NDArray[np.complex64]
Indices = npt.NDArray[np.int64]


def hop_samples(rate: int) -> int:
    """Return output hop: 256 samples at 16 kHz, near 16 ms at other rates."""
    return _HOP_UNIT * max(1, round(HOP_S * rate / _HOP_UNIT))


def shift_by_vocoder(source: PitchSource, ratio: float) -> Floats32:
    """Return the utterance with F0 and formants times `ratio`, float32, shape (n,)."""
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
        lock_phases(here, back, before, _NEW_PEAK_RISE)
        frames = np.fft.irfft(here, window.size) * (window / np.float32(_OVERLAP))
        _overlap_add(frames, int(centres[0]) - window.size // 2, hop, output)
    return output


def _analyse(source: PitchSource, ratio: float, times: Floats, window: Floats32, hop: int) -> tuple[Spectra, Spectra]:
    """Return spectra at the given times of the utterance, and one hop before in the resampled one, shape (frames,
    bins)."""
    reach = int((window.size + hop) * ratio) + 1
    start = int(times[0]) - reach
    part, origin = source.part(start, int(times[-1]) + reach, ratio)
    places = np.rint((times - start) / ratio + origin).astype(np.int64) - window.size // 2
    frames = np.lib.stride_tricks.sliding_window_view(part, window.size)
    here, back = (np.fft.rfft(frames[at] * window) for at in (places, places - hop))
    return here.astype(np.complex64, copy=False), back.astype(np.complex64, copy=False)


def _clock(source: PitchSource, ratio: float) -> Callable[[Indices], Floats]:
    """Return what time of the utterance the output plays at a time: the same, but that onsets run at the resampled
    speed.

    Then all frames that hold an onset put it at one place. What is gained or lost is made good before and after.
    """
    signal = signal_for_tracking(source.samples, source.rate)
    onsets = find_onsets(signal) * (source.rate / RATE_HZ)
    held, eased = _ONSET_HELD_S * source.rate, (_ONSET_HELD_S + _ONSET_EASED_S) * source.rate
    apart = np.diff(onsets, prepend=-np.inf) > 2 * eased
    onsets = onsets[apart]
    end = float(source.samples.size) + 2 * eased
    played = (onsets[:, np.newaxis] + np.array([-eased, -held, held, eased])).ravel()
    meant = (onsets[:, np.newaxis] + np.array([-eased, -held * ratio, held * ratio, eased])).ravel()
    played = np.concatenate([[-end], played, [2 * end]])
    meant = np.concatenate([[-end], meant, [2 * end]])

    def clock(times: Indices) -> Floats:
        meant_times: Floats = np.interp(times, played, meant)
        return meant_times

    return clock


@cache
def _window(length: int) -> Floats32:
    """Periodic Hann window."""
    return np.hanning(length + 1)[:-1].astype(np.float32)


# Loops over frames and bins --------------------------------------------------------------------------


@inner
def _find_peaks(power: Floats32, peaks: Indices) -> int:
    """Write the bins above their two neighbours on either side; how many there are."""
    bins = power.size
    count = 0
    for b in range(bins):
        here = power[b]
        if here <= 0.0:
            continue
        is_peak = True
        for distance in (1, 2):
            if b - distance >= 0 and power[b - distance] > here:
                is_peak = False
            if b + distance < bins and power[b + distance] >= here:
                is_peak = False
        if is_peak:
            peaks[count] = b
            count += 1
    return count


@inner
def _valley(power: Floats32, left: int, right: int) -> int:
    """Return the weakest bin between two peaks."""
    lowest = left
    for b in range(left, right):
        if power[b] < power[lowest]:
            lowest = b
    return lowest


@inner
def _turn(back_x: float, back_y: float, before_x: float, before_y: float) -> tuple[float, float]:
    """Return the turn from one complex number to another, of magnitude 1; none where one of them is next to nothing."""
    x = before_x * back_x + before_y * back_y
    y = before_y * back_x - before_x * back_y
    size = math.sqrt(x * x + y * y)
    return (x / size, y / size) if size > _NOTHING else (1.0, 0.0)


@entry
def lock_phases(here: Spectra, back: Spectra, before: Spectra, rise: float) -> None:
    """Turn each frame so that its peaks go on from the frame before; `before` holds that and gets the last one.

    A peak is turned as the output at the last frame is against the input one hop back: then it advances just as the
    input does. All bins around a peak turn with it. A peak `rise` times the power it had a hop back is not turned.
    """
    frames, bins = here.shape
    power = np.empty(bins, np.float32)
    peaks = np.empty(bins, np.int64)
    for i in range(frames):
        row = here[i]
        for b in range(bins):
            power[b] = row[b].real * row[b].real + row[b].imag * row[b].imag
        count = _find_peaks(power, peaks)
        start = 0
        for k in range(count):
            peak = peaks[k]
            stop = _valley(power, peak, peaks[k + 1]) if k + 1 < count else bins
            old = back[i, peak]
            x, y = 1.0, 0.0
            if power[peak] < rise * (old.real * old.real + old.imag * old.imag):
                last = before[peak]
                x, y = _turn(float(old.real), float(old.imag), float(last.real), float(last.imag))
            for b in range(start, stop):
                re, im = row[b].real, row[b].imag
                row[b] = complex(re * x - im * y, re * y + im * x)
            start = stop
        for b in range(bins):
            before[b] = row[b]


@entry
def _overlap_add(frames: Floats32, start: int, hop: int, output: Floats32) -> None:
    """Add frames, the first of which begins at sample `start`, to the output; what lies outside of it is left out."""
    for i in range(frames.shape[0]):
        first = start + i * hop
        row = frames[i]
        for k in range(max(0, -first), min(row.size, output.size - first)):
            output[first + k] += row[k]
