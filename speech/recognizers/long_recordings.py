"""Long recordings cut into pieces that a recogniser can hold.

A cut through a word costs that word, so it is sought where it is quietest in the last third of what a piece may hold.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from common.arrays import Samples
from speech.recognizers.contract import RATE_HZ, holds_nothing

_STEP_S = 0.02
_PAUSE_STEPS = 10


def cut_at_pauses(samples: Samples, longest_s: float) -> Iterator[Samples]:
    """Views of the recording, one after the other, none longer than `longest_s`; all together are the recording.

    Args:
        samples: int16 at 16 kHz, shape (n,).
        longest_s: above 0.1 s.
    """
    longest = round(longest_s * RATE_HZ)
    start = 0
    while samples.size - start > longest:
        earliest = start + longest - longest // 3
        end = earliest + _quietest(samples[earliest : start + longest])
        yield samples[start:end]
        start = end
    yield samples[start:]


def list_pieces(samples: Samples, longest_s: float) -> Iterator[Samples]:
    """As `cut_at_pauses`, without pieces that hold nothing; none of a recording that holds nothing."""
    if not holds_nothing(samples):
        yield from (piece for piece in cut_at_pauses(samples, longest_s) if not holds_nothing(piece))


def _quietest(samples: Samples) -> int:
    """Return the middle of the 200 ms with the least energy, as a position in the samples."""
    step = round(_STEP_S * RATE_HZ)
    steps = samples[: samples.size // step * step].reshape(-1, step)
    energy = np.einsum("ij,ij->i", steps, steps, dtype=np.float64)
    if energy.size <= _PAUSE_STEPS:
        return samples.size
    sums = np.concatenate([[0.0], np.cumsum(energy)])
    pauses = sums[_PAUSE_STEPS:] - sums[:-_PAUSE_STEPS]
    return (int(pauses.argmin()) + _PAUSE_STEPS // 2) * step
