"""ECAPA-TDNN with the published weights: the vectors of SpeechBrain's own code, and speakers are distinguished."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from speech.encoders.ecapa_voxceleb import ENGINE
from speech.model_files.catalogue import MODEL_FILES
from tests.evaluation.engines import require_engine
from tests.recordings import RATE

NAME = "ecapa-voxceleb"
# First numbers and length of the vector of `chirps`, computed once with speechbrain 1.0.3 (STFT, Filterbank,
# InputNormalization and ECAPA_TDNN) and the same weights.
SPEECHBRAIN_VECTOR = [40.081, 34.060, -3.489, 15.299, -6.576, -1.860, -5.812, 35.346]
SPEECHBRAIN_LENGTH = 351.270


def chirps() -> np.ndarray:
    """1.5 s of rising tones, int16: any sound serves to compare two implementations."""
    time = np.arange(24_000) / RATE
    voice = 8000 * np.sin(2 * np.pi * (110 * time + 40 * time**2)) * (1 + 0.5 * np.sin(2 * np.pi * 4 * time))
    rest = 3000 * np.sin(2 * np.pi * 1730 * time) + 1000 * np.sin(2 * np.pi * 2900 * time * time)
    return np.round(voice + rest).astype(np.int16)


def test_the_vectors_are_those_of_speechbrain():
    vector = require_engine(NAME).embed([chirps()], RATE)[0]
    assert vector.shape == (192,)
    assert np.linalg.norm(vector) == pytest.approx(SPEECHBRAIN_LENGTH, rel=1e-3)
    np.testing.assert_allclose(vector[:8], SPEECHBRAIN_VECTOR, atol=0.05)


def test_speech_at_another_rate_silence_and_scraps_are_refused():
    encoder = require_engine(NAME)
    with pytest.raises(InputError, match="16000 Hz, found 8000 Hz"):
        encoder.embed([chirps()], 8_000)
    with pytest.raises(InputError, match=r"Utterance 2 of 2: expected at least 0\.1 s"):
        encoder.embed([chirps(), chirps()[:100]], RATE)
    with pytest.raises(InputError, match="silence"):
        encoder.embed([np.zeros(16_000, np.int16)], RATE)


def test_without_the_published_weights_there_is_no_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("torch", reason="this encoder needs torch, which is not installed here")
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    with pytest.raises(InputError, match="models fetch"):
        ENGINE.load("cpu")
    path = tmp_path / MODEL_FILES[NAME].path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"other weights")
    with pytest.raises(InputError, match=r"embedding_model\.ckpt|models fetch"):
        ENGINE.load("cpu")
