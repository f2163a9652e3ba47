"""ASR-BN, B1, T18, OHNN and T40 lite: how voices are planned and F0 is moved; with their models, whose voice it is."""

import numpy as np
import pytest

from anonymization.conformance import make_vowel
from anonymization.methods.content_decoder import contours, network_files
from anonymization.methods.content_decoder import method as module
from anonymization.methods.content_decoder.noise import add_noise
from anonymization.methods.content_decoder.reflections import fit_reflections
from anonymization.methods.contract import MethodError, PseudoSpeaker, VoiceRequest, makes_vectors, plans_voices
from anonymization.methods.voices.vectors import read_vector, write_vector

pytest.importorskip("safetensors", reason="the pool is a file of safetensors, which is not installed here")

RATE = 16_000
BY_NAME = {method.name: method for method in module.METHODS}
CODES, POOL, NOISE, MAPPED, ESTIMATED, EXPECTED = (
    BY_NAME[name] for name in ("asr-bn", "b1-lite", "t18-noise", "ohnn", "t40", "t18-asr")
)
UNITS, BY_WORLD = BY_NAME["ssl-content"], BY_NAME["b1-world"]


def request(number, gender="f", *recordings):
    return VoiceRequest(f"{number:064x}", gender, recordings)


@pytest.fixture
def own_vector(monkeypatch):
    """The speaker is the first woman of the pool."""
    pool = network_files.read_pool()
    first = pool.genders.index("f")
    monkeypatch.setattr(module, "_own_vector", lambda recordings: pool.vectors[first] if recordings else None)
    return pool.vectors[first]


def test_pooled_voice_is_of_the_farther_half_of_the_own_gender(own_vector):
    pool = network_files.read_pool()
    [voice] = POOL.plan_voices([request(1, "f", lambda: None)])
    rows = [pool.names.index(name) for name in voice.mixture]
    women = [row for row, gender in enumerate(pool.genders) if gender == "f"]
    nearness = {row: pool.vectors[row] @ own_vector for row in women}
    assert len(rows) == 40
    assert set(rows) <= set(sorted(women, key=nearness.get)[: len(women) // 2])
    assert sum(voice.mixture.values()) == pytest.approx(1)


@pytest.mark.parametrize("method", [CODES, POOL, UNITS])
def test_voices_follow_from_their_keys(method, own_vector):
    assert plans_voices(method)
    requests = [request(number) for number in range(12)]
    voices = method.plan_voices(requests)
    assert method.plan_voices(requests) == voices
    assert len({tuple(voice.mixture) for voice in voices}) > 9


def test_voice_for_world_lies_twice_as_far_from_the_mean_of_its_gender():
    pool = network_files.read_pool()
    voice = BY_WORLD.plan_voices([request(1, "m")])[0]
    assert len(voice.mixture) == 10
    mixed, *f0 = pool.voice(voice.mixture)
    men = pool.vectors[np.array(pool.genders) == "m"].mean(axis=0)
    men /= np.linalg.norm(men)
    assert pool.mean_like(mixed) == pytest.approx(men)
    expected = men + 2 * (mixed - men)
    moved, *moved_f0 = BY_WORLD._read_voice(voice)
    assert moved == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    assert moved_f0 == f0
    assert moved.dtype == np.float32


def test_coded_voice_is_one_speaker_of_any_gender():
    pool = network_files.read_pool()
    voices = CODES.plan_voices([request(number) for number in range(30)])
    assert {len(voice.mixture) for voice in voices} == {1}
    assert {pool.genders[pool.names.index(name)] for voice in voices for name in voice.mixture} == {"f", "m"}


def noisy(number, strength, *recordings):
    [voice] = NOISE.plan_voices([VoiceRequest(f"{number:064x}", "f", recordings, {"strength": strength})])
    vector = read_vector(voice.vector, 256)
    return vector / np.linalg.norm(vector)


def test_noise_takes_the_vector_farther_from_its_speaker_the_stronger_it_is(own_vector):
    own = own_vector / np.linalg.norm(own_vector)
    nearness = [noisy(1, strength, lambda: None) @ own for strength in (0.0, 0.25, 0.5, 1.0)]
    assert nearness[0] == pytest.approx(1, abs=1e-3)
    assert nearness == sorted(nearness, reverse=True)
    assert nearness[-1] < 0.8
    pool = network_files.read_pool()
    women = pool.vectors[np.array(pool.genders) == "f"]
    random = own + np.random.default_rng(0).standard_normal(256) / 16
    random /= np.linalg.norm(random)
    assert (women @ noisy(1, 1.0, lambda: None)).max() > (women @ random).max() + 0.1  # still somebody, unlike chance


def test_speaker_who_cannot_be_heard_gets_a_voice_of_the_gender():
    vector = noisy(1, 0.0)
    pool = network_files.read_pool()
    women = pool.vectors[np.array(pool.genders) == "f"].mean(axis=0)
    assert vector @ women / np.linalg.norm(women) == pytest.approx(1, abs=1e-3)
    mean, spread = NOISE._read_voice(PseudoSpeaker("0" * 64, {}, vector=write_vector(vector)))[1:]
    assert 150 < np.exp(mean) < 250
    assert 0 < spread < 1


def test_noise_stays_in_its_ball_and_vectors_have_length_one():
    draw = np.random.default_rng(3)
    pool = np.abs(draw.standard_normal((30, 16)))
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    for strength in (0.0, 0.3, 2.0):
        found = add_noise(pool[0], pool, strength, np.random.default_rng(1))
        assert np.linalg.norm(found) == pytest.approx(1)
        assert found.min() >= 0
        # Within a ball of that radius about a unit vector no direction is farther than this; clipping at 0 only helps.
        assert pool[0] @ found >= np.sqrt(max(0.0, 1 - min(strength, 1.0) ** 2)) - 1e-9


def random_pool(speakers=40, numbers=12):
    pool = np.abs(np.random.default_rng(5).standard_normal((speakers, numbers)))
    return pool / np.linalg.norm(pool, axis=1, keepdims=True)


def cosines_of(vectors, others):
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, others)]
    return unit[0] @ unit[1].T


