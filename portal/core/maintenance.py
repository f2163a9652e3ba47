"""Maintenance mode: every web server of the portal turns visitors away, and workers take no new job.

It is a row of the database, so it holds on all machines and outlasts a restart. A web server looks at it every two
seconds in a thread of its own, so no request waits for that, and one that loses the database keeps to what it last saw.
Operators who are logged in still see all pages. Who begins and ends it: `portal.operations.maintenance`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from portal.core.errors import OF_EVALUATORS, wants_page
from portal.core.models import Heartbeat
from portal.core.steps import Step

KIND = "maintenance"
LOOK_EVERY_S = 2.0
AGAIN_S = 60
TITLE = "The portal is under maintenance"
KEPT = "What you sent before is kept."
# What machines that watch it need, and how an operator comes in.
OPEN = ("/health/", "/metrics", "/log-in/", "/log-out/")
# Programs and evaluators get answers of their own.
answer_program = Step("portal.api.problems.answer_under_maintenance")
show_to_evaluator = Step("listening.app.sessions.views.under_maintenance")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Maintenance:
    """That it is on: since when, and what the operator says about it."""

    since: datetime
    message: str

    @property
    def sentence(self) -> str:
        return f"{TITLE}. {KEPT} {self.message}".strip()

    @property
    def command_to_end(self) -> str:
        return f"{settings.PROGRAM} maintenance off"


@dataclass
class _Known:
    maintenance: Maintenance | None = None


_known = _Known()


def find_maintenance() -> Maintenance | None:
    """What the database says; None while it is off."""
    row = Heartbeat.objects.filter(kind=KIND).first()
    return None if row is None else Maintenance(row.at, row.details["message"])


def is_seen() -> bool:
    """Whether this web server turns visitors away just now; it costs no query."""
    return find_seen() is not None


def find_seen() -> Maintenance | None:
    """What this web server goes by just now; it costs no query."""
    return _known.maintenance


def look() -> None:
    """Let this web server keep to what the database says."""
    _known.maintenance = find_maintenance()


def keep_looking() -> threading.Thread:
    """Look now and every two seconds, for as long as this process lives."""

    def look_again() -> None:
        try:
            look()
        except Exception as error:
            log.warning("The database does not tell whether there is maintenance: %s", error)
        finally:
            connection.close()

    def keep_on() -> None:
        while not pause.wait(LOOK_EVERY_S):
            look_again()

    pause = threading.Event()
    look_again()
    thread = threading.Thread(target=keep_on, name="maintenance", daemon=True)
    thread.start()
    return thread


def refuse_visitors(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Answer 503 to everybody but operators while there is maintenance; pages say it to operators by `maintenance`."""

    def guarded(request: HttpRequest) -> HttpResponse:
        maintenance = _known.maintenance
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
        answer = answer_program(sentence=maintenance.sentence)
    elif not wants_page(request):
        answer = HttpResponse(f"{maintenance.sentence}\n", "text/plain; charset=utf-8", 503)
    elif request.path.startswith(OF_EVALUATORS):
        answer = show_to_evaluator(request=request, again_s=AGAIN_S)
    else:
        answer = _show_page(request, maintenance.message)
    response: HttpResponse = answer
    return response


def _show_page(request: HttpRequest, message: str) -> HttpResponse:
    """The page of everybody else. One that was only looked at loads itself again; what was sent is sent by a person."""
    is_look = request.method in {"GET", "HEAD"}
    shown = {"title": TITLE, "kept": KEPT, "message": message, "again_s": AGAIN_S}
    shown["address"] = request.get_full_path() if is_look else ""
    page = HttpResponse(render_to_string("maintenance.html", shown), status=503)
    if is_look:
        page["Refresh"] = str(AGAIN_S)
    return page
