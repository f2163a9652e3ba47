"""Which workers live, which queues they serve, and what the portal's health and its operator hear of it."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from portal.core import clock
from portal.core.clock import read_clock
from portal.core.models import Heartbeat
from portal.jobs import workers
from portal.jobs.checks import check_workers
from portal.jobs.models import Job
from portal.jobs.scheduler import sweep
from portal.jobs.selectors import queue_states, with_estimates
from tests.portal.factories import make_job

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
LONG = timedelta(minutes=5)


@pytest.fixture(autouse=True)
def _still_clock(monkeypatch):
    """How long ago something was depends on nothing but the test."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(clock, "_ask_database", timezone.now)


def make_worker(name="box 1", *, queues=("cpu", "light"), processes=1, silent_s=0):
    details = {"queues": list(queues), "processes": processes}
    at = timezone.now() - timedelta(seconds=silent_s)
    return Heartbeat.objects.create(name=name, kind=workers.KIND, at=at, details=details)


def long_ago():
    return timezone.now() - timedelta(seconds=settings.JOB_LOST_AFTER_S + 5)


def make_waiting(queue="cpu", waited=LONG, **fields):
    return make_job(queue=queue, waiting_since=timezone.now() - waited, **fields)


def test_wait_of_a_job_that_follows_another_begins_when_that_has_ended():
    """Nine minutes behind another job are no wait for a worker."""
    now = read_clock()
    first = make_job("succeeded", queue="cpu", finished_at=now - timedelta(seconds=20))
    make_job("waiting", queue="cpu", after=first, waiting_since=now - timedelta(minutes=9))
    [cpu] = [queue for queue in queue_states(now) if queue.name == "cpu"]
    assert cpu.oldest_waiting == timedelta(seconds=20)
    make_job("waiting", queue="cpu", waiting_since=now - timedelta(minutes=3))
    [cpu] = [queue for queue in queue_states(now) if queue.name == "cpu"]
    assert cpu.oldest_waiting == timedelta(minutes=3)


def test_job_that_waits_where_no_worker_serves_is_one_sentence():
    make_worker()
    make_waiting("gpu")
    assert check_workers() == (
        "A job has waited for 5 min in the queue gpu, which no running worker serves. "
        "Start one: manage.py worker --queues gpu."
    )


def test_silent_worker_serves_nothing_and_is_named_even_while_a_job_of_it_goes_on():
    make_worker("box 1", silent_s=900)
    make_worker("box 2", silent_s=settings.JOB_LOST_AFTER_S + 15)
    make_job("running", queue="cpu", worker="box 2")
    make_waiting()
    assert check_workers() == (
        "A job has waited for 5 min in the queue cpu, which no running worker serves; the last one, box 2, has been "
        "silent for 45 s. Start one: manage.py worker --queues cpu."
    )


def test_job_behind_a_busy_worker_is_no_problem_but_one_beside_an_idle_worker_is():
    make_worker(processes=1)
    make_job("running", queue="cpu", worker="box 1")
    make_waiting("light")
    assert check_workers() is None
    Heartbeat.objects.all().delete()
    make_worker(processes=2)
    assert check_workers() is None, "it has just begun a job"
    Job.objects.filter(state="running").update(started_at=long_ago())
    assert check_workers() == (
        "A job has waited for 5 min in the queue light, although box 1 serves it and has room. Start that worker again."
    )


def test_worker_between_two_jobs_starves_no_queue():
    make_worker(processes=1)
    make_waiting("light")
    ended = make_job("succeeded", queue="light", worker="box 1", started_at=long_ago())
    assert check_workers() is None
    Job.objects.filter(pk=ended.pk).update(finished_at=long_ago())
    assert "although box 1 serves it and has room" in check_workers()


def test_ready_fails_with_the_sentence_of_a_starved_queue(client):
    sweep()
    assert client.get("/health/ready").json()["checks"]["workers"] == "ok"
    make_waiting("gpu")
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["checks"]["workers"]) == (503, check_workers())


def test_worker_that_ended_in_order_is_not_missed(monkeypatch):
    monkeypatch.setattr(workers._process, "worker", "")
    name = workers.become_worker()
    workers.write_worker_heartbeat({"light": None, "cpu": None}, 2)
    workers.write_worker_heartbeat({"light": None, "cpu": None}, 2)
    [worker] = workers.known_workers(timezone.now())
    assert (worker.name, worker.queues, worker.capacity.processes, worker.is_silent) == (
        name,
        ["light", "cpu"],
        2,
        False,
    )
    workers.sign_off()
    assert Heartbeat.objects.count() == 0


def test_silent_worker_is_forgotten_after_an_hour_and_no_other_heartbeat_with_it():
    make_worker("box 1", silent_s=3590)
    make_worker("box 2", silent_s=3610)
    Heartbeat.objects.create(name="other", at=timezone.now() - timedelta(days=1))
    assert [worker.name for worker in workers.known_workers(timezone.now())] == ["box 1"]
    sweep()
    assert set(Heartbeat.objects.values_list("name", flat=True)) == {"box 1", "other", "scheduler"}


def wait_of(job):
    (found,) = with_estimates([Job.objects.get(pk=job.pk)])
    return found.wait


def test_job_of_a_team_at_its_limit_starves_no_queue_and_says_what_it_waits_for(settings):
    settings.JOBS_PER_TEAM = 1
    make_worker(processes=2)
    make_job("running", queue="cpu", team=1, worker="box 1", started_at=long_ago())
    job = make_waiting(team=1)
    assert check_workers() is None
    assert wait_of(job) == "Waits until a job of this team has ended: at most 1 of a team run at a time."
    other = make_waiting(team=2)
    assert "5 min in the queue cpu, although box 1" in check_workers()
    assert wait_of(other) == "A worker has room and takes it in a moment."
    settings.JOBS_PER_TEAM = 0
    other.delete()
    assert "although box 1" in check_workers()
