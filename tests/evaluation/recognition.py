"""The pooled errors of a set, and a recogniser whose words a test decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.word_errors import WordErrorCounts, count_word_errors
from evaluation.metrics.word_normalization import WRITTEN_ENGLISH
from speech.audio.files import write_flac16

RATE = 16000


def pooled(references: dict[str, str], hypotheses: dict[str, str]) -> WordErrorCounts:
    """Errors of a set after the rule for written English."""
    plain = WRITTEN_ENGLISH.normalise
    return count_word_errors(
        {name: plain(text) for name, text in references.items()},
        {name: plain(text) for name, text in hypotheses.items()},
    ).honest


class Listener:
    """Says of each recording what it was told that a recording of that many samples says; counts what it hears."""

    def __init__(self, texts: dict[int, str]) -> None:
        self.texts, self.heard = texts, 0

    def transcribe(self, utterances: Sequence[NDArray[np.int16]], rate_hz: int, _language: str = "en") -> list[str]:
        assert rate_hz == RATE
        self.heard += len(utterances)
        return [self.texts[samples.size] for samples in utterances]


def write_noise(path: Path, samples: int, rate: int = RATE) -> None:
    """A recording of that many samples."""
    noise = np.random.default_rng(samples).integers(-3000, 3000, samples)
    write_flac16(path, noise.astype(np.int16), rate)
