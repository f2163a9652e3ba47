"""Who gets which voice: for ever, apart by role and split, alike across data sets."""

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import (
    Parameter,
    draw_pseudo_speaker,
    pseudo_speaker_key,
)

NAMES = {"seed": 7, "role": "trial", "split": "dev", "speaker": "p225", "utterance": "p225_001"}
ALPHA = Parameter(name="alpha", unit="", low=0.5, high=0.9, meaning="")

GOLDEN_KEY = "04319bb972fdb4e043c85498cabd9736ab63054362e42681a6a82447ea8607bb"
GOLDEN_ALPHA = 0.5065527850249022


def key(**changes):
    return pseudo_speaker_key(**{**NAMES, **changes})


def test_key_is_the_digest_of_the_names():
    assert key() == hashlib.sha256(b"7|trial|dev|p225").hexdigest()
    assert key(role="training") == hashlib.sha256(b"7|training|dev|p225|p225_001").hexdigest()


def test_alpha_of_known_names_never_changes():
    voice = draw_pseudo_speaker(key(), [ALPHA])
    assert voice.key == GOLDEN_KEY
    assert voice.parameters == {"alpha": pytest.approx(GOLDEN_ALPHA, abs=1e-15)}


@pytest.mark.parametrize("role", ["enrolment", "trial"])
def test_utterances_of_a_speaker_share_the_voice(role):
    assert key(role=role) == key(role=role, utterance="p225_002") == key(role=role, utterance="")


def test_training_utterances_differ():
    assert key(role="training") != key(role="training", utterance="p225_002")


def test_each_name_separates_voices():
    seeds, roles = (7, 8), ("enrolment", "trial")
    splits, speakers = ("dev", "test"), ("p225", "p226", "p227")
    keys = [
        key(seed=seed, role=role, split=split, speaker=speaker)
        for seed, role, split, speaker in itertools.product(seeds, roles, splits, speakers)
    ]
    assert len(set(keys)) == 2 * 2 * 2 * 3
    assert len({draw_pseudo_speaker(k, [ALPHA]).parameters["alpha"] for k in keys}) == len(keys)


def test_separator_within_a_name_separates_nothing():
    assert key(split="a|b", speaker="c") != key(split="a", speaker="b|c")
    assert key(split="a\\", speaker="b|c") != key(split="a|b\\", speaker="c")


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


def test_parameters_of_one_voice_are_drawn_apart():
    four = [Parameter(name, "", 0.0, 1.0, "") for name in "abcd"]
    voice = draw_pseudo_speaker(key(), four)
    assert list(voice.parameters) == ["a", "b", "c", "d"]
    assert len(set(voice.parameters.values())) == 4
    assert draw_pseudo_speaker(key(), four[:1]).parameters["a"] == voice.parameters["a"]


def test_more_parameters_than_words_are_refused():
    with pytest.raises(MethodError, match="at most 4 parameters; found 5"):
        draw_pseudo_speaker(key(), [ALPHA] * 5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"role": "enroll"}, 'enrolment, trial, training; found "enroll"'),
        ({"speaker": ""}, "name of the speaker; found none"),
        ({"split": ""}, "name of the split; found none"),
        ({"role": "training", "utterance": ""}, "name of the utterance; found none"),
    ],
)
def test_unusable_names_are_refused(changes, sentence):
    with pytest.raises(MethodError, match=sentence):
        key(**changes)
