"""Compiled inner loops of `psola`; importing this imports numba.

Conventions: as in `psola`; a signal is float32; grain and interval numbers are those of the arrays given.
"""

import math

import numpy as np
import numpy.typing as npt

from anonymization.methods._compiling import entry, inner

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# A grain this close to whole samples is taken as it is.
_WHOLE = 1e-6


@entry
def lay_out(
    marks: Doubles,
    is_voiced: Flags,
    is_attack: Flags,
    ratio: float,
    keep_formants: bool,
    times: Doubles,
    grains: Indices,
    turned: Flags,
    reach: Doubles,
) -> int:
    """Write the layout of `psola.lay_out`, or only count where the arrays are empty; how many grains it has.

    The grain at any time is that of the nearest mark; that of an attack comes once, at the time of the attack.
    """
    last = marks.size - 1
    end = marks[last]
    count, mark, time = 0, 0, 0.0
    before, time_before, is_turned = -1, -1.0, False
    while True:
        while mark < last and marks[mark + 1] - time < time - marks[mark]:
            mark += 1
            if is_attack[mark] and mark > before:
                break
        if mark == before and is_attack[mark]:
            mark += 1
        if is_attack[mark] and marks[mark] > time_before:
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
def _read(signal: Floats, place: float, direction: int, table: Floats, values: Floats) -> None:
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
    falling: Floats, rising: Floats, from_falling: float, to_rising: float, reach: float, output: Floats
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
def mix(
    signal: Floats, places: Doubles, turned: Flags, times: Doubles, reach: Doubles, table: Floats, output: Floats
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
