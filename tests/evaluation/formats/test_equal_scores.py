"""What equal scores leave open of an equal error rate."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.formats.equal_scores import bound_eer, describe_open_eer, note_few_trials
from evaluation.metrics.detection import kaldi_eer


@pytest.mark.parametrize(
    ("target", "nontarget", "expected"),
    [
        ([0.5, 0.5], [0.5, 0.5], (0.0, 1.0)),
        ([1, 1, 1, 1], [0, 0, 0, 0], (0.0, 0.0)),
        ([0, 0, 0, 0], [1, 1, 1, 1], (1.0, 1.0)),
        ([1, 1, 1, 0], [0, 0, 0, 1], (0.25, 0.25)),
        ([1, 1, 1, 0], [0, 0, 1, 1], (0.25, 0.5)),
        ([5, 5, 5, 5], [1, 2, 3, 9], (0.25, 0.25)),
        ([1e-60, 2e-60], [3e-60, 4e-60], (0.0, 1.0)),
    ],
    ids=["one score", "apart", "inverted", "decisions", "decisions that leave it open", "equal targets", "in float32"],
)
def test_eer_lies_between_the_best_and_the_worst_order_of_equal_scores(target, nontarget, expected):
    assert bound_eer(np.array(target, float), np.array(nontarget, float)) == expected


def test_bounds_are_within_a_trial_of_kaldi_with_ties_broken_either_way():
    random = np.random.default_rng(4)
    for _ in range(200):
        target = random.integers(0, 6, random.integers(1, 40)).astype(np.float32)
        nontarget = random.integers(0, 5, random.integers(1, 80)).astype(np.float32)
        lowest, highest = bound_eer(target, nontarget)
        step = 1 / target.size + 1e-9
        assert abs(kaldi_eer(target, nontarget) - highest) <= step
        assert abs(kaldi_eer(np.nextafter(target, np.float32(np.inf)), nontarget) - lowest) <= step


def test_next_to_nothing_is_not_said():
    random = np.random.default_rng(5)
    assert describe_open_eer(random.normal(1, 1, 50).round(2), random.normal(0, 1, 200).round(2)) == ""


def test_two_trials_of_one_score_leave_all_open():
    expected = "equal scores leave the EER anywhere from 0.0 to 100.0 %"
    assert describe_open_eer(np.array([0.5]), np.array([0.5])) == expected


def test_few_trials_are_named_by_their_side():
    assert note_few_trials(1, 300) == "unreliable: 1 target trial"
    assert note_few_trials(19, 2) == "unreliable: 19 target trials and 2 nontarget trials"
    assert note_few_trials(20, 20) == ""
