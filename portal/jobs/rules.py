"""Decisions about jobs, as pure functions of a job's row and the time: when one is sent, cancelled, run again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from portal.jobs.models import Job, JobState

MAX_ATTEMPTS = 3
RESEND_FIRST = timedelta(seconds=60)
RESEND_LAST = timedelta(hours=1)
RESEND_IDLE = timedelta(seconds=10)


def is_ready(job: Job) -> bool:
    """Return whether nothing has to end before this job may run."""
    return job.after is None or job.after.state == JobState.SUCCEEDED


def must_send(job: Job, *, queue_is_idle: bool, now: datetime) -> bool:
    """Return whether a waiting job needs a (further) message: none was sent, or the one sent seems lost.

    A queue in which nothing runs although something waits has lost its messages or has no worker; both call for a
    quick repetition. Behind a busy worker a message is repeated ever more rarely, so that copies do not pile up.
    """
    if job.sent_at is None:
        return True
    patience = min(RESEND_LAST, RESEND_FIRST * 2 ** min(job.times_sent, 10))
    if queue_is_idle:
        patience = min(RESEND_IDLE * 2 ** min(job.times_sent, 10), patience)
    return now - job.sent_at >= patience


def can_cancel(job: Job) -> bool:
    return not job.has_ended and job.cancel_requested_at is None


def can_run_again(job: Job) -> bool:
    return job.state in {JobState.FAILED, JobState.CANCELLED}


def is_ending(chain: Iterable[Job]) -> bool:
    """Return whether a job at work was asked to stop; those behind it follow when it does."""
    return any(job.cancel_requested_at is not None and not job.has_ended for job in chain)


def remaining_time(job: Job, now: datetime) -> timedelta | None:
    """Estimate of the time that the current stage still needs, from its pace since it began."""
    if job.state != JobState.RUNNING or job.progress_since is None or job.done <= job.progress_from:
        return None
    pace = (now - job.progress_since) / (job.done - job.progress_from)
    return pace * max(0, job.total - job.done)


def is_last_attempt(job: Job) -> bool:
    """Return whether the attempt that a job is in is the last that it gets."""
    return job.attempt >= MAX_ATTEMPTS
