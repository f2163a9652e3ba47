"""Coverage and false positive rate in simulated studies of each kind of answer."""

import numpy as np
import pytest
from scipy.special import ndtr

from listening.analysis.answers.pairs import WINS, estimate_preference
from listening.analysis.answers.scales import DIFFERENCE, MEAN, estimate_scale
from listening.analysis.reading.inputs import Settings
from tests.listening.analysis.made_answers import compared, rated

pytestmark = pytest.mark.slow
STUDIES = 300
SETTINGS = Settings()
SPREAD = 0.5
# Of 300 at 95 %, fewer than 270 or more than 297 would be chance in less than one of a thousand.
FEWEST, MOST = 0.90, 0.99


def covered(estimates, measure, truth):
    """Which of the estimates of a measure hold the truth, by what they are about."""
    return [one.low <= truth(one.condition, one.against) <= one.high for one in estimates if one.measure == measure]


def level(name, levels):
    return levels[int(name[1:])]


@pytest.mark.parametrize("levels", [(0, 0), (0, 0.8), (0, 2.0)])
@pytest.mark.parametrize("ties", [0.0, 0.5])
def test_intervals_of_preference_cover(levels, ties):
    sd = np.sqrt(2 * (2 * SPREAD**2 + 1))

    def truth(first, second):
        ahead = level(first, levels) - level(second, levels)
        return (ndtr((ahead - ties) / sd) + ndtr((ahead + ties) / sd)) / 2

    held = [
        hit
        for seed in range(STUDIES)
        for hit in covered(estimate_preference(compared(seed, levels, ties=ties), SETTINGS), WINS, truth)
    ]
    assert FEWEST <= np.mean(held) <= MOST, np.mean(held)


def test_intervals_of_scales_cover_and_decide():
    held, wrong = [], []
    for seed in range(STUDIES):
        estimates = estimate_scale(rated(seed, (0, 0, 0)), SETTINGS, (-50, 50))
        held += covered(estimates, MEAN, lambda *_: 0)
        wrong.append(any(one.adjusted < 0.05 for one in estimates if one.measure == DIFFERENCE))
    assert FEWEST <= np.mean(held) <= MOST, np.mean(held)
    assert np.mean(wrong) <= 0.09, np.mean(wrong)
