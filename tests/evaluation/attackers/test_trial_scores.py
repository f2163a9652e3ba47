"""Scores of trials: the protocols' rules, the order of the list, full size, and all that is missing named at once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from common.errors import InputError
from evaluation.attackers.back_ends import BackEnd, Cosine, Plda
from evaluation.attackers.trial_scores import PRESETS, fit_back_end, score_pairs, score_trials

Floats = NDArray[np.float64]
SIZE = 6


def corpus(seed: int, models: int = 4, utterances: int = 7) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Models of one utterance more each, and trial utterances."""
    generator = np.random.default_rng(seed)
    enrolment = {f"m{number}": generator.normal(size=(number + 1, SIZE)) + 1 for number in range(models)}
    return enrolment, {f"u{number}": generator.normal(size=SIZE) + 1 for number in range(utterances)}


def training(seed: int = 9) -> tuple[Floats, list[str]]:
    generator = np.random.default_rng(seed)
    voices = np.repeat(generator.normal(size=(30, SIZE)), 5, axis=0)
    return voices + 0.5 * generator.normal(size=voices.shape) + 1, [f"s{number // 5}" for number in range(150)]


def product(enrolment: dict[str, Floats], tests: dict[str, Floats]) -> list[tuple[str, str]]:
    return [(model, test) for model in enrolment for test in tests]


def cosine(first: Floats, second: Floats) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_2024_is_the_cosine_with_the_mean_of_the_enrolment_vectors():
    enrolment, tests = corpus(1)
    trials = product(enrolment, tests)
    expected = [cosine(enrolment[model].mean(axis=0), tests[test]) for model, test in trials]
    np.testing.assert_allclose(score_trials(enrolment, tests, trials), expected)
    np.testing.assert_allclose(score_trials(enrolment, tests, trials, options=PRESETS["2024"]), expected)


def test_spane_takes_the_mean_of_the_training_off_first():
    enrolment, tests = corpus(2)
    trials, centre = product(enrolment, tests), training()[0].mean(axis=0)
    back_end = fit_back_end(PRESETS["spane"], training()[0])
    expected = [cosine(enrolment[model].mean(axis=0) - centre, tests[test] - centre) for model, test in trials]
    np.testing.assert_allclose(score_trials(enrolment, tests, trials, back_end, PRESETS["spane"]), expected)


def test_ge2e_averages_directions():
    enrolment, tests = corpus(3)
    trials = product(enrolment, tests)
    averages = {
        name: (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).mean(axis=0)
        for name, vectors in enrolment.items()
    }
    expected = [cosine(averages[model], tests[test]) for model, test in trials]
    np.testing.assert_allclose(score_trials(enrolment, tests, trials, options=PRESETS["ge2e"]), expected)


def test_max_similarity_takes_the_enrolment_utterance_that_is_most_similar():
    enrolment, tests = corpus(13)
    trials = product(enrolment, tests)[::-2]
    expected = [max(cosine(one, tests[test]) for one in enrolment[model]) for model, test in trials]
    np.testing.assert_allclose(score_trials(enrolment, tests, trials, options=PRESETS["max-similarity"]), expected)


def test_2022_scores_the_mean_by_plda_which_knows_the_number_of_utterances():
    enrolment, tests = corpus(4)
    trials, back_end = product(enrolment, tests), fit_back_end(PRESETS["2022"], *training())
    assert isinstance(back_end, Plda)
    found = score_trials(enrolment, tests, trials, back_end, PRESETS["2022"])

    def length_normalised(vector: Floats) -> Floats:
        projected = back_end.lda.project(vector[None])
        return projected / np.linalg.norm(projected) * np.sqrt(projected.size)

    expected = [
        back_end.plda.score(
            length_normalised(enrolment[model].mean(axis=0)),
            np.array([len(enrolment[model])]),
            length_normalised(tests[test]),
            normalise=True,
        )[0, 0]
        for model, test in trials
    ]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("back_end", [Cosine(), Plda.fit(*training())], ids=["cosine", "plda"])
def test_sparse_trials_get_the_scores_of_the_whole_product(back_end: BackEnd):
    enrolment, tests = corpus(7, models=40, utterances=50)
    every = dict(
        zip(product(enrolment, tests), score_trials(enrolment, tests, product(enrolment, tests), back_end), strict=True)
    )
    # Each model and utterance once, so that few of the product's cells are asked for.
    few = [(f"m{number}", f"u{number}") for number in range(40)]
    few += [("m3", "u45"), ("m3", "u3")]
    many = [(f"m{number % 40}", f"u{number % 50}") for number in range(200)]
    for trials in (few, many, many * 10):
        found = score_trials(enrolment, tests, trials, back_end)
        np.testing.assert_allclose(found, [every[trial] for trial in trials], atol=1e-9)


def test_all_missing_models_and_utterances_are_named_at_once():
    enrolment, tests = corpus(11)
    trials = [("m1", "u1"), ("ghost", "u1"), ("m1", "silence"), ("ghost", "noise"), ("absent", "u2")]
    with pytest.raises(InputError) as caught:
        score_trials(enrolment, tests, trials)
    assert "2 models (absent, ghost) and 2 utterances (noise, silence)" in str(caught.value)


@pytest.mark.parametrize(
    ("enrolment", "tests", "sentence"),
    [
        ({"m": np.ones((2, 3))}, {"u": np.ones(4)}, "3 dimensions, as those of the models, found 4"),
        ({"m": np.full((1, 3), np.nan)}, {"u": np.ones(3)}, "finite vectors, found 1 that are not, first of model m"),
        ({"m": np.ones((1, 3))}, {"u": np.zeros(3)}, "not zero"),
    ],
)
def test_vectors_that_cannot_be_compared_get_a_sentence(
    enrolment: dict[str, Floats], tests: dict[str, Floats], sentence: str
):
    with pytest.raises(InputError, match=sentence):
        score_trials(enrolment, tests, [("m", "u")])


def test_models_of_different_sizes_and_no_trials_get_a_sentence():
    enrolment = {"m": np.ones((1, 3)), "n": np.ones((1, 4))}
    with pytest.raises(InputError, match="one size, found 3, 4 dimensions"):
        score_trials(enrolment, {"u": np.ones(3)}, [("m", "u"), ("n", "u")])
    with pytest.raises(InputError, match="Expected trials to score, found none"):
        score_trials(enrolment, {"u": np.ones(3)}, [])


@pytest.mark.parametrize(("name", "needed"), [("2022", "vectors and speakers"), ("spane", "vectors")])
def test_what_learns_from_training_vectors_says_that_it_needs_them(name: str, needed: str):
    with pytest.raises(InputError, match=f"needs {needed} of the training corpus, found none"):
        fit_back_end(PRESETS[name])
    with pytest.raises(InputError, match=f"needs {needed} of the training corpus"):
        score_trials(*corpus(13), [("m0", "u0")], options=PRESETS[name])


def test_pairs_are_scored_as_models_of_one_utterance():
    name = "2022"
    _, tests = corpus(14)
    back_end = fit_back_end(PRESETS[name], *training())
    vectors = np.stack(list(tests.values()))
    square = score_pairs(vectors, vectors, back_end)
    models = {label: vector[None] for label, vector in tests.items()}
    trials = product(models, tests)
    np.testing.assert_allclose(square.ravel(), score_trials(models, tests, trials, back_end, PRESETS[name]), atol=1e-9)
    np.testing.assert_allclose(square, square.T, atol=1e-9)
