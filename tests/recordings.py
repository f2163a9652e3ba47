"""Speech for tests: the demo corpus, and where the real speech lies that only `make test-slow` reads."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "demo" / "corpus"
# No clone has it: tests that read it are slow, and ask for it by the fixture `shared`.
SHARED = ROOT.parent / "shared"
RATE = 16000


def require_shared() -> Path:
    """Return the folder of real speech and large files beside the repository, or skip the slow test that reads it."""
    if not SHARED.is_dir():
        pytest.skip(f"the real speech and large files in {SHARED} are not here")
    return SHARED


def list_demo() -> list[dict[str, str]]:
    """The rows of the manifest of the demo corpus: five women and five men, twelve utterances each."""
    with (DEMO / "utterances.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def first_of_each_speaker(number: int = 1) -> list[dict[str, str]]:
    """The first rows of each speaker of the demo corpus, speaker after speaker."""
    return [row for row in list_demo() if int(row["utterance_id"].partition("-")[2]) <= number]


def read_demo(utterance: str) -> NDArray[np.int16]:
    """Samples of an utterance of the demo corpus, int16 at 16 kHz."""
    return read_samples(DEMO / utterance.partition("-")[0] / f"{utterance}.flac")


def read_samples(path: Path) -> NDArray[np.int16]:
    """Samples of a file of 16 kHz, int16."""
    samples, rate_hz = soundfile.read(path, dtype="int16")
    assert rate_hz == RATE
    return samples
