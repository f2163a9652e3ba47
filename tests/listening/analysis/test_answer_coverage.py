"""Coverage and false positive rate in simulated studies of each kind of answer."""

import numpy as np
import pytest
from scipy.special import ndtr

from listening.analysis.answers.choices import AVERAGE_RECALL, RIGHT, estimate_choices, estimate_discrimination
from listening.analysis.answers.pairs import MEAN_RATING, WINS, estimate_comparison, estimate_preference
from listening.analysis.answers.scales import DIFFERENCE, MEAN, estimate_scale
from listening.analysis.reading.inputs import Settings
from tests.listening.analysis.made_answers import compared, comparison, frame_of, rated

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


def test_intervals_of_comparison_ratings_cover_and_decide():
    many = [compared(10_000 + seed, (0, 0.5), as_rating=True) for seed in range(60)]
    mean = np.mean([estimate_comparison(one, SETTINGS)[-1].value for one in many])
    held, wrong = [], []
    for seed in range(STUDIES):
        held += covered(
            estimate_comparison(compared(seed, (0, 0.5), as_rating=True), SETTINGS), MEAN_RATING, lambda *_: mean
        )
        null = estimate_comparison(compared(seed, (0, 0, 0), as_rating=True), SETTINGS)
        wrong.append(any(one.adjusted < 0.05 for one in null if one.measure == MEAN_RATING))
    assert FEWEST <= np.mean(held) <= MOST, np.mean(held)
    assert np.mean(wrong) <= 0.09, np.mean(wrong)


def test_intervals_of_scales_cover_and_decide():
    held, wrong = [], []
    for seed in range(STUDIES):
        estimates = estimate_scale(rated(seed, (0, 0, 0)), SETTINGS, (-50, 50))
        held += covered(estimates, MEAN, lambda *_: 0)
        wrong.append(any(one.adjusted < 0.05 for one in estimates if one.measure == DIFFERENCE))
    assert FEWEST <= np.mean(held) <= MOST, np.mean(held)
    assert np.mean(wrong) <= 0.09, np.mean(wrong)


def told_apart(seed, ability, listeners=24, items=12):
    """ABX trials: listeners and items differ in how easy they are."""
    numbers = np.random.default_rng(seed)
    of_listener, of_item = numbers.normal(0, 0.4, listeners), numbers.normal(0, 0.4, items)
    rows = []
    for listener in range(listeners):
        for item in range(items):
            truth = "AB"[int(numbers.random() < 0.5)]
            is_right = numbers.normal() < ability + of_listener[listener] + of_item[item]
            value = truth if is_right else "AB"[truth == "A"]
            rows += comparison("x", "y", value, listener=f"l{listener}", item=f"i{item}", truth=truth)
    return frame_of(rows)


@pytest.mark.parametrize("ability", [0.0, 0.8])
def test_intervals_of_discrimination_cover(ability):
    share = ndtr(ability / np.sqrt(1 + 2 * 0.4**2))
    held = [
        hit
        for seed in range(STUDIES)
        for hit in covered(estimate_discrimination(told_apart(seed, ability), SETTINGS), RIGHT, lambda *_: share)
    ]
    assert FEWEST <= np.mean(held) <= MOST, np.mean(held)


def test_intervals_of_average_recall_cover():
    """Two labels, the rare one harder."""
    held = []
    for seed in range(STUDIES):
        numbers = np.random.default_rng(seed)
        of_listener, of_item = numbers.normal(0, 0.4, 24), numbers.normal(0, 0.4, 16)
        rows = []
        for listener in range(24):
            for item in range(16):
                truth = "sad" if item % 4 == 0 else "glad"
                ease = (0.2 if truth == "sad" else 1.0) + of_listener[listener] + of_item[item]
                value = truth if numbers.normal() < ease else "other"
                rows.append(
                    {"listener": f"l{listener}", "item": f"i{item}", "condition": "c", "truth": truth, "value": value}
                )
        spread = np.sqrt(1 + 2 * 0.4**2)
        truth = (ndtr(0.2 / spread) + ndtr(1.0 / spread)) / 2
        held += covered(estimate_choices(frame_of(rows), SETTINGS), AVERAGE_RECALL, lambda *_, truth=truth: truth)
    assert FEWEST <= np.mean(held) <= MOST, np.mean(held)
