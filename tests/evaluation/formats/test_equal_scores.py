"""What equal scores leave open of an equal error rate."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.formats.equal_scores import bound_eer, note_few_trials


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


def test_few_trials_are_named_by_their_side():
    assert note_few_trials(1, 300) == "unreliable: 1 target trial"
    assert note_few_trials(19, 2) == "unreliable: 19 target trials and 2 nontarget trials"
    assert note_few_trials(20, 20) == ""
