"""What an independent reading of the protocol found: numbers at the edge of the tolerances, as regression tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.bootstrap import bootstrap_mean, draw_speakers
from evaluation.metrics.calibration import cllr, min_cllr, rocch_eer
from evaluation.metrics.detection import detection_metrics, kaldi_eer
from evaluation.metrics.linkability import linkability
from evaluation.metrics.pitch import pitch_correlation
from evaluation.metrics.speaker_traits import emotion_scores
from evaluation.metrics.voice_similarity import (
    diagonal_dominance,
    similarity_matrix,
    voice_distinctiveness,
)
from evaluation.metrics.zebra import zebra, zebra_category

SPEAKERS = ["a", "a", "b", "b"]
DISTINCT = np.array([[0.0, 4, -4, -4], [4, 0, -4, -4], [-4, -4, 0, 4], [-4, -4, 4, 0]])


def plain_linkability(target: np.ndarray, nontarget: np.ndarray) -> float:
    """D_sys word for word: densities of `numpy.histogram`, D times that of the targets, trapezoids over bin centres."""
    bins = min(target.size // 10, 100)
    scores = np.concatenate([target, nontarget])
    edges = np.linspace(scores.min(), scores.max(), bins + 1)
    mated, _ = np.histogram(target, bins=edges, density=True)
    other, _ = np.histogram(nontarget, bins=edges, density=True)
    linked = np.array([1 - 2 * n / (t + n) if t > n else 0.0 for t, n in zip(mated, other, strict=True)])
    return float(np.trapezoid(linked * mated, (edges[:-1] + edges[1:]) / 2))


@pytest.mark.parametrize("offset", [0.0, 1000.0, -1e6, 1e8])
def test_linkability_keeps_the_rounding_of_bin_edges_far_from_zero(offset: float) -> None:
    random = np.random.default_rng(4)
    target, nontarget = offset + random.normal(2e-5, 1e-5, 50), offset + random.normal(0, 1e-5, 7)

    assert linkability(target, nontarget) == pytest.approx(plain_linkability(target, nontarget), abs=1e-12)


def test_linkability_of_scores_that_differ_by_rounding_alone_stays_within_one() -> None:
    step = np.spacing(1.0)
    target, nontarget = 1 + step * np.repeat([0, 1, 2], [7, 12, 11]), np.array([1 - step])

    assert linkability(target, nontarget, compatibility="official") == pytest.approx(
        plain_linkability(target, nontarget)
    )
    assert linkability(target, nontarget, compatibility="official") > 1
    assert linkability(target, nontarget) == 1.0


@pytest.mark.parametrize(
    "metric",
    [
        lambda word: cllr([1.0], [0.0], compatibility=word),
        lambda word: min_cllr([1.0], [0.0], compatibility=word),
        lambda word: rocch_eer([1.0], [0.0], compatibility=word),
        lambda word: linkability([1.0], [0.0], compatibility=word),
        lambda word: zebra([1.0], [0.0], compatibility=word),
        lambda word: zebra_category(1.0, compatibility=word),
        lambda word: detection_metrics([1.0], [0.0], compatibility=word),
        lambda word: similarity_matrix(DISTINCT, SPEAKERS, compatibility=word),
        lambda word: similarity_matrix(DISTINCT, SPEAKERS, form="plan", compatibility=word),
        lambda word: diagonal_dominance(DISTINCT, compatibility=word),
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
        lambda values: pitch_correlation(np.array([100.0]), values),
        lambda values: diagonal_dominance(values),
        lambda values: similarity_matrix(values, ["a", "b"]),
        lambda values: bootstrap_mean(values, ["a", "b"], draw_speakers(["a", "b"], 2, np.random.default_rng(0))),
    ],
)
@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["a", "b"], "found <U1"),
        ([[1.0], [1.0, 2.0]], "found rows of different lengths"),
        ([None, 1.0], "found object"),
        ([True, False], "found bool"),
        ([1j, 2j], "found complex128"),
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
