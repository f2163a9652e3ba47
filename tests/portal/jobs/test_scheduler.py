"""The scheduler: its round, on rows of every kind at once where it matters, and what it does beside the jobs."""

import signal
import threading
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError
from django.utils import timezone

from portal.core.health import read_last_heartbeat
from portal.jobs import scheduler, services
from portal.jobs.management.commands import scheduler as command
from portal.jobs.models import Job, JobState

LONGEST_S = 30  # that a test waits for what comes at once


def make(**fields):
    after = fields.pop("after", None)
    job = services.create_job(kind="test-fault", title="Work", parameters={"divisor": 1}, after=after)
    Job.objects.filter(pk=job.pk).update(**fields)
    return job


def make_lost(**fields):
    """A running job whose process is silent for a second too long."""
    silent_since = timezone.now() - timedelta(seconds=settings.JOB_LOST_AFTER_S + 1)
    job = make()
    services.claim_job(job.pk)
    known = {"heartbeat_at": silent_since, "started_at": silent_since - timedelta(minutes=1), "stage": "Working"}
    Job.objects.filter(pk=job.pk).update(**known | fields)
    return job


def outcome(job):
    job.refresh_from_db()
    return job.state, job.failure


@pytest.mark.postgres
@pytest.mark.django_db
def test_lost_job_waits_again_and_is_sent_in_the_same_round(sent):
    job = make_lost()
    assert scheduler.sweep() == 2
    assert (outcome(job), job.attempt, sent) == ((JobState.WAITING, ""), 1, [str(job.pk)])


@pytest.mark.django_db
def test_lost_job_ends_with_a_sentence_where_it_cannot_be_tried_again(sent):
    hard = timedelta(seconds=settings.JOB_HARD_LIMIT_S + 2)
    used_up = make_lost(attempt=3)
    cancelled = make_lost(cancel_requested_at=timezone.now())
    too_long = make_lost(started_at=timezone.now() - hard)
    assert scheduler.sweep() == 3
    assert outcome(used_up) == (
        JobState.FAILED,
        "The worker's process died 3 times while it ran this job, last at “Working”.",
    )
    assert outcome(cancelled) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")
    assert outcome(too_long) == (
        JobState.FAILED,
        f"Timed out: it ran longer than the limit of {settings.JOB_HARD_LIMIT_S} s for one job.",
    )
    assert sent == []


@pytest.mark.django_db
def test_lost_message_is_sent_again_after_a_while(sent):
    job = make()
    scheduler.sweep()
    for silence_s, copies in [(19, 1), (21, 2), (21, 2), (41, 3)]:
        Job.objects.update(sent_at=timezone.now() - timedelta(seconds=silence_s))
        scheduler.sweep()
        assert len(sent) == copies
    assert (outcome(job), job.times_sent) == ((JobState.WAITING, ""), 3)


@pytest.mark.django_db
def test_queue_that_is_down_is_tried_once_in_a_round(monkeypatch):
    tries = []

    def refuse(_, arguments, **__):
        tries.append(arguments)
        raise ConnectionRefusedError("nobody listens")

    monkeypatch.setattr(services.current_app, "send_task", refuse)
    for _ in range(5):
        make()
    assert (scheduler.sweep(), len(tries)) == (0, 1)
    assert read_last_heartbeat("scheduler") is not None


# Periodic tasks -------------------------------------------------------------------------------------


def run_due_tasks():
    for thread in scheduler.start_due_tasks():
        thread.join()


@pytest.fixture
def none_known(monkeypatch):
    monkeypatch.setattr(scheduler, "_entries", [])


@pytest.mark.usefixtures("none_known")
def test_periodic_task_is_done_at_once_and_again_when_its_time_has_come(monkeypatch):
    done = []
    scheduler.periodic_task(every=timedelta(minutes=1))(lambda: done.append("minute"))
    scheduler.periodic_task(every=timedelta(0))(lambda: done.append("always"))
    run_due_tasks()
    run_due_tasks()
    assert sorted(done) == ["always", "always", "minute"]


@pytest.mark.usefixtures("none_known")
def test_periodic_task_that_fails_keeps_no_other_from_being_done(caplog):
    done = []
    scheduler.periodic_task(every=timedelta(minutes=1))(lambda: 1 / 0)
    scheduler.periodic_task(every=timedelta(minutes=1))(lambda: done.append(1))
    run_due_tasks()
    assert done == [1]
    assert "failed" in caplog.text


@pytest.mark.postgres
@pytest.mark.usefixtures("none_known")
def test_task_that_found_no_database_is_done_again_in_the_next_round(caplog):
    tries = []

    def ask():
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("it does not answer")

    scheduler.periodic_task(every=timedelta(minutes=1))(ask)
    run_due_tasks()
    assert "it does not answer" in caplog.text
    run_due_tasks()
    run_due_tasks()
    assert len(tries) == 2


@pytest.mark.usefixtures("none_known")
def test_task_at_work_is_not_started_again():
    going_on, starts = threading.Event(), []

    def wait():
        starts.append(1)
        going_on.wait(LONGEST_S)

    scheduler.periodic_task(every=timedelta(0))(wait)
    first = scheduler.start_due_tasks()
    assert scheduler.start_due_tasks() == []
    going_on.set()
    first[0].join()
    run_due_tasks()
    assert len(starts) == 2


@pytest.mark.usefixtures("none_known")
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

    scheduler.periodic_task(every=timedelta(minutes=1))(be_slow)
    scheduler.periodic_task(every=timedelta(minutes=1))(other.set)
    monkeypatch.setattr(command, "sweep", sweep)
    monkeypatch.setattr(command, "find_maintenance", lambda: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        call_command("scheduler", skip_checks=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        enough.set()
    assert happened[:3] == ["sweep"] * 3
    assert other.is_set()
