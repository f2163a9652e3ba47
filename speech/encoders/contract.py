"""What every encoder of speakers is to the rest: a description that costs nothing, and a model loaded when needed.

An `Engine` says what it is, where its weights come from and what it needs; `load` makes the `SpeakerEncoder`, and is
the only place that imports heavy libraries. Conventions: samples are int16, mono, shape (n,); vectors float32, shape
(d,), not normalised; whoever scores them normalises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.int16]
Vectors = npt.NDArray[np.float32]
Device = Literal["cpu", "cuda"]


class SpeakerEncoder(Protocol):
    """A model that is ready to work. One instance serves one thread."""

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """The vectors of some utterances, shape (n, d), float32; the same whatever else is in the batch.

        Raises:
            MetricInputError: an utterance is too short or holds no speech, or the rate is not the model's; names its
                position in the batch and what was expected.
        """


@dataclass(frozen=True)
class Engine:
    """An encoder as the registry knows it.

    Attributes:
        name: as in commands, score folders and addresses, such as ``wespeaker-resnet34``.
        version: raised whenever the vectors change; part of the key under which they are kept.
        title: for people.
        description: what it is, trained on what, and what its numbers are worth, in one or two sentences.
        dimension: of a vector.
        weights: names in `evaluation.weights.catalogue`; empty where it needs none.
        packages: what has to be importable.
        source: paper or project.
        licence: of the weights.
        load: makes the encoder for a device; to be called only where `missing_of` says nothing.
    """

    name: str
    version: str
    title: str
    description: str
    dimension: int
    weights: tuple[str, ...]
    packages: tuple[str, ...]
    source: str
    licence: str
    load: Callable[[Device], SpeakerEncoder]

    @property
    def key(self) -> str:
        """Name and version, under which its vectors are kept."""
        return f"{self.name}@{self.version}"
