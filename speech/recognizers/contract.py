"""Long recordings in pieces that a recogniser can hold, cut where it is quietest.

A cut through a word costs that word, so the cut is sought in the last third of what a piece may hold. Conventions:
samples are int16, mono, shape (n,); all times in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.samples import is_silent
from evaluation.recognizers.contract import Samples

RATE_HZ = 16_000
SHORTEST_S = 0.1  # no word is shorter; models asked about less invent one
_STEP_S = 0.02
_PAUSE_STEPS = 10


def check_rate(rate_hz: int, title: str) -> None:
    """All recognisers here were trained at one rate.

    Raises:
        MetricInputError: another one.
    """
    if rate_hz != RATE_HZ:
        raise MetricInputError(
            f"{title} was trained on speech at {RATE_HZ} Hz, found {rate_hz} Hz. Resample the recording first."
        )


def holds_nothing(samples: Samples) -> bool:
    """Whether there is nothing to recognise: less than 0.1 s, or digital silence."""
    return samples.size < SHORTEST_S * RATE_HZ or is_silent(samples)


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


def _quietest(samples: Samples) -> int:
    """The middle of the 200 ms with the least energy, as a position in the samples."""
    step = round(_STEP_S * RATE_HZ)
    steps = samples[: samples.size // step * step].reshape(-1, step)
    energy = np.einsum("ij,ij->i", steps, steps, dtype=np.float64)
    if energy.size <= _PAUSE_STEPS:
        return samples.size
    sums = np.concatenate([[0.0], np.cumsum(energy)])
    pauses = sums[_PAUSE_STEPS:] - sums[:-_PAUSE_STEPS]
    return (int(pauses.argmin()) + _PAUSE_STEPS // 2) * step