def mapped_coordinates(fitted, vectors):
    """As the definition says: each reflection as a matrix."""
    whole = np.eye(len(fitted.axes))
    for normal in fitted.normals:
        whole = (np.eye(len(normal)) - 2 * np.outer(normal, normal) / (normal @ normal)) @ whole
    return whole, fitted.coordinates(vectors) @ whole.T


def test_map_is_orthogonal_and_keeps_how_alike_speakers_are():
    pool = random_pool()
    fitted = fit_reflections(pool, np.random.default_rng(1))
    whole, found = mapped_coordinates(fitted, pool)
    assert np.abs(whole @ whole.T - np.eye(len(whole))).max() < 1e-10
    before = fitted.coordinates(pool)
    assert np.allclose(cosines_of(found, found), cosines_of(before, before))
    out = fitted.mean + (found[0] * fitted.spread) @ fitted.axes
    expected = np.maximum(out, 0) / np.linalg.norm(np.maximum(out, 0))
    assert np.allclose(fitted.apply(pool[0]), expected)


def test_speakers_of_one_plan_share_a_map_and_other_plans_have_others(own_vector):
    requests = [request(number, "f", lambda: None) for number in (1, 2)]
    together = MAPPED.plan_voices(requests)
    assert together[0].vector == together[1].vector  # the fixture gives both one voice
    vectors = [read_vector(voice.vector, 256) for voice in (together[0], *MAPPED.plan_voices(requests[:1]))]
    assert makes_vectors(MAPPED)
    assert cosines_of(vectors[0][None], vectors[1][None]) < 0.95


@pytest.mark.parametrize("text", ["", "AAAA", "no base64", write_vector(np.ones(255)), write_vector(np.zeros(256))])
def test_a_noisy_voice_is_a_vector_of_the_right_size(text, monkeypatch):
    monkeypatch.setattr(type(NOISE), "missing", lambda _: "")
    with pytest.raises(MethodError, match="256 numbers"):
        NOISE.anonymize(make_vowel(RATE), RATE, PseudoSpeaker("0" * 64, {}, vector=text))


