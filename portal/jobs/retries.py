"""What becomes of a job whose process has died or runs for too long: tried again or, after its last attempt, not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from portal.jobs.models import Job

MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class Limits:
    lost_after: timedelta
    hard_limit: timedelta


class Verdict(Enum):
    """What becomes of a running job that gives no heartbeat or runs for too long."""

    ALIVE = "alive"
    CANCEL = "cancel"
    TIMED_OUT = "timed out"
    GIVE_UP = "give up"
    TRY_AGAIN = "try again"


def judge_running(job: Job, limits: Limits, now: datetime) -> Verdict:
    """Whether a running job still lives, and if not, what to do with it.

    The worker ends a job's process at the hard limit; where nothing did, its signs of life do not help it.
    """
    assert job.heartbeat_at is not None  # noqa: S101 - a database constraint
    assert job.started_at is not None  # noqa: S101
    is_silent = now - job.heartbeat_at > limits.lost_after
    is_overdue = now - job.started_at > limits.hard_limit + limits.lost_after
    if not is_silent and not is_overdue:
        return Verdict.ALIVE
    if job.cancel_requested_at:
        return Verdict.CANCEL
    if job.heartbeat_at - job.started_at >= limits.hard_limit - limits.lost_after:
        return Verdict.TIMED_OUT
    return Verdict.GIVE_UP if is_last_attempt(job) else Verdict.TRY_AGAIN


def is_last_attempt(job: Job) -> bool:
    """Whether the attempt that a job is in is the last that it gets."""
    return job.attempt >= MAX_ATTEMPTS
