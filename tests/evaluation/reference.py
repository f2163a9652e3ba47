"""The shared reference values and speech, and the reason to skip where they are absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

SHARED = Path(__file__).resolve().parents[3] / "shared"
RATE = 16000

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the folder of reference values and speech, ../shared, is absent"
)


def load_json(name: str) -> Any:
    return json.loads((SHARED / "reference" / name).read_text())


def read_speech(utterance: str) -> NDArray[np.int16]:
    """Samples of a real utterance, int16 at 16 kHz."""
    path = next((SHARED / "speech").glob(f"*/*/{utterance}.flac"))
    samples, rate = soundfile.read(path, dtype="int16")
    assert rate == RATE
    return samples
