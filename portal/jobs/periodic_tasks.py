"""Small recurring work of the scheduler that needs no job: tidying up and giving up what is overdue.

An app decorates a function in a `periodic_tasks.py`, found when Django starts. A task is harmless to repeat and to
break off: several schedulers may run at once, each keeps its own time, and none waits for a task when it ends. Each
task has a thread of its own, so that a long one holds up neither the scheduler's round nor other tasks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import InterfaceError, OperationalError, connection

log = logging.getLogger(__name__)
Task = Callable[[], Any]


@dataclass
class _Entry:
    work: Task
    every_s: float
    due_at: float = 0.0
    thread: threading.Thread | None = None


_entries: list[_Entry] = []


def periodic_task(*, every: timedelta) -> Callable[[Task], Task]:
    """Let the decorated function be done when the scheduler starts, and again and again at this distance."""

    def register(work: Task) -> Task:
        _entries.append(_Entry(work, every.total_seconds()))
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


def _run(entry: _Entry) -> None:
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
