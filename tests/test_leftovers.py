"""A test that leaves something behind is told what, and the next one does not meet it."""

import os
import subprocess
import sys
import threading

import pytest

from portal.core.models import Heartbeat
from tests import leftovers
from tests.leftovers import Surroundings
from tests.snapshots import empty_database, find_filled_tables

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def surroundings(monkeypatch):
    monkeypatch.setattr(leftovers, "PATIENCE_S", 0.1)
    return Surroundings()


def test_process_is_named_and_ended(surroundings):
    process = subprocess.Popen(SLEEP)
    assert surroundings.clear() == [f"process {process.pid} ({' '.join(SLEEP)})"]
    assert process.wait(30) == -9
    assert surroundings.clear() == []


def test_process_whose_parent_has_ended_is_found_by_its_environment(surroundings):
    code = f"import subprocess; print(subprocess.Popen({SLEEP!r}, stdout=subprocess.DEVNULL).pid)"
    number = int(subprocess.check_output([sys.executable, "-c", code]))
    assert surroundings.clear() == [f"process {number} ({' '.join(SLEEP)})"]


def test_thread_is_named_once(surroundings):
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="beats")
    thread.start()
    assert surroundings.clear() == ["thread beats"]
    assert surroundings.clear() == []
    end.set()
    thread.join()


def test_environment_and_working_folder_are_put_back(surroundings, tmp_path):
    before, home = dict(os.environ), os.environ["PATH"]
    os.environ |= {"PATH": "", "PORTAL_NEW": "1"}
    os.chdir(tmp_path)
    assert surroundings.clear() == ["the environment with another PATH, PORTAL_NEW", f"the working folder {tmp_path}"]
    assert (dict(os.environ), os.environ["PATH"]) == (before, home)


@pytest.mark.django_db(transaction=True)
def test_rows_are_found_and_go():
    Heartbeat.objects.create(name="scheduler", at="2026-01-01T00:00:00Z")
    assert find_filled_tables() == ['"core_heartbeat"']
    empty_database()
    assert find_filled_tables() == []
