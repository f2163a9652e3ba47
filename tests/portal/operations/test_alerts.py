"""Operators are mailed what needs a look: once, once a day while it lasts, and once when it is over."""

import shutil
from collections import namedtuple
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from portal.core.models import Heartbeat
from portal.jobs import workers
from portal.operations import alerts
from tests.portal.factories import make_job, make_operator, make_organizer

pytestmark = pytest.mark.django_db
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def disk(monkeypatch):
    """Bytes that are free, in a list."""
    free = [100 * 10**9]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, free[0]))
    return free


@pytest.fixture(autouse=True)
def operator():
    make_organizer(email="organizer@test.example")
    return make_operator(email="operator@test.example")


def test_low_disk_is_mailed_once_a_day_and_when_it_is_over(disk):
    now = timezone.now()
    assert alerts.tell_operators(now) == 0
    disk[0] = 5 * 10**9
    told = [alerts.tell_operators(now + timedelta(minutes=minutes)) for minutes in (0, 5, 1435, 1440, 1445)]
    assert told == [1, 0, 0, 1, 0]
    disk[0] = 100 * 10**9
    assert [alerts.tell_operators(now + timedelta(hours=hours)) for hours in (25, 26)] == [1, 0]
    subjects = [one.subject for one in mail.outbox]
    assert subjects == ["The portal needs a look", "The portal needs a look", "The portal is fine again"]
    assert [one.bcc for one in mail.outbox] == [["operator@test.example"]] * 3
    assert "5.0 GB are free in " in mail.outbox[0].body
    assert "Over: disk." in mail.outbox[2].body
    assert "/operations/" in mail.outbox[2].body


def test_alert_that_comes_and_goes_is_no_flood(disk):
    now = timezone.now()
    for minutes in range(0, 1440, 5):
        disk[0] = (5 if minutes % 10 else 100) * 10**9
        alerts.tell_operators(now + timedelta(minutes=minutes))
    assert len(mail.outbox) == 2  # one, and that it was over
    alerts.tell_operators(now + timedelta(days=2))
    assert not Heartbeat.objects.filter(kind=alerts.KIND, details__is_over=True).exists()


def test_queue_is_mailed_that_nobody_serves_or_whose_workers_are_busy_too_long(settings):
    settings.ALERT_WAIT_MINUTES = 60
    now = timezone.now()
    make_job(queue="gpu", waiting_since=now - timedelta(minutes=10))
    make_job(queue="cpu", waiting_since=now - timedelta(minutes=59))
    busy = {"queues": ["cpu"], "processes": 1}
    Heartbeat.objects.create(name="box", kind=workers.KIND, at=now, details=busy)
    make_job("running", queue="cpu", worker="box")
    assert alerts.tell_operators(now) == 1
    assert "in the queue gpu, which no running worker serves" in mail.outbox[0].body
    Heartbeat.objects.update_or_create(name="box", defaults={"at": now + timedelta(minutes=2)})
    assert "queue cpu" in alerts.find_alerts(now + timedelta(minutes=2))
    settings.ALERT_WAIT_MINUTES = 90
    assert "queue cpu" not in alerts.find_alerts(now + timedelta(minutes=2))


def test_kind_whose_last_three_jobs_failed_is_mailed(settings):
    now = timezone.now()
    ends = [now - timedelta(minutes=minutes) for minutes in (4, 3, 2, 1)]
    make_job("succeeded", kind="test-steps", started_at=ends[0], finished_at=ends[0])
    for at in ends[1:3]:
        make_job("failed", kind="test-steps", started_at=at, finished_at=at, failure_actor="operator")
    for at in ends[1:]:
        make_job("failed", kind="test-team", started_at=at, finished_at=at, failure_actor="team")
    assert alerts.tell_operators(now) == 0
    last = make_job("failed", kind="test-steps", started_at=ends[3], finished_at=ends[3])
    assert alerts.tell_operators(now) == 1
    assert f"The last 3 jobs of the kind test-steps failed. Open the newest: {settings.SITE_URL}" in mail.outbox[0].body
    assert str(last.pk) in mail.outbox[0].body
    make_job("succeeded", kind="test-steps", started_at=now, finished_at=now)
    assert alerts.tell_operators(now + timedelta(minutes=5)) == 1
    assert "Over: jobs test-steps." in mail.outbox[1].body


def test_mail_that_fails_is_tried_again(disk, monkeypatch):
    disk[0] = 10**9

    def fail(*_args, **_options):
        raise OSError("no mail server")

    with monkeypatch.context() as patched:
        patched.setattr("django.core.mail.EmailMessage.send", fail)
        assert alerts.tell_operators(timezone.now()) == 0
    assert not Heartbeat.objects.filter(kind=alerts.KIND).exists()
    assert alerts.tell_operators(timezone.now()) == 1
