"""What mean F0 and words alone give away, against the definitions in the plainest form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from common.errors import InputError
from evaluation.attackers.traits import MeanF0, score_mean_f0, score_words

RATE_HZ = 16_000
TEXTS = [
    "the sea was calm",
    "the sea the sea the sea",
    "a hill of stones",
    "stones on a hill",
    "calm was the sea",
    "hill after hill",
    "zzz",
    "",
]
MODELS = {"sailor": [0, 1], "walker": [2, 3]}
TESTS = {"first": 4, "second": 5, "strange": 6, "mute": 7}
PAIRS = [(model, test) for model in MODELS for test in TESTS]


def test_words_are_compared_by_the_cosine_of_their_weighted_n_grams():
    scores = score_words(TEXTS, MODELS, TESTS, PAIRS)
    # Computed once by dense vectors over every term of the enrolment texts.
    np.testing.assert_allclose(scores, [0.813001056524, 0, 0, 0, 0, 0.454175249988, 0, 0], atol=1e-11)
    by_pair = dict(zip(PAIRS, scores.tolist(), strict=True))
    assert by_pair["sailor", "first"] > by_pair["walker", "first"]
    assert by_pair["walker", "second"] > by_pair["sailor", "second"]
    assert by_pair["sailor", "strange"] == by_pair["sailor", "mute"] == 0


def test_enrolment_without_words_is_refused():
    with pytest.raises(InputError, match="enrolment texts with words, found none"):
        score_words(["", "words"], {"s": [0]}, {"u": 1}, [("s", "u")])


def tone(hz: float) -> np.ndarray:
    time_s = np.arange(RATE_HZ) / RATE_HZ
    return np.round(8000 * np.sin(2 * np.pi * hz * time_s) + 4000 * np.sin(4 * np.pi * hz * time_s)).astype(np.int16)


def test_mean_f0_is_compared_in_semitones():
    vectors = MeanF0().embed([tone(100), tone(200), tone(150)], RATE_HZ)
    assert vectors.shape == (3, 1)
    assert vectors[1, 0] - vectors[0, 0] == pytest.approx(12, abs=0.02)
    models = {"low": vectors[:1], "both": vectors[:2]}
    found = score_mean_f0(models, {"u": vectors[2]}, [("low", "u"), ("both", "u")])
    middle = (12 * math.log2(100) + 12 * math.log2(200)) / 2
    expected = [-abs(12 * math.log2(1.5)), -abs(12 * math.log2(150) - middle)]
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_noise_has_no_mean_f0():
    noise = np.random.default_rng(1).integers(-3000, 3000, RATE_HZ).astype(np.int16)
    with pytest.raises(InputError, match="Utterance 2 of 2: expected a voice, found no voiced frame"):
        MeanF0().embed([tone(120), noise], RATE_HZ)
