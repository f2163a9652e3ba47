"""kNN-WORLD: what it takes from the target, what stays of the source, and that nothing else decides."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from anonymization.conformance import make_targets, make_vowel
from anonymization.methods.contract import (
    MethodError,
    PseudoSpeaker,
    Target,
    TargetPool,
    takes_targets,
)
from anonymization.methods.voices.targets import (
    pool_of_samples,
    target_voice,
)
from anonymization.methods.world.f0 import measure_f0, track_f0
from benchmarks.experiments.knn_world.frames import KeptAnalyses, WorldFrames, analyse, convert_frames, smooth
from benchmarks.experiments.knn_world.method import METHODS

RATE = 16_000


@pytest.fixture(scope="module")
def method():
    found = METHODS[0]
    if missing := found.missing():
        pytest.skip(missing)
    return found.prepare(make_targets(RATE))


def frames(features, voiced, seed=0):
    """Frames whose matching space is what the test says, with an envelope that names the frame."""
    rng = np.random.default_rng(seed)
    n = len(features)
    made = WorldFrames(
        np.where(voiced, 120.0, 0.0),
        rng.normal(size=(n, 40)).astype(np.float32),
        rng.normal(size=(n, 1)).astype(np.float32),
        np.zeros(n, np.float32),
    )
    made.__dict__["features"] = np.asarray(features, np.float32)
    return made


# The parts -----------------------------------------------------------------------------------------


def test_frames_become_the_mean_of_their_nearest_voiced_among_voiced():
    places = np.zeros((6, 40))
    places[:, 0] = [0, 1, 10, 0, 1, 10]
    target = frames(places, [True] * 3 + [False] * 3, seed=1)
    source = frames(places[[0, 3]], [True, False])
    envelope, aperiodicity = convert_frames(source, target, k=2, blend=0.0)
    wanted = np.stack([target.envelope[:2].mean(axis=0), target.envelope[3:5].mean(axis=0)])
    assert np.allclose(envelope, smooth(wanted), atol=1e-6)
    assert np.allclose(aperiodicity, [target.aperiodicity[:2].mean(axis=0), target.aperiodicity[3:5].mean(axis=0)])


def test_a_target_without_unvoiced_frames_lends_voiced_ones():
    target = frames(np.zeros((5, 40)), [True] * 5, seed=1)
    envelope, _ = convert_frames(frames(np.zeros((1, 40)), [False]), target, k=4, blend=0.0)
    assert np.allclose(envelope[0], target.envelope[:4].mean(axis=0), atol=1e-6)


def test_blend_of_one_is_the_source_with_mean_and_spread_of_the_target():
    rng = np.random.default_rng(3)
    source, target = (frames(rng.normal(size=(200, 40)), [True] * 200, seed) for seed in (4, 5))
    source.envelope[:] = 3 * source.envelope - 2
    moved, _ = convert_frames(source, target, k=4, blend=1.0)
    kept, _ = convert_frames(source, target, k=4, blend=0.0)
    half, _ = convert_frames(source, target, k=4, blend=0.5)
    wanted = (source.envelope - source.mean) / source.spread * target.spread + target.mean
    assert np.allclose(moved, smooth(wanted), atol=1e-4)
    assert np.allclose(half, (moved + kept) / 2, atol=1e-4)


def test_smoothing_keeps_straight_lines_but_for_their_ends():
    line = np.arange(10, dtype=np.float32)[:, None] * np.ones((1, 3), np.float32)
    assert np.allclose(smooth(line)[1:-1], line[1:-1])
    assert np.allclose(smooth(line)[[0, -1], 0], [0.25, 8.75])


def test_features_know_no_level_and_no_constant_filter(method):
    """What every frame has in common, such as a speaker's long-term spectrum, has no part in the matching."""
    found = analyse(make_vowel(RATE), "autocorrelation")
    coloured = WorldFrames(
        found.f0, found.envelope + np.linspace(-3, 3, 40, dtype=np.float32), found.aperiodicity, found.energy_db - 20
    )
    assert found.features.shape == (found.f0.size, 40)
    assert np.allclose(coloured.features, found.features, atol=1e-3)


# The method ----------------------------------------------------------------------------------------


def test_without_targets_it_refuses_and_says_what_to_do():
    bare = METHODS[0]
    if missing := bare.missing():
        pytest.skip(missing)
    assert takes_targets(bare)
    assert not bare.has_targets
    with pytest.raises(MethodError, match=r"voices of target speakers; found none\. Name a folder"):
        bare.anonymize(make_vowel(RATE), RATE, target_voice("a"))


def test_without_its_library_it_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyworld.pyworld", raising=False)
    monkeypatch.setattr("speech.vocoders.world_library._find_compiled", lambda: None)
    found = METHODS[0]
    assert found.missing().startswith("kNN-WORLD needs the package pyworld, which is not installed here. Install")
    with pytest.raises(MethodError, match="needs the package pyworld"):
        found.anonymize(make_vowel(RATE), RATE, target_voice("a"))


@pytest.mark.parametrize(("name", "words"), [("nobody", 'which has 2 targets; found "nobody"'), ("", "found none")])
def test_a_voice_names_a_target_of_the_pool(method, name, words):
    with pytest.raises(MethodError, match=words):
        method.anonymize(make_vowel(RATE), RATE, PseudoSpeaker("0" * 64, {}, name))


