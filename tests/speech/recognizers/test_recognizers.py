"""Recognisers: near their measured error rates, steady, quiet where nothing is said, and clear about what they lack."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import packages
from common.errors import InputError
from speech.model_files.devices import load_where_it_can
from speech.recognizers import moonshine, whisper
from speech.recognizers.contract import RATE_HZ
from speech.recognizers.long_recordings import cut_at_pauses
from speech.recognizers.registry import engines, explain_missing, find_engine, load
from speech.recognizers.torchaudio_ctc import CtcRecognizer, best_path
from tests.evaluation.engines import require_recognizer
from tests.evaluation.recognition import pooled
from tests.recordings import first_of_each_speaker, read_demo

NOISE = np.random.default_rng(3).normal(0, 2000, 5 * RATE_HZ).astype(np.int16)


def spoken(number):
    """Transcripts of the first utterances of so many speakers."""
    return {row["utterance_id"]: row["transcript"] for row in first_of_each_speaker()[:number]}


@pytest.fixture(scope="module")
def light():
    return require_recognizer("moonshine-tiny")


@pytest.fixture(scope="module")
def better():
    return require_recognizer("whisper-base")


def test_the_light_recogniser_is_near_its_measured_rate(light):
    references = spoken(3)
    hypotheses = light.transcribe([read_demo(name) for name in references], RATE_HZ)
    rate = pooled(references, dict(zip(references, hypotheses, strict=True))).error_rate
    assert 0 < rate < 0.4


@pytest.mark.slow  # Whisper base on four recordings
def test_the_better_recogniser_is_near_its_measured_rate_and_asks_no_network(better, monkeypatch):
    def refused(*_args, **_options):
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "socket", refused)
    references = spoken(4)
    hypotheses = load("whisper-base").transcribe([read_demo(name) for name in references], RATE_HZ)
    assert pooled(references, dict(zip(references, hypotheses, strict=True))).error_rate < 0.4


@pytest.mark.parametrize(
    ("at_load", "sentence"),
    [
        (True, "CUDA failed with error out of memory"),
        (False, "Library libcublas.so.12 is not found or cannot be loaded"),
    ],
)
def test_the_better_recogniser_works_on_the_processor_where_the_card_fails(monkeypatch, caplog, at_load, sentence):
    """By doubles of the card and of the model: there is no card here. cuBLAS is looked for at the first piece only."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    faster_whisper = pytest.importorskip("faster_whisper")

    class Model:
        feature_extractor = faster_whisper.feature_extractor.FeatureExtractor()
        hf_tokenizer = SimpleNamespace(token_to_id=lambda _: 1)

        def __init__(self, _, *, device, **options):
            self.model = self
            assert options["compute_type"] == {"cuda": "float16", "cpu": "int8"}[device]
            if at_load and device == "cuda":
                raise RuntimeError(sentence)

        def generate(self, *_, **__):
            raise RuntimeError(sentence)

    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    monkeypatch.setattr(faster_whisper, "WhisperModel", Model)
    monkeypatch.setattr(whisper, "find", lambda _: Path("folder/model.bin"))
    with pytest.raises(InputError, match=f"“cuda”: {sentence}"):
        whisper.load("cuda")
    loaded = load_where_it_can(whisper.load, whisper.ENGINE.packages, whisper.ENGINE.title)
    assert loaded._device == "cpu"
    [line] = caplog.messages
    assert line.startswith("Whisper base works on the processor; the graphics card cannot be used: ")
    assert line.endswith(sentence)


