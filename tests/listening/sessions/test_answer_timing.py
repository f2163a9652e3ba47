"""When an answer may come: pure, at its boundaries."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listening.app.sessions.answer_timing import (
    FETCH_FIRST_S,
    TOLERANCE_S,
    HeardClip,
    judge,
    next_since,
)

NOON = datetime(2022, 9, 18, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def clip(seconds, first_s=0.0, complete_s=0.1):
    return HeardClip(seconds, at(first_s), None if complete_s is None else at(complete_s))


@pytest.mark.parametrize(
    ("now_s", "wait_s"), [(4.75, 0), (4.749, 0.001), (0, 4.75), (60, 0)], ids=["at", "before", "at once", "later"]
)
def test_criterion_09_one_clip_may_be_answered_a_quarter_second_before_its_end(now_s, wait_s):
    verdict = judge([clip(5)], since=at(0), now=at(now_s))
    assert verdict.wait_s == pytest.approx(wait_s)
    assert verdict.heard_at == at(5)


def test_criterion_09_pair_takes_as_long_as_both_clips():
    verdict = judge([clip(5), clip(3)], since=at(0), now=at(7))
    assert (verdict.wait_s, verdict.heard_at) == (0.75, at(8))


@pytest.mark.parametrize("missing", [clip(3, complete_s=None), HeardClip(3, None, None)], ids=["in part", "never sent"])
def test_clip_that_was_not_sent_whole_cannot_have_been_heard(missing):
    verdict = judge([clip(5), missing], since=at(0), now=at(3600))
    assert (verdict.wait_s, verdict.heard_at) == (FETCH_FIRST_S, None)


moments = st.floats(-100, 100).map(lambda value: round(value, 3))
lengths = st.floats(0.1, 30).map(lambda value: round(value, 3))


@given(st.lists(st.tuples(lengths, moments), min_size=1, max_size=4), moments)
def test_earliest_end_is_that_of_the_best_order_of_listening(known, since_s):
    """Compared with trying every order."""
    clips = [clip(seconds, first_s) for seconds, first_s in known]
    ends = []
    for order in permutations(clips):
        end = at(since_s)
        for one in order:
            end = max(end, one.first_at) + timedelta(seconds=one.seconds)
        ends.append(end)
    assert judge(clips, since=at(since_s), now=at(0)).heard_at == min(ends)


@given(st.lists(st.tuples(lengths, st.booleans(), st.floats(0, 20)), min_size=1, max_size=12))
def test_nobody_is_ever_ahead_of_real_time(answers):
    """However late and on-time answers mix: by any answer, all speech up to it has had its time since the start."""
    since, now, heard_s = at(0), at(0), 0.0
    for seconds, is_late, pause_s in answers:
        now += timedelta(seconds=pause_s)
        verdict = judge([clip(seconds, first_s=-1)], since=since, now=now)
        now += timedelta(seconds=verdict.wait_s + 0.001)
        verdict = judge([clip(seconds, first_s=-1)], since=since, now=now)
        heard_s += seconds
        assert verdict.wait_s == 0
        assert (now - at(0)).total_seconds() >= heard_s - TOLERANCE_S
        since = next_since(verdict.heard_at, is_late=is_late, now=now)


def test_late_answers_come_in_at_once_and_one_in_time_starts_anew():
    assert next_since(at(5), is_late=True, now=at(60)) == at(5)
    assert next_since(at(5), is_late=False, now=at(60)) == at(60)
    assert next_since(at(5), is_late=False, now=at(4.9)) == at(5), "the tolerance does not add up"
