import warnings

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist, squareform
from sklearn.isotonic import IsotonicRegression
from sklearn.manifold import ClassicalMDS, smacof

from listening.analysis.boards.linkability import read_boards
from listening.analysis.boards.maps import (
    add_shortest_paths,
    is_connected,
    majorise_stress,
    make_map_tables,
    scale_classically,
    stress_1,
    turn_onto,
)
from listening.analysis.reading.inputs import Settings
from tests.listening.analysis.made_up_boards import made_up_placements, placements_of

SETTINGS = Settings()


def placed(table, board="board-0"):
    return np.array([[row["x"], row["y"]] for row in table.records(board=board)], dtype=float)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_classical_scaling_agrees_with_scikit_learn(dimensions):
    numbers = np.random.default_rng(2)
    for _ in range(20):
        away = squareform(numbers.random(45))  # no distances of any plane
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = ClassicalMDS(n_components=dimensions, metric="precomputed").fit_transform(away)
        found = scale_classically(away, dimensions)
        assert np.abs(found) == pytest.approx(np.abs(expected), abs=1e-9)
        assert pdist(found) == pytest.approx(pdist(expected), abs=1e-9)


def test_turning_agrees_with_scipy():
    numbers = np.random.default_rng(3)
    for dimensions in (1, 2):
        reference = numbers.random((9, dimensions))
        places = numbers.random((9, dimensions))
        places -= places.mean(0)
        turned, disparity = turn_onto(places, reference)
        assert disparity == pytest.approx(procrustes(reference, places)[2])
        assert pdist(turned) == pytest.approx(pdist(places))
        centred = reference - reference.mean(0)
        assert (turned * centred).sum() == pytest.approx(np.linalg.svd(places.T @ centred)[1].sum())


def test_stress_agrees_with_scikit_learn_regression_and_is_zero_in_order():
    numbers = np.random.default_rng(5)
    asked, away = numbers.random(66), numbers.random(66)
    fitted = IsotonicRegression().fit(asked, away).predict(asked)
    assert stress_1(asked, away) == pytest.approx(np.sqrt(((away - fitted) ** 2).sum() / (away**2).sum()))
    assert stress_1(asked, asked**3) == 0
    assert stress_1(asked, away * 7) == pytest.approx(stress_1(asked, away))
    assert stress_1(np.zeros(3), np.array([1.0, 3.0, 2.0])) == 0  # ties may be broken
    assert np.isnan(stress_1(asked, np.zeros(66)))


def test_map_rests_on_the_mean_of_normalised_ranks():
    placements = made_up_placements(listeners=3, boards=1, shared=True)
    boards = read_boards(placements)
    averages = np.mean([board.distances_as("normalised", SETTINGS) for board in boards], axis=0)
    table, fit = make_map_tables(placements, SETTINGS)
    places = scale_classically(squareform(averages), 2)
    assert pdist(placed(table)) == pytest.approx(pdist(places), abs=1e-8)
    assert fit.records()[0]["stress"] == pytest.approx(stress_1(averages, pdist(places)), abs=1e-6)


@pytest.mark.parametrize(
    "rows",
    [
        [{"slot": "1"}],
        [{"slot": "1"}, {"slot": "2", "x": 0.9}],
        [{"slot": str(n), "x": 0.5, "y": 0.5} for n in range(6)],
    ],
)
def test_boards_that_say_nothing_are_named_and_not_drawn(rows):
    table, fit = make_map_tables(placements_of(rows), SETTINGS)
    assert table.rows == ()
    assert fit.records()[0]["stress"] is None
    assert fit.records()[0]["remark"] == "All distances are equal, so there is nothing to map."


def test_placings_that_lack_samples_are_left_out():
    rows = [{"slot": str(n), "x": n**2 / 40, "listener": one} for one in ("l1", "l2") for n in range(6)]
    table, fit = make_map_tables(placements_of([*rows, {"slot": "1", "listener": "l3", "x": 0.3}]), SETTINGS)
    assert len(table.rows) == 6
    assert fit.records()[0]["listeners"] == 2
    assert fit.records()[0]["remark"] == "1 placing left out that lack samples."


def raw_stress(asked, places):
    known = np.triu(np.isfinite(asked), 1)
    return ((asked - squareform(pdist(places))) ** 2)[known].sum()


