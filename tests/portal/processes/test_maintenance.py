"""Maintenance mode in real programs: several web servers, a worker that ends its job, an upgrade and a move."""

import os
import re
import subprocess
import sys

import requests
from django.conf import settings
from django.core.management import call_command

from portal.jobs.models import JobState
from tests.portal.processes.programs import items_of, let_go, make_steps, wait_for_end, wait_for_items, wait_until
from tests.portal.processes.uploading import WebServer


def statuses(servers, path="/"):
    return [requests.get(f"{server.address}{path}", timeout=30).status_code for server in servers]


def test_all_web_servers_refuse_and_the_worker_ends_what_it_runs_alone(alone, tmp_path):
    alone.stand()
    servers = [WebServer(alone), WebServer(alone)]
    first, second = tmp_path / "first", tmp_path / "second"
    running = make_steps(first, held_at=2)
    wait_for_items(first, 2)
    assert statuses(servers) == [200, 200]
    call_command("maintenance", "on")
    wait_until(lambda: statuses(servers) == [503, 503], "that both refuse")
    assert statuses(servers, "/health/live") == [200, 200]
    waiting = make_steps(second, items=1)
    let_go(first)
    assert wait_for_end(running).state == JobState.SUCCEEDED
    call_command("maintenance", "on", "--wait")
    restarted = WebServer(alone)
    assert statuses([restarted]) == [503]
    waiting.refresh_from_db()
    assert (waiting.state, second.exists()) == (JobState.WAITING, False)
    call_command("maintenance", "off")
    wait_until(lambda: statuses([*servers, restarted]) == [200, 200, 200], "that all let visitors in")
    assert wait_for_end(waiting).state == JobState.SUCCEEDED
    assert (items_of(first), items_of(second)) == (list(range(12)), [0])
    alone.kill_all()


def commands_of(title):
    """The commands of the portal that a section of the manual for operators names, in its order."""
    text = (settings.BASE_DIR / "docs" / "operator.md").read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"`voiceprivacy ((?:maintenance|backup|restore|verify|migrate)[^`]*)`", text)


def run(words, data, folder):
    """What a command says on the portal with this data folder; it must end well."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "DJANGO_"))}
    given = [{"FOLDER": str(folder), "TEXT": "Back at six."}.get(word, word) for word in words.split()]
    done = subprocess.run(
        [sys.executable, "manage.py", *given],
        cwd=settings.BASE_DIR,
        env=clean | {"PORTAL_DATA_DIR": str(data)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def test_upgrade_and_its_way_back_go_as_the_manual_says(tmp_path):
    old, new, folder = tmp_path / "old", tmp_path / "new", tmp_path / "backups"
    run("migrate", old, folder)
    *upgrade, back, off = commands_of("Upgrade, and the way back")
    assert [one.split()[0] for one in (*upgrade, back)] == [
        "maintenance",
        "backup",
        "migrate",
        "maintenance",
        "restore",
    ]
    for words in upgrade:
        run(words, old, folder)
    assert run("maintenance", old, folder) == "Maintenance mode is off.\n"
    run(back, new, folder)
    assert "Maintenance mode has been on for" in run("maintenance", new, folder)
    assert "Back at six." in run("maintenance", new, folder)
    run(off, new, folder)
    assert run("maintenance", new, folder) == "Maintenance mode is off.\n"


def test_move_to_another_server_goes_as_the_manual_says(tmp_path):
    old, new, folder = tmp_path / "old", tmp_path / "new", tmp_path / "backups"
    run("migrate", old, folder)
    first, closed, second, restore, verify, off = commands_of("Another server")
    for words in (first, closed, second):
        run(words, old, folder)
    for words in (restore, verify):
        run(words, new, folder)
    assert "Maintenance mode is off after" in run(off, new, folder)
