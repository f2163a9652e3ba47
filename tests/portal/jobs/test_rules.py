"""Decisions about jobs, at their boundaries."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.jobs.lost_jobs import JobLimits, LostJobVerdict, judge_running
from portal.jobs.models import Job, JobState
from portal.jobs.rules import MAX_ATTEMPTS, must_send, remaining_time

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
LIMITS = JobLimits(lost_after=timedelta(seconds=30), hard_limit=timedelta(hours=6))


def seconds(number):
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("queue_is_idle", "times_sent", "patience_s"), [(True, 1, 20), (True, 6, 640), (True, 5000, 3600), (False, 3, 480)]
)
def test_message_is_repeated_ever_more_rarely_and_sooner_when_nothing_runs(queue_is_idle, times_sent, patience_s):
    job = Job(sent_at=NOW - seconds(patience_s), times_sent=times_sent)
    assert must_send(job, queue_is_idle=queue_is_idle, now=NOW)
    assert not must_send(job, queue_is_idle=queue_is_idle, now=NOW - TICK)


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


def test_living_job_has_timed_out_when_nothing_ended_it_at_the_hard_limit():
    longest = LIMITS.hard_limit + LIMITS.lost_after
    assert judge_running(running(silent_for=seconds(0), worked_for=longest), LIMITS, NOW) is LostJobVerdict.ALIVE
    too_long = running(silent_for=seconds(0), worked_for=longest + TICK)
    assert judge_running(too_long, LIMITS, NOW) is LostJobVerdict.TIMED_OUT
