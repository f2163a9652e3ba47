"""One row a listener: known answers by hand, against scipy, and on a panel with a known odd one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from listening.analysis.post_screening.listeners import (
    make_listener_tables,
    measure_agreement,
    measure_deviations,
    select_rated,
)
from listening.analysis.post_screening.rules import make_screening_table
from listening.analysis.reading.inputs import BRIDGE
from tests.listening.analysis.rated import QUICK, SCALE, drawn, joined, ratings_of, scored_of


def rows_of(ratings, kind="raw", **equal):
    screening = make_screening_table(ratings, SCALE, QUICK)
    counted, everyone = scored_of(ratings, kind), scored_of(ratings, kind, with_excluded=True)
    return make_listener_tables(ratings, counted, everyone, screening)[0].records(**equal)


def row_of(ratings, listener, **how):
    (row,) = rows_of(ratings, listener=listener, **how)
    return row


@pytest.mark.parametrize("kind", ["raw", "normalised"])
def test_agreement_is_with_the_system_means_of_the_others(kind):
    scored = scored_of(drawn(listeners=8, systems=6, seed=2, points=10), kind)
    found, cells = measure_agreement(select_rated(scored, "naturalness"))
    for listener in range(8):
        own = scored.listener == listener
        others = {
            system: scored.score[~own & (scored.ratings.system == system)].mean()
            for system in scored.systems("naturalness")
        }
        beside = [others[system] for system in scored.ratings.system[own]]
        assert found[listener] == pytest.approx(stats.pearsonr(scored.score[own], beside)[0])
        assert cells[listener] == 6


def test_agreement_in_verifiability_is_class_by_class():
    """Everybody hears who is whom on the originals; means over both classes would be all equal."""
    names = [f"L{n}" for n in range(4) for _ in range(4)]
    ratings = ratings_of(
        names, ["original", "original", "T1", "T1"] * 4, [9, 1, 5, 4, 10, 2, 6, 5, 8, 1, 5, 4, 1, 9, 5, 5],
        task="verifiability", is_target=[1, 0, 1, 0] * 4,
    )  # fmt: skip
    found, cells = measure_agreement(select_rated(scored_of(ratings), "verifiability"))
    assert cells.tolist() == [4] * 4
    assert (found[:3] > 0.9).all()
    assert found[3] < -0.9


def test_bias_and_inconsistency_by_hand():
    """x is rated by both (mean 4): −1 and +1; y and z by one each, so T1 (mean 5) and T2 (mean 6) stand for them."""
    ratings = ratings_of(list("ABAB"), ["T1", "T1", "T1", "T2"], [3, 5, 7, 6], item=list("xxyz"))
    found = measure_deviations(select_rated(scored_of(ratings), "naturalness"))
    assert found.bias.tolist() == pytest.approx([(-1 + 2) / 2, (1 + 0) / 2])
    assert found.inconsistency.tolist() == pytest.approx([np.std([-1, 2], ddof=1), np.std([1, 0], ddof=1)])


def test_repeats_among_scored_and_bridge_trials_count():
    first = ratings_of(list("AAB"), ["T1", "T2", "T1"], [5, 7, 3], item=list("xyx"))
    again = ratings_of(list("A"), ["T1"], [8], item=["x"])
    bridge = ratings_of(list("AA"), ["T1"] * 2, [4, 5], item=["z", "z"], purpose=BRIDGE)
    row = row_of(joined(first, again, bridge), "A")
    assert (row["repeats"], row["repeat_difference"], row["repeat_within_one"]) == (2, 2.0, 0.5)
    assert row_of(first, "B")["repeats"] == 0
    assert row_of(first, "B")["repeat_difference"] is None


def test_who_is_left_out_has_a_row_and_changes_nobody_else():
    ratings = drawn(listeners=12, seed=3)
    alone = ratings.rows(ratings.listener != "L003")
    out = replace(ratings, excluded=np.where(ratings.listener == "L003", "gold-missed", ""))
    assert [row for row in rows_of(out) if row["listener"] != "L003"] == rows_of(alone)
    row = row_of(out, "L003")
    assert row["excluded"] == "gold-missed"
    assert row["n"] == 16
    assert -1 <= row["correlation"] <= 1


def test_rules_that_catch_are_named_in_their_task():
    odd = ratings_of(
        ["L000"] * 20,
        ["original", "T01", "T02", "T03"] * 5,
        [5] * 20,
        task="intelligibility",
        item=[f"i{n}" for n in range(20)],
    )
    ratings = joined(drawn(listeners=12), odd, drawn(listeners=12, seed=5, task="verifiability"))
    rows = {row["task"]: row["caught"] for row in rows_of(ratings, listener="L000")}
    assert rows == {"verifiability": "", "naturalness": "", "intelligibility": "low-variance"}
