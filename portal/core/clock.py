"""One clock for all processes: machines disagree about the time, and what one writes another compares with now."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone


def read_clock() -> datetime:
    """Return the time by the clock of the database's machine; with SQLite all processes have the same."""
    return _ask_database() if connection.vendor == "postgresql" else timezone.now()


def _ask_database() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
