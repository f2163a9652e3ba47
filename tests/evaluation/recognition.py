"""Real utterances with their transcripts, and a recogniser whose words a test decides."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.word_errors import WordErrorCounts, count_word_errors
from evaluation.metrics.word_normalization import WRITTEN_ENGLISH
from speech.audio.files import write_flac16
from tests.evaluation.reference import SHARED

RATE = 16000


def spoken(corpus: str, number: int, longest_s: float = 8.0) -> dict[str, str]:
    """Transcripts of some utterances of a corpus of real speech, spread over its speakers, none long."""
    with (SHARED / "speech" / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            row for row in csv.DictReader(file) if row["corpus"] == corpus and float(row["duration_s"]) <= longest_s
        ]
    return {row["utterance_id"]: row["transcript"] for row in rows[:: max(1, len(rows) // number)][:number]}


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
