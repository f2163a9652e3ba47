"""Jobs whose process died or never ends: which they are, and whether they are tried again, given up or cancelled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.jobs import services
from portal.jobs.models import Actor, Job, JobState
from portal.jobs.rules import is_last_attempt
from portal.jobs.runner import timed_out


@dataclass(frozen=True)
class JobLimits:
    lost_after: timedelta
    hard_limit: timedelta


class LostJobVerdict(Enum):
    """What becomes of a running job that gives no heartbeat or runs for too long."""

    ALIVE = "alive"
    CANCEL = "cancel"
    TIMED_OUT = "timed out"
    GIVE_UP = "give up"
    TRY_AGAIN = "try again"


def judge_running(job: Job, limits: JobLimits, now: datetime) -> LostJobVerdict:
    """Return whether a running job still lives, and if not, what to do with it.

    The worker ends a job's process at the hard limit; where nothing did, its heartbeats do not help it.
    """
    assert job.heartbeat_at is not None  # noqa: S101 - a database constraint
    assert job.started_at is not None  # noqa: S101
    is_silent = now - job.heartbeat_at > limits.lost_after
    is_overdue = now - job.started_at > limits.hard_limit + limits.lost_after
    if not is_silent and not is_overdue:
        return LostJobVerdict.ALIVE
    if job.cancel_requested_at:
        return LostJobVerdict.CANCEL
    if job.heartbeat_at - job.started_at >= limits.hard_limit - limits.lost_after:
        return LostJobVerdict.TIMED_OUT
    return LostJobVerdict.GIVE_UP if is_last_attempt(job) else LostJobVerdict.TRY_AGAIN


def take_back_lost_jobs(now: datetime) -> int:
    """Judge every running job, and do with the lost ones what the verdict says; how many these were."""
    running = Job.objects.filter(state=JobState.RUNNING).values_list("pk", flat=True)
    return sum(_take_back(pk, now) for pk in list(running))


@transaction.atomic
def _take_back(pk: Any, now: datetime) -> bool:
    # Read again under the lock: the job may have given a heartbeat or ended while this round waited for it.
    job = Job.objects.select_for_update().filter(pk=pk, state=JobState.RUNNING).first()
    if job is None:
        return False
    limits = JobLimits(
        lost_after=timedelta(seconds=settings.JOB_LOST_AFTER_S), hard_limit=timedelta(seconds=settings.JOB_HARD_LIMIT_S)
    )
    verdict = judge_running(job, limits, now)
    if verdict is LostJobVerdict.ALIVE:
        return False
    if verdict is LostJobVerdict.TRY_AGAIN:
        return services.release_job(job, "Its process stopped responding; the job waits for another.")
    if verdict is LostJobVerdict.CANCEL:
        return services.finish_job(job, JobState.CANCELLED, failure="Cancelled; what was finished is kept.")
    if verdict is LostJobVerdict.TIMED_OUT:
        return services.finish_job(job, JobState.FAILED, **timed_out(settings.JOB_HARD_LIMIT_S))
    return services.finish_job(
        job,
        JobState.FAILED,
        failure=f"The worker's process died {job.attempt} times while it ran this job, "
        f"last at “{job.stage or 'start'}”.",
        actor=Actor.OPERATOR,
        remedy="Look for lack of memory on the worker's machine; then run it again: what was finished is kept.",
    )
