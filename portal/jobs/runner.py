"""Runs one job in this process: claims it, keeps it alive, calls its handler, writes how it ended."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection

from common.memory import format_size, resident_bytes
from common.problems import Problem
from portal.core import logs
from portal.core.storage import StorageAway, wait_for_storage
from portal.jobs import services
from portal.jobs.kinds import JobFailure, get_kind
from portal.jobs.models import STAGE_CHARACTERS, Actor, Job, JobEvent, JobState
from portal.jobs.workers import this_capacity

PROGRESS_EVERY_S = 0.5
WATCH_EVERY_S = 1.0
OUT_OF_MEMORY = 70  # exit code of a process that a job let grow too large
STORAGE_PATIENCE_S = 60.0
DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT}
# Shared between a worker and its child processes, which are forked after this module was imported.
_stopping = multiprocessing.RawValue("b", 0)
log = logging.getLogger(__name__)


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
        self.limit_s = settings.JOB_SOFT_LIMIT_S
        self._on_progress = on_progress
        self._written_at = 0.0

    def check(self) -> None:
        """Stop here if the job was cancelled or taken away; to be called between items.

        Raises:
            CancelledError, JobReleased, ClaimLost
        """
        if self.claim_lost.is_set():
            raise services.ClaimLost
        if _stopping.value:
            raise JobReleased
        if self.cancel_wanted.is_set():
            raise CancelledError

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell how far the stage is, and stop here if the job should; cheap enough for each item."""
        self.check()
        stage, now = stage[:STAGE_CHARACTERS], time.monotonic()
        if stage == self.job.stage and done < total and now - self._written_at < PROGRESS_EVERY_S:
            return
        self._written_at = now
        services.report_progress(self.job, stage=stage, done=done, total=total)
        if self._on_progress:
            self._on_progress(self.job)

    def note(self, text: str, *, level: JobEvent.Level = JobEvent.Level.INFO) -> None:
        """Keep a sentence in the job's history."""
        services.log_event(self.job, text, level=level)


class HeartbeatThread(threading.Thread):
    """Writes heartbeats while the handler works, and carries the wish to cancel the other way."""

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
            if services.write_job_heartbeat(self.context.job):
                self.context.cancel_wanted.set()
        except services.ClaimLost:
            self.context.claim_lost.set()
        except Error as error:
            log.warning("No heartbeat for job %s this time: %s", self.context.job.pk, error)
            connection.close()


class Watch(threading.Thread):
    """Measures the memory of a job, ends its process where it holds more than its share, and keeps to its time limit.

    In a worker only: a shell has nobody to begin the process again.
    """

    def __init__(self, context: JobContext) -> None:
        super().__init__(name="watch", daemon=True)
        self.context = context
        self.ended = threading.Event()
        self.began = time.monotonic()
        self.is_late = False

    def run(self) -> None:
        while not self.ended.wait(WATCH_EVERY_S):
            held = resident_bytes(os.getpid())
            self.context.job.memory_bytes = max(self.context.job.memory_bytes, held)
            capacity = this_capacity()
            if capacity is None:
                continue
            if capacity.share_bytes is not None and held > capacity.share_bytes:
                self._end_process(capacity.share_bytes)
            if not self.is_late and time.monotonic() - self.began > self.context.limit_s:
                self.is_late = True
                os.kill(os.getpid(), signal.SIGUSR1)  # what Celery sends at a soft limit

    def _end_process(self, share_bytes: int) -> None:
        """Write how the job ends, then end its process, which its worker replaces: nothing else sets memory free."""
        share = format_size(share_bytes)
        try:
            services.finish_job(
                self.context.job,
                JobState.FAILED,
                failure=f"Too large: at “{self.context.job.stage or 'start'}” it held more than {share} of memory.",
                actor=Actor.OPERATOR,
                remedy=f"A job of this worker may hold {share}. Give it more with PORTAL_JOB_MEMORY_MB, fewer jobs at "
                "a time or a larger machine; then run it again: what was finished is kept.",
            )
        except Error:
            log.exception(
                "Job %s held more than %s of memory; its end could not be written.", self.context.job.pk, share
            )
        finally:
            connection.close()
            os._exit(OUT_OF_MEMORY)


