"""What an independent reading of the protocol found: numbers at the edge of the tolerances, as regression tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.calibration import cllr
from evaluation.metrics.detection import detection_metrics, kaldi_eer
from evaluation.metrics.linkability import linkability
from evaluation.metrics.pitch import pitch_correlation
from evaluation.metrics.speaker_traits import emotion_scores
from evaluation.metrics.voice_similarity import similarity_matrix, voice_distinctiveness
from evaluation.metrics.zebra import zebra

SPEAKERS = ["a", "a", "b", "b"]
DISTINCT = np.array([[0.0, 4, -4, -4], [4, 0, -4, -4], [-4, -4, 0, 4], [-4, -4, 4, 0]])


def test_linkability_keeps_the_rounding_of_bin_edges_far_from_zero() -> None:
    random = np.random.default_rng(4)
    target, nontarget = 1e8 + random.normal(2e-5, 1e-5, 50), 1e8 + random.normal(0, 1e-5, 7)

    assert linkability(target, nontarget) == pytest.approx(0.8098667038922176, abs=1e-12)


def test_linkability_of_scores_that_differ_by_rounding_alone_stays_within_one() -> None:
    step = np.spacing(1.0)
    target, nontarget = 1 + step * np.repeat([0, 1, 2], [7, 12, 11]), np.array([1 - step])

    assert linkability(target, nontarget, compatibility="official") == pytest.approx(1.0583333333333333)
    assert linkability(target, nontarget) == 1.0


@pytest.mark.parametrize(
    "metric",
    [
        lambda word: cllr([1.0], [0.0], compatibility=word),
        lambda word: zebra([1.0], [0.0], compatibility=word),
        lambda word: detection_metrics([1.0], [0.0], compatibility=word),
        lambda word: similarity_matrix(DISTINCT, SPEAKERS, compatibility=word),
        lambda word: emotion_scores({"u": "sad"}, {"u": "sad"}, {"u": "a"}, compatibility=word),
    ],
)
def test_a_misspelt_compatibility_is_refused_rather_than_taken_for_the_default(metric: Callable[[Any], object]) -> None:
    with pytest.raises(InputError, match=r"Expected the compatibility documented or official, found 'offical'\."):
        metric("offical")


@pytest.mark.parametrize(
    "metric",
    [
        lambda values: kaldi_eer(values, [0.0]),
        lambda values: pitch_correlation(values, np.array([100.0])),
        lambda values: similarity_matrix(values, ["a", "b"]),
    ],
)
@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["a", "b"], "found <U1"),
        ([[1.0], [1.0, 2.0]], "found rows of different lengths"),
        ([True, False], "found bool"),
    ],
)
def test_what_is_no_real_number_is_refused_with_a_sentence(
    metric: Callable[[Any], object], values: Any, found: str
) -> None:
    with pytest.raises(InputError, match=f"^Expected real numbers as .*, {found}\\.$"):
        metric(values)


def test_tied_pair_scores_give_a_dominance_unless_they_are_0_in_the_form_of_the_plan() -> None:
    tied = np.ones((4, 4))

    assert similarity_matrix(tied, SPEAKERS).diagonal_dominance > 0.5
    assert similarity_matrix(tied, SPEAKERS, form="plan").diagonal_dominance > 0.1
    assert voice_distinctiveness(DISTINCT, None, 0 * tied, SPEAKERS, form="plan").gain_db == -np.inf