def test_f0_gets_the_mean_of_the_target(method):
    source = make_vowel(RATE)
    heard = {
        name: measure_f0(track_f0(method.anonymize(source, RATE, target_voice(name)), "harvest")).mean_hz
        for name in ("higher", "lower")
    }
    targets = {
        target.name: measure_f0(track_f0(target.recordings[0]()[0], "harvest")).mean_hz
        for target in method.pool.targets
    }
    assert all(abs(12 * np.log2(heard[name] / targets[name])) < 1 for name in heard)


def test_level_duration_and_the_energy_contour_stay(method):
    source = make_vowel(RATE)
    output = method.anonymize(source, RATE, target_voice("higher"))
    assert output.size == source.size
    assert abs(20 * np.log10(np.std(output.astype(float)) / np.std(source.astype(float)))) < 0.1
    contours = [
        10 * np.log10(np.square(sound[: source.size // 800 * 800].astype(float)).reshape(-1, 800).mean(axis=1) + 1)
        for sound in (source, output)
    ]
    loud = contours[0] > contours[0].max() - 25
    assert np.corrcoef(contours[0][loud], contours[1][loud])[0, 1] > 0.9


def test_spectrum_is_nearer_to_the_target_than_to_the_source(method):
    """Mean coded envelopes, levels aside: what a listener would call the colour of the voice."""
    source = make_vowel(RATE)
    for target in method.pool.targets:
        output = method.anonymize(source, RATE, target_voice(target.name))
        colours = [analyse(sound, "autocorrelation").mean[1:] for sound in (output, source, target.recordings[0]()[0])]
        to_source, to_target = (float(np.square(colours[0] - colours[i]).sum()) for i in (1, 2))
        assert to_target < to_source


def test_output_is_the_same_whatever_was_made_before_and_beside(method):
    source, other = make_vowel(RATE), make_vowel(RATE, 1.0)
    first = METHODS[0].prepare(make_targets(RATE)).anonymize(source, RATE, target_voice("lower"))
    method.anonymize(other, RATE, target_voice("higher"))
    with ThreadPoolExecutor(4) as pool:
        requests = [(source, "lower"), (other, "higher"), (source, "higher"), (source, "lower")]
        outputs = list(pool.map(lambda each: method.anonymize(each[0], RATE, target_voice(each[1])), requests))
    assert np.array_equal(outputs[0], first)
    assert np.array_equal(outputs[3], first)
    assert not np.array_equal(outputs[2], first)
    again = pickle.loads(pickle.dumps(method))
    assert np.array_equal(again.anonymize(source, RATE, target_voice("lower")), first)


def test_each_option_changes_the_output(method):
    source = make_vowel(RATE)
    plain = method.anonymize(source, RATE, target_voice("lower"))
    for options in ({"k": 1.0}, {"blend": 0.7}, {"level": "peak"}):
        assert not np.array_equal(method.anonymize(source, RATE, target_voice("lower"), options=options), plain)


def test_pool_length_limits_what_is_read_of_a_target(method):
    read = []
    vowel = make_vowel(RATE)

    def recording(number):
        return lambda: read.append(number) or (vowel, RATE)

    pool = TargetPool([Target("many", "f", tuple(recording(number) for number in range(20)))])
    prepared = method.prepare(pool)
    for _ in range(2):
        prepared.anonymize(vowel, RATE, target_voice("many"), options={"pool_s": 2.0})
    assert read == [0, 1]


def test_a_target_without_voice_is_refused_by_name(method):
    noise = np.random.default_rng(0).integers(-300, 300, RATE).astype(np.int16)
    hushed = method.prepare(pool_of_samples({"hiss": noise}, RATE))
    with pytest.raises(MethodError, match=r"The target hiss needs 0\.1 s of voiced speech; found"):
        hushed.anonymize(make_vowel(RATE), RATE, target_voice("hiss"))


def test_source_without_voice_keeps_its_form(method):
    noise = np.random.default_rng(0).integers(-3000, 3000, RATE).astype(np.int16)
    output = method.anonymize(noise, RATE, target_voice("higher"))
    assert output.shape == noise.shape
    assert output.any()


def test_kept_analyses_are_the_newest_and_bounded(method):
    kept = KeptAnalyses(most_frames=700)
    sounds = [make_vowel(RATE, length) for length in (1.0, 1.1, 1.2, 1.3)]
    made = [kept.analyse(sound, "dio") for sound in sounds]
    assert sum(each.f0.size for each in kept._kept.values()) <= 700
    assert kept.analyse(sounds[-1], "dio") is made[-1]
    assert np.array_equal(kept.analyse(sounds[0], "dio").envelope, made[0].envelope)


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ([], "at least one speaker; found none"),
        ([Target("a", "f", (make_vowel,)), Target("a", "f", (make_vowel,))], "each speaker once; found a twice"),
        ([Target("a")], "a recording at least; found none of a"),
    ],
)
def test_pools_that_are_none_are_refused(targets, words):
    with pytest.raises(MethodError, match=words):
        TargetPool(targets)
