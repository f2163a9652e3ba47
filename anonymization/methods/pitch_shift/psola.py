"""Pitch shifting by TD-PSOLA: grains around pitch marks are laid out again, one period of the new voice apart.

Source: Moulines and Charpentier (1990), "Pitch-synchronous waveform processing techniques for text-to-speech synthesis
using diphones", Speech Communication 9. Ours are: grains placed between samples; two grains that overlap are mixed so
that their power is kept however alike they are; an unvoiced grain that is repeated is turned round, so that noise gets
no pitch.

Conventions: times are in samples of the utterance, fractional; grain i is the sound around mark i.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anonymization.methods.pitch_shift.marks import PitchMarks, PitchSource, mark_pitch
from common.arrays import Flags, Floats, Floats32
from common.numba_loops import entry, inner

Indices = npt.NDArray[np.int64]

# Grains placed between samples are interpolated by a Kaiser-windowed sinc: so many taps, at so many places.
TAPS, PHASES = 16, 64
_KAISER_BETA = 6.0
_SAMPLES_PER_BLOCK = 1 << 19
_MARGIN_S = 0.05
# A grain this close to whole samples is taken as it is.
_WHOLE = 1e-6


class GrainLayout(NamedTuple):
    """Which grain goes where.

    times: float64, shape (k,): when each grain is centred in the output, rising from 0 to the end or later.
    grains: int64, shape (k,): which mark it is taken from.
    turned: bool, shape (k,): whether it runs backwards.
    reach: float64, shape (k - 1,): how far the two grains of each interval reach into it.
    """

    times: Floats
    grains: Indices
    turned: Flags
    reach: Floats


def shift_by_psola(source: PitchSource, ratio: float, *, keep_formants: bool = False) -> Floats32:
    """Return the utterance with F0 times `ratio`, float32, shape (n,).

    keep_formants: grains are not resampled; unvoiced sound then stays as it is.
    """
    marks = mark_pitch(source.samples, source.rate)
    layout = lay_out(marks, ratio, keep_formants=keep_formants)
    return _render(source, marks, layout, 1.0 if keep_formants else ratio)


def lay_out(marks: PitchMarks, ratio: float, *, keep_formants: bool) -> GrainLayout:
    """Place grains so that output and input stay at the same time while periods get shorter by `ratio`."""

    def lay(room: int) -> tuple[int, GrainLayout]:
        layout = GrainLayout(np.empty(room), np.empty(room, np.int64), np.empty(room, np.bool_), np.empty(room))
        return _lay_grains(marks.times, marks.is_voiced, marks.is_onset, ratio, keep_formants, *layout), layout

    room, _ = lay(0)
    _, layout = lay(room)
    return layout._replace(reach=layout.reach[:-1])


def _render(source: PitchSource, marks: PitchMarks, layout: GrainLayout, speed: float) -> Floats32:
    """Mix the grains of a layout, taken from the source played `speed` times as fast, block by block."""
    output = np.zeros(source.samples.size, np.float32)
    intervals = layout.times.size - 1
    ends = np.arange(_SAMPLES_PER_BLOCK, output.size, _SAMPLES_PER_BLOCK)
    bounds = np.concatenate([[0], np.searchsorted(layout.times[:-1], ends), [intervals]])
    margin = round(_MARGIN_S * source.rate)
    for first, last in pairwise(bounds.tolist()):
        if first == last:
            continue
        centres = marks.times[layout.grains[first : last + 1]]
        start, stop = int(centres.min()) - margin, int(centres.max()) + margin
        part, origin = source.part(start, stop, speed)
        places = (centres - start) / speed + origin
        _mix(
            part,
            places,
            layout.turned[first : last + 1],
            layout.times[first : last + 1],
            layout.reach[first:last],
            make_interpolation_table(),
            output,
        )
    return output


@cache
def make_interpolation_table() -> Floats32:
    """Filters that read a signal p / PHASES of a sample after tap TAPS / 2 - 1, shape (PHASES, TAPS), each of sum 1."""
    offsets = np.arange(TAPS) - (TAPS // 2 - 1)
    distance = offsets - np.arange(PHASES)[:, np.newaxis] / PHASES
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (distance / (TAPS // 2)) ** 2, 0, None)))
    table = np.sinc(distance) * window
    filters: Floats32 = (table / table.sum(axis=1, keepdims=True)).astype(np.float32)
    return filters


# Loops over grains and samples -----------------------------------------------------------------------


@entry
def _lay_grains(
    marks: Floats,
    is_voiced: Flags,
    is_onset: Flags,
    ratio: float,
    keep_formants: bool,
    times: Floats,
    grains: Indices,
    turned: Flags,
    reach: Floats,
) -> int:
    """Write the layout of `lay_out`, or only count where the arrays are empty; how many grains it has.

    The grain at any time is that of the nearest mark; that of an onset comes once, at the time of the onset.
    """
    last = marks.size - 1
    end = marks[last]
    count, mark, time = 0, 0, 0.0
    before, time_before, is_turned = -1, -1.0, False
    while True:
        while mark < last and marks[mark + 1] - time < time - marks[mark]:
            mark += 1
            if is_onset[mark] and mark > before:
                break
        if mark == before and is_onset[mark]:
            mark += 1
        if is_onset[mark] and marks[mark] > time_before:
            time = marks[mark]
            if times.size > 0:
                reach[count - 1] = time - time_before
        interval = min(mark, last - 1)
        is_noise = not is_voiced[interval] and not is_voiced[max(0, mark - 1)]
        is_turned = is_noise and mark == before and not is_turned
        before, time_before = mark, time
        if times.size > 0:
            times[count], grains[count], turned[count] = time, mark, is_turned
        count += 1
        if time >= end:
            return count
        length = marks[interval + 1] - marks[interval]
        step = length / ratio if not keep_formants or is_voiced[interval] else length
        if times.size > 0:
            # Where periods get longer, a grain ends before the next pulse of its source.
            reach[count - 1] = min(step, length) if keep_formants else step
        time += step


@inner
def _read(signal: Floats32, place: float, direction: int, table: Floats32, values: Floats32) -> None:
    """Write the signal from a place between samples on, forwards or backwards; zero outside of the signal."""
    phases, taps = table.shape
    first = math.floor(place + 0.5 / phases)
    phase = max(0, int((place - first) * phases + 0.5))
    if abs(place - math.floor(place + 0.5)) < _WHOLE:
        first, phase = math.floor(place + 0.5), 0
    filter_ = table[phase]
    for k in range(values.size):
        centre = first + direction * k
        if phase == 0:
            values[k] = signal[centre] if 0 <= centre < signal.size else np.float32(0.0)
            continue
        start = centre - (taps // 2 - 1)
        total = np.float32(0.0)
        if start >= 0 and start + taps <= signal.size:
            for t in range(taps):
                total += filter_[t] * signal[start + t]
        values[k] = total


@inner
def _mix_two(
    falling: Floats32, rising: Floats32, from_falling: float, to_rising: float, reach: float, output: Floats32
) -> None:
    """Fade from one grain to another, of the power that they would have were they alike.

    from_falling: time of the first sample after the centre of the falling grain; to_rising: the same before that of
    the rising one.
    """
    cross, energy_falling, energy_rising = 0.0, 0.0, 0.0
    for k in range(output.size):
        cross += falling[k] * rising[k]
        energy_falling += falling[k] * falling[k]
        energy_rising += rising[k] * rising[k]
    product = energy_falling * energy_rising
    likeness = min(1.0, max(0.0, cross / math.sqrt(product))) if product > 0.0 else 1.0
    for k in range(output.size):
        down = 0.5 + 0.5 * math.cos(math.pi * min(1.0, (from_falling + k) / reach))
        up = 0.5 + 0.5 * math.cos(math.pi * min(1.0, (to_rising - k) / reach))
        loss = 2.0 * (1.0 - likeness) * down * up
        total = (down + up) * (down + up)
        gain = math.sqrt(total / (total - loss)) if total > loss else 1.0
        output[k] = gain * (down * falling[k] + up * rising[k])


@entry
def _mix(
    signal: Floats32, places: Floats, turned: Flags, times: Floats, reach: Floats, table: Floats32, output: Floats32
) -> None:
    """Write the samples between the first and the last of `times`.

    signal: what grains are taken from; places: their centres in it.
    """
    for i in range(reach.size):
        start, stop = math.ceil(times[i]), min(output.size, math.ceil(times[i + 1]))
        if stop <= start:
            continue
        falling = np.empty(stop - start, np.float32)
        rising = np.empty(stop - start, np.float32)
        direction = -1 if turned[i] else 1
        _read(signal, places[i] + direction * (start - times[i]), direction, table, falling)
        direction = -1 if turned[i + 1] else 1
        _read(signal, places[i + 1] + direction * (start - times[i + 1]), direction, table, rising)
        _mix_two(falling, rising, start - times[i], times[i + 1] - start, reach[i], output[start:stop])
