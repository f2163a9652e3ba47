"""t04: voices are mixtures by gender and key; what is recognised is synthesised, and nothing else goes through."""

import numpy as np
import pytest

from anonymization.conformance import make_vowel
from anonymization.methods.contract import MethodError, PseudoSpeaker, VoiceRequest, keeps_duration, plans_voices
from anonymization.methods.recognize_and_speak import method as module
from common.errors import InputError
from speech.recognizers.contract import RATE_HZ
from speech.synthesizers import kokoro

T04, T11 = module.METHODS
KEYS = ["1" * 64, "2" * 64]
VOICE = PseudoSpeaker(KEYS[0], {}, mixture={"af_sky": 0.75, "bf_emma": 0.25})


class Words:
    """A recogniser that hears what it is told, and keeps how long each piece was."""

    def __init__(self, text):
        self.text, self.heard_s = text, []

    def transcribe(self, utterances, rate_hz):
        self.heard_s += [samples.size / rate_hz for samples in utterances]
        return [self.text for _ in utterances]


class Tones:
    """A synthesiser that gives a tenth of a second of a tone for each word."""

    def speak(self, text, mixture):
        assert mixture == VOICE.mixture
        return 0.3 * np.sin(np.arange(2400 * len(text.split())) / 5).astype(np.float32)


@pytest.fixture
def heard(monkeypatch):
    words = Words("one two three")
    monkeypatch.setattr(type(T04), "missing", lambda _: "")
    monkeypatch.setattr(module, "_recognizer", lambda *_: words)
    monkeypatch.setattr(kokoro, "shared", Tones)
    return words


def test_voices_are_mixtures_of_one_gender_that_follow_from_the_key():
    assert plans_voices(T04)
    assert not keeps_duration(T04)
    requests = [VoiceRequest(key, gender) for key in KEYS for gender in ("f", "m", "")]
    voices = T04.plan_voices(requests)
    assert voices == T04.plan_voices(requests)
    assert len({tuple(voice.mixture.items()) for voice in voices}) == len(voices)
    for voice, request in zip(voices, requests, strict=True):
        assert set(voice.mixture) <= set(kokoro.voices_of_gender(request.gender))
        assert sum(voice.mixture.values()) == pytest.approx(1.0, abs=1e-3)
        assert min(voice.mixture.values()) > 0
    assert (len(kokoro.voices_of_gender("f")), len(kokoro.voices_of_gender("m"))) == (15, 13)


def test_t11_mixes_three_voices_and_draws_them_towards_the_average():
    voices = T11.plan_voices([VoiceRequest(key, "f") for key in KEYS])
    assert voices == T11.plan_voices([VoiceRequest(key, "f") for key in KEYS])
    assert voices[0].mixture != voices[1].mixture
    for voice in voices:
        assert sorted(voice.mixture.values()) == pytest.approx([1 / 3] * 3, abs=0.3)
        assert sum(voice.mixture.values()) == pytest.approx(1.0, abs=1e-3)
    near, far = ([module.mix_with_average(voice.mixture, weight) for voice in voices] for weight in (0.25, 0.75))
    for one, other, weight in ((*near, 0.25), (*far, 0.75)):
        assert sum(one.values()) == pytest.approx(1.0)
        apart = sum(abs(one[name] - other[name]) for name in kokoro.VOICES)
        whole = sum(abs(voices[0].mixture.get(name, 0) - voices[1].mixture.get(name, 0)) for name in kokoro.VOICES)
        assert apart == pytest.approx((1 - weight) * whole, abs=1e-3)
    assert set(module.mix_with_average(voices[0].mixture, 1.0).values()) == {1 / 28}
    assert module.mix_with_average(voices[0].mixture, 0.0) == voices[0].mixture


def test_gender_that_nobody_says_is_heard_where_there_is_enough_speech():
    low, little = make_vowel(RATE_HZ, 3.0), make_vowel(RATE_HZ, 0.2)
    [told, heard, unknown] = T04.plan_voices(
        [
            VoiceRequest(KEYS[0], "m"),
            VoiceRequest(KEYS[0], "", (lambda: (low, RATE_HZ),)),
            VoiceRequest(KEYS[0], "", (lambda: (little, RATE_HZ),)),
        ]
    )
    assert heard == told
    assert {name[1] for name in unknown.mixture} == {"f", "m"}


