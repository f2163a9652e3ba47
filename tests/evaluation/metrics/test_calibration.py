"""C_llr, min C_llr, ROCCH-EER and calibrated LLRs against official values, the protocol's words, and at their edges."""

from __future__ import annotations

import math

import pytest

from common.errors import InputError
from evaluation.metrics.calibration import calibrated_llrs, cllr, min_cllr, rocch_eer
from evaluation.metrics.detection import detection_metrics
from tests.evaluation.score_sets import reference_cases, reference_scores


@pytest.mark.parametrize("name", reference_cases())
def test_cllr_equals_official(name):
    expected, scores = reference_cases()[name]["cllr_act"], reference_scores(name)
    if expected == "inf":
        assert cllr(*scores, compatibility="official") == math.inf
        assert math.isfinite(cllr(*scores))
    else:
        assert cllr(*scores) == pytest.approx(expected, abs=1e-9)
        assert cllr(*scores, compatibility="official") == cllr(*scores)


@pytest.mark.parametrize("name", reference_cases())
def test_min_cllr_and_rocch_eer_equal_official(name):
    case, scores = reference_cases()[name], reference_scores(name)
    if isinstance(case["cllr_min"], dict):
        for metric in (min_cllr, rocch_eer, detection_metrics):
            with pytest.raises(InputError, match="stops with an IndexError"):
                metric(*scores, compatibility="official")
        assert (min_cllr(*scores), rocch_eer(*scores)) == (0.0, 0.0)
        return
    assert min_cllr(*scores) == pytest.approx(case["cllr_min"], abs=1e-9)
    assert rocch_eer(*scores) == pytest.approx(case["rocch_eer"], abs=1e-9)
    assert min_cllr(*scores, compatibility="official") == min_cllr(*scores)
    assert rocch_eer(*scores, compatibility="official") == rocch_eer(*scores)


@pytest.mark.parametrize("name", reference_cases())
def test_laplace_llrs_equal_official(name):
    expected, llrs = reference_cases()[name]["laplace_llr"], calibrated_llrs(*reference_scores(name), laplace=True)
    found = {
        f"{side}_{what}": getattr(values, what)()
        for side, values in (("target", llrs.target), ("nontarget", llrs.nontarget))
        for what in ("min", "max", "mean")
    }
    assert found == pytest.approx(expected, abs=1e-9)


def test_cllr_is_infinite_officially_just_beyond_what_e_to_the_x_holds():
    assert math.isfinite(cllr([-709.78], [0.0], compatibility="official"))
    assert cllr([-709.79], [0.0], compatibility="official") == math.inf
    assert cllr([0.0], [709.79], compatibility="official") == math.inf
    assert cllr([-709.79], [0.0]) == pytest.approx((709.79 / math.log(2) + 1) / 2)


def test_cllr_of_huge_scores_is_finite():
    assert cllr([1e300], [-1e300]) == 0.0
    assert cllr([-1e308, -1e308], [-1.0]) == pytest.approx(1e308 / math.log(2) / 2)
    assert cllr([-1e300], [0.0]) == pytest.approx(1e300 / math.log(2) / 2)


@pytest.mark.parametrize(
    ("target", "nontarget", "cost", "rate"),
    [
        ([2.0] * 20, [2.0] * 30, 0.0, 0.0),
        ([3.0, 4.0], [1.0, 2.0], 0.0, 0.0),
        ([1.0, 2.0], [3.0, 4.0], 1.0, 0.5),
        ([1.0], [2.0], 1.0, 0.5),
    ],
    ids=["all tied", "separable", "inverted", "one inverted pair"],
)
def test_pools_at_their_edges(target, nontarget, cost, rate):
    assert min_cllr(target, nontarget) == pytest.approx(cost, abs=1e-6)
    assert rocch_eer(target, nontarget) == rate
