"""Back ends: cosine, LDA against an independent one, and the whole chain of 2022 on simulated speakers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from common.errors import InputError
from evaluation.attackers.back_ends import Cosine, Lda, Plda
from evaluation.attackers.trial_scores import score_pairs
from evaluation.metrics.detection import kaldi_eer

Floats = NDArray[np.float64]


def speakers_with_nuisance(speakers: int, utterances: int, seed: int) -> tuple[Floats, list[str]]:
    """Vectors of 12 dimensions of which 4 distinguish speakers and 2 vary widely from utterance to utterance."""
    generator = np.random.default_rng(seed)
    voices = generator.normal(size=(speakers, 12)) * np.array([1.0] * 4 + [0.0] * 8)
    noise = generator.normal(size=(speakers, utterances, 12)) * np.array([0.3] * 10 + [4.0] * 2)
    names = [f"s{number}" for number in range(speakers) for _ in range(utterances)]
    return (voices[:, None] + noise).reshape(-1, 12) + 3.0, names


def test_cosines_are_those_of_the_definition():
    models, tests = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([[0.0, 2.0], [-5.0, 0.0], [6.0, 8.0]])
    np.testing.assert_allclose(score_pairs(models, tests, Cosine()), [[0.8, -0.6, 1.0], [0.0, -1.0, 0.6]])


@pytest.mark.parametrize("broken", [[0.0, 0.0], [np.nan, 1.0]])
def test_vectors_without_a_direction_are_refused(broken: list[float]):
    with pytest.raises(InputError, match="found 1 of 2 that are not"):
        Cosine().model_factors(np.array([[1.0, 2.0], broken]), np.ones(2, np.int64))


def test_the_centre_is_taken_off_before_anything_else():
    back_end = Cosine(np.array([1.0, 1.0]))
    np.testing.assert_allclose(back_end.prepare(np.array([[3.0, 1.0]])), [[2.0, 0.0]])
    vectors = np.array([[3.0, 1.0]])
    assert Cosine().prepare(vectors) is vectors
    with pytest.raises(InputError, match="2 dimensions, as in training, found 3"):
        back_end.prepare(np.ones((1, 3)))


def test_lda_spans_what_an_independent_one_spans():
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    vectors, names = speakers_with_nuisance(20, 6, seed=2)
    ours = Lda.fit(vectors, names, 4).project(vectors)
    theirs = LinearDiscriminantAnalysis(solver="eigen", n_components=4).fit(vectors, names).transform(vectors)
    theirs = theirs - theirs.mean(axis=0)  # which that solver leaves in
    # The same axes, but for sign and scale.
    scales = np.sum(ours * theirs, axis=0) / np.sum(theirs**2, axis=0)
    np.testing.assert_allclose(ours, theirs * scales, atol=1e-6 * float(np.abs(ours).max()))


def test_lda_makes_the_variation_within_speakers_unit():
    vectors, names = speakers_with_nuisance(20, 6, seed=3)
    projected = Lda.fit(vectors, names, 5).project(vectors).reshape(20, 6, 5)
    errors = (projected - projected.mean(axis=1, keepdims=True)).reshape(-1, 5)
    np.testing.assert_allclose(errors.T @ errors / len(errors), np.eye(5), atol=1e-9)


@pytest.mark.parametrize(("asked", "speakers", "kept"), [(200, 5, 4), (200, 40, 12)])
def test_lda_keeps_no_more_dimensions_than_there_are(asked: int, speakers: int, kept: int):
    vectors, names = speakers_with_nuisance(speakers, 6, seed=4)
    assert Lda.fit(vectors, names, asked).project(vectors).shape == (len(names), kept)


def test_lda_with_too_few_utterances_needs_loading():
    vectors, names = speakers_with_nuisance(3, 2, seed=5)
    with pytest.raises(InputError, match="6 utterances of 3 speakers are too few"):
        Lda.fit(vectors, names, 2)
    assert np.isfinite(Lda.fit(vectors, names, 2, loading=0.1).project(vectors)).all()
    with pytest.raises(InputError, match="one dimension or more, found 0"):
        Lda.fit(vectors, names, 0)


def test_the_2022_chain_finds_speakers_that_a_cosine_does_not():
    training = Plda.fit(*speakers_with_nuisance(60, 6, seed=6), lda_dimensions=200)
    vectors, _ = speakers_with_nuisance(30, 4, seed=7)
    enrolled, tests = vectors.reshape(30, 4, 12)[:, :3].mean(axis=1), vectors.reshape(30, 4, 12)[:, 3]
    own = np.eye(30, dtype=bool)
    plda = training.model_factors(enrolled, np.full(30, 3)) @ training.test_factors(tests).T
    cosine = score_pairs(enrolled, tests, Cosine())
    assert kaldi_eer(plda[own], plda[~own]) < 0.12
    assert kaldi_eer(cosine[own], cosine[~own]) > 0.3
