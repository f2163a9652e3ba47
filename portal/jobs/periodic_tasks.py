"""Small recurring work of the scheduler that needs no job: tidying up and giving up what is overdue.

An app decorates a function in a `periodic_tasks.py`, found when Django starts. A task is short and harmless to repeat:
several schedulers may run at once, and each keeps its own time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import Error

log = logging.getLogger(__name__)
Task = Callable[[], Any]


@dataclass
class _Entry:
    work: Task
    every_s: float
    due_at: float = 0.0


_entries: list[_Entry] = []


def periodic_task(*, every: timedelta) -> Callable[[Task], Task]:
    """Let the decorated function be done when the scheduler starts, and again and again at this distance."""

    def register(work: Task) -> Task:
        _entries.append(_Entry(work, every.total_seconds()))
        return work

    return register


def run_due_tasks() -> None:
    """Run what is due. A task that fails is told and done again at its next time; a silent database is the caller's."""
    for entry in _entries:
        if time.monotonic() < entry.due_at:
            continue
        try:
            entry.work()
        except Error:
            raise
        except Exception:
            log.exception("The periodic task %s failed.", entry.work.__name__)
        entry.due_at = time.monotonic() + entry.every_s
