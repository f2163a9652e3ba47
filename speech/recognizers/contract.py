"""What every recogniser of speech is to the rest; built as `speech.encoders.contract` is for encoders.

Conventions: samples are int16, mono, shape (n,), at 16 kHz; a hypothesis is plain text as the model writes it, and
`evaluation.metrics.word_normalization` makes words of it that can be compared with a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
