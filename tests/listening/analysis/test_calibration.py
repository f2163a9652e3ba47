"""Calibration and C_llr against scikit-learn and the evaluation's own metrics."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evaluation.metrics.calibration import cllr, min_cllr, rocch_eer
from listening.analysis.scoring.calibration import Judgements, best_cost, cross_validated_cost, deal_folds, fit


def judgements(seed=0, n=600, listeners=20, gap=1.0, share=0.4):
    numbers = np.random.default_rng(seed)
    is_target = numbers.random(n) < share
    score = np.clip(np.rint(5.5 + 2 * gap * (is_target - 0.5) + 2 * numbers.standard_normal(n)), 1, 10)
    return Judgements(score, is_target, numbers.integers(0, listeners, n))


def subset(given, chosen):
    return Judgements(given.score[chosen], given.is_target[chosen], given.listener[chosen])


def test_fit_is_the_balanced_logistic_regression_of_scikit_learn():
    """With Platt's targets as ratings counted in both classes, each with its share."""
    given = judgements()
    targets = int(given.is_target.sum())
    nontargets = given.is_target.size - targets
    aim = np.where(given.is_target, (targets + 1) / (targets + 2), 1 / (nontargets + 2))
    weight = np.where(given.is_target, 1 / targets, 1 / nontargets)
    design, labels = np.tile(given.score, 2)[:, None], np.repeat([1, 0], given.score.size)
    reference = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000)
    reference.fit(design, labels, sample_weight=1000 * np.concatenate([weight * aim, weight * (1 - aim)]))
    expected = reference.decision_function(np.arange(1.0, 11)[:, None])
    assert fit(given).llr(np.arange(1.0, 11)) == pytest.approx(expected, abs=1e-4)


def test_cost_is_the_cllr_of_ratios_that_other_listeners_gave():
    given = judgements()
    folds = deal_folds(20, seed=1)
    ratios = np.empty(given.score.size)
    for fold in range(10):
        inside = folds[given.listener] == fold
        ratios[inside] = fit(subset(given, ~inside)).llr(given.score[inside])
    found = cross_validated_cost(given, given, folds)
    assert found.value == pytest.approx(cllr(ratios[given.is_target], ratios[~given.is_target]), rel=1e-12)
    assert found.resampled.size == 0


def test_resampled_costs_are_near_those_of_fits_made_anew():
    given, folds = judgements(), deal_folds(20, seed=1)
    draws = np.random.default_rng(4).multinomial(20, np.full(20, 1 / 20), size=30).astype(float)
    found = cross_validated_cost(given, given, folds, draws)
    for row, times in enumerate(draws):
        chosen = np.repeat(np.arange(given.score.size), times[given.listener].astype(int))
        again = cross_validated_cost(subset(given, chosen), subset(given, chosen), folds)
        assert found.resampled[row] == pytest.approx(again.value, abs=4e-3)
    assert found.resampled.std() > 5 * 4e-3


def test_separate_classes_stay_finite_and_within_what_was_seen():
    is_target = np.arange(60) < 20
    given = Judgements(np.where(is_target, 9.0, 2.0), is_target, np.arange(60) % 12)
    ratios = fit(given).llr(np.array([-1e6, 2.0, 9.0, 1e6]))
    assert ratios[0] == pytest.approx(-np.log(21))
    assert ratios[-1] == pytest.approx(np.log(41))
    assert (np.diff(ratios) >= 0).all()
    assert 0 < cross_validated_cost(given, given, deal_folds(12, 1)).value < 0.1


def test_a_class_that_is_missing_gives_no_cost():
    given, folds = judgements(), deal_folds(20, 1)
    assert cross_validated_cost(given, subset(given, given.is_target), folds) is None
    assert cross_validated_cost(subset(given, ~given.is_target), given, folds) is None
    one_person = subset(given, given.listener == 0)
    assert cross_validated_cost(one_person, one_person, folds) is None


def test_best_cost_is_that_of_the_evaluation_where_nothing_is_tied():
    numbers = np.random.default_rng(2)
    target, nontarget = numbers.normal(0.7, 1, 80), numbers.normal(0, 1, 120)
    order = np.argsort(np.concatenate([target, nontarget]))
    is_target = (order < 80).astype(float)
    found = best_cost(is_target, 1 - is_target)
    assert found["min_cllr"] == pytest.approx(min_cllr(target, nontarget), abs=1e-6)
    assert found["rocch_eer"] == pytest.approx(rocch_eer(target, nontarget), abs=1e-12)


def test_folds_are_equal_seeded_and_of_listeners():
    folds = deal_folds(52, seed=7)
    assert folds.tolist() == deal_folds(52, seed=7).tolist() != deal_folds(52, seed=8).tolist()
    assert set(np.bincount(folds).tolist()) == {5, 6}
    assert sorted(deal_folds(4, seed=7).tolist()) == [0, 1, 2, 3]
