"""What both techniques of pitch shifting read of an utterance: its parts, resampled; its onsets; its pitch marks.

A part is float32 in units of int16, less the constant offset of the utterance; outside of the utterance all is zero.
Onsets are bursts of plosives, clicks, hard attacks: what changing the time scale must not smear or double. Pitch marks
are one time for every period of voiced speech, at the same peak of each, and a steady grid elsewhere.

Within a voiced stretch the marks are the cheapest chain of waveform peaks: about one tracked period apart, high, and in
the middle of periods that look alike (in the manner of Talkin's REAPER and of Goncharoff and Gries 1998, "An algorithm
for accurately marking pitch pulses in speech signals"). All is done on the speech at 8 kHz, so that marks depend
neither on the rate of the file nor on what is above 4 kHz.

Conventions: times of onsets are in samples at the rate of `track_pitch`, those of marks in samples of the file, not
whole ones; the first mark is 0, the last the number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from common.arrays import Samples
from speech.pitch import autocorrelation_kernel
from speech.pitch.autocorrelation import (
    CEILING_HZ,
    FLOOR_HZ,
    RATE_HZ,
    STEP_S,
    PitchTrack,
    signal_for_tracking,
    track_pitch,
)

# More than the resampler's filter reaches, at any ratio of an octave up or down.
_FILTER_REACH = 1024

_BIN = round(0.001 * RATE_HZ)
# Energy of the next 3 ms against that of the 10 ms that ended 2 ms ago, of which it must be 13 dB above.
_AHEAD, _BACK, _GUARD = 3, 10, 2
_RISE = 20.0
# Nothing more than 40 dB below the loudest is an onset, and of those within 20 ms only the sharpest.
_QUIETEST = 1e-4
_NEIGHBOURS = 20

UNVOICED_STEP_S = 0.005

# Peaks are looked for below this: strong enough to stand out, smooth enough to be placed between samples.
_PEAK_BAND_HZ = 1000.0
_PEAK_TAPS = 41
# Of a distance off by an octave, of periods without likeness, of a peak at zero, of a period without a mark.
_COSTS = (60.0, 3.0, 0.5, 3.0)
# A longer distance than this many periods misses a mark.
_MISSING_FROM = 1.6


@dataclass(frozen=True)
class PitchSource:
    """samples: int16, shape (n,), at `rate` hertz; offset: what is taken off each."""

    samples: Samples
    rate: int
    offset: float

    def part(self, start: int, stop: int, ratio: float) -> tuple[npt.NDArray[np.float32], float]:
        """Return samples from start to stop, a little more, played `ratio` times as fast; and where in it `start` is.

        Start and stop may lie outside of the utterance. At a ratio of 1 nothing is resampled.
        """
        reach = 0 if ratio == 1.0 else _FILTER_REACH
        begin, end = start - reach, stop + reach
        part = np.zeros(end - begin, np.float32)
        first, last = max(0, begin), min(self.samples.size, end)
        if first < last:
            inside = part[first - begin : last - begin]
            np.subtract(self.samples[first:last], np.float32(self.offset), out=inside, dtype=np.float32)
        if ratio != 1.0:
            import soxr

            part = soxr.resample(part, ratio, 1.0)
        return part, reach / ratio


def find_onsets(signal: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return times of the highest samples of all onsets, rising, shape (onsets,)."""
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


@dataclass(frozen=True)
class PitchMarks:
    """Marks of an utterance.

    times: float64, shape (marks,), rising, in samples; the first is 0 and the last the number of samples.
    is_voiced: bool, shape (marks - 1,): whether the interval after mark i is a period of a voice.
    is_onset: bool, shape (marks,): whether an unvoiced mark stands on an onset, such as the burst of a plosive.
    """

    times: npt.NDArray[np.float64]
    is_voiced: npt.NDArray[np.bool_]
    is_onset: npt.NDArray[np.bool_]


def mark_pitch(samples: Samples, rate: int) -> PitchMarks:
    """Return the pitch marks of an utterance.

    Args:
        samples: int16, shape (n,), n ≥ 1.
        rate: samples per second, 8000 or more.
    """
    signal = signal_for_tracking(samples, rate)
    voiced, stretch = mark_voiced_stretches(signal, track_pitch(signal))
    onsets = _away_from(voiced, find_onsets(signal).astype(np.float64))
    anchors = np.concatenate([voiced, onsets]) * (rate / RATE_HZ)
    # Onsets are each a stretch of their own.
    of_stretch = np.concatenate([stretch, -3 - np.arange(onsets.size)])
    order = np.argsort(anchors)
    anchors, of_stretch = anchors[order], of_stretch[order]
    inside = (anchors > 0.5) & (anchors < samples.size - 0.5)
    return _fill_gaps(anchors[inside], of_stretch[inside], samples.size, UNVOICED_STEP_S * rate)


