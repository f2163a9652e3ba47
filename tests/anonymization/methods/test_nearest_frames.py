"""kNN-VC lite and private kNN-VC lite: voices of targets, level and silence; with their models, whose voice it is."""

import hashlib
import json

import numpy as np
import pytest

from anonymization.conformance import check_method, make_targets, make_vowel
from anonymization.methods import spectra
from anonymization.methods.content_decoder.network_files import verify_file
from anonymization.methods.contract import MethodError, Target, TargetPool
from anonymization.methods.nearest_frames import method as module
from anonymization.methods.voices.targets import pool_of_samples, target_voice
from common.problems import Severity

RATE = 16_000
KNN, _ = module.METHODS


class Tones:
    """A vocoder that gives each band a tone as strong as the spectrum says."""

    def synthesize(self, spectra):
        return [self._sound(np.repeat(np.exp(spectrum), 256, axis=0)) for spectrum in spectra]

    def _sound(self, strengths):
        time_s = np.arange(len(strengths)) / 22_050
        tones = np.sin(2 * np.pi * 85 * np.arange(1, 81) * time_s[:, None])
        return (0.5 * np.sum(strengths * tones, axis=1)).astype(np.float32)


@pytest.fixture
def light(monkeypatch):
    """The method with light models in place of its own."""
    pytest.importorskip("torch", reason="the spectra of the vocoder need torch, which is not installed here")
    from tests.speech.conversion.spectral_encoder import SpectralEncoder

    monkeypatch.setattr(type(KNN), "missing", lambda _: "")
    monkeypatch.setattr(module, "layers_encoder", SpectralEncoder)
    monkeypatch.setattr(spectra, "vocoder", Tones)
    return KNN.prepare(make_targets(RATE))


def test_method_keeps_the_contract(light):
    problems = check_method(light, speech=make_vowel(RATE, 0.5))
    assert [problem.sentence() for problem in problems if problem.severity is not Severity.NOTE] == []


def test_more_of_a_target_is_used_as_pool_s_says(light):
    reads = []

    def recording(number):
        def read():
            reads.append(number)
            return make_vowel(RATE)[: RATE // 2 * 2], RATE

        return read

    pool = TargetPool([Target("many", "f", tuple(recording(number) for number in range(20)))])
    seconds = make_vowel(RATE)[: RATE // 2 * 2].size / RATE
    KNN.prepare(pool).anonymize(make_vowel(RATE), RATE, target_voice("many"), options={"pool_s": 2.5 * seconds + 2})
    assert len(reads) == int(np.ceil((2.5 * seconds + 2) / seconds))


def test_frames_of_a_target_are_made_once_and_those_of_few_are_kept(light, monkeypatch):
    made = []
    make_pool = module.make_pool
    one = make_pool(make_vowel(RATE), module.layers_encoder())
    monkeypatch.setattr(module, "_MOST_KEPT", 3.3 * one.n_numbers)
    monkeypatch.setattr(module, "make_pool", lambda *given: made.append(1) or make_pool(*given))
    sounds = {name: make_vowel(RATE) for name in "abcd"}
    method = KNN.prepare(pool_of_samples(sounds, RATE))
    for name in "abcabcdbcda":
        method.anonymize(sounds["a"][:4000], RATE, target_voice(name))
    assert len(made) == 5
    assert [name for name, *_ in method._kept] == ["c", "d", "a"]


def test_a_target_with_hardly_any_speech_is_refused(light):
    method = KNN.prepare(pool_of_samples({"brief": make_vowel(RATE)[:4000]}, RATE))
    with pytest.raises(MethodError, match=r"target brief needs 1 s of speech; found 0\.25 s in 1 recording\."):
        method.anonymize(make_vowel(RATE), RATE, target_voice("brief"))


def test_a_recording_that_is_lost_is_named(light):
    def lost():
        raise OSError("no such file")

    method = KNN.prepare(TargetPool([Target("gone", "m", (lost,))]))
    with pytest.raises(MethodError, match="recording of the target gone cannot be read: no such file"):
        method.anonymize(make_vowel(RATE), RATE, target_voice("gone"))


def test_card_beside_the_phone_recogniser_that_ships_is_its_own():
    card = json.loads(module.PHONE_RECOGNIZER.with_name("card.json").read_text())
    weights = module.PHONE_RECOGNIZER.read_bytes()
    assert hashlib.sha256(weights).hexdigest() == module.SHA256 == card["sha256"]["weights.safetensors"]
    assert card["recipe"]["name"] == "phone-recognizer"
    assert "CC BY" in card["data"]["licence"]
    with pytest.raises(MethodError, match="not the file that ships"):
        verify_file(module.PHONE_RECOGNIZER, "0" * 64)


def test_samples_follow_the_frames_and_their_number_too():
    samples = np.arange(1, 1001, dtype=np.int16)  # three frames and a part
    assert np.array_equal(module._place_samples(samples, np.arange(4)), samples)
    longer = module._place_samples(samples, np.array([0, 0, 1, 2, 3, 3]))
    assert longer.size == 1640
    assert np.array_equal(longer[320:960], samples[:640])
    assert module._place_samples(samples, np.array([0, 2])).size == 360


def test_spectra_of_the_output_come_from_where_its_frames_come_from():
    pytest.importorskip("torch", reason="torch is not installed here")
    from speech.conversion.content_decoder import count_spectra, places_of_content

    count = count_spectra(100 * 320)
    same = module._find_spectra(places_of_content(count), np.arange(100), count)
    assert np.array_equal(same[:-1], np.arange(count - 1))
    doubled = module._find_spectra(places_of_content(2 * count), np.repeat(np.arange(100), 2), count)
    assert np.abs(doubled - np.arange(2 * count) / 2).max() <= 1.5