def test_silence_and_splinters_say_nothing(light):
    silence = np.zeros(3 * RATE_HZ, np.int16)
    splinter = NOISE[: RATE_HZ // 20]
    assert light.transcribe([silence, splinter, NOISE[:0], silence + 3], RATE_HZ) == ["", "", "", ""]
    assert light.transcribe([], RATE_HZ) == []


def test_a_recording_is_cut_in_its_pause():
    speech = NOISE.repeat(2)
    pause = slice(7 * RATE_HZ, 7 * RATE_HZ + RATE_HZ // 2)
    speech[pause] = 0
    first, second = cut_at_pauses(speech, 9.0)
    assert pause.start < first.size < pause.stop
    assert np.array_equal(np.concatenate([first, second]), speech)


@given(st.integers(0, 50_000), st.floats(0.1, 1.0))
def test_pieces_are_the_recording(size, longest_s):
    samples = np.random.default_rng(size).integers(-99, 99, size).astype(np.int16)
    pieces = list(cut_at_pauses(samples, longest_s))
    assert np.array_equal(np.concatenate(pieces), samples)
    assert all(piece.size <= round(longest_s * RATE_HZ) for piece in pieces)


def test_missing_weights_are_a_sentence_and_no_words(tmp_path, monkeypatch):
    if packages.missing_packages("Whisper", "faster_whisper"):
        pytest.skip("faster-whisper is not installed")
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    sentence = explain_missing(find_engine("whisper-base"))
    assert str(tmp_path) not in sentence
    assert "models fetch whisper-base" in sentence
    with pytest.raises(InputError, match="models fetch whisper-base"):
        load("whisper-base")


def test_a_missing_package_is_a_sentence(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda _name: None)
    monkeypatch.setattr(moonshine, "find_spec", lambda _name: None)
    for engine in engines().values():
        assert "not installed here. Install" in explain_missing(engine)
        with pytest.raises(InputError, match="not installed here"):
            load(engine.name)


def test_a_model_that_was_not_measured_is_refused(tmp_path, monkeypatch):
    model = tmp_path / "assets" / "tiny-en"
    model.mkdir(parents=True)
    (tmp_path / "libmoonshine.so").touch()
    for name in moonshine.FILES:
        (model / name).write_text("another model")
    monkeypatch.setattr(moonshine, "package_folder", lambda: tmp_path)
    with pytest.raises(InputError, match=r"not the model that was measured: expected SHA-256 \w+, found"):
        load("moonshine-tiny")


def test_the_pipeline_of_torchaudio_is_never_made_of_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    monkeypatch.setattr(packages, "find_spec", lambda _name: object())
    sentence = explain_missing(find_engine("torchaudio-wav2vec2"))
    assert "WAV2VEC2_ASR_BASE_960H" in sentence
    assert str(tmp_path) in sentence
    with pytest.raises(InputError, match="which are missing"):
        load("torchaudio-wav2vec2")


LABELS = ("-", "|", "A", "B")


@pytest.mark.parametrize(
    ("path", "text"),
    [([], ""), ([2, 2, 2], "A"), ([2, 0, 2], "AA"), ([1, 2, 1, 1, 3, 1], "A B"), ([0, 2, 3, 0, 0, 1, 0], "AB")],
)
def test_the_best_path_merges_repetitions_and_drops_blanks(path, text):
    assert best_path(np.eye(4, dtype=np.float32)[path].reshape(-1, 4), LABELS) == text


def test_emissions_of_a_ctc_model_become_words():
    torch = pytest.importorskip("torch")

    def model(waveforms):
        assert waveforms.shape == (1, RATE_HZ)
        assert waveforms.abs().max() <= 1
        return torch.eye(4)[[2, 2, 0, 2, 1, 3]][None], None

    recognizer = CtcRecognizer(model, LABELS, "cpu")
    loud = NOISE[:RATE_HZ]
    assert recognizer.transcribe([loud, np.zeros_like(loud)], RATE_HZ) == ["AA B", ""]


def test_the_light_recogniser_starts_no_threads(light):
    """In a fresh process: other libraries of this one have threads of their own."""
    code = (
        "import os, numpy; from speech.recognizers.registry import load\n"
        "before = len(os.listdir('/proc/self/task')); light = load('moonshine-tiny')\n"
        "light.transcribe([numpy.zeros(16000, numpy.int16)], 16000)\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MOONSHINE_")}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert told.stdout.strip() == "0"


def test_recognisers_of_english_refuse_other_languages(light):
    assert [name for name, engine in engines().items() if engine.knows("de")] == ["whisper-base"]
    with pytest.raises(InputError, match="recognises en; found the language “de”"):
        light.transcribe([NOISE], RATE_HZ, "de")