def test_expected_voice_follows_from_all_recordings_that_can_be_heard(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed here")
    from speech.conversion import recognizer_map

    expected = recognizer_map.load(network_files.RECOGNIZER_MAP)
    steps = np.eye(512)[:3]
    monkeypatch.setattr(module, "layers_encoder", lambda: None)
    monkeypatch.setattr(recognizer_map, "mean_features", lambda samples, _: {0: expected.features + steps[samples[0]]})

    def recording(number):
        return lambda: (np.full(RATE, number, np.int16), RATE)

    def unreadable():
        raise OSError

    one, two, both, none = EXPECTED.plan_voices(
        [
            request(1, "f", recording(1)),
            request(2, "m", recording(2), unreadable),
            request(3, "f", recording(1), recording(2)),
            request(4, "f", unreadable),
        ]
    )
    vectors = [read_vector(voice.vector, 256).astype(float) for voice in (one, two, both, none)]
    draws = [module._draw(f"{number:064x}", "residual") for number in (3, 4)]
    middle = expected.draw(expected.features + (steps[1] + steps[2]) / 2, draws[0])
    assert vectors[2] == pytest.approx(middle, abs=1e-3)
    assert vectors[3] == pytest.approx(expected.draw(expected.features, draws[1]), abs=1e-3)
    [again, other] = EXPECTED.plan_voices([request(number, "f", recording(1)) for number in (1, 5)])
    assert again == one
    assert cosines_of(*(read_vector(voice.vector, 256)[None] for voice in (again, other))) < 0.99


def test_contour_gets_mean_and_spread_and_stays_unvoiced():
    hz = np.concatenate([np.zeros(10), 100 * np.exp(0.2 * np.sin(np.arange(200) / 9)), np.zeros(5)])
    moved = contours.move_contour(hz, np.log(200), 0.1)
    voiced = moved > 0
    assert np.array_equal(voiced, hz > 0)
    assert np.log(moved[voiced]).mean() == pytest.approx(np.log(200))
    assert np.log(moved[voiced]).std() == pytest.approx(0.1)
    assert np.corrcoef(np.log(moved[voiced]), np.log(hz[voiced]))[0, 1] == pytest.approx(1)
    # A flat voice becomes no lively one, and a few frames keep their spread.
    assert np.log(contours.move_contour(hz[10:30], np.log(200), 5.0)).std() == pytest.approx(np.log(hz[10:30]).std())
    assert not contours.move_contour(np.zeros(7), 5.0, 0.1).any()


def test_contour_of_the_original_follows_the_option():
    """By either tracker it is that of the speech, at the frames of the spectrum; other options are not asked."""
    pytest.importorskip("torch", reason="torch is not installed here")
    phase = 2 * np.pi * np.cumsum(150 + 30 * np.sin(np.arange(2 * RATE) / 4000)) / RATE
    samples = (3000 * sum(np.cos(k * phase) / k for k in range(1, 11))).astype(np.int16)
    found = [POOL._find_f0(samples, None, (None, np.log(200), 0.1), {"f0": name}) for name in ("praat", "yaapt")]
    praat, yaapt = found
    assert praat.shape == yaapt.shape == (173,)
    assert not np.array_equal(praat, yaapt)
    both = (praat > 0) & (yaapt > 0)
    assert both.mean() > 0.95
    assert np.median(np.abs(yaapt[both] / praat[both] - 1)) < 0.01
    assert not contours.find_contour(samples[:639], "yaapt").any()


def test_estimated_f0_follows_from_codes_and_voice_and_not_from_the_original():
    pytest.importorskip("torch", reason="torch is not installed here")
    layers = np.random.default_rng(1).standard_normal((50, 1536)).astype(np.float32).repeat(4, axis=0)
    pool = network_files.read_pool()
    genders = np.array(pool.genders)
    vectors = {gender: pool.vectors[genders == gender].mean(axis=0) for gender in "fm"}
    found = {}
    for gender, vector in vectors.items():
        speaker = vector / np.linalg.norm(vector), 0.0, 0.0
        hz, again = (
            ESTIMATED._find_f0(samples, layers, speaker, {})
            for samples in (make_vowel(RATE).repeat(5)[: 4 * RATE], np.zeros(4 * RATE, np.int16))
        )
        assert np.array_equal(hz, again)
        assert hz.shape == (345,)
        assert hz[hz > 0].min() >= 50
        found[gender] = np.log2(hz[hz > 0]).mean()
    assert 12 * (found["f"] - found["m"]) > 5


@pytest.mark.parametrize(
    ("mixture", "words"), [({}, "found none"), ({"nobody": 0.5, "19": 0.5}, "speakers of the pool; found nobody")]
)
def test_a_voice_is_of_speakers_of_the_pool(mixture, words, monkeypatch):
    monkeypatch.setattr(type(CODES), "missing", lambda _: "")
    with pytest.raises(MethodError, match=words):
        CODES.anonymize(make_vowel(RATE), RATE, PseudoSpeaker("0" * 64, {}, mixture=mixture))


def test_without_a_model_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PORTAL_MODELS_DIR", str(tmp_path))
    monkeypatch.setattr("anonymization.methods.spectra.missing_packages", lambda *_: "")
    assert "models fetch whisper-base" in CODES.missing()
    assert [method.name for method in module.METHODS if "models fetch" not in method.missing()] == []
