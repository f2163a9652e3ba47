"""Decisions about jobs, at their boundaries."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.jobs.models import Job, State
from portal.jobs.rules import can_cancel, can_run_again, is_ready, must_send, remaining_time

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def seconds(number):
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("parent_state", "ready"),
    [(state, state == State.SUCCEEDED) for state in State],
)
def test_follower_is_ready_when_its_parent_has_succeeded(parent_state, ready):
    assert is_ready(Job(after=Job(state=parent_state))) is ready


def test_job_without_parent_is_ready():
    assert is_ready(Job())


def test_job_that_was_never_sent_is_sent():
    assert must_send(Job(sent_at=None), queue_is_idle=False, now=NOW)


@pytest.mark.parametrize(
    ("queue_is_idle", "times_sent", "patience_s"),
    [
        (True, 1, 20),
        (True, 2, 40),
        (True, 6, 640),
        (True, 9, 3600),
        (True, 5000, 3600),
        (False, 1, 120),
        (False, 3, 480),
        (False, 6, 3600),
        (False, 5000, 3600),
    ],
)
def test_message_is_repeated_ever_more_rarely_and_sooner_when_nothing_runs(queue_is_idle, times_sent, patience_s):
    job = Job(sent_at=NOW - seconds(patience_s), times_sent=times_sent)
    assert must_send(job, queue_is_idle=queue_is_idle, now=NOW)
    assert not must_send(job, queue_is_idle=queue_is_idle, now=NOW - TICK)


@pytest.mark.parametrize(
    ("state", "cancel", "again"),
    [
        (State.WAITING, True, False),
        (State.RUNNING, True, False),
        (State.SUCCEEDED, False, False),
        (State.FAILED, False, True),
        (State.CANCELLED, False, True),
    ],
)
def test_what_a_person_can_do_follows_from_the_state(state, cancel, again):
    assert (can_cancel(Job(state=state)), can_run_again(Job(state=state))) == (cancel, again)


def test_job_that_was_asked_to_stop_cannot_be_asked_again():
    assert not can_cancel(Job(state=State.RUNNING, cancel_requested_at=NOW))


def pace(**fields):
    known = {"state": State.RUNNING, "progress_since": NOW - seconds(30), "progress_from": 10, "done": 20, "total": 50}
    return remaining_time(Job(**known | fields), NOW)


def test_remaining_time_rests_on_the_pace_of_this_stage_and_attempt():
    assert pace() == seconds(90)
    assert pace(done=50) == seconds(0)
    assert pace(done=60) == seconds(0)


def test_remaining_time_is_unknown_without_a_pace():
    assert pace(done=10) is None
    assert pace(progress_since=None) is None
    assert pace(state=State.WAITING) is None
