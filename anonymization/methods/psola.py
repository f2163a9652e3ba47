"""Pitch shifting by TD-PSOLA: grains around pitch marks are laid out anew, one period of the new voice apart.

Source: Moulines and Charpentier (1990), "Pitch-synchronous waveform processing techniques for text-to-speech synthesis
using diphones", Speech Communication 9. Ours are: grains placed between samples; two grains that overlap are mixed so
that their power is kept however alike they are; an unvoiced grain that is repeated is turned round, so that noise gets
no pitch.

Conventions: times are in samples of the utterance, fractional; grain i is the sound around mark i.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anonymization.methods.pitch_marks import PitchMarks, mark_pitch
from anonymization.methods.pitch_source import PitchSource

# Grains placed between samples are interpolated by a Kaiser-windowed sinc: so many taps, at so many places.
TAPS, PHASES = 16, 64
_KAISER_BETA = 6.0
_SAMPLES_PER_BLOCK = 1 << 19
_MARGIN_S = 0.05


class Layout(NamedTuple):
    """Which grain goes where.

    times: float64, shape (k,): when each grain is centred in the output, rising from 0 to the end or later.
    grains: int64, shape (k,): which mark it is taken from.
    turned: bool, shape (k,): whether it runs backwards.
    reach: float64, shape (k - 1,): how far the two grains of each interval reach into it.
    """

    times: npt.NDArray[np.float64]
    grains: npt.NDArray[np.int64]
    turned: npt.NDArray[np.bool_]
    reach: npt.NDArray[np.float64]


def shift_by_psola(source: PitchSource, ratio: float, *, keep_formants: bool = False) -> npt.NDArray[np.float32]:
    """The utterance with F0 times `ratio`, float32, shape (n,).

    keep_formants: grains are not resampled; unvoiced sound then stays as it is.
    """
    marks = mark_pitch(source.samples, source.rate)
    layout = lay_out(marks, ratio, keep_formants=keep_formants)
    return _render(source, marks, layout, 1.0 if keep_formants else ratio)


def lay_out(marks: PitchMarks, ratio: float, *, keep_formants: bool) -> Layout:
    """Place grains so that output and input stay at the same time while periods get shorter by `ratio`."""
    from anonymization.methods import _psola_kernel as kernel

    def lay(room: int) -> tuple[int, Layout]:
        layout = Layout(np.empty(room), np.empty(room, np.int64), np.empty(room, np.bool_), np.empty(room))
        return kernel.lay_out(marks.times, marks.is_voiced, marks.is_attack, ratio, keep_formants, *layout), layout

    room, _ = lay(0)
    _, layout = lay(room)
    return layout._replace(reach=layout.reach[:-1])


def _render(source: PitchSource, marks: PitchMarks, layout: Layout, speed: float) -> npt.NDArray[np.float32]:
    """Mix the grains of a layout, taken from the source played `speed` times as fast, block by block."""
    from anonymization.methods import _psola_kernel as kernel

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
        kernel.mix(
            part,
            places,
            layout.turned[first : last + 1],
            layout.times[first : last + 1],
            layout.reach[first:last],
            interpolation_table(),
            output,
        )
    return output


@cache
def interpolation_table() -> npt.NDArray[np.float32]:
    """Filters that read a signal p / PHASES of a sample after tap TAPS / 2 - 1, shape (PHASES, TAPS), each of sum 1."""
    offsets = np.arange(TAPS) - (TAPS // 2 - 1)
    distance = offsets - np.arange(PHASES)[:, np.newaxis] / PHASES
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (distance / (TAPS // 2)) ** 2, 0, None)))
    table = np.sinc(distance) * window
    filters: npt.NDArray[np.float32] = (table / table.sum(axis=1, keepdims=True)).astype(np.float32)
    return filters
