"""Health: is the process alive, is everything that it needs within reach, what do the parts beside it say.

A check returns None when all is well and else one sentence for the operator. An app above this one adds its own in
`checks.py`, found by Django's start-up.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from django.contrib.staticfiles.utils import get_files
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage
from django.core.management import CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from common.wording import first_line
from portal.core.clock import read_clock
from portal.core.labels import duration
from portal.core.maintenance import find_maintenance
from portal.core.models import Heartbeat
from portal.core.storage import SPARE_BYTES, StorageAway

MOST_APART_S = 5.0
HEALTH_FOLDER = "health"  # of the stored files
Check = Callable[[], str | None]
_checks: dict[str, Check] = {}


@require_safe
@never_cache
def live(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """The web process answers."""
    return HttpResponse("live\n", content_type="text/plain")


@require_safe
@never_cache
def ready(request: HttpRequest) -> JsonResponse:  # noqa: ARG001
    """The web process can do its work: 200, or 503 with one sentence for each part that fails."""
    answers = check_all()
    failed = any(answers.values())
    body: dict[str, Any] = {"ready": not failed, "checks": {name: answer or "ok" for name, answer in answers.items()}}
    if since := _find_maintenance():
        body["maintenance"] = f"on since {since:%Y-%m-%d %H:%M} UTC"
    return JsonResponse(body, status=503 if failed else 200)


def _find_maintenance() -> datetime | None:
    try:
        found = find_maintenance()
    except DatabaseError:
        return None
    return found.since if found else None


def health_check(name: str) -> Callable[[Check], Check]:
    """Let the decorated function be one of the checks."""

    def register(check: Check) -> Check:
        _checks[name] = check
        return check

    return register


def check_all(known: Mapping[str, str | None] = MappingProxyType({})) -> dict[str, str | None]:
    """Return every check by name, with its sentence or None.

    Args:
        known: what some checks have found already.
    """
    return {name: known[name] if name in known else check() for name, check in _checks.items()}


def require_database() -> None:
    """Refuse to start a process that could do nothing.

    Raises:
        CommandError: the database does not answer or lacks migrations.
    """
    if sentence := check_database() or check_migrations():
        raise CommandError(sentence)


@health_check("database")
def check_database() -> str | None:
    try:
        connection.ensure_connection()
        if not connection.is_usable():  # it was kept, and is lost
            connection.close()
            connection.ensure_connection()
    except DatabaseError as error:
        return f"The database does not answer ({first_line(error)}). Start it or fix PORTAL_DATABASE_URL."
    return None


@health_check("migrations")
def check_migrations() -> str | None:
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "The database does not tell which migrations are applied."
    if pending:
        counted = f"{len(pending)} migrations are not applied." if len(pending) > 1 else "1 migration is not applied."
        return f"{counted} Run {settings.PROGRAM} migrate."
    return None


@health_check("static files")
def check_static_files() -> str | None:
    """Return whether this process knows every file that a page may name; it reads their list once, when it starts."""
    if not isinstance(staticfiles_storage, ManifestFilesMixin):
        return None
    shown = FileSystemStorage(settings.FILES_DIR / "static")
    ignored = apps.get_app_config("staticfiles").ignore_patterns  # as `collectstatic` does
    names = {Path(name).as_posix() for name in get_files(shown, ignored)}
    missing = names - staticfiles_storage.hashed_files.keys()
    if missing:
        start = f"Start the web server with {settings.PROGRAM} web, which collects them."
        return f"{len(missing)} of {len(names)} static files are not collected, so no page opens. {start}"
    return None


@health_check("disk")
def check_disk() -> str | None:
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free < SPARE_BYTES:
        room = f"{free / 1e9:.1f} GB is free in {settings.DATA_DIR}, and the portal keeps {SPARE_BYTES / 1e9:.1f} GB"
        return f"Only {room}. Make room: uploads are refused, and jobs soon fail."
    return None


@health_check("clock")
def check_clock() -> str | None:
    """Return whether this machine agrees with the database's, by which jobs and sessions go."""
    try:
        ahead_s = (timezone.now() - read_clock()).total_seconds()
    except DatabaseError:
        return "The database does not tell the time."
    if abs(ahead_s) > MOST_APART_S:
        way = "ahead of" if ahead_s > 0 else "behind"
        return f"The clock of this machine is {abs(ahead_s):.0f} s {way} the database's. Set both by NTP."
    return None


@health_check("files")
def check_files() -> str | None:
    name = f"{HEALTH_FOLDER}/{uuid.uuid4().hex}"
    try:
        default_storage.save(name, ContentFile(b"ok"))
        default_storage.delete(name)
    except StorageAway as error:
        return f"{error} Files cannot be stored. Start the store, or fix PORTAL_FILES_URL or its keys."
    except OSError as error:
        return f"Files cannot be stored ({first_line(error)}). Make room or fix the rights of the data folder."
    return None


@health_check("queue")
def check_queue() -> str | None:
    if settings.CELERY_BROKER_URL.startswith("filesystem"):
        folder = settings.BROKER_DIR / "messages"
        if not folder.is_dir():
            return f"The queue's folder {folder} is missing. A running worker makes it again; start one."
        return None
    from kombu import Connection

    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    try:
        with Connection(settings.CELERY_BROKER_URL, connect_timeout=2, transport_options=options) as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except Exception as error:
        return f"The queue does not answer ({first_line(error)}). Start it or fix PORTAL_BROKER_URL."
    return None


@health_check("scheduler")
def check_scheduler() -> str | None:
    heartbeat = read_last_heartbeat("scheduler")
    if heartbeat is None:
        return f"The scheduler has never run. Start it with {settings.PROGRAM} scheduler (serve does)."
    silence = read_clock() - heartbeat
    if silence > timedelta(seconds=settings.SWEEP_EVERY_S * 3 + 10):
        return f"The scheduler has been silent for {duration(silence)}. Start {settings.PROGRAM} scheduler."
    return None


def read_last_heartbeat(name: str) -> datetime | None:
    try:
        return Heartbeat.objects.filter(name=name).values_list("at", flat=True).first()
    except DatabaseError:
        return None


def write_heartbeat(name: str, *, kind: str = "", **details: Any) -> None:
    """Leave a heartbeat."""
    Heartbeat.objects.update_or_create(name=name, defaults={"kind": kind, "at": read_clock(), "details": details})
