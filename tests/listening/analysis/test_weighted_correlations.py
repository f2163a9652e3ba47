import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from listening.analysis.scoring.resampled import weighted_pearson, weighted_spearman


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
