"""Maintenance mode: every web server of the portal turns visitors away, and workers take no new job.

It is a row of the database, so it holds on all machines and outlasts a restart. A web server looks at it every two
seconds in a thread of its own, so no request waits for that, and one that loses the database keeps to what it last saw.
Operators who are logged in still see all pages. Who begins and ends it: `portal.operations.maintenance`.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection

from portal.core.models import Heartbeat

KIND = "maintenance"
LOOK_EVERY_S = 2.0
AGAIN_S = 60
TITLE = "The portal is under maintenance"
KEPT = "What you sent before is kept."
# What machines that watch it need, and how an operator comes in.
OPEN = ("/health/", "/metrics", "/log-in/", "/log-out/")
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
    """Return what the database says; None while it is off."""
    row = Heartbeat.objects.filter(kind=KIND).first()
    return None if row is None else Maintenance(row.at, row.details["message"])


def is_seen() -> bool:
    """Return whether this web server turns visitors away just now; it costs no query."""
    return find_seen() is not None


def find_seen() -> Maintenance | None:
    """Return what this web server goes by just now; it costs no query."""
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
