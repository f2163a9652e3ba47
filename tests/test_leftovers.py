"""A test that leaves something behind is told what, and the next one does not meet it."""

import os
import subprocess
import sys
import tempfile
import threading

import pytest

from portal.core.models import Heartbeat
from tests import leftovers, services
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


def test_process_of_a_fixture_of_several_tests_and_what_it_starts_may_stay(surroundings):
    with subprocess.Popen(SLEEP) as process:
        surroundings.include_all()
        assert surroundings.clear() == []
        process.kill()


def test_thread_is_named_once(surroundings):
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="beats")
    thread.start()
    assert surroundings.clear() == ["thread beats"]
    assert surroundings.clear() == []
    end.set()
    thread.join()


def test_thread_that_is_about_to_end_is_waited_for(surroundings):
    threading.Timer(0.01, print).start()
    assert surroundings.clear() == []


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


def test_processes_of_tests_on_one_machine_have_numbers_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(services, "_claimed", [])
    assert [services.claim_number(9), services.claim_number(9)] == [9, 10]
    services._claimed[0].close()  # as its process ends
    assert services.claim_number(9) == 9
