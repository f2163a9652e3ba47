"""Failures that an operator meets: each is brought about, and the product says what to do; `…` is anything."""

import re
from collections import namedtuple
from datetime import timedelta

import pytest
from django.core.files.storage import default_storage
from django.db import OperationalError, connection
from django.utils import timezone

from portal.core import health
from portal.core.models import Heartbeat

pytestmark = pytest.mark.django_db


def lack_migrations(patch, settings):
    patch.setattr(health.MigrationExecutor, "migration_plan", lambda *_: [None] * 3)
    return health.check_migrations()


def lose_database(patch, settings):
    def refuse():
        raise OperationalError("connection refused")

    patch.setattr(connection, "ensure_connection", refuse)
    return health.check_database()


def lose_queue(patch, settings):
    settings.CELERY_BROKER_URL, settings.CELERY_BROKER_TRANSPORT_OPTIONS = "redis://127.0.0.1:1/0", {"max_retries": 0}
    return health.check_queue()


def end_scheduler(patch, settings):
    Heartbeat.objects.create(name="scheduler", at=timezone.now() - timedelta(hours=1))
    return health.check_scheduler()


def fill_disk(patch, settings):
    patch.setattr(health.shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(5))
    return health.check_disk()


def lose_files(patch, settings):
    def refuse(*_):
        raise OSError("Read-only file system")

    patch.setattr(default_storage, "save", refuse)
    return health.check_files()


FAILURES = {
    lack_migrations: "… migrations are not applied. Run voiceprivacy migrate.",
    lose_database: "The database does not answer (…). Start it or fix PORTAL_DATABASE_URL.",
    lose_queue: "The queue does not answer (…). Start it or fix PORTAL_BROKER_URL.",
    end_scheduler: "The scheduler has been silent for …. Start voiceprivacy scheduler.",
    fill_disk: (
        "Only … GB is free in …, and the portal keeps … GB. Make room: uploads are refused, and jobs soon fail."
    ),
    lose_files: "Files cannot be stored (…). Make room or fix the rights of the data folder.",
}


@pytest.mark.parametrize(("fail", "sentence"), FAILURES.items(), ids=[fail.__name__ for fail in FAILURES])
def test_product_says_what_failed_and_what_to_do(monkeypatch, settings, fail, sentence):
    settings.PROGRAM = "voiceprivacy"
    said = fail(monkeypatch, settings)
    monkeypatch.undo()
    assert re.fullmatch(".+".join(map(re.escape, sentence.split("…"))), said), said
