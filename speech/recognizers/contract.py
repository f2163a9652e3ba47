"""What every recogniser of speech is to the rest; built as `speech.encoders.contract` is for encoders.

Conventions: samples are int16, mono, shape (n,), at 16 kHz; a hypothesis is plain text as the model writes it, and
`evaluation.metrics.word_normalization` makes words of it that can be compared with a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from common.arrays import Samples
from common.errors import InputError
from speech.audio.files import is_silent

ENGLISH = "en"
CHINESE = {"cn": "zh"}  # as the plan of 2026 writes it
Device = Literal["cpu", "cuda"]


class Recognizer(Protocol):
    """A model that is ready to work. One instance serves one thread."""

    def transcribe(self, utterances: Sequence[Samples], rate_hz: int, language: str = ENGLISH) -> list[str]:
        """Return what each utterance says; empty where nothing was understood.

        Args:
            language: that is spoken, by its ISO 639 code, one of the engine's.

        Raises:
            InputError: the rate is not the model's, or it does not know the language.
        """


@dataclass(frozen=True)
class RecognizerEngine:
    """A recogniser as the registry knows it; attributes as in `speech.encoders.contract.EncoderEngine`."""

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

    def knows(self, language: str) -> bool:
        """Return whether it recognises a language."""
        return CHINESE.get(language, language) in self.languages

    def key_for(self, language: str) -> str:
        """Under which its hypotheses in a language are kept."""
        return self.key if language == ENGLISH else f"{self.key}+{language}"

    @property
    def key(self) -> str:
        """Name and version, under which its hypotheses are kept."""
        return f"{self.name}@{self.version}"


RATE_HZ = 16_000
SHORTEST_S = 0.1  # no word is shorter; models asked about less invent one


def check_rate(rate_hz: int, title: str) -> None:
    """All recognisers here were trained at one rate.

    Raises:
        InputError: another one.
    """
    if rate_hz != RATE_HZ:
        raise InputError(
            f"{title} was trained on speech at {RATE_HZ} Hz, found {rate_hz} Hz. Resample the recording first."
        )


def check_language(language: str, engine: RecognizerEngine) -> None:
    """Refuse a language that a recogniser does not know.

    Raises:
        InputError: names what it knows, and that there are others.
    """
    if not engine.knows(language):
        known = ", ".join(engine.languages[:8]) + (", …" if len(engine.languages) > 8 else "")
        raise InputError(
            f"{engine.title} recognises {known}; found the language “{language}”. Choose a recogniser that knows it, "
            "such as Whisper base."
        )


def holds_nothing(samples: Samples) -> bool:
    """Return whether there is nothing to recognise: less than 0.1 s, or digital silence."""
    return samples.size < SHORTEST_S * RATE_HZ or is_silent(samples)
