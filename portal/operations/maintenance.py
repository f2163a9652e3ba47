"""Begins and ends maintenance mode (`portal.core.maintenance`), with its row in the audit log; what visitors see then.

While it is on, workers end what they run and take nothing new, and the scheduler sends nothing and does none of its
periodic tasks. At its end all that it held up gets the time back: places of evaluators, and the waiting of jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from listening.app.sessions.block_leases import give_time_back
from listening.app.sessions.views import under_maintenance
from portal.api.problems import problem
from portal.core import audit
from portal.core.errors import OF_EVALUATORS, wants_page
from portal.core.maintenance import AGAIN_S, KEPT, KIND, OPEN, TITLE, Maintenance, find_seen
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
    """Return jobs that are not ended yet."""
    return Job.objects.filter(state=JobState.RUNNING).count()


# What visitors see meanwhile ------------------------------------------------------------------------


def refuse_visitors(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Answer 503 to everybody but operators while there is maintenance; pages say it to operators by `maintenance`."""

    def guarded(request: HttpRequest) -> HttpResponse:
        maintenance = find_seen()
        if maintenance is None or request.path.startswith(OPEN):
            return get_response(request)
        if _is_operator(request):
            request.maintenance = maintenance  # type: ignore[attr-defined]
            return get_response(request)
        response = _refuse(request, maintenance)
        response["Retry-After"] = str(AGAIN_S)
        response["Cache-Control"] = "no-store"
        response._has_been_logged = True  # type: ignore[attr-defined] # Django would log each one as an error
        return response

    return guarded


def _is_operator(request: HttpRequest) -> bool:
    """Of a page in a browser; a database that does not answer, or is just being migrated, knows nobody."""
    if request.path.startswith(("/api/", OF_EVALUATORS)):
        return False
    try:
        return bool(request.user.is_authenticated and request.user.is_staff)
    except DatabaseError:
        return False


def _refuse(request: HttpRequest, maintenance: Maintenance) -> HttpResponse:
    answer: Any
    if request.path.startswith("/api/"):
        answer = problem(503, maintenance.sentence)
    elif not wants_page(request):
        answer = HttpResponse(f"{maintenance.sentence}\n", "text/plain; charset=utf-8", 503)
    elif request.path.startswith(OF_EVALUATORS):
        answer = under_maintenance(request, AGAIN_S)
    else:
        answer = _show_page(request, maintenance.message)
    response: HttpResponse = answer
    return response


def _show_page(request: HttpRequest, message: str) -> HttpResponse:
    """Return the page of everybody else. One that was only looked at loads itself again; what was sent is sent by a
    person."""
    is_look = request.method in {"GET", "HEAD"}
    shown = {"title": TITLE, "kept": KEPT, "message": message, "again_s": AGAIN_S}
    shown["address"] = request.get_full_path() if is_look else ""
    page = HttpResponse(render_to_string("maintenance.html", shown), status=503)
    if is_look:
        page["Refresh"] = str(AGAIN_S)
    return page
