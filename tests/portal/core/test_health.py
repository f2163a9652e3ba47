"""What `/health/ready` says, part by part, and that nothing starts that could do nothing."""

from datetime import timedelta

import pytest
from django.core.management import BaseCommand, CommandError, call_command
from django.utils import timezone

from portal.core import health
from portal.core.storage import ModuleManifestStorage

PARTS = ["database", "migrations", "static files", "disk", "clock", "files", "queue", "scheduler", "workers"]


@pytest.mark.django_db
def test_ready_names_each_part(client):
    assert list(client.get("/health/ready").json()["checks"]) == PARTS


@pytest.mark.parametrize("command", ["web", "worker", "scheduler"])
def test_nothing_starts_without_its_migrations(monkeypatch, settings, command):
    settings.ADDRESS = "127.0.0.1:0"
    monkeypatch.setattr(BaseCommand, "check", lambda *_, **__: None)
    monkeypatch.setattr(health, "check_database", lambda: None)
    monkeypatch.setattr(health, "check_migrations", lambda: "2 migrations are not applied.")
    with pytest.raises(CommandError, match=r"^2 migrations are not applied\.$"):
        call_command(command, skip_checks=False)


def test_worker_refuses_an_unknown_queue():
    with pytest.raises(CommandError, match=r"there is no queue cpus$"):
        call_command("worker", "--queues", "light,cpus")


def test_static_files_that_were_not_collected_are_seen(monkeypatch, settings, tmp_path):
    shown = tmp_path / "static"
    shown.mkdir()
    for name in ("portal.css", "portal.js", ".DS_Store", ".portal.js.swp", "portal.js~"):
        (shown / name).write_text("")
    settings.FILES_DIR = tmp_path
    storage = ModuleManifestStorage(location=tmp_path / "collected", base_url="/static/")
    monkeypatch.setattr(health, "staticfiles_storage", storage)
    storage.hashed_files = {"portal.css": "portal.1.css"}
    assert health.check_static_files() == (
        "1 of 2 static files are not collected, so no page opens. "
        "Start the web server with manage.py web, which collects them."
    )
    storage.hashed_files["portal.js"] = "portal.2.js"
    assert health.check_static_files() is None


@pytest.mark.parametrize(
    ("ahead_s", "sentence"),
    [
        (4, None),
        (600, "The clock of this machine is 600 s ahead of the database's. Set both by NTP."),
        (-600, "The clock of this machine is 600 s behind the database's. Set both by NTP."),
    ],
)
def test_clock_that_differs_from_the_databases_is_seen(monkeypatch, ahead_s, sentence):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(health, "read_clock", lambda: now - timedelta(seconds=ahead_s))
    assert health.check_clock() == sentence
