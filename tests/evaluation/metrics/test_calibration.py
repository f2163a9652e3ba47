"""C_llr, min C_llr, ROCCH-EER and calibrated LLRs against official values, the protocol's words, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from common.errors import InputError
from evaluation.metrics.calibration import calibrated_llrs, cllr, min_cllr, rocch_eer
from evaluation.metrics.detection import detection_metrics
from tests.evaluation import plain_detection as plain
from tests.evaluation.score_sets import reference_cases, reference_scores, score_lists


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


@given(score_lists(), score_lists())
def test_metrics_of_pools_are_the_protocols(target, nontarget):
    assert min_cllr(target, nontarget) == pytest.approx(plain.min_cllr(target, nontarget), abs=1e-12)
    assert rocch_eer(target, nontarget) == pytest.approx(plain.rocch_eer(target, nontarget), abs=1e-12)


@pytest.mark.parametrize("laplace", [False, True])
@given(target=score_lists(20), nontarget=score_lists(20))
def test_calibrated_llrs_are_the_protocols_in_the_order_of_the_input(laplace, target, nontarget):
    llrs = calibrated_llrs(target, nontarget, laplace=laplace)
    labels = plain.sorted_labels(target, nontarget)
    expected = np.array(plain.llrs(labels, laplace=laplace))
    of_targets, of_nontargets = expected[np.array(labels) == 1], expected[np.array(labels) == 0]
    assert llrs.target[np.argsort(target, kind="stable")].tolist() == pytest.approx(of_targets.tolist(), abs=1e-12)
    assert llrs.nontarget[np.argsort(nontarget, kind="stable")].tolist() == pytest.approx(
        of_nontargets.tolist(), abs=1e-12
    )


@given(score_lists(), score_lists())
def test_calibration_is_never_worse_and_cost_of_llrs_is_min_cllr(target, nontarget):
    llrs = calibrated_llrs(target, nontarget)
    finite_cost = plain.cllr(llrs.target, llrs.nontarget)
    assert min_cllr(target, nontarget) == pytest.approx(finite_cost, abs=1e-12)
    assert min_cllr(target, nontarget) <= cllr(target, nontarget) + 1e-6


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
