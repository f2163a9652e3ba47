"""Every encoder of the registry keeps the contract; GE2E is that of its authors; what is missing is a sentence."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from speech.audio.files import read_pcm16
from speech.encoders import ge2e, registry, wespeaker
from tests.evaluation.engines import require_engine

CORPUS = Path(__file__).parents[3] / "demo" / "corpus"
UTTERANCE = CORPUS / "d01" / "d01-0001.flac"
NAMES = list(registry.engines())
RATE_HZ = 16_000


@cache
def encoder(name):
    return require_engine(name)


@cache
def speech(seconds=2.0):
    samples, rate = read_pcm16(UTTERANCE)
    assert rate == RATE_HZ
    return samples[: int(seconds * RATE_HZ)]


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_registry_names_the_default_first_and_each_engine_by_its_name():
    assert NAMES == ["wespeaker-resnet34", "ecapa-voxceleb", "ge2e", "long-term-spectrum"]
    assert NAMES[0] == registry.DEFAULT
    for name, engine in registry.engines().items():
        assert registry.find_engine(name) is engine
        assert engine.key == f"{name}@{engine.version}"
        assert all((engine.title, engine.description, engine.source, engine.licence))


@pytest.mark.parametrize("name", [name for name in NAMES if registry.find_engine(name).weights])
def test_engine_without_its_weights_says_so_and_gives_no_numbers(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    engine = registry.find_engine(name)
    if registry.explain_missing(dataclasses.replace(engine, weights=())):
        pytest.skip(registry.explain_missing(engine))
    sentence = registry.explain_missing(engine)
    assert f"is missing. Fetch it with “.venv/bin/vp models fetch {engine.weights[0]}”." in sentence
    with pytest.raises(InputError) as caught:
        registry.load(name)
    assert str(caught.value) == sentence
    with pytest.raises(InputError, match="is missing"):
        engine.load("cpu")


@pytest.mark.parametrize("name", NAMES)
def test_encoder_gives_one_vector_each_whatever_else_is_in_the_batch(name):
    assert encoder(name).embed([], RATE_HZ).shape == (0, registry.find_engine(name).dimension)
    with pytest.raises(InputError, match="8000 Hz"):
        encoder(name).embed([speech()], 8000)
    utterances = [speech(1.0), speech(2.0), speech(0.7), speech(2.0)]
    vectors = encoder(name).embed(utterances, RATE_HZ)
    assert vectors.shape == (4, registry.find_engine(name).dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    for position, samples in enumerate(utterances):
        (alone,) = encoder(name).embed([samples], RATE_HZ)
        np.testing.assert_allclose(vectors[position], alone, atol=1e-4 * np.abs(alone).max())
    assert cosine(vectors[0], vectors[1]) < 0.99999


@pytest.mark.parametrize("name", NAMES)
def test_encoder_names_the_utterance_that_it_cannot_use(name):
    short, silent, two_channels = np.ones(200), np.zeros(RATE_HZ), np.ones((2, RATE_HZ))
    for bad, words in ((short, "expected"), (silent, "silence"), (two_channels, r"shape \(2, 16000\)")):
        with pytest.raises(InputError, match=f"[Uu]tterance 2 of .*{words}"):
            encoder(name).embed([speech(), bad.astype(np.int16)], RATE_HZ)


@pytest.mark.parametrize("name", NAMES)
def test_graphics_card_that_is_not_there_is_a_sentence(name):
    encoder(name)
    if "torch" in registry.find_engine(name).packages:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("torch finds a graphics card here")
    elif name == "wespeaker-resnet34":
        onnxruntime = pytest.importorskip("onnxruntime")
        if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            pytest.skip("onnxruntime finds CUDA here")
    with pytest.raises(InputError, match="graphics card"):
        registry.load(name, "cuda")


def test_wespeaker_hears_a_long_utterance_in_equal_pieces(monkeypatch):
    encoder("wespeaker-resnet34")
    (whole,) = encoder("wespeaker-resnet34").embed([speech(3.0)], RATE_HZ)
    heard = []
    session = encoder("wespeaker-resnet34")._session

    class Listening:
        def run(self, outputs, inputs):
            (energies,) = inputs.values()
            heard.append(energies.shape)
            return session.run(outputs, inputs)

    monkeypatch.setattr(wespeaker, "LONGEST_FRAMES", 100)
    monkeypatch.setattr(encoder("wespeaker-resnet34"), "_session", Listening())
    (pieces,) = encoder("wespeaker-resnet34").embed([speech(3.0)], RATE_HZ)
    assert heard == [(1, 100, 80), (1, 99, 80), (1, 99, 80)]
    assert cosine(whole, pieces) > 0.8


# Resemblyzer 0.1.4 (librosa 0.11.0) on UTTERANCE: VoiceEncoder.embed_utterance(normalize_volume(wave, -30, True)).
GE2E_START = [0.00267764, 0, 0.03531, 0, 0, 0.00687913, 0, 0.145669, 0.00429815, 0, 0.0583335, 0.0840554]
GE2E_LARGEST = (199, 0.30263788)
# wav_to_mel_spectrogram of the same, frames 0, 100, 200 and bands 0, 7, 20, 39.
GE2E_MEL = [
    [2.3846e-10, 7.702e-10, 2.2546e-10, 2.1912e-10],
    [8.4415e-07, 1.9229e-05, 4.0902e-05, 0.00041898],
    [0.00014487, 0.00137, 0.036909, 1.943e-07],
]


def test_ge2e_is_the_network_of_its_authors():
    samples, _ = read_pcm16(UTTERANCE)
    vector = encoder("ge2e").embed_prepared(ge2e.raised(samples))
    np.testing.assert_allclose(vector[:12], GE2E_START, atol=2e-6)
    place, largest = GE2E_LARGEST
    assert int(vector.argmax()) == place
    assert float(vector[place]) == pytest.approx(largest, abs=2e-6)
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


def test_ge2e_bands_are_those_of_librosa():
    samples, _ = read_pcm16(UTTERANCE)
    bands = ge2e.mel_power(ge2e.raised(samples))
    assert bands.shape == (318, 40)
    np.testing.assert_allclose(bands[np.ix_((0, 100, 200), (0, 7, 20, 39))], GE2E_MEL, rtol=2e-3)


def test_ge2e_raises_quiet_speech_only():
    loud = speech()
    np.testing.assert_allclose(ge2e.raised(loud), loud / 32768, rtol=1e-6)
    quiet = ge2e.raised((loud // 64).astype(np.int16))
    assert 20 * np.log10(np.sqrt(np.mean(quiet.astype(float) ** 2))) == pytest.approx(-30, abs=0.01)


def test_ge2e_cuts_long_pauses_and_keeps_short_ones():
    wave = ge2e.raised(speech(2.0))
    pause = np.zeros(2 * RATE_HZ, np.float32)
    alone, padded = ge2e.without_long_pauses(wave), ge2e.without_long_pauses(np.concatenate([pause, wave, pause]))
    assert abs(padded.size - alone.size) <= 0.5 * RATE_HZ
    short = np.concatenate([wave, np.zeros(ge2e.VAD_SAMPLES * 3, np.float32), wave])
    assert ge2e.without_long_pauses(short).size >= 2 * alone.size


def test_ge2e_refuses_a_click_in_silence():
    click = np.zeros(RATE_HZ, np.int16)
    click[8000:8020] = 20_000
    with pytest.raises(InputError, match=r"Utterance 1 of 1: expected at least 0\.25 s of speech between pauses"):
        encoder("ge2e").embed([click], RATE_HZ)
