"""Who gets which voice: for ever, apart by role and split, alike across data sets."""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymization.methods.contract import MethodError, Parameter
from anonymization.methods.voices.pseudo_speakers import (
    draw_pseudo_speaker,
    plan_voices,
    pseudo_speaker_key,
    voice_distance,
)

NAMES = {"seed": 7, "role": "trial", "split": "dev", "speaker": "p225"}
TRAINING = {"role": "training", "utterance": "p225_001"}
ALPHA = Parameter(name="alpha", unit="", low=0.5, high=0.9, meaning="")

GOLDEN_KEY = "04319bb972fdb4e043c85498cabd9736ab63054362e42681a6a82447ea8607bb"
GOLDEN_ALPHA = 0.5065527850249022
# Alpha and shift of the speaker s7 among forty, and the digest of all their keys, by the first release.
GOLDEN_PLAN = (0.895451721843413, -4.948561734085542)
GOLDEN_KEYS = "a413ad95d83b0f22cc907043fa615f8fab6aa7bf0ffd5326fc38d0183f04da25"


def key(**changes):
    return pseudo_speaker_key(**{**NAMES, **changes})


def test_key_is_the_digest_of_the_names():
    assert key() == hashlib.sha256(b"7|trial|dev|p225").hexdigest()
    assert key(**TRAINING) == hashlib.sha256(b"7|training|dev|p225|p225_001").hexdigest()


def test_alpha_of_known_names_never_changes():
    voice = draw_pseudo_speaker(key(), [ALPHA])
    assert voice.key == GOLDEN_KEY
    assert voice.parameters == {"alpha": pytest.approx(GOLDEN_ALPHA, abs=1e-15)}


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_different_namings_have_different_keys(split, speaker, other_split, other_speaker):
    same = key(split=split, speaker=speaker) == key(split=other_split, speaker=other_speaker)
    assert same == ((split, speaker) == (other_split, other_speaker))


def test_draws_fill_their_range_evenly():
    draws = sorted(draw_pseudo_speaker(key(speaker=str(i)), [ALPHA]).parameters["alpha"] for i in range(2000))
    assert 0.5 <= draws[0] < 0.502
    assert 0.898 < draws[-1] < 0.9
    # Kolmogorov–Smirnov against the uniform law; 1.95 / √n is the 0.1 % point.
    distance = max(abs((x - 0.5) / 0.4 - i / 2000) for i, x in enumerate(draws))
    assert distance < 1.95 / 2000**0.5


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"role": "enroll"}, 'enrolment, trial, training; found "enroll"'),
        ({"speaker": ""}, "name of the speaker; found none"),
    ],
)
def test_unusable_names_are_refused(changes, sentence):
    with pytest.raises(MethodError, match=sentence):
        key(**changes)


def parameters_of(count):
    return [
        Parameter("alpha", "", 0.5, 0.9, ""),
        Parameter("shift", "semitones", -6.0, 6.0, "", gap=(-1.5, 2.0)),
        Parameter("median", "Hz", 80.0, 250.0, ""),
        Parameter("warp", "", -0.1, 0.1, ""),
    ][:count]


def plan(count=1, speakers=("a", "b", "c"), **changes):
    return plan_voices(
        parameters_of(count), **{"seed": 7, "role": "trial", "split": "dev", "speakers": speakers, **changes}
    )


def names(count):
    return [f"s{number}" for number in range(count)]


def test_planned_voices_of_known_names_never_change():
    voices = plan(2, names(40), role="enrolment").voices
    assert len(voices) == 40
    assert voices["s7"].parameters == {
        "alpha": pytest.approx(GOLDEN_PLAN[0], abs=1e-15),
        "shift": pytest.approx(GOLDEN_PLAN[1], abs=1e-14),
    }
    listed = "\n".join(f"{name} {voices[name].key}" for name in sorted(voices))
    assert hashlib.sha256(listed.encode()).hexdigest() == GOLDEN_KEYS


@given(st.permutations(names(30)))
def test_order_of_speakers_changes_no_voice(order):
    assert dict(plan(1, order, role="enrolment").voices) == dict(plan(1, names(30), role="enrolment").voices)


def test_speaker_named_twice_counts_once():
    assert plan(1, ["a", "b", "a"]) == plan(1, ["a", "b"])


def test_most_speakers_have_their_first_draw_in_any_population():
    """Three in four are promised on average; five seeds are enough for 70 %."""
    kept = []
    for seed, size in itertools.product(range(5), (50, 100)):
        voices = plan(4, names(size), seed=seed).voices
        kept += [voices[name].key == key(seed=seed, speaker=name) for name in voices]
    assert np.mean(kept) > 0.7


def test_roles_seeds_and_splits_have_plans_of_their_own():
    plans = [plan(), plan(role="enrolment"), plan(seed=8), plan(split="test")]
    assert len({one.voices["a"].parameters["alpha"] for one in plans}) == 4


def test_method_without_parameters_gives_everybody_its_one_voice():
    voices = plan(0, names(3), role="enrolment")
    assert voices.distance == 0
    assert [voice.parameters for voice in voices.voices.values()] == [{}, {}, {}]
    assert voice_distance(voices.voices["s0"], voices.voices["s1"], []) == 0


@pytest.mark.parametrize("odd", ["p|1", "\udc80raw"])
def test_speaker_with_an_odd_name_has_a_voice_of_their_own(odd):
    voices = plan(1, [odd, "p", "a"], role="enrolment").voices
    assert len({voice.parameters["alpha"] for voice in voices.values()}) == 3
    assert plan(1, [odd, "p", "a"], role="enrolment").voices[odd] == voices[odd]


@given(st.floats(0, 1, exclude_max=True))
def test_no_draw_lands_in_a_gap(uniform):
    shift = parameters_of(2)[1]
    assert shift.holds(shift.at(uniform))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ([ALPHA, ALPHA], "different names; found alpha, alpha"),
        ([Parameter("still", "", 1.0, 1.0, "")], "still must be able to vary.*found 1, 1"),
        ([Parameter("endless", "", 0.0, float("inf"), "")], "endless must .* finite bounds"),
        ([Parameter("outside", "", 0.0, 1.0, "", gap=(0.5, 1.5))], "outside must .* gap within them"),
        ([Parameter(name, "", 0.0, 1.0, "") for name in "abcde"], "at most 4 parameters; found 5"),
    ],
)
def test_parameters_that_make_no_voices_are_refused(parameters, sentence):
    with pytest.raises(MethodError, match=sentence):
        plan_voices(parameters, seed=7, role="trial", split="dev", speakers=["a"])
