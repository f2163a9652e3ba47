"""Which ratings count for raw and for normalised scores."""

import pytest

from listening.analysis.reading.inputs import BRIDGE, GOLD, ORIGINAL, PRACTICE, Settings
from listening.analysis.scoring.normalisation import count_left_out, score_ratings
from tests.listening.analysis.made_ratings import SCALE, columns_of

SETTINGS = Settings(partial_trials=4, partial_of_each_kind=2)


def rows(listener, originals, others, **more):
    systems = [ORIGINAL] * originals + ["T01"] * others
    return [
        {"listener": listener, "session": listener, "system": system, "rating": float(number % 10 + 1)} | more
        for number, system in enumerate(systems)
    ]


def listeners_of(ratings, kind, **more):
    return sorted(set(score_ratings(ratings, SCALE, SETTINGS, kind, **more).ratings.listener.tolist()))


def test_only_scored_ratings_count():
    given = columns_of(
        [{"purpose": purpose, "rating": 9.0} for purpose in (PRACTICE, GOLD, BRIDGE)] + [{"rating": 2.0}]
    )
    scored = score_ratings(given, SCALE, SETTINGS, "raw")
    assert (scored.score.tolist(), scored.kind, dict(scored.scale)) == ([2.0], "raw", SCALE)
    told = count_left_out(given, SETTINGS)
    names = ("practice_ratings", "gold_ratings", "bridge_ratings", "ratings", "ratings_read")
    assert [told.counts[name] for name in names] == [1, 1, 1, 1, 4]
    assert told.notes[0] == (
        "1 rating of practice trials, 1 rating of control trials, 1 rating of bridge trials: not in the scores."
    )
    without = given.rows(given.purpose != PRACTICE)  # a study of the portal gives none of these to its analysis
    notes = count_left_out(without, SETTINGS).notes
    assert notes[0] == "1 rating of control trials, 1 rating of bridge trials: not in the scores."


def test_excluded_sessions_count_only_when_asked_for():
    given = columns_of([*rows("a", 3, 3), *rows("b", 3, 3, excluded="low variance")])
    for kind in ("raw", "normalised"):
        assert listeners_of(given, kind) == ["a"]
        assert listeners_of(given, kind, with_excluded=True) == ["a", "b"]
    told = count_left_out(given, SETTINGS)
    assert (told.counts["left_out"], told.counts["excluded_sessions"], told.counts["listeners"]) == (6, 1, 1)
    assert told.notes == ("1 session of 1 listener with 6 ratings is left out by rules in force.",)


@pytest.mark.parametrize(
    ("originals", "others", "is_normalised"), [(2, 2, True), (2, 1, False), (1, 4, False), (4, 1, False), (1, 1, False)]
)
def test_an_unfinished_session_enters_normalised_scores_only_with_enough_of_each_kind(originals, others, is_normalised):
    given = columns_of([*rows("a", 3, 3), *rows("b", originals, others, is_finished=False)])
    assert listeners_of(given, "raw") == ["a", "b"]
    assert listeners_of(given, "normalised") == (["a", "b"] if is_normalised else ["a"])
    told = count_left_out(given, SETTINGS)
    assert told.counts["partial_sessions"] == 1
    assert told.counts["short_sessions"] == (0 if is_normalised else 1)
    assert told.counts["short_ratings"] == (0 if is_normalised else originals + others)


def test_where_a_task_has_no_originals_nobody_needs_them():
    given = columns_of([*rows("a", 0, 6), *rows("b", 0, 4, is_finished=False), *rows("c", 0, 3, is_finished=False)])
    assert listeners_of(given, "normalised") == ["a", "b"]


def test_sessions_of_a_listener_are_judged_one_by_one_and_ranked_together():
    first = columns_of([*rows("a", 2, 2), *rows("a", 1, 1, session="again", is_finished=False)])
    assert len(score_ratings(first, SCALE, SETTINGS, "normalised").ratings) == 4
    both = columns_of(
        [{"rating": 1.0, "session": "1"}, {"rating": 2.0, "session": "2"}, {"rating": 3.0, "session": "2"}]
    )
    assert score_ratings(both, SCALE, SETTINGS, "normalised").score.tolist() == [0, 0.5, 1]


def test_normalised_scores_are_ranked_within_listener_and_task():
    given = columns_of(
        [
            {"listener": "b", "task": "naturalness", "rating": 2.0},
            {"listener": "a", "task": "naturalness", "rating": 9.0},
            {"listener": "b", "task": "intelligibility", "rating": 10.0},
            {"listener": "b", "task": "naturalness", "rating": 3.0},
            {"listener": "a", "task": "naturalness", "rating": 8.0},
            {"listener": "b", "task": "intelligibility", "rating": 9.0},
        ]
    )
    scored = score_ratings(given, SCALE, SETTINGS, "normalised")
    assert scored.score.tolist() == [0, 1, 1, 1, 0, 0]
    assert (scored.listeners.tolist(), scored.listener.tolist()) == (["a", "b"], [1, 0, 1, 1, 0, 1])
    assert set(scored.scale.values()) == {(0.0, 1.0)}


def test_a_listener_with_equal_ratings_is_flagged():
    given = columns_of([*rows("a", 3, 3), *({"listener": "b", "rating": 7.0} for _ in range(5))])
    told = count_left_out(given, SETTINGS)
    assert told.counts["flat_listeners"] == 1
    assert told.notes == ("1 listener gave one rating, or equal ones only, in a task; normalised they are all 0.5: b.",)
