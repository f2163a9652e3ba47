"""Two-covariance PLDA against densities of Gaussians, closed forms, and data drawn from a known model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from common.errors import InputError
from evaluation.attackers.back_ends import TwoCovariancePlda

Floats = NDArray[np.float64]


def covariance(size: int, seed: int) -> Floats:
    root = np.random.default_rng(seed).standard_normal((size, size + 2))
    return root @ root.T / size


def example(size: int = 3) -> TwoCovariancePlda:
    return TwoCovariancePlda(np.linspace(-1, 1, size), 2 * covariance(size, 1), covariance(size, 2))


def joint_density(model: TwoCovariancePlda, vectors: Floats) -> float:
    """Log density of vectors of one speaker, from the definition: all of them are one large Gaussian."""
    from scipy.stats import multivariate_normal

    count = len(vectors)
    together = np.kron(np.eye(count), model.within) + np.kron(np.ones((count, count)), model.between)
    return float(multivariate_normal(np.tile(model.mean, count), together).logpdf(vectors.ravel()))


def draw(model: TwoCovariancePlda, counts: list[int], seed: int) -> tuple[Floats, list[str]]:
    generator = np.random.default_rng(seed)
    speakers = [f"s{number}" for number, count in enumerate(counts) for _ in range(count)]
    voices = generator.multivariate_normal(model.mean, model.between, len(counts))
    noise = generator.multivariate_normal(np.zeros(model.mean.size), model.within, len(speakers))
    return np.repeat(voices, counts, axis=0) + noise, speakers


def log_likelihood(model: TwoCovariancePlda, vectors: Floats, speakers: list[str]) -> float:
    labels = np.array(speakers)
    return sum(joint_density(model, vectors[labels == name]) for name in np.unique(labels))


def test_scores_are_the_ratios_of_the_joint_densities():
    count = 3
    model, generator = example(), np.random.default_rng(3)
    enrolled, tests = generator.normal(size=(4, count, 3)), generator.normal(size=(6, 3)) * 2
    found = model.score(enrolled.mean(axis=1), np.full(4, count), tests)
    expected = [
        [
            joint_density(model, np.vstack([one, test])) - joint_density(model, one) - joint_density(model, test[None])
            for test in tests
        ]
        for one in enrolled
    ]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_singular_covariance_between_speakers_can_be_scored():
    direction = np.array([1.0, 2.0, -1.0])
    model = TwoCovariancePlda(np.zeros(3), np.outer(direction, direction), covariance(3, 6))
    vectors = np.random.default_rng(7).normal(size=(2, 3))
    expected = joint_density(model, vectors) - joint_density(model, vectors[:1]) - joint_density(model, vectors[1:])
    assert model.score(vectors[:1], np.ones(1, np.int64), vectors[1:])[0, 0] == pytest.approx(expected)


def test_lengths_are_normalised_as_kaldi_does():
    """Kaldi: each side u times sqrt(d / Σ u² / (ψ + 1 / n)), in the diagonalised space."""
    from scipy.stats import multivariate_normal

    model, generator = example(), np.random.default_rng(8)
    models, tests, count = generator.normal(size=(2, 3)), generator.normal(size=(3, 3)), 4
    transform, spread = model.diagonalised()

    def llr(enrolled: Floats, test: Floats) -> float:
        u, v = transform @ (enrolled - model.mean), transform @ (test - model.mean)
        u = u * np.sqrt(3 / np.sum(u**2 / (spread + 1 / count)))
        v = v * np.sqrt(3 / np.sum(v**2 / (spread + 1)))
        mean, variance = count * spread / (count * spread + 1) * u, 1 + spread / (count * spread + 1)
        given = multivariate_normal(mean, np.diag(variance)).logpdf(v)
        return float(given - multivariate_normal(np.zeros(3), np.diag(1 + spread)).logpdf(v))

    found = model.score(models, np.full(2, count), tests, normalise=True)
    np.testing.assert_allclose(found, [[llr(one, test) for test in tests] for one in models], atol=1e-9)


def test_balanced_data_give_the_closed_form():
    vectors, speakers = draw(example(), [4] * 60, seed=9)
    fitted = TwoCovariancePlda.fit(vectors, speakers, iterations=20)
    groups = vectors.reshape(60, 4, 3)
    within = sum((group - group.mean(axis=0)).T @ (group - group.mean(axis=0)) for group in groups) / (60 * 3)
    between = np.cov(groups.mean(axis=1).T, ddof=0) - within / 4
    np.testing.assert_allclose(fitted.mean, vectors.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(fitted.within, within, rtol=1e-6)
    np.testing.assert_allclose(fitted.between, between, rtol=1e-6)


def test_each_iteration_makes_unbalanced_data_more_likely():
    vectors, speakers = draw(example(), [1, 2, 2, 7, 3, 1, 12, 5, 2, 9], seed=10)
    found = [
        log_likelihood(TwoCovariancePlda.fit(vectors, speakers, iterations=steps), vectors, speakers)
        for steps in range(12)
    ]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(found))
    assert found[-1] > found[0] + 1e-6


def test_loading_widens_both_covariances_and_repairs_a_singular_one():
    vectors = np.random.default_rng(16).normal(size=(6, 10))
    speakers = ["a", "a", "b", "b", "c", "c"]
    with pytest.raises(InputError, match=r"singular: 6 utterances of 3 speakers do not span 10 dimensions"):
        TwoCovariancePlda.fit(vectors, speakers)
    loaded = TwoCovariancePlda.fit(vectors, speakers, loading=0.1)
    assert np.linalg.eigvalsh(loaded.within)[0] > 0
    assert np.isfinite(loaded.score(vectors, np.ones(6, np.int64), vectors)).all()


@pytest.mark.parametrize(
    ("vectors", "speakers", "sentence"),
    [
        (np.ones((3, 2)), ["a", "a", "a"], "two speakers, found 1"),
        (np.ones((3, 2)), ["a", "b", "c"], "two utterances of some training speaker"),
        (np.ones((3, 2)), ["a", "b"], r"shape \(3, 2\) and 2 speakers"),
        (np.array([[1.0, np.nan], [0, 0], [1, 2]]), ["a", "b", "a"], "1 of 3 that are not"),
    ],
)
def test_what_cannot_be_learnt_from_gets_a_sentence(vectors: Floats, speakers: list[str], sentence: str):
    with pytest.raises(InputError, match=sentence):
        TwoCovariancePlda.fit(vectors, speakers)
