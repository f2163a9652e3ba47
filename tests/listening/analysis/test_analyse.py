"""The whole analysis: every table of each form, notes on what is absent, progress, and the same results again."""

from dataclasses import replace

import numpy as np
import pytest

from common.errors import ProblemsError
from listening.analysis.analyse import analyse
from listening.analysis.figures import list_figures
from listening.analysis.reading.inputs import Inputs, Settings
from tests.listening.analysis.made_ratings import made_inputs
from tests.listening.analysis.made_up_boards import made_up_placements

SETTINGS = Settings(resamples=200, permutations=200)


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def results(steps):
    return analyse(made_inputs(), SETTINGS, lambda *step: steps.append(step))


def test_results_say_what_they_rest_on(results):
    assert results.versions["analysis"]
    assert set(results.versions) == {"analysis", "numpy", "scipy"}
    assert results.settings == SETTINGS.as_data()
    assert results.study["is_simulated"] is True
    assert (results.counts["ratings"], results.counts["listeners"], results.counts["left_out"]) == (576, 12, 0)


def test_progress_goes_from_nothing_to_everything(results, steps):
    done = [step[1] for step in steps]
    assert done == list(range(len(steps)))
    assert {step[2] for step in steps} == {len(steps) - 1}
    assert all(step[0] for step in steps)


def test_excluded_boards_are_left_out_and_told():
    facts, boards = replace(made_inputs().study, tasks=(), scale={}), made_up_placements(boards=1)
    found = analyse(Inputs(facts, placements=replace(boards, excluded=np.full(len(boards), "too fast"))), SETTINGS)
    assert found.tables == {}
    assert found.counts["left_out"] == 96
    assert "12 sessions with 96 placements are left out by rules in force: 12 “too fast”." in found.remarks
    assert "No boards count: every session is left out by a rule in force." in found.remarks


def test_where_every_session_is_excluded_the_tables_are_absent_and_a_note_says_so():
    inputs = made_inputs()
    everyone = replace(inputs.ratings, excluded=np.full(len(inputs.ratings), "all"))
    found = analyse(replace(inputs, ratings=everyone), SETTINGS)
    assert found.table("raw", "summary") is None
    assert sum("No ratings count for" in note for note in found.remarks) == 2


def test_nothing_to_analyse_is_told():
    with pytest.raises(ProblemsError, match="expected ratings, boards, transcripts or answers, found none"):
        analyse(Inputs(made_inputs().study), SETTINGS)


def test_few_listeners_give_points_without_intervals():
    listeners = 9
    inputs = made_inputs()
    few = inputs.ratings.rows(np.isin(inputs.ratings.listener, [f"l{one:02}" for one in range(listeners)]))
    found = analyse(replace(inputs, ratings=few), SETTINGS)
    for row in found.table("normalised", "summary").records(kind="all", task="naturalness"):
        assert row["mean"] is not None
        assert row["mean_low"] is None
    for scores in ("raw", "normalised"):
        assert {row["is_told_apart"] for row in found.records(scores, "differences")} <= {None}
        assert {row["is_told_apart"] for row in found.records(scores, "eer_differences")} <= {None}
        assert not any(row["group"] for name in ("summary", "detection") for row in found.records(scores, name))
    drawn = list_figures(found)
    assert not any("share a letter" in one.caption or one.name.startswith("significance") for one in drawn)
