"""Agreement of listeners, against the krippendorff package, analysis of variance, and simulated truth."""

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from listening.analysis.agreement.reliability import (
    Votes,
    krippendorff_alpha,
    mean_raters,
    of_mean,
    one_way_icc,
    ordinal,
    two_way_icc,
)


def votes_from(matrix):
    """Votes of an items × listeners matrix with missing cells."""
    item, listener = np.nonzero(np.isfinite(matrix))
    return Votes(item, listener, matrix[item, listener], *matrix.shape)


def of_data(measure, votes):
    return measure(votes, np.ones((1, votes.listeners)))[0]


def random_matrix(seed, items=30, listeners=8, missing=0.4, points=5):
    numbers = np.random.default_rng(seed)
    quality = numbers.normal(3, 1, (items, 1)) + numbers.normal(0, 0.8, (items, listeners))
    matrix = np.clip(np.round(quality), 1, points)
    matrix[numbers.random(matrix.shape) < missing] = np.nan
    return matrix


@given(st.integers(0, 10_000), st.integers(2, 25), st.integers(2, 9), st.floats(0, 0.7))
def test_alpha_agrees_with_the_krippendorff_package(seed, items, listeners, missing):
    matrix = random_matrix(seed, items, listeners, missing)
    comparable = matrix[np.isfinite(matrix).sum(axis=1) > 1]
    assume(comparable.size and len(np.unique(comparable[np.isfinite(comparable)])) > 1)
    votes = votes_from(matrix)
    for level, ours in (("interval", votes), ("ordinal", ordinal(votes))):
        expected = krippendorff.alpha(reliability_data=matrix.T, level_of_measurement=level)
        assert of_data(krippendorff_alpha, ours) == pytest.approx(expected, abs=1e-9)


def test_intraclass_correlations_of_the_example_of_shrout_and_fleiss():
    """Shrout & Fleiss 1979, six targets, four judges: ICC(1,1) .17, ICC(2,1) .29, ICC(1,4) .44, ICC(2,4) .62."""
    matrix = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
    one_way = of_data(one_way_icc, votes_from(matrix))
    two_way = two_way_icc(matrix, np.ones((1, 4)))[0]
    assert mean_raters(votes_from(matrix)) == pytest.approx(4)
    found = [one_way, of_mean(one_way, 4), two_way, of_mean(two_way, 4)]
    np.testing.assert_allclose(found, [0.17, 0.44, 0.29, 0.62], atol=0.005)


def test_mean_of_raters_who_do_not_agree_has_no_reliability():
    """A single ICC of −0.19 would be stepped up to −0.9, one of −0.32 to −26.4."""
    found = of_mean(np.array([-0.32, -0.19, 0.0, 0.5]), 4)
    assert found.tolist() == [0.0, 0.0, 0.0, 0.8]


def test_one_way_icc_of_unequal_raters_is_that_of_an_analysis_of_variance():
    import pandas as pd

    votes = votes_from(random_matrix(4, items=60, missing=0.5))
    raters = np.bincount(votes.item, minlength=votes.items)
    frame = pd.DataFrame({"item": votes.item, "value": votes.value})[raters[votes.item] > 1]
    squares = anova_lm(ols("value ~ C(item)", frame).fit())
    between, within = (squares["sum_sq"] / squares["df"]).to_numpy()
    n0 = mean_raters(votes)
    assert of_data(one_way_icc, votes) == pytest.approx((between - within) / (between + (n0 - 1) * within))
    assert of_mean(of_data(one_way_icc, votes), n0) == pytest.approx((between - within) / between)


@pytest.mark.parametrize("measure", [krippendorff_alpha, one_way_icc])
def test_resamples_do_not_make_listeners_agree_with_themselves(measure):
    """The centre of the resamples stays at the value of the data, although listeners are drawn repeatedly."""
    votes = votes_from(random_matrix(6, items=200, listeners=14, missing=0.3))
    draws = np.random.default_rng(0).multinomial(14, np.full(14, 1 / 14), size=1000)
    resampled = measure(votes, draws.astype(float))
    assert np.mean(resampled) == pytest.approx(of_data(measure, votes), abs=0.02)
    matrix = random_matrix(6, items=40, listeners=14, missing=0)
    both_ways = two_way_icc(matrix, draws.astype(float))
    assert np.mean(both_ways) == pytest.approx(two_way_icc(matrix, np.ones((1, 14)))[0], abs=0.02)


def test_full_agreement_no_agreement_and_nothing_to_compare():
    agreed = np.repeat([[1.0], [3.0], [5.0]], 4, axis=1)
    for measure in (krippendorff_alpha, one_way_icc):
        assert of_data(measure, votes_from(agreed)) == pytest.approx(1)
        assert np.isnan(of_data(measure, votes_from(np.full((3, 4), 2.0))))
        assert np.isnan(of_data(measure, votes_from(np.array([[1.0, np.nan], [np.nan, 2.0]]))))
    assert of_data(krippendorff_alpha, votes_from(np.array([[1.0, 5.0], [5.0, 1.0]]))) < 0
    assert two_way_icc(agreed, np.ones((1, 4)))[0] == pytest.approx(1)
    assert np.isnan(two_way_icc(agreed[:, :1], np.ones((1, 1)))[0])
    assert np.isnan(two_way_icc(np.full((3, 4), 2.0), np.ones((1, 4)))[0])