def test_words_are_spoken_in_pieces_of_half_a_minute_at_the_level_of_the_original(heard):
    speech = np.tile(make_vowel(RATE_HZ, 1.0), 70)
    output = T04.anonymize(speech, RATE_HZ, VOICE)
    assert sum(heard.heard_s) == 70.0
    assert max(heard.heard_s) <= 30.0
    n = len(heard.heard_s)
    assert output.size == pytest.approx((0.3 * n + 0.3 * (n - 1)) * RATE_HZ, abs=2)
    assert np.abs(output).max() < 32767
    assert np.std(output) == pytest.approx(np.std(speech), rel=0.3)
    assert (T04.anonymize(speech, RATE_HZ, VOICE) == output).all()


def test_what_holds_no_word_becomes_silence_of_its_length(heard):
    heard.text = ""
    noise = np.random.default_rng(1).integers(-32768, 32768, 8000).astype(np.int16)
    for samples in (noise, np.zeros(16_000, np.int16), np.array([5], np.int16), np.zeros(0, np.int16)):
        output = T04.anonymize(samples, RATE_HZ, VOICE)
        assert (output.size, output.any()) == (samples.size, False)


@pytest.mark.parametrize(
    ("samples", "rate", "voice", "words"),
    [
        (np.zeros(800, np.int16), 8_000, VOICE, "16000 Hz; found 8000 Hz"),
        (np.zeros((800, 2), np.int16), RATE_HZ, VOICE, "mono"),
        (np.zeros(800, np.int16), RATE_HZ, PseudoSpeaker(KEYS[0], {}), "takes a voice that is a mixture"),
    ],
)
def test_what_it_cannot_use_is_refused_in_words(heard, samples, rate, voice, words):
    with pytest.raises(MethodError, match=words):
        T04.anonymize(samples, rate, voice)


def test_where_a_model_is_missing_it_says_so_and_gives_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    assert "models fetch" in T04.missing() or "pip install" in T04.missing()
    assert "models fetch kokoro-82m" in kokoro.missing() or "requirements/kokoro.txt" in kokoro.missing()
    with pytest.raises(MethodError, match=r"models fetch|pip install"):
        T04.anonymize(make_vowel(RATE_HZ, 0.2), RATE_HZ, VOICE)


# The synthesiser itself ------------------------------------------------------------------------------


def test_styles_are_mixed_and_follow_the_length():
    engine = object.__new__(kokoro.Kokoro)
    engine._styles = kokoro.read_styles()
    assert engine._styles.shape == (28, 28, 256)
    sky, emma = engine.style({"af_sky": 1.0}, 56), engine.style({"bf_emma": 2.0}, 56)
    assert np.allclose(engine.style({"af_sky": 0.75, "bf_emma": 0.25}, 56), 0.75 * sky + 0.25 * emma, atol=1e-6)
    assert np.allclose(engine.style({"af_sky": 1}, 62), (sky + engine.style({"af_sky": 1}, 68)) / 2, atol=1e-6)
    assert np.array_equal(engine.style({"af_sky": 1}, 510), engine.style({"af_sky": 1}, 900))
    for mixture in ({"zf_nobody": 1.0}, {}, {"af_sky": -1.0}, {"af_sky": float("nan")}):
        with pytest.raises(InputError, match=r"has no voice|has shares above 0"):
            engine.style(mixture, 10)


def test_long_texts_are_cut_behind_sentences_then_words():
    assert list(kokoro.cut_phonemes("aa bb. cc dd ee", 10)) == ["aa bb.", "cc dd ee"]
    assert list(kokoro.cut_phonemes("aa bb cc dd", 6)) == ["aa bb", "cc dd"]
    assert list(kokoro.cut_phonemes("a" * 25, 10)) == ["a" * 10, "a" * 10, "a" * 5]
    assert list(kokoro.cut_phonemes(" ?! ", 10)) == []


def test_a_word_is_spoken_the_same_each_time():
    if missing := kokoro.missing():
        pytest.skip(missing)
    engine = kokoro.shared()
    sound = engine.speak("Yes.", VOICE.mixture)
    assert 0.3 < sound.size / kokoro.RATE_HZ < 2.5
    assert 0.01 < np.abs(sound).max() < 1.5
    assert engine.speak(" … ", VOICE.mixture).size == 0
