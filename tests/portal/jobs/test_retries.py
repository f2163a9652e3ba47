"""What becomes of a job whose process is silent or runs for too long, at the boundaries."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.jobs.models import Job, State
from portal.jobs.retries import MAX_ATTEMPTS, Limits, Verdict, judge_running

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)
LIMITS = Limits(lost_after=timedelta(seconds=30), hard_limit=timedelta(hours=6))


def seconds(number):
    return timedelta(seconds=number)


MINUTE = timedelta(minutes=1)


def running(*, silent_for, worked_for=MINUTE, **fields):
    """A job whose last heartbeat lies `silent_for` back and came `worked_for` after its start."""
    heartbeat_at = NOW - silent_for
    fields = {"attempt": 1, "heartbeat_at": heartbeat_at, "started_at": heartbeat_at - worked_for} | fields
    return Job(state=State.RUNNING, **fields)


def test_running_job_is_alive_until_its_silence_is_longer_than_allowed():
    assert judge_running(running(silent_for=seconds(30)), LIMITS, NOW) is Verdict.ALIVE
    assert judge_running(running(silent_for=seconds(30) + TICK), LIMITS, NOW) is Verdict.TRY_AGAIN


@pytest.mark.parametrize(
    ("attempt", "verdict"),
    [(1, Verdict.TRY_AGAIN), (MAX_ATTEMPTS - 1, Verdict.TRY_AGAIN), (MAX_ATTEMPTS, Verdict.GIVE_UP)],
)
def test_lost_job_is_tried_again_until_its_attempts_are_used(attempt, verdict):
    assert judge_running(running(silent_for=seconds(31), attempt=attempt), LIMITS, NOW) is verdict


def test_lost_job_that_was_to_be_cancelled_is_cancelled_even_at_its_last_attempt():
    job = running(silent_for=seconds(31), attempt=MAX_ATTEMPTS, cancel_requested_at=NOW)
    assert judge_running(job, LIMITS, NOW) is Verdict.CANCEL
    job.heartbeat_at = NOW
    assert judge_running(job, LIMITS, NOW) is Verdict.ALIVE
    job.started_at = NOW - LIMITS.hard_limit - LIMITS.lost_after - TICK
    assert judge_running(job, LIMITS, NOW) is Verdict.CANCEL


def test_lost_job_has_timed_out_when_it_was_at_the_hard_limit():
    near = LIMITS.hard_limit - LIMITS.lost_after
    timed_out = running(silent_for=seconds(31), worked_for=near)
    died_before = running(silent_for=seconds(31), worked_for=near - TICK)
    assert judge_running(timed_out, LIMITS, NOW) is Verdict.TIMED_OUT
    assert judge_running(died_before, LIMITS, NOW) is Verdict.TRY_AGAIN


def test_job_of_a_machine_that_was_off_for_a_night_is_tried_again():
    assert judge_running(running(silent_for=timedelta(hours=14)), LIMITS, NOW) is Verdict.TRY_AGAIN


def test_living_job_has_timed_out_when_nothing_ended_it_at_the_hard_limit():
    longest = LIMITS.hard_limit + LIMITS.lost_after
    assert judge_running(running(silent_for=seconds(0), worked_for=longest), LIMITS, NOW) is Verdict.ALIVE
    too_long = running(silent_for=seconds(0), worked_for=longest + TICK)
    assert judge_running(too_long, LIMITS, NOW) is Verdict.TIMED_OUT
