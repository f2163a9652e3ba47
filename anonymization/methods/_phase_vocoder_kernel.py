"""Compiled inner loops of `phase_vocoder`; importing this imports numba.

Conventions: spectra are complex64, shape (frames, bins); signals are float32.
"""

import math

import numpy as np
import numpy.typing as npt

from anonymization.methods._compiling import entry, inner

Floats = npt.NDArray[np.float32]
Spectra = npt.NDArray[np.complex64]
Indices = npt.NDArray[np.int64]

# A product of two bins below this is no more than the rounding of silence.
_NOTHING = 1e-12


@inner
def _find_peaks(power: Floats, peaks: Indices) -> int:
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
def _valley(power: Floats, left: int, right: int) -> int:
    """The weakest bin between two peaks."""
    lowest = left
    for b in range(left, right):
        if power[b] < power[lowest]:
            lowest = b
    return lowest


@inner
def _turn(back_x: float, back_y: float, before_x: float, before_y: float) -> tuple[float, float]:
    """The turn from one complex number to another, of magnitude 1; none where one of them is next to nothing."""
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
        before[:] = row


@entry
def overlap_add(frames: Floats, start: int, hop: int, output: Floats) -> None:
    """Add frames, the first of which begins at sample `start`, to the output; what lies outside of it is left out."""
    for i in range(frames.shape[0]):
        first = start + i * hop
        row = frames[i]
        for k in range(max(0, -first), min(row.size, output.size - first)):
            output[first + k] += row[k]
