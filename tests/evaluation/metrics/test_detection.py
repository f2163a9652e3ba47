"""Equal error rates, DET curve, AUC and minDCF against official values, the protocol's words, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from common.errors import InputError
from evaluation.metrics.calibration import sort_scores
from evaluation.metrics.detection import (
    auc,
    compute_kaldi_eer,
    compute_speechbrain_eer,
    det_curve,
    detection_metrics,
    kaldi_eer,
    speechbrain_eer,
)
from tests.evaluation.score_sets import reference_cases, reference_scores, score_lists


@pytest.mark.parametrize("name", reference_cases())
def test_equal_error_rates_equal_official(name):
    case, scores = reference_cases()[name], reference_scores(name)
    kaldi = compute_kaldi_eer(sort_scores(*scores))
    assert kaldi.rate == case["kaldi_eer"]
    assert f"{100 * kaldi.rate:.4g}" == case["kaldi_eer_percent_printed"]
    assert kaldi.threshold == pytest.approx(case["kaldi_threshold"], rel=1e-8)
    speechbrain = compute_speechbrain_eer(sort_scores(*scores))
    assert speechbrain.rate == pytest.approx(case["speechbrain_eer"], abs=1e-12)
    assert speechbrain.threshold == case["speechbrain_threshold"]


def test_kaldi_eer_takes_scores_as_single_precision():
    barely_above = 1.0 + 1e-9
    assert kaldi_eer([barely_above, barely_above], [1.0, 1.0]) == kaldi_eer([1.0, 1.0], [1.0, 1.0]) == 0.5


def test_scores_beyond_single_precision_are_tied_not_an_error():
    assert kaldi_eer([1e300, 1e301], [1e299, -1e300]) == kaldi_eer([1.0, 1.0], [1.0, -1.0]) == 0.5
    assert speechbrain_eer([1e300], [1e299]) == 0.5


@pytest.mark.parametrize(
    ("target", "nontarget", "kaldi", "speechbrain"),
    [
        ([1.0], [5.0, 6.0], 0.0, 1.0),
        ([2.0] * 20, [2.0] * 30, 0.95, 0.5),
        ([3.0, 4.0], [1.0, 2.0], 0.0, 0.0),
        ([1.0, 2.0], [3.0, 4.0], 0.5, 1.0),
    ],
    ids=["single target", "all tied", "separable", "inverted"],
)
def test_equal_error_rates_at_their_edges(target, nontarget, kaldi, speechbrain):
    assert kaldi_eer(target, nontarget) == kaldi
    assert speechbrain_eer(target, nontarget) == speechbrain


@pytest.mark.parametrize(
    ("target", "nontarget", "sentence"),
    [
        ([], [1.0], r"target scores in one dimension, at least one of them, found shape \(0,\)"),
        ([[1.0]], [1.0], r"found shape \(1, 1\)"),
        ([1.0, np.nan], [1.0], "finite target scores, found 1 of 2"),
        (["1.0"], [1.0], "real numbers as target scores"),
        ([True], [1.0], "real numbers as target scores, found bool"),
    ],
)
def test_senseless_scores_are_refused(target, nontarget, sentence):
    with pytest.raises(InputError, match=sentence):
        detection_metrics(target, nontarget)


def test_integer_ratings_are_taken():
    assert speechbrain_eer(np.array([5, 6, 7]), np.array([4, 5, 6], dtype=np.int8)) == pytest.approx(1 / 3)


@given(score_lists(), score_lists())
def test_auc_counts_pairs(target, nontarget):
    pairs = [(t > n) + (t == n) / 2 for t in target for n in nontarget]
    assert auc(target, nontarget) == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


@given(score_lists(20), score_lists(20))
def test_det_curve_has_the_rates_at_each_threshold(target, nontarget):
    curve = det_curve(target, nontarget)
    assert curve.thresholds.tolist() == [*sorted({*target, *nontarget}), np.inf]
    for threshold, miss, false_alarm in zip(curve.thresholds, curve.miss_rate, curve.false_alarm_rate, strict=True):
        assert miss == sum(t < threshold for t in target) / len(target)
        assert false_alarm == sum(n >= threshold for n in nontarget) / len(nontarget)


@given(score_lists(20), score_lists(20))
def test_corners_draw_the_same_line(target, nontarget):
    curve = det_curve(target, nontarget)
    corners = curve.corners()
    kept = set(zip(corners.miss_rate, corners.false_alarm_rate, strict=True))
    for miss, false_alarm in zip(curve.miss_rate, curve.false_alarm_rate, strict=True):
        between = [(m, f) for m, f in kept if m == miss or f == false_alarm]
        assert any(m <= miss and f >= false_alarm for m, f in between)
        assert any(m >= miss and f <= false_alarm for m, f in between)
    assert corners.thresholds.size <= curve.thresholds.size
    assert (corners.miss_rate[0], corners.false_alarm_rate[-1]) == (0.0, 0.0)


@given(score_lists(20), score_lists(20))
def test_min_dcf_is_the_least_cost_of_all_thresholds(target, nontarget):
    metrics = detection_metrics(target, nontarget)
    for prior, found in ((0.01, metrics.min_dcf_01), (0.001, metrics.min_dcf_001)):
        costs = [
            prior * sum(t < threshold for t in target) / len(target)
            + (1 - prior) * sum(n >= threshold for n in nontarget) / len(nontarget)
            for threshold in [*target, *nontarget, np.inf]
        ]
        assert found == pytest.approx(min(costs) / prior, abs=1e-12)
