"""What the scheduler does beside its jobs."""

import signal
import threading
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import OperationalError

from portal.jobs import periodic_tasks
from portal.jobs.management.commands import scheduler

LONGEST_S = 30  # that a test waits for what comes at once


def run_due_tasks():
    for thread in periodic_tasks.start_due_tasks():
        thread.join()


@pytest.fixture(autouse=True)
def none_known(monkeypatch):
    monkeypatch.setattr(periodic_tasks, "_entries", [])


def test_periodic_task_is_done_at_once_and_again_when_its_time_has_come(monkeypatch):
    done = []
    periodic_tasks.periodic_task(every=timedelta(minutes=1))(lambda: done.append("minute"))
    periodic_tasks.periodic_task(every=timedelta(0))(lambda: done.append("always"))
    run_due_tasks()
    run_due_tasks()
    assert sorted(done) == ["always", "always", "minute"]


def test_periodic_task_that_fails_keeps_no_other_from_being_done(caplog):
    done = []
    periodic_tasks.periodic_task(every=timedelta(minutes=1))(lambda: 1 / 0)
    periodic_tasks.periodic_task(every=timedelta(minutes=1))(lambda: done.append(1))
    run_due_tasks()
    assert done == [1]
    assert "failed" in caplog.text


def test_task_that_found_no_database_is_done_again_in_the_next_round(caplog):
    tries = []

    def ask():
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("it does not answer")

    periodic_tasks.periodic_task(every=timedelta(minutes=1))(ask)
    run_due_tasks()
    assert "it does not answer" in caplog.text
    run_due_tasks()
    run_due_tasks()
    assert len(tries) == 2


def test_task_at_work_is_not_started_again():
    going_on, starts = threading.Event(), []

    def wait():
        starts.append(1)
        going_on.wait(LONGEST_S)

    periodic_tasks.periodic_task(every=timedelta(0))(wait)
    first = periodic_tasks.start_due_tasks()
    assert periodic_tasks.start_due_tasks() == []
    going_on.set()
    first[0].join()
    run_due_tasks()
    assert len(starts) == 2


def test_slow_task_holds_up_neither_the_sweeper_nor_other_tasks(monkeypatch, settings):
    """Three rounds are swept and the other task is done while the slow one is at work."""
    settings.SWEEP_EVERY_S = 0
    enough, other, happened = threading.Event(), threading.Event(), []

    def be_slow():
        enough.wait(LONGEST_S)
        happened.append("slow task")

    def sweep():
        happened.append("sweep")
        if happened.count("sweep") == 3:
            other.wait(LONGEST_S)
            signal.raise_signal(signal.SIGTERM)

    periodic_tasks.periodic_task(every=timedelta(minutes=1))(be_slow)
    periodic_tasks.periodic_task(every=timedelta(minutes=1))(other.set)
    monkeypatch.setattr(scheduler, "sweep", sweep)
    monkeypatch.setattr(scheduler, "find_maintenance", lambda: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        call_command("scheduler", skip_checks=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        enough.set()
    assert happened[:3] == ["sweep"] * 3
    assert other.is_set()
