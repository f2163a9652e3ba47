"""Compiled inner loops of `autocorrelation` and of pitch marks.

Conventions: times are in samples of the tracking signal unless their name says otherwise; F0 in hertz, 0 is unvoiced.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from common.arrays import Floats, Floats32
from common.numba_loops import entry, inner

Indices = npt.NDArray[np.int64]


@entry
def find_candidates(
    correlation: Floats32,
    rate: float,
    floor: float,
    ceiling: float,
    octave_cost: float,
    hz: Floats32,
    strength: Floats32,
) -> None:
    """Write the strongest peaks of each frame's autocorrelation into columns 1 … of `hz` and `strength`.

    Strength is the height less `octave_cost` for every octave below the ceiling (Boersma 1993, equation 24).
    """
    frames, lags = correlation.shape
    columns = hz.shape[1]
    for i in range(frames):
        row = correlation[i]
        for lag in range(max(2, int(rate / ceiling)), lags - 1):
            left, here, right = row[lag - 1], row[lag], row[lag + 1]
            if here <= left or here < right or here <= 0.2:
                continue
            bend = 2.0 * here - left - right
            shift = 0.5 * (right - left) / bend
            frequency = rate / (lag + shift)
            if frequency < floor or frequency > ceiling:
                continue
            height = min(1.0, here + 0.25 * (right - left) * shift)
            value = height - octave_cost * math.log2(ceiling / frequency)
            weakest = 1
            for c in range(2, columns):
                if strength[i, c] < strength[i, weakest]:
                    weakest = c
            if value > strength[i, weakest]:
                strength[i, weakest] = value
                hz[i, weakest] = frequency


@entry
def cheapest_path(hz: Floats32, strength: Floats32, octave_jump_cost: float, voicing_change_cost: float) -> Indices:
    """Return the column of every frame on the path of most strength less the costs of changes (Viterbi)."""
    frames, columns = hz.shape
    best = np.empty(columns)
    fresh = np.empty(columns)
    back = np.zeros((frames, columns), np.int8)
    octaves = np.zeros((2, columns))
    for c in range(columns):
        best[c] = strength[0, c]
        octaves[0, c] = math.log2(hz[0, c]) if hz[0, c] > 0.0 else 0.0
    for i in range(1, frames):
        old, new = octaves[(i - 1) % 2], octaves[i % 2]
        for c in range(columns):
            new[c] = math.log2(hz[i, c]) if hz[i, c] > 0.0 else 0.0
            fresh[c] = -np.inf
            if c > 0 and hz[i, c] == 0.0:
                continue
            for p in range(columns):
                if p > 0 and hz[i - 1, p] == 0.0:
                    continue
                cost = 0.0
                if (p == 0) != (c == 0):
                    cost = voicing_change_cost
                elif c > 0:
                    cost = octave_jump_cost * abs(new[c] - old[p])
                if best[p] - cost > fresh[c]:
                    fresh[c] = best[p] - cost
                    back[i, c] = p
            fresh[c] += strength[i, c]
        for c in range(columns):
            best[c] = fresh[c]
    path = np.empty(frames, np.int64)
    column = int(np.argmax(best))
    for i in range(frames - 1, -1, -1):
        path[i] = column
        column = back[i, column]
    return path


@entry
def cube_sum(signal: Floats32) -> float:
    """Sum of the cubed samples: its sign is that of the sharper peaks."""
    total = 0.0
    for value in signal:
        total += float(value) ** 3
    return total


@inner
def _likeness(signal: Floats32, first: int, second: int, reach: int) -> float:
    """Return normalised correlation of the signal around two places, `reach` samples to either side."""
    cross, energy_first, energy_second = 0.0, 0.0, 0.0
    for k in range(-reach, reach + 1):
        a, b = first + k, second + k
        if a < 0 or b >= signal.size:
            continue
        cross += signal[a] * signal[b]
        energy_first += signal[a] * signal[a]
        energy_second += signal[b] * signal[b]
    product = energy_first * energy_second
    return cross / math.sqrt(product) if product > 0.0 else 0.0


@inner
def _find_peaks(signal: Floats32, polarity: float, start: int, stop: int, peaks: Indices) -> int:
    """Write the places of the local maxima above zero; how many there are."""
    count = 0
    for t in range(max(1, start), min(stop, signal.size - 1)):
        here = polarity * signal[t]
        if here > 0.0 and here > polarity * signal[t - 1] and here >= polarity * signal[t + 1]:
            peaks[count] = t
            count += 1
    return count


@inner
def _summit(signal: Floats32, polarity: float, centre: int, reach: int) -> float:
    highest = 0.0
    for t in range(max(0, centre - reach), min(signal.size, centre + reach + 1)):
        highest = max(highest, polarity * signal[t])
    return highest


@inner
def _period(periods: Floats32, first_frame: int, last_frame: int, step: int, time: float) -> float:
    """Period at a time, linear between the frames of a voiced stretch."""
    place = time / step
    left = min(max(int(place), first_frame), last_frame)
    right = min(left + 1, last_frame)
    part = min(max(place - left, 0.0), 1.0)
    return float((1.0 - part) * periods[left] + part * periods[right])


@inner
def _cheapest_chain(
    narrow: Floats32,
    wide: Floats32,
    polarity: float,
    peaks: Indices,
    period: Floats,
    costs: Floats,
    edges: Floats,
    back: Indices,
) -> int:
    """Chain peaks one period apart; index of the last peak of the cheapest chain, predecessors in `back`.

    Costs count for each period of time they cover, so that chains of more and of fewer marks compare: `costs` are for
    a distance that is not the period (by squared octaves), waveforms that differ, and peaks below their neighbours;
    and for each period at the edges of the stretch that no mark covers.
    """
    count = peaks.size
    total = np.empty(count)
    lowness = np.empty(count)
    best, end = np.inf, 0
    for i in range(count):
        reach = int(0.6 * period[i])
        summit = _summit(narrow, polarity, peaks[i], reach)
        lowness[i] = 1.0 - polarity * narrow[peaks[i]] / summit
        total[i] = costs[3] * (peaks[i] - edges[0]) / period[i] + costs[2] * lowness[i]
        back[i] = -1
        for j in range(i - 1, -1, -1):
            distance = (peaks[i] - peaks[j]) / (0.5 * (period[i] + period[j]))
            if distance < 0.6:
                continue
            if distance > 2.6:
                break
            octaves = math.log2(distance)
            unlike = 1.0 - _likeness(wide, peaks[j], peaks[i], int(0.5 * period[i]))
            cost = costs[0] * octaves * octaves + costs[1] * unlike + costs[2] * lowness[i]
            if total[j] + distance * cost < total[i]:
                total[i] = total[j] + distance * cost
                back[i] = j
        whole = total[i] + costs[3] * (edges[1] - peaks[i]) / period[i]
        if whole < best:
            best, end = whole, i
    return end


@inner
def _refine(signal: Floats32, polarity: float, peak: int) -> float:
    """Return the summit of the parabola through a peak and its neighbours."""
    left, here, right = polarity * signal[peak - 1], polarity * signal[peak], polarity * signal[peak + 1]
    bend = 2.0 * here - left - right
    return peak + (0.5 * (right - left) / bend if bend > 0.0 else 0.0)


@entry
def mark_stretches(
    narrow: Floats32,
    wide: Floats32,
    polarity: float,
    hz: Floats32,
    runs: Indices,
    step: int,
    rate: float,
    costs: Floats,
    marks: Floats,
    stretch: Indices,
) -> int:
    """Write the marks of all voiced stretches and which stretch each is of; how many marks there are."""
    written = 0
    periods = np.empty(hz.size, np.float32)
    for i in range(hz.size):
        periods[i] = rate / hz[i] if hz[i] > 0.0 else 0.0
    for s in range(runs.shape[0]):
        first, last = runs[s, 0], runs[s, 1] - 1
        edges = np.array([first * step - 0.5 * step, last * step + 0.5 * step])
        start, stop = max(0, int(edges[0])), min(narrow.size, int(edges[1]) + 1)
        peaks = np.empty(max(0, stop - start) // 2 + 2, np.int64)
        count = _find_peaks(narrow, polarity, start, stop, peaks)
        if count == 0:
            continue
        peaks = peaks[:count]
        period = np.empty(count)
        for i in range(count):
            period[i] = _period(periods, first, last, step, float(peaks[i]))
        back = np.empty(count, np.int64)
        end = _cheapest_chain(narrow, wide, polarity, peaks, period, costs, edges, back)
        length = 0
        i = end
        while i >= 0:
            length += 1
            i = back[i]
        i = end
        for k in range(length - 1, -1, -1):
            marks[written + k] = _refine(narrow, polarity, peaks[i])
            stretch[written + k] = s
            i = back[i]
        written += length
    return written
