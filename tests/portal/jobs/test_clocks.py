"""Machines whose clocks disagree by ten minutes: jobs and workers go by the clock of the database."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection  # noqa: F401 - for the condition below
from django.utils import timezone

from portal.core.health import check_scheduler
from portal.jobs import services, workers
from portal.jobs.models import Job, JobState
from portal.jobs.scheduler import sweep
from portal.jobs.selectors import queue_states

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="processes that share SQLite share a clock"),
]


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    """Primary keys of the jobs for which a message was sent."""
    keys = []
    monkeypatch.setattr(services.current_app, "send_task", lambda _, arguments, **__: keys.append(arguments[0]))
    return keys


@pytest.fixture(params=[-10, 10], ids=["behind", "ahead"])
def skewed(request, monkeypatch):
    """A context in which this process is on a machine whose clock is wrong."""
    right = timezone.now

    @contextmanager
    def skew():
        with monkeypatch.context() as patch:
            patch.setattr(timezone, "now", lambda: right() + timedelta(minutes=request.param))
            yield

    return skew


def make():
    return services.create_job(kind="test-fault", title="Work", parameters={"divisor": 1})


def test_job_of_a_worker_with_a_wrong_clock_is_left_alone(skewed, sent):
    job = make()
    with skewed():
        held = services.claim_job(job.pk)
        services.write_job_heartbeat(held)
        services.report_progress(held, stage="Working", done=1, total=2)
    assert (sweep(), sent) == (0, [])
    job.refresh_from_db()
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)


def test_scheduler_with_a_wrong_clock_takes_only_lost_jobs_and_repeats_no_message(skewed, sent):
    living, lost, waiting = make(), make(), make()
    for job in (living, lost):
        services.claim_job(job.pk)
    services.send(waiting)
    workers.write_worker_heartbeat(["cpu"], 1)
    silent_since = timezone.now() - timedelta(seconds=settings.JOB_LOST_AFTER_S + 5)
    Job.objects.filter(pk=lost.pk).update(heartbeat_at=silent_since, started_at=silent_since)
    sent.clear()
    with skewed():
        assert (sweep(), sent) == (2, [str(lost.pk)])
        assert [len(queue.living) for queue in queue_states() if queue.name == "cpu"] == [1]
        assert check_scheduler() is None
    assert check_scheduler() is None
    living.refresh_from_db()
    assert living.state == JobState.RUNNING


def test_history_of_a_job_stays_in_order_whatever_the_clocks_say(skewed):
    job = make()
    with skewed():
        held = services.claim_job(job.pk)
    services.release_job(held, "Lost.")
    with skewed():
        services.claim_job(job.pk)
    told = list(job.events.values_list("text", flat=True))
    assert told == ["Started, attempt 1.", "Lost.", "Started, attempt 2."]
    job.refresh_from_db()
    assert job.created_at <= job.started_at


def test_job_made_by_a_server_with_a_wrong_clock_has_waited_no_time(skewed):
    with skewed():
        job = make()
    job.refresh_from_db()
    assert abs(job.waiting_since - timezone.now()) < timedelta(minutes=5)
    assert abs(job.created_at - timezone.now()) < timedelta(minutes=5)
