"""Begins and ends maintenance mode (`portal.core.maintenance`), in a transaction with its row in the audit log.

While it is on, workers end what they run and take nothing new, and the scheduler sends nothing and does none of its
periodic tasks. At its end all that it held up gets the time back: places of evaluators, and the waiting of jobs.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F

from listening.app.sessions.block_leases import give_time_back
from portal.core import audit
from portal.core.maintenance import KIND, Maintenance
from portal.core.models import Heartbeat
from portal.jobs.models import Job, JobState


@transaction.atomic
def begin_maintenance(*, message: str, now: datetime) -> Maintenance:
    """Turn visitors away from now on; if it is on already, only the message changes."""
    row, is_new = Heartbeat.objects.select_for_update().get_or_create(
        name=KIND, defaults={"kind": KIND, "at": now, "details": {"message": message}}
    )
    if is_new or row.details["message"] != message:
        row.details = {"message": message}
        row.save(update_fields=["details"])
        audit.record("maintenance.begun" if is_new else "maintenance.changed", row, message=message)
    return Maintenance(row.at, message)


@transaction.atomic
def end_maintenance(*, now: datetime) -> Maintenance | None:
    """Let everybody in again; what it was, or None if it was off."""
    row = Heartbeat.objects.select_for_update().filter(kind=KIND).first()
    if row is None:
        return None
    found = Maintenance(row.at, row.details["message"])
    audit.record("maintenance.ended", row, since=found.since.isoformat(timespec="seconds"))
    row.delete()
    give_time_back(since=found.since, now=now)
    waiting = Job.objects.filter(state=JobState.WAITING)
    waiting.filter(waiting_since__gt=found.since).update(waiting_since=now)
    waiting.filter(waiting_since__lte=found.since).update(waiting_since=F("waiting_since") + (now - found.since))
    waiting.filter(times_sent__gt=0).update(sent_at=None)  # their messages were dropped: the scheduler sends them again
    return found


def count_running() -> int:
    """Jobs that are not ended yet."""
    return Job.objects.filter(state=JobState.RUNNING).count()
