"""What the scheduler does beside its jobs."""

from datetime import timedelta

import pytest
from django.db import OperationalError

from portal.jobs import periodic_tasks


@pytest.fixture(autouse=True)
def none_known(monkeypatch):
    monkeypatch.setattr(periodic_tasks, "_entries", [])


def test_periodic_task_is_done_at_once_and_again_when_its_time_has_come(monkeypatch):
    done = []
    periodic_tasks.periodic_task(every=timedelta(minutes=1))(lambda: done.append("minute"))
    periodic_tasks.periodic_task(every=timedelta(0))(lambda: done.append("always"))
    periodic_tasks.run_due_tasks()
    periodic_tasks.run_due_tasks()
    assert done == ["minute", "always", "always"]


def test_periodic_task_that_fails_keeps_no_other_from_being_done(caplog):
    done = []
    periodic_tasks.periodic_task(every=timedelta(minutes=1))(lambda: 1 / 0)
    periodic_tasks.periodic_task(every=timedelta(minutes=1))(lambda: done.append(1))
    periodic_tasks.run_due_tasks()
    assert done == [1]
    assert "failed" in caplog.text


def test_silent_database_is_told_to_the_scheduler():
    def ask():
        raise OperationalError("it does not answer")

    periodic_tasks.periodic_task(every=timedelta(minutes=1))(ask)
    with pytest.raises(OperationalError):
        periodic_tasks.run_due_tasks()
