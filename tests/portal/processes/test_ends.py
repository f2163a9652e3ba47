"""How jobs end that do not succeed: cancelled, timed out, failed, internal error; each with a sentence."""

import pytest

from portal.jobs.models import Job, JobState
from portal.jobs.services import create_job, request_cancel, run_again
from tests.portal.factories import make_organizer
from tests.portal.processes.programs import (
    PATIENT,
    items_of,
    let_go,
    make_steps,
    wait_for_end,
    wait_for_items,
    wait_until,
)


def test_running_job_that_is_cancelled_stops_and_can_run_again(standing, tmp_path):
    file = tmp_path / "steps"
    organizer = make_organizer()
    job = make_steps(file, held_at=3)
    wait_for_items(file, 3)
    request_cancel(job, by=organizer)
    ended = wait_for_end(job)
    assert (ended.state, ended.failure) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")
    assert len(items_of(file)) == 3
    let_go(file)
    run_again(ended, by=organizer)
    wait_for_items(file, 4)
    again = wait_for_end(job)
    assert (again.state, again.attempt, items_of(file)) == (JobState.SUCCEEDED, 1, list(range(12)))


@pytest.fixture
def short_limits(alone, settings):
    """A worker and a scheduler for which a job is too long after 2 s and is killed after 5 s."""
    settings.JOB_SOFT_LIMIT_S, settings.JOB_HARD_LIMIT_S = 2, 5
    limits = {"PORTAL_JOB_SOFT_LIMIT_S": "2", "PORTAL_JOB_HARD_LIMIT_S": "5", "PORTAL_JOB_LOST_AFTER_S": "6"}
    alone.worker = alone.start_worker(concurrency=3, **limits)
    alone.scheduler = alone.start_scheduler(**limits)
    yield alone
    alone.kill_all()


def test_job_that_takes_too_much_memory_ends_with_a_sentence_and_its_worker_goes_on(alone, tmp_path):
    worker = alone.start_worker(concurrency=1, PORTAL_JOB_MEMORY_MB="600", **PATIENT)
    alone.start_scheduler(**PATIENT)
    large, brief = (
        create_job(kind="test-large", title="Large", parameters={"bytes": 700_000_000}),
        create_job(kind="test-brief", title="Brief", parameters={}),
    )
    ended = wait_for_end(large)
    assert (ended.state, ended.attempt, ended.failure_actor) == (JobState.FAILED, 1, "operator")
    assert ended.failure == "Too large: at “Growing” it held more than 600 MB of memory."
    assert "A job of this worker may hold 600 MB." in ended.failure_remedy
    assert ended.memory_bytes > 600_000_000
    ended = wait_for_end(brief)
    assert ended.failure == "Timed out: it ran longer than the limit of 1 s for a job of its kind."
    assert wait_for_end(make_steps(tmp_path / "steps", items=2)).state == JobState.SUCCEEDED
    assert worker.is_running


def test_worker_until_idle_ends_by_itself_when_nothing_is_left(alone, tmp_path):
    job = make_steps(tmp_path / "steps", items=2)
    worker = alone.start("worker", "manage.py", "worker", "--queues", "cpu", "--processes", "1", "--until-idle", "2")
    assert worker.wait() == 0
    assert Job.objects.get(pk=job.pk).state == JobState.SUCCEEDED


def test_jobs_that_run_too_long_end_and_the_worker_goes_on(short_limits, tmp_path):
    """Three at once, to save time: one hears the soft limit, one does not, one was cancelled and does not hear that."""
    jobs = [create_job(kind=kind, title=kind, parameters={}) for kind in ("test-patient", "test-deaf", "test-deaf")]
    wait_until(lambda: Job.objects.get(pk=jobs[2].pk).state == JobState.RUNNING, "the job to be cancelled")
    request_cancel(jobs[2], by=make_organizer())
    patient, deaf, cancelled = [wait_for_end(job) for job in jobs]
    assert (patient.state, patient.attempt, patient.failure) == (
        JobState.FAILED,
        1,
        "Timed out: it ran longer than the limit of 2 s for one job.",
    )
    assert (deaf.state, deaf.attempt, deaf.failure) == (
        JobState.FAILED,
        1,
        "Timed out: it ran longer than the limit of 5 s for one job.",
    )
    assert {patient.failure_actor, deaf.failure_actor} == {"operator"}
    assert "PORTAL_JOB_SOFT_LIMIT_S" in patient.failure_remedy
    assert (cancelled.state, cancelled.failure) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")
    file = tmp_path / "steps"
    assert wait_for_end(make_steps(file, items=2)).state == JobState.SUCCEEDED
    assert items_of(file) == [0, 1]
