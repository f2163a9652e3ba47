import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata, spearmanr

from listening.analysis.scoring.resampled import weighted_pearson, weighted_ranks, weighted_spearman


def test_weights_of_one_give_what_scipy_gives():
    numbers = np.random.default_rng(1)
    first, second = numbers.normal(size=(40, 25)), numbers.integers(0, 5, (40, 25)).astype(float)
    ones = np.ones((40, 25))
    for row in range(40):
        assert weighted_pearson(first, second, ones)[row] == pytest.approx(pearsonr(first[row], second[row])[0])
        assert weighted_spearman(first, second, ones)[row] == pytest.approx(spearmanr(first[row], second[row])[0])
    assert weighted_ranks(second, ones) == pytest.approx(rankdata(second, axis=1) - 0.5)


def test_whole_weights_repeat_columns_and_zeros_leave_them_out():
    numbers = np.random.default_rng(2)
    first, second = numbers.integers(0, 6, (60, 20)).astype(float), numbers.normal(size=(60, 20))
    weight = numbers.integers(0, 4, (60, 20)).astype(float)
    first[weight == 0] = np.nan  # as a mean of nothing is
    pearson, spearman = weighted_pearson(first, second, weight), weighted_spearman(first, second, weight)
    for row in range(60):
        times = weight[row].astype(int)
        one, other = np.repeat(first[row], times), np.repeat(second[row], times)
        assert pearson[row] == pytest.approx(pearsonr(one, other)[0])
        assert spearman[row] == pytest.approx(spearmanr(one, other)[0])


def test_scale_and_place_of_values_change_nothing():
    numbers = np.random.default_rng(3)
    first, second, weight = numbers.normal(size=(3, 10, 30))
    weight = np.abs(weight)
    expected = weighted_pearson(first, second, weight)
    assert weighted_pearson(1e-7 * first + 3, 1e6 * second - 5, weight) == pytest.approx(expected, abs=1e-6)
    assert weighted_pearson(first, second, 7 * weight) == pytest.approx(expected)
    assert weighted_pearson(-first, second, weight) == pytest.approx(-expected)
    assert weighted_spearman(np.exp(first), second, weight) == pytest.approx(weighted_spearman(first, second, weight))


@pytest.mark.parametrize(
    ("first", "weight"),
    [
        ([0.1, 0.1, 0.1], [1, 1, 1]),
        ([0.1, 0.7, 0.3], [1, 0, 0]),
        ([0.1, 0.7, 0.3], [0, 0, 0]),
        ([0.1, 0.1, 9], [1, 2, 0]),
    ],
)
def test_what_is_constant_has_no_correlation(first, weight):
    arrays = [np.array([one], float) for one in (first, [0.3, 0.9, 0.2], weight)]
    assert np.isnan(weighted_pearson(*arrays)[0])
    assert np.isnan(weighted_spearman(*arrays)[0])


def test_perfect_correlations_do_not_exceed_one():
    numbers = np.random.default_rng(4)
    values = numbers.normal(size=(200, 7))
    assert weighted_pearson(values, values * 3 + 1, np.ones((200, 7))).max() <= 1


def test_one_row_of_values_serves_all_resamples():
    numbers = np.random.default_rng(5)
    first, second = numbers.integers(0, 5, (1, 20)).astype(float), numbers.normal(size=(30, 20))
    weight = numbers.integers(0, 3, (30, 20)).astype(float)
    every = np.repeat(first, 30, axis=0)
    assert (weighted_pearson(first, second, weight) == weighted_pearson(every, second, weight)).all()
    assert (weighted_spearman(first, second, weight) == weighted_spearman(every, second, weight)).all()
