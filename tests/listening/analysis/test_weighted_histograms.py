"""Rates and medians of weighted histograms, against scikit-learn and scipy, an independent route, and invariances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.metrics import roc_auc_score

from evaluation.metrics.detection import auc, det_curve, interpolated_eers
from listening.analysis.scoring.resampled import (
    count_by_listener,
    find_medians,
    measure_areas,
    measure_resamples,
)

RATINGS = st.lists(st.integers(1, 10), min_size=1, max_size=40)


def histograms(target, nontarget):
    values = np.unique(np.concatenate([target, nontarget]))
    return tuple(
        np.array([[np.count_nonzero(side == value) for value in values]], float)
        for side in (np.asarray(target), np.asarray(nontarget))
    )


def eer(target, nontarget):
    return float(interpolated_eers(*histograms(target, nontarget))[0])


def eer_by_root(target, nontarget):
    """The crossing of two piecewise linear functions over the length of the polygon, found by bisection."""
    curve = det_curve(target, nontarget)
    length = np.concatenate([[0], np.cumsum(np.diff(curve.miss_rate) - np.diff(curve.false_alarm_rate))])

    def gap(place):
        return np.interp(place, length, curve.miss_rate) - np.interp(place, length, curve.false_alarm_rate)

    return float(np.interp(brentq(gap, 0, 2, xtol=1e-14), length, curve.miss_rate))


@given(RATINGS, RATINGS)
def test_equal_error_rate_is_the_crossing_of_the_polygon(target, nontarget):
    assert eer(target, nontarget) == pytest.approx(eer_by_root(target, nontarget), abs=1e-9)


@given(RATINGS, RATINGS)
def test_area_is_that_of_scikit_learn_and_of_the_evaluation(target, nontarget):
    area = float(measure_areas(*histograms(target, nontarget))[0])
    labels = [1] * len(target) + [0] * len(nontarget)
    assert area == pytest.approx(roc_auc_score(labels, target + nontarget), abs=1e-12)
    assert area == pytest.approx(auc(target, nontarget), abs=1e-12)


@pytest.mark.parametrize(
    ("target", "nontarget", "expected"),
    [
        ([5, 5, 5], [5, 5], 0.5),  # all tied
        ([9, 10], [1, 2, 3], 0.0),
        ([1, 2], [9, 10], 1.0),
        ([2, 3, 3, 3], [1, 1, 2, 2], 1 / 6),  # a segment of targets and nontargets at once
        ([3], [3], 0.5),
    ],
)
def test_known_equal_error_rates(target, nontarget, expected):
    assert eer(target, nontarget) == pytest.approx(expected, abs=1e-12)


def test_a_missing_class_gives_no_rate():
    some, none = np.array([[1.0, 2.0]]), np.zeros((1, 2))
    for measure in (interpolated_eers, measure_areas):
        assert np.isnan(measure(some, none)[0])
        assert np.isnan(measure(none, some)[0])


def test_resamples_equal_ratings_repeated_and_sorted_again():
    numbers = np.random.default_rng(3)
    listener, value, is_target = numbers.integers(0, 12, 400), numbers.integers(0, 7, 400), numbers.random(400) < 0.5
    draws = numbers.multinomial(12, np.full(12, 1 / 12), size=25).astype(float)
    sides = [count_by_listener(listener[side], value[side], listeners=12, values=7) for side in (is_target, ~is_target)]
    rates, surfaces = measure_resamples(draws, sides[0], sides[1], interpolated_eers, measure_areas)
    middles = find_medians(draws @ (sides[0] + sides[1]), np.arange(7.0))
    for row, times in enumerate(draws):
        chosen = np.repeat(np.arange(400), times[listener].astype(int))
        target, nontarget = value[chosen][is_target[chosen]], value[chosen][~is_target[chosen]]
        assert rates[row] == pytest.approx(eer_by_root(target, nontarget), abs=1e-9)
        assert surfaces[row] == pytest.approx(auc(target, nontarget), abs=1e-12)
        assert middles[row] == np.median(value[chosen])
