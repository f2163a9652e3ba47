import itertools

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from listening.analysis.boards.linkability import (
    MEASURES,
    cut_groups,
    drawn_groups,
    make_grouping_table,
    measure_grouping,
    read_boards,
)
from listening.analysis.reading.inputs import Settings
from tests.listening.analysis.made_up_boards import made_up_placements, placements_of

SETTINGS = Settings(resamples=200, permutations=200)


def measures_of(groups, speakers):
    numbers = [np.unique(list(one), return_inverse=True)[1] for one in (groups, speakers)]
    return dict(zip(MEASURES, measure_grouping(numbers[0], numbers[1][None, :])[0].tolist(), strict=True))


def plain_measures(groups, speakers):
    """By the definitions, one item at a time (Amigó et al. 2009, sections 3.2 and 3.5)."""
    items = range(len(groups))
    in_group = {g: [i for i in items if groups[i] == g] for g in groups}
    in_speaker = {s: [i for i in items if speakers[i] == s] for s in speakers}
    purity = sum(max(sum(speakers[i] == s for i in inside) for s in speakers) for inside in in_group.values())
    inverse = sum(max(sum(groups[i] == g for i in inside) for g in groups) for inside in in_speaker.values())
    precision = [np.mean([speakers[i] == speakers[j] for j in in_group[groups[i]]]) for i in items]
    recall = [np.mean([groups[i] == groups[j] for j in in_speaker[speakers[i]]]) for i in items]
    return purity / len(groups), inverse / len(groups), np.mean(precision), np.mean(recall)


def test_measures_agree_with_definitions_and_scikit_learn():
    numbers = np.random.default_rng(3)
    for _ in range(300):
        samples = int(numbers.integers(2, 17))
        groups = numbers.integers(0, numbers.integers(1, 6), samples)
        speakers = numbers.integers(0, numbers.integers(1, 6), samples)
        found = measures_of(groups.tolist(), speakers.tolist())
        purity, inverse, precision, recall = plain_measures(groups.tolist(), speakers.tolist())
        assert (found["purity"], found["inverse purity"]) == pytest.approx((purity, inverse))
        assert (found["BCubed precision"], found["BCubed recall"]) == pytest.approx((precision, recall))
        assert found["F"] == pytest.approx(2 / (1 / purity + 1 / inverse))
        assert found["BCubed F"] == pytest.approx(2 / (1 / precision + 1 / recall))
        assert found["adjusted Rand index"] == pytest.approx(adjusted_rand_score(speakers, groups), abs=1e-12)


def test_cut_agrees_with_scipy_where_nothing_is_tied():
    for board in read_boards(made_up_placements(listeners=10, samples=12, speakers=3)):
        expected = fcluster(linkage(pdist(board.place), "average"), board.declared, "maxclust")
        assert adjusted_rand_score(expected, cut_groups(board)) == 1
        assert set(cut_groups(board)) == set(range(board.declared))


def test_cut_gives_as_many_groups_as_were_declared_even_if_all_distances_are_equal():
    corners = [
        {"slot": str(n), "x": x, "y": y, "declared": 2} for n, (x, y) in enumerate(itertools.product((0, 1), (0, 1)))
    ]
    board = read_boards(placements_of(corners))[0]
    assert len(set(cut_groups(board).tolist())) == 2
    together = read_boards(placements_of([{"slot": str(n), "declared": 3} for n in range(5)]))[0]
    assert len(set(cut_groups(together).tolist())) == 3


@pytest.mark.parametrize("declared", [0, 9])
def test_boards_without_a_usable_number_of_speakers_are_not_cut(declared):
    rows = [{"slot": str(n), "x": n / 10, "declared": declared} for n in range(8)]
    board = read_boards(placements_of(rows))[0]
    assert cut_groups(board) is None
    assert drawn_groups(board) is None
    assert make_grouping_table(placements_of(rows), SETTINGS).rows == ()


def test_p_counts_permutations_that_reach_the_value():
    # One board, two speakers with two samples each, grouped right: 2 of the 6 different labellings reach 1.
    rows = [
        {"slot": str(n), "x": x, "speaker": speaker, "group": group}
        for n, (x, speaker, group) in enumerate(((0, "A", "1"), (0.1, "A", "1"), (0.9, "B", "2"), (1, "B", "2")))
    ]
    settings = Settings(permutations=6000)
    row = make_grouping_table(placements_of(rows), settings).records(measure="adjusted Rand index", samples="all")[0]
    assert row["p"] == pytest.approx(1 / 3, abs=0.02)
    assert row["remark"] == "Fewer than 10 listeners: no interval."
    assert make_grouping_table(placements_of(rows), settings).records(samples="anonymised") == []
