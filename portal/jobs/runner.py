"""Runs one job in this process: claims it, keeps it alive, calls its handler, writes how it ended."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection

from common.problems import Problem
from portal.core import logs
from portal.jobs import services
from portal.jobs.kinds import JobFailure, get_kind
from portal.jobs.models import Actor, Job, JobEvent, State

PROGRESS_EVERY_S = 0.5
DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT}
# Shared between a worker and its child processes, which are forked after this module was imported.
_stopping = multiprocessing.RawValue("b", 0)
log = logging.getLogger(__name__)


class JobCancelled(Exception):  # noqa: N818
    """Somebody asked the job to stop; raised between two items."""


class JobReleased(Exception):  # noqa: N818
    """The job goes back to the queue between two items: its worker is going to stop, unless the message says else."""


def stop_between_items() -> None:
    """Let every job of this worker go back to the queue at its next item."""
    _stopping.value = 1


class JobContext:
    """What a handler has of its job: its parameters, a way to tell how far it is, and to hear that it should stop.

    `problems` collects what is worth a look although the job succeeds; they are shown with its result.
    """

    def __init__(self, job: Job, on_progress: Callable[[Job], None] | None = None) -> None:
        self.job = job
        self.parameters: dict[str, Any] = job.parameters
        self.problems: list[Problem] = []
        self.cancel_wanted = threading.Event()
        self.claim_lost = threading.Event()
        self._on_progress = on_progress
        self._written_at = 0.0

    def check(self) -> None:
        """Stop here if the job was cancelled or taken away; to be called between items.

        Raises:
            JobCancelled, JobReleased, ClaimLost
        """
        if self.claim_lost.is_set():
            raise services.ClaimLost
        if _stopping.value:
            raise JobReleased
        if self.cancel_wanted.is_set():
            raise JobCancelled

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell how far the stage is, and stop here if the job should; cheap enough for each item."""
        self.check()
        now = time.monotonic()
        if stage == self.job.stage and done < total and now - self._written_at < PROGRESS_EVERY_S:
            return
        self._written_at = now
        services.report_progress(self.job, stage=stage, done=done, total=total)
        if self._on_progress:
            self._on_progress(self.job)

    def note(self, text: str, *, level: JobEvent.Level = JobEvent.Level.INFO) -> None:
        """Keep a sentence in the job's history."""
        services.log_event(self.job, text, level=level)


class Heartbeat(threading.Thread):
    """Writes signs of life while the handler works, and carries the wish to cancel the other way."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self.context = context
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            while not self.ended.wait(settings.JOB_HEARTBEAT_S):
                self._beat()
        finally:
            connection.close()

    def _beat(self) -> None:
        try:
            if services.keep_alive(self.context.job):
                self.context.cancel_wanted.set()
        except services.ClaimLost:
            self.context.claim_lost.set()
        except Error as error:
            log.warning("No heartbeat for job %s this time: %s", self.context.job.pk, error)
            connection.close()


def execute(job_id: Any, on_progress: Callable[[Job], None] | None = None) -> Job | None:
    """Run the job if it is waiting and it is its turn; None when another process has it or it has ended."""
    job = services.claim_job(job_id)
    if job is None:
        log.info("Job %s is not waiting; nothing to do.", job_id)
        return None
    context = JobContext(job, on_progress)
    heartbeat = Heartbeat(context)
    heartbeat.start()
    named = logs.job_id.set(str(job.pk))
    try:
        _run(context)
    except services.ClaimLost:
        log.warning("Job %s was taken from this process; it stops without writing.", job.pk)
    finally:
        logs.job_id.reset(named)
        heartbeat.ended.set()
        heartbeat.join()
    with suppress(Error):
        job.refresh_from_db()
    return job


def _run(context: JobContext) -> None:
    job = context.job
    try:
        result = get_kind(job.kind).handler(context)
        if context.cancel_wanted.is_set():
            raise JobCancelled
        services.finish_job(job, State.SUCCEEDED, result=result, problems=context.problems)
    except JobReleased as released:
        why = str(released) or "Its worker is stopping; the job waits for another."
        services.release_job(job, why, attempt_counts=False)
    except JobCancelled:
        services.finish_job(job, State.CANCELLED, failure="Cancelled; what was finished is kept.")
    except JobFailure as failure:
        services.finish_job(
            job,
            State.FAILED,
            failure=str(failure),
            actor=failure.actor,
            remedy=failure.remedy,
            problems=failure.problems,
        )
    except SoftTimeLimitExceeded:
        connection.close()  # it may have come in the midst of a query
        services.finish_job(job, State.FAILED, **timed_out(settings.JOB_SOFT_LIMIT_S))
    except (OperationalError, InterfaceError) as error:
        log.exception("Job %s lost the database.", job.pk)
        connection.close()
        services.release_job(job, f"The database failed ({error}); the job waits for another attempt.")
    except (services.ClaimLost, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        log.exception("Job %s failed.", job.pk)
        services.log_event(job, traceback.format_exc(), level=JobEvent.Level.TRACE)
        services.finish_job(job, State.FAILED, actor=Actor.OPERATOR, **_internal_error(job, error))


def _internal_error(job: Job, error: Exception) -> dict[str, Any]:
    """What happened and what to do where neither team nor organizer could have known better."""
    stage = job.stage or "start"
    if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
        return {
            "failure": f"The portal's disk is full: at “{stage}” nothing more could be written.",
            "remedy": "Free some space, then run the job again: what was finished is kept.",
        }
    return {
        "failure": f"Internal error at “{stage}”: {type(error).__name__}: {error}",
        "remedy": "The technical detail is in the job's history, for the operator. Run it again when it is fixed.",
    }


def timed_out(limit_s: int) -> dict[str, Any]:
    """How a job ends that ran too long."""
    return {
        "failure": f"Timed out: it ran longer than the limit of {limit_s} s for one job.",
        "actor": Actor.OPERATOR,
        "remedy": "What was finished is kept: run it again to continue, or raise PORTAL_JOB_SOFT_LIMIT_S.",
    }
