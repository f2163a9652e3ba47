"""What the scheduler does beside its jobs."""

from datetime import timedelta

import pytest
from django.db import OperationalError

from portal.jobs import chores


@pytest.fixture(autouse=True)
def none_known(monkeypatch):
    monkeypatch.setattr(chores, "_entries", [])


def test_chore_is_done_at_once_and_again_when_its_time_has_come(monkeypatch):
    done = []
    chores.chore(every=timedelta(minutes=1))(lambda: done.append("minute"))
    chores.chore(every=timedelta(0))(lambda: done.append("always"))
    chores.do_chores()
    chores.do_chores()
    assert done == ["minute", "always", "always"]


def test_chore_that_fails_keeps_no_other_from_being_done(caplog):
    done = []
    chores.chore(every=timedelta(minutes=1))(lambda: 1 / 0)
    chores.chore(every=timedelta(minutes=1))(lambda: done.append(1))
    chores.do_chores()
    assert done == [1]
    assert "failed" in caplog.text


def test_silent_database_is_told_to_the_scheduler():
    def ask():
        raise OperationalError("it does not answer")

    chores.chore(every=timedelta(minutes=1))(ask)
    with pytest.raises(OperationalError):
        chores.do_chores()
