"""Real speech for benchmarks: utterances of LibriSpeech and VCTK by speaker, read from ``../shared/speech``."""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from common.arrays import Samples

SPEECH = Path("../shared/speech")
CORPORA = ("librispeech", "vctk")
RATE_HZ = 16_000


class Utterance(NamedTuple):
    name: str
    speaker: str
    gender: str
    corpus: str
    samples: Samples


@dataclass(frozen=True)
class Speech:
    """What is measured on, in the order of the speakers."""

    utterances: list[Utterance]

    def side(self, role: str) -> list[Utterance]:
        """Of each speaker with several utterances the first, third, … for enrolment, the others for trials."""
        by_speaker = self.by_speaker.values()
        return [each for own in by_speaker if len(own) > 1 for each in own[role == "trial" :: 2]]

    @property
    def by_speaker(self) -> dict[str, list[Utterance]]:
        found: dict[str, list[Utterance]] = defaultdict(list)
        for utterance in self.utterances:
            found[utterance.speaker].append(utterance)
        return found

    @property
    def duration_s(self) -> float:
        return sum(utterance.samples.size for utterance in self.utterances) / RATE_HZ


def read_speech(per_speaker: int) -> Speech:
    """So many utterances of each speaker, evenly from their list."""
    import soundfile

    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (SPEECH / "utterances.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["corpus"].startswith(CORPORA):
                rows[row["speaker"]].append(row)
    utterances = []
    for speaker, of_speaker in sorted(rows.items()):
        count = min(per_speaker, len(of_speaker))
        for row in (of_speaker[i * len(of_speaker) // count] for i in range(count)):
            samples, rate = soundfile.read(SPEECH / row["path"], dtype="int16")
            if rate != RATE_HZ:
                sys.exit(f"{row['path']}: expected {RATE_HZ} Hz, found {rate} Hz.")
            corpus = row["corpus"].split("-")[0]
            utterances.append(Utterance(row["utterance_id"], speaker, row["gender"], corpus, samples))
    return Speech(utterances)
