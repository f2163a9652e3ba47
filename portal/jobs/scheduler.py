"""What the scheduler does again and again: its round over the jobs, and the periodic tasks of the apps.

A round takes jobs back from processes that died and sends what the queue has lost. It needs nothing but the rows, so it
repairs a lost queue, a killed worker and a message that never arrived alike.

A periodic task is small work that needs no job: tidying up and giving up what is overdue. An app decorates a function
in a `periodic_tasks.py`, found when Django starts. A task is harmless to repeat and to break off; each has a thread of
its own, so that a long one holds up neither the round nor other tasks, and none is waited for at the end.

Several schedulers may run at once: each change is conditional, and each scheduler keeps its own time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import InterfaceError, OperationalError, connection

from portal.core.clock import read_clock
from portal.core.health import write_heartbeat
from portal.core.maintenance import find_maintenance
from portal.jobs import services, workers
from portal.jobs.lost_jobs import take_back_lost_jobs
from portal.jobs.models import Job, JobState
from portal.jobs.rules import is_ready, must_send

log = logging.getLogger(__name__)
Task = Callable[[], Any]


def sweep(now: datetime | None = None) -> int:
    """Do one round; return how many jobs it had to touch. During maintenance it sends none."""
    now = now or read_clock()
    touched = take_back_lost_jobs(now)
    workers.forget_silent(now)
    write_heartbeat("scheduler")
    if find_maintenance() is not None:
        return touched
    services.leave_card(now)
    busy = set(Job.objects.filter(state=JobState.RUNNING).values_list("queue", flat=True))
    for job in Job.objects.filter(state=JobState.WAITING).select_related("after").order_by("waiting_since"):
        if job.after is not None and job.after.state in {JobState.FAILED, JobState.CANCELLED}:
            services.settle_followers(job.after)
            touched += 1
        elif is_ready(job) and must_send(job, queue_is_idle=job.queue not in busy, now=now):
            if not services.send(job):
                break  # the queue is down; each further try would cost its time-out
            touched += 1
    return touched


# Periodic tasks -------------------------------------------------------------------------------------


@dataclass
class _ScheduledTask:
    work: Task
    every_s: float
    due_at: float = 0.0
    thread: threading.Thread | None = None


_entries: list[_ScheduledTask] = []


def periodic_task(*, every: timedelta) -> Callable[[Task], Task]:
    """Let the decorated function be done when the scheduler starts, and again and again at this distance."""

    def register(work: Task) -> Task:
        _entries.append(_ScheduledTask(work, every.total_seconds()))
        return work

    return register


def start_due_tasks() -> list[threading.Thread]:
    """Start what is due and not at work still; the threads that were started."""
    due = [one for one in _entries if time.monotonic() >= one.due_at and not (one.thread and one.thread.is_alive())]
    started = []
    for entry in due:
        entry.thread = threading.Thread(target=_run, args=(entry,), name=entry.work.__name__, daemon=True)
        entry.thread.start()
        started.append(entry.thread)
    return started


def _run(entry: _ScheduledTask) -> None:
    """A task that fails is told and done again at its next time, one that found no database in the next round."""
    try:
        entry.work()
    except (InterfaceError, OperationalError) as error:
        log.warning("The database did not answer (%s); trying %s again.", error, entry.work.__name__)
        return
    except Exception:
        log.exception("The periodic task %s failed.", entry.work.__name__)
    finally:
        connection.close()
    entry.due_at = time.monotonic() + entry.every_s
