from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from common.errors import ProblemsError
from listening.analysis.boards.linkability import PAIRS, make_linkability_tables
from listening.analysis.reading.inputs import ORIGINAL, Settings
from tests.listening.analysis.made_up_boards import made_up_placements, placements_of

SETTINGS = Settings(resamples=200)


def detection_of(placements, kind="raw", settings=SETTINGS, **equal):
    return make_linkability_tables(placements, settings, kind)[0].records(**equal)


def independent_pairs(placements, kind):
    """Every pair by plain loops: kind of pair, system, closeness, same speaker."""
    boards = {}
    for row in range(len(placements)):
        key = placements.listener[row], placements.session[row], placements.board[row]
        boards.setdefault(key, []).append(row)
    found = []
    for rows in boards.values():
        of_board = []
        for place, i in enumerate(rows):
            for j in rows[place + 1 :]:
                flat = np.isnan(placements.y[i])
                away = abs(placements.x[i] - placements.x[j])
                if not flat:
                    away = np.hypot(away, placements.y[i] - placements.y[j]) / np.sqrt(2)
                both = sorted((placements.system[i], placements.system[j]), key=lambda one: one != ORIGINAL)
                named = ["anonymised" if one != ORIGINAL else one for one in both]
                system = both[1] if named[1] == "anonymised" else ""
                of_board.append(("-".join(named), system, away, placements.speaker[i] == placements.speaker[j]))
        if kind == "normalised":
            away = np.array([round(one[2], 12) for one in of_board])
            ranks = [(away < one).sum() + ((away == one).sum() - 1) / 2 for one in away]
            of_board = [(a, b, rank / (len(away) - 1), d) for (a, b, _, d), rank in zip(of_board, ranks, strict=True)]
        found += of_board
    return found


@pytest.mark.parametrize("kind", ["raw", "normalised"])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_linkability_agrees_with_plain_loops_and_scikit_learn(kind, dimensions):
    placements = made_up_placements(dimensions=dimensions, listeners=4)
    expected = independent_pairs(placements, kind)
    rows = detection_of(placements, kind)
    assert {(row["pairs"], row["system"]) for row in rows} == {
        *((pairs, "all") for pairs in PAIRS),
        *((pairs, system) for pairs in PAIRS[1:] for system in ("T01", "T02")),
    }
    for row in rows:
        of_row = [one for one in expected if one[0] == row["pairs"] and row["system"] in ("all", one[1])]
        closeness, same = -np.array([one[2] for one in of_row]).round(12), np.array([one[3] for one in of_row])
        assert (row["n_target"], row["n_nontarget"]) == (same.sum(), (~same).sum())
        assert row["auc"] == pytest.approx(roc_auc_score(same, closeness), abs=1e-9)
        false_alarms, hits, _ = roc_curve(same, closeness, drop_intermediate=False)
        # Where the polygon crosses misses = false alarms, on a fine grid of it.
        along = np.linspace(0, len(hits) - 1, 400_001)
        x = np.interp(along, np.arange(len(hits)), false_alarms)
        y = 1 - np.interp(along, np.arange(len(hits)), hits)
        crossing = np.argmin(np.abs(x - y))
        assert row["eer"] == pytest.approx((x[crossing] + y[crossing]) / 2, abs=2e-4)


def test_boards_that_separate_speakers_have_no_errors_and_boards_of_noise_have_half():
    clear = made_up_placements(spread=0.0, lost=0.0, listeners=3, boards=1)
    assert [row["eer"] for row in detection_of(clear)] == [0.0] * 7
    noise = made_up_placements(listeners=60, boards=3)
    numbers = np.random.default_rng(6)
    noise = replace(noise, x=numbers.random(len(noise)), y=numbers.random(len(noise)))
    for row in detection_of(noise, "normalised", Settings(resamples=1000, level=0.999), system="all"):
        assert row["eer_low"] < 0.5 < row["eer_high"]
        assert row["auc_low"] < 0.5 < row["auc_high"]


def test_excluded_sessions_are_left_out():
    placements = made_up_placements(listeners=12)
    expected = detection_of(placements.rows(placements.listener != "listener-03"))
    excluded = replace(placements, excluded=np.where(placements.listener == "listener-03", "a rule", ""))
    assert detection_of(excluded) == expected


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"slot": "1"}, {"slot": "1", "x": 0.7}], "expected each sample once, found sample 1 again"),
        ([{"slot": "1", "x": 1.2}, {"slot": "2"}], "sample 1: expected a place in [0, 1]"),
        ([{"slot": "1", "x": np.nan}, {"slot": "2"}], "sample 1: expected a place in [0, 1]"),
        ([{"slot": "1", "y": 0.2}, {"slot": "2"}], "second coordinate on all samples of a board or on none"),
        ([{"slot": "1"}, {"slot": "1", "listener": "l2", "speaker": "B"}], "to be the same for every listener"),
    ],
)
def test_boards_that_cannot_be_read_are_refused_in_a_sentence(rows, words):
    with pytest.raises(ProblemsError) as problem:
        make_linkability_tables(placements_of(rows), SETTINGS, "raw")
    assert words in " ".join(problem.value.problems)
    assert "Board b1" in problem.value.problems[0]
