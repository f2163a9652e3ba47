"""Rank normalisation: the vectors of the specification, an independent library, and what no ratings change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from listening.analysis.scoring.normalisation import FORMULAS, normalise_ranks

RATINGS = st.lists(st.integers(1, 10), min_size=1, max_size=60)


def of(ratings, formula="rank01/avg", group=None):
    group = np.zeros(len(ratings), np.int64) if group is None else np.array(group)
    return normalise_ranks(np.array(ratings, float), group, formula)


@pytest.mark.parametrize(
    ("ratings", "scores", "is_flat"),
    [
        ([1, 5, 5, 10], [0, 0.5, 0.5, 1], False),
        ([10, 10, 1], [0.75, 0.75, 0], False),
        ([3, 3, 3], [0.5, 0.5, 0.5], True),
        ([7], [0.5], True),
    ],
)
def test_rank01_gives_the_scores_of_the_specification(ratings, scores, is_flat):
    found = of(ratings)
    assert found.score.tolist() == scores
    assert found.is_flat.tolist() == [is_flat] * len(ratings)


def test_midrank_gives_its_own_scores():
    assert of([1, 5, 5, 10], "midrank").score.tolist() == [0.125, 0.5, 0.5, 0.875]
    assert of([3, 3], "midrank").score.tolist() == [0.5, 0.5]


@given(st.lists(RATINGS, min_size=1, max_size=6), st.sampled_from(sorted(FORMULAS)), st.randoms())
def test_scores_are_those_of_scipy_whatever_the_order_of_the_rows(groups, formula, shuffling):
    rows = [(group, rating) for group, ratings in enumerate(groups) for rating in ratings]
    shuffling.shuffle(rows)
    found = of([rating for _, rating in rows], formula, [group for group, _ in rows])
    for group, ratings in enumerate(groups):
        places = [place for place, (one, _) in enumerate(rows) if one == group]
        in_order = [rows[place][1] for place in places]
        ranks, count = rankdata(in_order), len(ratings)
        expected = (ranks - 1) / max(count - 1, 1) if formula == "rank01/avg" else (ranks - 0.5) / count
        if len(set(ratings)) == 1:
            expected = np.full(count, 0.5)
        assert found.score[places] == pytest.approx(expected)
        assert found.score[places].mean() == pytest.approx(0.5)
        assert found.is_flat[places].tolist() == [len(set(ratings)) == 1] * count
