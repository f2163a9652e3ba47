"""Two-way clustered variances against statsmodels, and intervals that follow from them."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm
from statsmodels.stats.sandwich_covariance import cov_cluster, cov_cluster_2groups

from listening.analysis.models.intervals import (
    cluster_two_way,
    mean_influence,
    median_influence,
    stretched_interval,
)


@pytest.fixture(name="ratings")
def _ratings():
    """Scores of two systems with effects of 30 listeners and 17 items, unbalanced, some pairs repeated."""
    numbers = np.random.default_rng(5)
    listener, item = numbers.integers(0, 30, 500), numbers.integers(0, 17, 500)
    score = numbers.standard_normal(30)[listener] + numbers.standard_normal(17)[item] + numbers.standard_normal(500)
    return score, listener, item, np.arange(500) % 3 == 0


def test_variance_of_a_mean_is_the_two_way_sandwich_of_statsmodels(ratings):
    score, listener, item, _ = ratings
    ours = cluster_two_way([mean_influence(np.arange(500), score, listener, item)], listener, item)
    fitted = sm.OLS(score, np.ones((500, 1))).fit()
    both, by_listener, by_item = cov_cluster_2groups(fitted, listener, item)
    assert ours.variances()[0] == pytest.approx(both[0, 0], rel=1e-10)
    assert ours.listener[0, 0] == pytest.approx(by_listener[0, 0], rel=1e-10)
    assert ours.item[0, 0] == pytest.approx(by_item[0, 0], rel=1e-10)
    assert ours.degrees().tolist() == [16]


def test_variance_of_a_difference_is_the_sandwich_of_a_regression_on_the_system(ratings):
    score, listener, item, is_second = ratings
    influences = [mean_influence(np.flatnonzero(side), score, listener, item) for side in (~is_second, is_second)]
    ours = cluster_two_way(influences, listener, item)
    fitted = sm.OLS(score, np.column_stack([np.ones(500), is_second])).fit()
    # Without corrections, which the regression makes for two parameters and ours for each mean.
    for matrix, cluster, groups in ((ours.listener, listener, 30), (ours.item, item, 17)):
        plain = cov_cluster(fitted, cluster, use_correction=False)[1, 1]
        difference = matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1]
        assert difference * (groups - 1) / groups == pytest.approx(plain, rel=1e-10)


def test_utterances_never_make_a_difference_surer(ratings):
    score, listener, item, is_second = ratings
    influences = [mean_influence(np.flatnonzero(side), score, listener, item) for side in (~is_second, is_second)]
    ours = cluster_two_way(influences, listener, item)
    alone = ours.listener[0, 0] + ours.listener[1, 1] - 2 * ours.listener[0, 1]
    for share in (-0.9, 0.0, 2.0):
        changed = ours.with_missed(share * ours.listener)
        assert changed.item - changed.both == pytest.approx(share * ours.listener)
        assert changed.of_difference(0, 1)[0] == pytest.approx(alone * (1 + max(share, 0)))


def test_stretch_is_the_ratio_of_standard_errors_and_never_below_one(ratings):
    score, listener, item, _ = ratings
    everything = np.arange(500)
    ours = cluster_two_way(
        [of(everything, score, listener, item) for of in (mean_influence, median_influence)], listener, item
    )
    assert ours.stretches()[0] == pytest.approx(np.sqrt(ours.variances()[0] / ours.listener[0, 0]))
    assert (ours.stretches() > 1.1).all()
    # Utterances that cancel each other within themselves only narrow: the interval stays that of listeners.
    sign = np.where(everything % 2, 1.0, -1.0)
    paired = cluster_two_way([mean_influence(everything, sign, listener, everything // 2)], listener, everything // 2)
    assert paired.stretches().tolist() == [1.0]


def test_an_end_of_an_interval_that_is_0_is_written_as_0():
    """An end that differs from 0 by the order of computation alone is no number of anybody's."""
    almost_none = 1.665e-16
    assert stretched_interval(almost_none, np.full(100, almost_none), 1.0, 0.95, (0.0, 1.0)) == (0, 0)


def test_a_stretched_interval_of_normal_resamples_is_as_much_wider():
    resampled = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    low, high = stretched_interval(0.0, resampled, 2.0, 0.95, (-99, 99))
    assert [low, high] == pytest.approx([-1.96 * 2.0, 1.96 * 2.0], rel=2e-3)


def test_an_interval_stays_within_the_range_of_the_measure():
    resampled = np.random.default_rng(1).uniform(0, 0.1, 2000)
    low, high = stretched_interval(0.03, resampled, 5.0, 0.95, (0.0, 1.0))
    assert low == 0.0
    assert 0.1 < high <= 1.0
