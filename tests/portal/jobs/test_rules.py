"""Decisions about jobs, at their boundaries."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.jobs.lost_jobs import JobLimits, LostJobVerdict, judge_running
from portal.jobs.models import Job, JobState
from portal.jobs.rules import (
    MAX_ATTEMPTS,
    can_cancel,
    can_run_again,
    is_ready,
    must_send,
    remaining_time,
)

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
LIMITS = JobLimits(lost_after=timedelta(seconds=30), hard_limit=timedelta(hours=6))


def seconds(number):
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("parent_state", "ready"),
    [(state, state == JobState.SUCCEEDED) for state in JobState],
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
        (JobState.WAITING, True, False),
        (JobState.RUNNING, True, False),
        (JobState.SUCCEEDED, False, False),
        (JobState.FAILED, False, True),
        (JobState.CANCELLED, False, True),
    ],
)
def test_what_a_person_can_do_follows_from_the_state(state, cancel, again):
    assert (can_cancel(Job(state=state)), can_run_again(Job(state=state))) == (cancel, again)


def test_job_that_was_asked_to_stop_cannot_be_asked_again():
    assert not can_cancel(Job(state=JobState.RUNNING, cancel_requested_at=NOW))


def pace(**fields):
    known = {
        "state": JobState.RUNNING,
        "progress_since": NOW - seconds(30),
        "progress_from": 10,
        "done": 20,
        "total": 50,
    }
    return remaining_time(Job(**known | fields), NOW)


def test_remaining_time_rests_on_the_pace_of_this_stage_and_attempt():
    assert pace() == seconds(90)
    assert pace(done=50) == seconds(0)
    assert pace(done=60) == seconds(0)


def test_remaining_time_is_unknown_without_a_pace():
    assert pace(done=10) is None
    assert pace(progress_since=None) is None
    assert pace(state=JobState.WAITING) is None


def running(*, silent_for, worked_for=MINUTE, **fields):
    """A job whose last heartbeat lies `silent_for` back and came `worked_for` after its start."""
    heartbeat_at = NOW - silent_for
    fields = {"attempt": 1, "heartbeat_at": heartbeat_at, "started_at": heartbeat_at - worked_for} | fields
    return Job(state=JobState.RUNNING, **fields)


def test_running_job_is_alive_until_its_silence_is_longer_than_allowed():
    assert judge_running(running(silent_for=seconds(30)), LIMITS, NOW) is LostJobVerdict.ALIVE
    assert judge_running(running(silent_for=seconds(30) + TICK), LIMITS, NOW) is LostJobVerdict.TRY_AGAIN


@pytest.mark.parametrize(
    ("attempt", "verdict"),
    [
        (1, LostJobVerdict.TRY_AGAIN),
        (MAX_ATTEMPTS - 1, LostJobVerdict.TRY_AGAIN),
        (MAX_ATTEMPTS, LostJobVerdict.GIVE_UP),
    ],
)
def test_lost_job_is_tried_again_until_its_attempts_are_used(attempt, verdict):
    assert judge_running(running(silent_for=seconds(31), attempt=attempt), LIMITS, NOW) is verdict


def test_lost_job_that_was_to_be_cancelled_is_cancelled_even_at_its_last_attempt():
    job = running(silent_for=seconds(31), attempt=MAX_ATTEMPTS, cancel_requested_at=NOW)
    assert judge_running(job, LIMITS, NOW) is LostJobVerdict.CANCEL
    job.heartbeat_at = NOW
    assert judge_running(job, LIMITS, NOW) is LostJobVerdict.ALIVE
    job.started_at = NOW - LIMITS.hard_limit - LIMITS.lost_after - TICK
    assert judge_running(job, LIMITS, NOW) is LostJobVerdict.CANCEL


def test_lost_job_has_timed_out_when_it_was_at_the_hard_limit():
    near = LIMITS.hard_limit - LIMITS.lost_after
    timed_out = running(silent_for=seconds(31), worked_for=near)
    died_before = running(silent_for=seconds(31), worked_for=near - TICK)
    assert judge_running(timed_out, LIMITS, NOW) is LostJobVerdict.TIMED_OUT
    assert judge_running(died_before, LIMITS, NOW) is LostJobVerdict.TRY_AGAIN


def test_job_of_a_machine_that_was_off_for_a_night_is_tried_again():
    assert judge_running(running(silent_for=timedelta(hours=14)), LIMITS, NOW) is LostJobVerdict.TRY_AGAIN


def test_living_job_has_timed_out_when_nothing_ended_it_at_the_hard_limit():
    longest = LIMITS.hard_limit + LIMITS.lost_after
    assert judge_running(running(silent_for=seconds(0), worked_for=longest), LIMITS, NOW) is LostJobVerdict.ALIVE
    too_long = running(silent_for=seconds(0), worked_for=longest + TICK)
    assert judge_running(too_long, LIMITS, NOW) is LostJobVerdict.TIMED_OUT