def execute(job_id: Any, on_progress: Callable[[Job], None] | None = None) -> Job | None:
    """Run the job if it is waiting and it is its turn; None when another process has it or it has ended."""
    job = services.claim_job(job_id)
    if job is None:
        log.info("Job %s is not waiting; nothing to do.", job_id)
        return None
    context = JobContext(job, on_progress)
    heartbeat, watch = HeartbeatThread(context), Watch(context)
    heartbeat.start()
    watch.start()
    named = logs.job_id.set(str(job.pk))
    try:
        _run(context)
    except services.ClaimLost:
        log.warning("Job %s was taken from this process; it stops without writing.", job.pk)
    finally:
        logs.job_id.reset(named)
        for helper in (watch, heartbeat):
            helper.ended.set()
            helper.join()
    with suppress(Error):
        job.refresh_from_db()
    return job


def _run(context: JobContext) -> None:
    job = context.job
    try:
        kind = get_kind(job.kind)
        context.limit_s = min(context.limit_s, kind.time_limit_s or context.limit_s)
        result = kind.handler(context)
        if context.cancel_wanted.is_set():
            raise CancelledError
        services.finish_job(job, JobState.SUCCEEDED, result=result, problems=context.problems)
    except JobReleased as released:
        why = str(released) or "Its worker is stopping; the job waits for another."
        services.release_job(job, why, attempt_counts=False)
    except CancelledError:
        services.finish_job(job, JobState.CANCELLED, failure="Cancelled; what was finished is kept.")
    except JobFailure as failure:
        services.finish_job(
            job,
            JobState.FAILED,
            failure=str(failure),
            actor=failure.actor,
            remedy=failure.remedy,
            problems=failure.problems,
        )
    except SoftTimeLimitExceeded:
        connection.close()  # it may have come in the midst of a query
        services.finish_job(job, JobState.FAILED, **timed_out(context.limit_s))
    except (OperationalError, InterfaceError) as error:
        log.exception("Job %s lost the database.", job.pk)
        connection.close()
        services.release_job(job, f"The database failed ({error}); the job waits for another attempt.")
    except StorageAway as error:
        log.warning("Job %s waits for the store of files: %s", job.pk, error)
        _await_storage(context, error)
    except (services.ClaimLost, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and StorageAway.__name__ in str(error):  # in a process of its own
            _await_storage(context, StorageAway(str(error).partition(": ")[2]))
            return
        log.exception("Job %s failed.", job.pk)
        services.log_event(job, traceback.format_exc(), level=JobEvent.Level.TRACE)
        services.finish_job(job, JobState.FAILED, actor=Actor.OPERATOR, **_internal_error(job, error))


def _await_storage(context: JobContext, error: StorageAway) -> None:
    """Hold the job until the store of files is back, or for a minute, and let it go on from what it had finished.

    No attempt is counted: a store that is away is no reason for a job to end.
    """
    job = context.job
    services.log_event(job, f"{error} The job waits for it.", level=JobEvent.Level.WARNING)
    with suppress(CancelledError, JobReleased):
        wait_for_storage(STORAGE_PATIENCE_S, context.check)
    services.release_job(job, "The job goes on where the store of files broke off.", attempt_counts=False)


def _internal_error(job: Job, error: Exception) -> dict[str, Any]:
    """Return what happened and what to do where neither team nor organizer could have known better."""
    stage = job.stage or "start"
    if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
        return {
            "failure": f"The portal's disk is full: at “{stage}” nothing more could be written.",
            "remedy": "Free some space, then run the job again: what was finished is kept.",
        }
    if isinstance(error, FileNotFoundError):
        return {
            "failure": f"At “{stage}” a file was not found: {error}",
            "remedy": "Give this worker the same PORTAL_FILES_URL, or the same folder at PORTAL_DATA_DIR, as the web "
            "server, then run the job again.",
        }
    return {
        "failure": f"Internal error at “{stage}”: {type(error).__name__}: {error}",
        "remedy": "The technical detail is in the job's history, for the operator. Run it again when it is fixed.",
    }


def timed_out(limit_s: int) -> dict[str, Any]:
    """Return how a job ends that ran too long."""
    is_general = limit_s >= settings.JOB_SOFT_LIMIT_S
    one = "one job" if is_general else "a job of its kind"
    return {
        "failure": f"Timed out: it ran longer than the limit of {limit_s} s for {one}.",
        "actor": Actor.OPERATOR,
        "remedy": "What was finished is kept: run it again to continue"
        + (", or raise PORTAL_JOB_SOFT_LIMIT_S." if is_general else "."),
    }
