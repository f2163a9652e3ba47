"""What every recogniser of speech is to the rest; built as `speech.encoders.contract` is for encoders.

Conventions: samples are int16, mono, shape (n,), at 16 kHz; a hypothesis is plain text as the model writes it, and
`evaluation.metrics.word_normalization` makes words of it that can be compared with a reference.
Long recordings come in chunks that a recogniser can hold. A cut through a word costs that word, so the cut is sought
where it is quietest in the last third of what a chunk may hold. All times in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from common.errors import MetricInputError
from speech.audio.files import is_silent

Samples = npt.NDArray[np.int16]
Device = Literal["cpu", "cuda"]


class Recognizer(Protocol):
    """A model that is ready to work. One instance serves one thread."""

    def transcribe(self, utterances: Sequence[Samples], rate_hz: int) -> list[str]:
        """What each utterance says; empty where nothing was understood.

        Raises:
            MetricInputError: the rate is not the model's.
        """


@dataclass(frozen=True)
class Engine:
    """A recogniser as the registry knows it; attributes as in `speech.encoders.contract.Engine`."""

    name: str
    version: str
    title: str
    description: str
    languages: tuple[str, ...]
    weights: tuple[str, ...]
    packages: tuple[str, ...]
    source: str
    licence: str
    load: Callable[[Device], Recognizer]

    @property
    def key(self) -> str:
        """Name and version, under which its hypotheses are kept."""
        return f"{self.name}@{self.version}"


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


def list_pieces(samples: Samples, longest_s: float) -> Iterator[Samples]:
    """As `cut_at_pauses`, without pieces that hold nothing; none of a recording that holds nothing."""
    if not holds_nothing(samples):
        yield from (piece for piece in cut_at_pauses(samples, longest_s) if not holds_nothing(piece))


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
