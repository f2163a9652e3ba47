"""Small recurring work of the scheduler that needs no job: tidying up and giving up what is overdue.

An app decorates a function in its `chores.py`, found by Django's start-up. A chore is short and harmless to repeat:
several schedulers may run at once, and each keeps its own time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import Error

log = logging.getLogger(__name__)
Chore = Callable[[], None]


@dataclass
class _Entry:
    work: Chore
    every_s: float
    due_at: float = 0.0


_entries: list[_Entry] = []


def chore(*, every: timedelta) -> Callable[[Chore], Chore]:
    """Let the decorated function be done when the scheduler starts, and again and again at this distance."""

    def register(work: Chore) -> Chore:
        _entries.append(_Entry(work, every.total_seconds()))
        return work

    return register


def do_chores() -> None:
    """Do what is due. A chore that fails is told and done again at its next time; a silent database is the caller's."""
    for entry in _entries:
        if time.monotonic() < entry.due_at:
            continue
        try:
            entry.work()
        except Error:
            raise
        except Exception:
            log.exception("The chore %s failed.", entry.work.__name__)
        entry.due_at = time.monotonic() + entry.every_s