def test_majorisation_agrees_with_scikit_learn():
    numbers = np.random.default_rng(8)
    for _ in range(5):
        asked = squareform(numbers.random(66) + 0.2)  # no distances of any plane
        start = scale_classically(asked, 2)
        found = majorise_stress(asked, start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, stress = smacof(asked, init=start, n_init=1, max_iter=20_000, eps=1e-13, normalized_stress=False)
        assert raw_stress(asked, found) == pytest.approx(stress, rel=1e-6)
        assert procrustes(expected, found)[2] == pytest.approx(0, abs=1e-6)
        assert raw_stress(asked, found) < raw_stress(asked, start)


def test_shortest_paths_fill_what_is_not_known():
    asked = np.array([[0, 1, np.nan, np.nan], [1, 0, 0, np.nan], [np.nan, 0, 0, 2.5], [np.nan, np.nan, 2.5, 0]])
    filled = add_shortest_paths(asked)
    assert filled.tolist() == [[0, 1, 1, 3.5], [1, 0, 0, 2.5], [1, 0, 0, 2.5], [3.5, 2.5, 2.5, 0]]
    asked[2, 3] = asked[3, 2] = np.nan
    assert not is_connected(asked)


def voices_of(points, boards):
    """Boards of one listener each, on which two recordings of every named voice lie at one place."""
    return placements_of(
        [
            {
                "listener": f"l{number}",
                "session": f"s{number}",
                "board": f"b{number}",
                "slot": f"{voice}{again}",
                "speaker": voice[0],
                "system": "T01" if voice[1:] else "original",
                "utterance": f"u{number}{again}",
                "x": points[voice][0],
                "y": points[voice][1],
            }
            for number, board in enumerate(boards)
            for voice in board
            for again in (1, 2)
        ]
    )


VOICES = ("A", "A'", "B", "B'", "C", "C'")
POINTS = dict(zip(VOICES, np.random.default_rng(9).random((6, 2)).round(3).tolist(), strict=True))


def test_distances_of_voices_are_means_of_ranked_distances_of_different_voices():
    placements = voices_of(POINTS, [VOICES[:4], VOICES[2:], VOICES[:2] + VOICES[4:]])
    sums, counts = {}, {}
    for board in read_boards(placements):
        names = [slot[:-1] for slot in board.slot.tolist()]
        pairs = zip(*np.triu_indices(len(names), 1), strict=True)
        for (first, second), value in zip(pairs, board.distances_as("normalised", SETTINGS), strict=True):
            if names[first] != names[second]:
                pair = tuple(sorted((names[first], names[second])))
                sums[pair] = sums.get(pair, 0) + value
                counts[pair] = counts.get(pair, 0) + 1
    asked = np.array(
        [sums[one, other] / counts[one, other] for n, one in enumerate(VOICES) for other in VOICES[n + 1 :]]
    )
    asked = asked.round(9)  # so that averages that are mathematically equal are tied
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = scale_classically(squareform(asked), 2)
        expected, _ = smacof(squareform(asked), init=start, n_init=1, max_iter=50_000, eps=1e-14)
    table, fit = make_map_tables(placements, SETTINGS)
    assert [row["speaker"] for row in table.records()] == ["A", "A", "B", "B", "C", "C"]
    found = placed(table, "all boards of T01")
    assert pdist(found) == pytest.approx(pdist(expected), abs=1e-4)
    assert fit.records()[0]["stress"] == pytest.approx(stress_1(asked, pdist(found)), abs=1e-6)
    assert set(table.values("listeners")) == {2}


def test_voices_never_placed_together_count_for_nothing():
    _, fit = make_map_tables(voices_of(POINTS, [VOICES[:4], VOICES[2:]]), SETTINGS)
    assert fit.records()[0]["remark"] == ("Averaged over 2 boards. 4 of 15 pairs of voices were never on one together.")
    assert fit.records()[0]["stress"] is not None


def test_voices_in_parts_that_never_met_have_no_map():
    table, fit = make_map_tables(voices_of(POINTS, [("A", "A'", "B"), ("B'", "C", "C'")]), SETTINGS)
    assert table.rows == ()
    assert fit.records()[0]["stress"] is None
    assert fit.records()[0]["remark"] == (
        "Some voices were never on a board with the others, so there is no map of all."
    )
