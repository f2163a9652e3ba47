"""Predicted naturalness: equal to the published code, right about what is plain, clear about what it lacks.

The golden values were made with the package speechmos 0.0.1.1 (``dnsmos.run`` on samples / 32768, librosa 0.11).
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from common.errors import InputError
from speech.audio.files import write_flac16
from speech.model_files.catalogue import MODEL_FILES
from speech.predictors import dnsmos
from speech.predictors.dnsmos import RATE_HZ, WINDOW, load_dnsmos, missing
from tests.recordings import read_demo

NOISE = np.round(np.random.default_rng(0).normal(size=1600) * 1000).astype(np.int16)
# signal, background, overall, P.808
PUBLISHED = (3.572888549679012, 4.0924821168463055, 3.292633254455327, 3.8848436)
PUBLISHED_NOISE = (1.2435902859875512, 1.153545926809361, 1.1108261907064065, 2.1933887004852295)


@pytest.fixture(scope="module")
def predictor():
    if sentence := missing():
        pytest.skip(sentence)
    return load_dnsmos()


@pytest.fixture(scope="module")
def of_noise(predictor):
    return predictor.predict(NOISE)


def values(predicted):
    return (predicted.signal, predicted.background, predicted.overall, predicted.p808)


def test_predictions_equal_the_published_code(predictor):
    assert values(predictor.predict(read_demo("d01-0001"))) == pytest.approx(PUBLISHED, abs=2e-3)


def test_a_tenth_of_a_second_of_noise_is_repeated_as_published_and_bad(of_noise):
    assert values(of_noise) == pytest.approx(PUBLISHED_NOISE, abs=2e-3)


def test_windows_are_those_of_the_published_code():
    # The end of a window, start + 9.01 s, falls a sample short in floating point where the start is 1 s, say.
    audio = np.arange(12 * RATE_HZ, dtype=np.int16)
    windows = np.concatenate(list(dnsmos._windows(audio)))
    expected = [i for i in range(int(12 - 9.01) + 1) if int((i + 9.01) * RATE_HZ) - i * RATE_HZ == WINDOW]
    assert [round(float(window[0] * 32768)) for window in windows] == [
        int(audio[start * RATE_HZ]) for start in expected
    ]
    assert windows.shape == (len(expected), WINDOW)


def test_features_are_level_below_the_maximum():
    tone = np.sin(2 * np.pi * 1000 * np.arange(WINDOW - 160) / RATE_HZ).astype(np.float32)
    features = dnsmos._log_mel(tone)
    assert features.shape == (900, 120)
    assert features.max() == pytest.approx(1.0)
    assert features.min() == pytest.approx(-1.0)
    assert np.allclose(dnsmos._log_mel(tone / 4)[5:-5], features[5:-5], atol=1e-3)
    assert np.ptp(features[5:-5].argmax(axis=1)) == 0


def test_silence_has_no_naturalness(predictor):
    samples = np.full(RATE_HZ, 9, np.int16)
    with pytest.raises(InputError, match=f"needs speech, found {samples.size} samples of silence"):
        predictor.predict(samples)


def test_a_splinter_has_no_naturalness(predictor):
    with pytest.raises(InputError, match=r"needs 0.1 s of speech or more, found 0\.0999 s"):
        predictor.predict(NOISE[:1_599])


def test_missing_weights_are_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    assert "models fetch dnsmos-p835" in missing()
    with pytest.raises(InputError, match="models fetch dnsmos-p835"):
        load_dnsmos()


def test_other_weights_of_the_same_length_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    for name in dnsmos.WEIGHTS:
        path = tmp_path / MODEL_FILES[name].path
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(MODEL_FILES[name].size_bytes))
    with pytest.raises(InputError, match="expected SHA-256"):
        load_dnsmos()


def test_the_command_labels_its_numbers_and_names_what_it_cannot_judge(
    shell, predictor, of_noise, tmp_path, monkeypatch
):
    known = SimpleNamespace(predict=lambda samples: of_noise if samples.any() else predictor.predict(samples))
    monkeypatch.setattr("evaluation.cli.naturalness.load_dnsmos", lambda _: known)
    write_flac16(tmp_path / "noise.flac", NOISE, RATE_HZ)
    write_flac16(tmp_path / "silence.flac", np.zeros(RATE_HZ, np.int16), RATE_HZ)
    answer = shell("naturalness", tmp_path, "--csv", tmp_path / "all.csv")
    assert answer.code == 1
    assert answer.out.count("Predicted") >= 5
    assert "silence.flac: DNSMOS needs speech" in answer.err
    header, row = (tmp_path / "all.csv").read_text().splitlines()
    assert header == "utterance,predicted_signal,predicted_background,predicted_overall,predicted_p808,windows"
    assert [float(cell) for cell in row.split(",")[1:5]] == pytest.approx(PUBLISHED_NOISE, abs=2e-3)
