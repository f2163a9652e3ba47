"""The untrained attacker: it knows the voices of original speech, and refuses what it cannot judge."""

import csv
from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.detection import detection_metrics
from speech.audio.files import read_pcm16
from speech.encoders.long_term_spectrum import score_trials, speaker_vector

CORPUS = Path(__file__).parents[3] / "demo" / "corpus"
RATE_HZ = 16000


def noise(seed, seconds=1.0):
    return (2000 * np.random.default_rng(seed).standard_normal(int(seconds * RATE_HZ))).astype(np.int16)


def demo_scores(gender):
    enrolment, tests, speakers = {}, {}, {}
    with (CORPUS / "utterances.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["gender"] == gender]
    for row in rows:
        vector = speaker_vector(*read_pcm16(CORPUS / row["path"]))
        if row["role"] == "enrolment":
            enrolment.setdefault(row["speaker"], []).append(vector)
        else:
            tests[row["utterance_id"]], speakers[row["utterance_id"]] = vector, row["speaker"]
    scores = score_trials(enrolment, tests, [(model, test) for model in enrolment for test in tests])
    targets = np.array([score for model, test, score in scores if speakers[test] == model])
    nontargets = np.array([score for model, test, score in scores if speakers[test] != model])
    return targets, nontargets


def test_unprotected_voices_of_the_demo_corpus_are_recognised():
    targets, nontargets = demo_scores("F")
    assert (targets.size, nontargets.size) == (35, 140)
    assert detection_metrics(targets, nontargets).kaldi_eer == 0


def test_speaker_vector_does_not_hear_the_level():
    samples = noise(1)
    np.testing.assert_allclose(
        speaker_vector(samples, RATE_HZ), speaker_vector((samples // 2).astype(np.int16), RATE_HZ), atol=0.01
    )


def test_speaker_vector_refuses_less_than_a_window():
    with pytest.raises(InputError, match="Expected at least 400 samples at 16000 Hz or more, found 399"):
        speaker_vector(np.ones(399, np.int16), RATE_HZ)


def test_score_trials_keeps_the_order_and_names_what_it_does_not_know():
    vectors = {name: np.eye(3)[i] for i, name in enumerate("abc")}
    enrolment = {name: [vector] for name, vector in vectors.items()}
    scores = score_trials(enrolment, vectors, [("b", "a"), ("a", "a")])
    assert [(model, test) for model, test, _ in scores] == [("b", "a"), ("a", "a")]
    assert scores[1][2] > scores[0][2]
    with pytest.raises(InputError, match="found none of x, y"):
        score_trials(enrolment, vectors, [("x", "a"), ("a", "y")])


@pytest.mark.parametrize(("enrolment", "found"), [({}, 0), ({"a": [np.ones(3)]}, 1)])
def test_score_trials_needs_two_vectors_to_scale_by(enrolment, found):
    with pytest.raises(InputError, match=f"two enrolled vectors or more.*found {found}"):
        score_trials(enrolment, {"a": np.ones(3)}, [("a", "a")])
