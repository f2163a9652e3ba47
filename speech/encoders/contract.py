"""What every encoder of speakers is to the rest: a description that costs nothing, and a model loaded when needed.

An `EncoderEngine` says what it is, where its weights come from and what it needs; `load` makes the `SpeakerEncoder`,
and is the only place that imports heavy libraries. Conventions: samples are int16, mono, shape (n,); vectors are
float32, shape (d,), not normalised; they are normalised when they are scored.
Every encoder first asks of an utterance the rate of the model, enough length, and some sound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from common.arrays import Samples
from common.errors import InputError
from speech.audio.files import is_silent

Vectors = npt.NDArray[np.float32]
Device = Literal["cpu", "cuda"]


class SpeakerEncoder(Protocol):
    """A model that is ready to work. One instance serves one thread."""

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """Return the vectors of some utterances, shape (n, d), float32; the same whatever else is in the batch.

        Raises:
            InputError: an utterance is too short or holds no speech, or the rate is not the model's; names its
                position in the batch and what was expected.
        """


@dataclass(frozen=True)
class EncoderEngine:
    """An encoder as the registry knows it.

    Attributes:
        name: as in commands, score folders and addresses, such as ``wespeaker-resnet34``.
        version: raised whenever the vectors change; part of the key under which they are kept.
        title: for people.
        description: what it is, trained on what, and what its numbers are worth, in one or two sentences.
        dimension: of a vector.
        weights: names in `speech.model_files.catalogue`; empty where it needs none.
        packages: what has to be importable.
        source: paper or project.
        licence: of the weights.
        load: makes the encoder for a device; to be called only where `explain_missing` says nothing.
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


RATE_HZ = 16_000


def unusable(position: int, total: int, expected: str, found: str) -> InputError:
    """Return the error of one utterance of a batch; `position` counts from 0, the sentence from 1."""
    return InputError(f"Utterance {position + 1} of {total}: expected {expected}, found {found}.")


def check_utterances(
    utterances: Sequence[Samples], rate_hz: int, *, shortest_samples: int, wanted_hz: int | None = RATE_HZ
) -> None:
    """Refuse what no model can judge.

    Args:
        utterances: int16, mono, each shape (n,).
        shortest_samples: that the model needs.
        wanted_hz: rate of the model; None for one that takes any.

    Raises:
        InputError: another rate; what was expected and found.
        InputError: an utterance of another shape or type, shorter than that, or silent throughout.
    """
    if wanted_hz not in (None, rate_hz):
        raise InputError(f"Expected speech at {wanted_hz} Hz, found {rate_hz} Hz; resample it first.")
    total = len(utterances)
    for position, samples in enumerate(utterances):
        if samples.ndim != 1 or samples.dtype != np.int16:
            found = f"{samples.dtype} of shape {samples.shape}"
            raise unusable(position, total, "int16 samples of one channel", found)
        if samples.size < shortest_samples:
            seconds, needed = samples.size / rate_hz, shortest_samples / rate_hz
            raise unusable(position, total, f"at least {needed:.3g} s", f"{seconds:.3g} s")
        if is_silent(samples):
            raise unusable(position, total, "speech", "silence throughout")