def _away_from(marks: npt.NDArray[np.float64], onsets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the onsets that are no part of a voiced stretch: further from all its marks than its longest period."""
    if not marks.size:
        return onsets
    right = np.searchsorted(marks, onsets)
    to_left = onsets - marks[np.maximum(right - 1, 0)]
    to_right = marks[np.minimum(right, marks.size - 1)] - onsets
    distance = np.minimum(np.abs(to_left), np.abs(to_right))
    return onsets[distance > RATE_HZ / FLOOR_HZ]


def mark_voiced_stretches(
    signal: npt.NDArray[np.float32], track: PitchTrack
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return times of the marks of all voiced stretches, in samples at `RATE_HZ`, and the number of the stretch of
    each."""
    runs = track.voiced_runs()
    if not runs.size:
        return np.zeros(0), np.zeros(0, np.int64)
    taps = _peak_filter()
    narrow = np.convolve(signal, taps)[taps.size // 2 :][: signal.size]
    polarity = 1.0 if autocorrelation_kernel.cube_sum(narrow) >= 0 else -1.0
    # Marks are at least 0.6 periods apart.
    room = int(signal.size / (0.6 * RATE_HZ / CEILING_HZ)) + runs.shape[0] + 1
    times, stretch = np.empty(room), np.empty(room, np.int64)
    step = round(STEP_S * RATE_HZ)
    count = autocorrelation_kernel.mark_stretches(
        narrow, signal, polarity, track.hz, runs, step, float(RATE_HZ), np.array(_COSTS), times, stretch
    )
    return _insert_missing(times[:count], stretch[:count], track)


def _insert_missing(
    times: npt.NDArray[np.float64], stretch: npt.NDArray[np.int64], track: PitchTrack
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Put marks between two that are further apart than a period and are of one stretch."""
    frames = np.clip(np.round(times / (STEP_S * RATE_HZ)).astype(np.int64), 0, track.hz.size - 1)
    hz = track.hz[frames]
    distances = np.diff(times)
    with np.errstate(divide="ignore"):
        periods = distances * hz[:-1] / RATE_HZ
    is_gap = (np.diff(stretch) == 0) & (periods > _MISSING_FROM)
    parts = np.ones(times.size, np.int64)
    parts[:-1][is_gap] = np.round(periods[is_gap])
    owner = np.repeat(np.arange(times.size), parts)
    within = np.arange(owner.size) - (np.cumsum(parts) - parts)[owner]
    steps = np.append(distances, 0.0) / parts
    return times[owner] + within * steps[owner], stretch[owner]


def _fill_gaps(
    anchors: npt.NDArray[np.float64], of_stretch: npt.NDArray[np.int64], n_samples: int, step: float
) -> PitchMarks:
    """Return all marks: the anchors, and even steps of about `step` samples wherever two neighbours are not of one
    stretch."""
    anchors = np.concatenate([[0.0], anchors, [float(n_samples)]])
    of_stretch = np.concatenate([[-1], of_stretch, [-2]])
    is_period = np.diff(of_stretch) == 0
    gaps = np.diff(anchors)
    parts = np.where(is_period, 1, np.maximum(1, np.round(gaps / step).astype(np.int64)))
    owner = np.repeat(np.arange(gaps.size), parts)
    within = np.arange(owner.size) - (np.cumsum(parts) - parts)[owner]
    times = anchors[owner] + within * (gaps / parts)[owner]
    is_onset = np.append((of_stretch[owner] <= -3) & (within == 0), False)
    return PitchMarks(np.append(times, float(n_samples)), is_period[owner], is_onset)


@cache
def _peak_filter() -> npt.NDArray[np.float32]:
    """Low-pass filter without delay, windowed sinc."""
    time_s = (np.arange(_PEAK_TAPS) - _PEAK_TAPS // 2) / RATE_HZ
    taps = np.sinc(2 * _PEAK_BAND_HZ * time_s) * np.hamming(_PEAK_TAPS)
    scaled: npt.NDArray[np.float32] = (taps / taps.sum()).astype(np.float32)
    return scaled
