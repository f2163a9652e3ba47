"""One job in this process: every way in which its handler can end."""

import errno
import threading

import pytest
from django.db import OperationalError

from portal.jobs import kinds, runner, services
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Job, JobEvent, JobState, Queue
from tests.portal.factories import make_organizer


@pytest.fixture
def run(transactional_db, monkeypatch):
    """Runs a function as the body of a job and gives the job as it ended."""
    monkeypatch.setattr(kinds, "_kinds", dict(kinds._kinds))
    monkeypatch.setattr(services, "send", bool)

    def run(body):
        job_kind("test-body", title="Body", queue=Queue.LIGHT)(body)
        job = services.create_job(kind="test-body", title="Body", parameters={"number": 7})
        runner.execute(job.pk)
        return Job.objects.get(pk=job.pk)

    return run


def test_failure_names_who_must_act_and_what_to_do(run):
    def body(context):
        raise JobFailure("The file is cut.", actor=Actor.TEAM, remedy="Send it again.")

    job = run(body)
    assert (job.state, job.failure, job.failure_actor, job.failure_remedy) == (
        JobState.FAILED,
        "The file is cut.",
        "team",
        "Send it again.",
    )


def test_unexpected_error_is_told_in_a_sentence_and_traced(run):
    def body(context):
        context.progress("Reading", 0, 1)
        raise KeyError("speaker")

    job = run(body)
    assert (job.state, job.failure_actor) == (JobState.FAILED, "operator")
    assert job.failure == "Internal error at “Reading”: KeyError: 'speaker'"
    [trace] = job.events.filter(level=JobEvent.Level.TRACE)
    assert trace.text.endswith("KeyError: 'speaker'\n")


def test_full_disk_is_the_operators_affair_and_named(run):
    def body(context):
        context.progress("Keeping the files", 0, 1)
        raise OSError(errno.ENOSPC, "No space left on device")

    job = run(body)
    assert (job.state, job.failure_actor) == (JobState.FAILED, "operator")
    assert job.failure == "The portal's disk is full: at “Keeping the files” nothing more could be written."
    assert job.failure_remedy == "Free some space, then run the job again: what was finished is kept."


@pytest.mark.postgres
def test_lost_database_gives_the_job_another_attempt(run):
    def body(context):
        raise OperationalError("server closed the connection")

    job = run(body)
    assert (job.state, job.attempt) == (JobState.WAITING, 1)
    assert "The database failed (server closed the connection)" in job.events.last().text


def test_stopping_worker_gives_the_job_back_between_items(run, monkeypatch):
    done = []

    def body(context):
        for item in range(3):
            context.progress("Working", item, 3)
            done.append(item)
            monkeypatch.setattr(runner._stopping, "value", 1)

    job = run(body)
    assert (job.state, job.attempt, done) == (JobState.WAITING, 0, [0])


def test_cancelled_job_stops_between_items(run, settings):
    settings.JOB_HEARTBEAT_S = 0.02
    organizer, heard = make_organizer(), threading.Event()

    def body(context):
        context.progress("Working", 0, 2)
        services.request_cancel(context.job, by=organizer)
        assert context.cancel_wanted.wait(10)
        heard.set()
        context.progress("Working", 1, 2)
        raise AssertionError("it should have stopped")

    job = run(body)
    assert heard.is_set()
    assert (job.state, job.failure) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")


def test_process_that_lost_its_job_stops_without_writing(run, settings):
    settings.JOB_HEARTBEAT_S = 0.02

    def body(context):
        context.progress("Working", 0, 2)
        services.release_job(context.job, "Taken away.")
        assert context.claim_lost.wait(10)
        context.progress("Working", 1, 2)
        raise AssertionError("it should have stopped")

    job = run(body)
    assert (job.state, job.done, job.events.last().text) == (JobState.WAITING, 0, "Taken away.")


@pytest.mark.postgres
def test_signs_of_life_go_on_after_a_database_error(run, settings, monkeypatch):
    settings.JOB_HEARTBEAT_S = 0.02
    write_job_heartbeat, calls, recovered = services.write_job_heartbeat, [], threading.Event()

    def fail_twice(job):
        calls.append(job)
        if len(calls) <= 2:
            raise OperationalError("the server is starting up")
        write_job_heartbeat(job)
        recovered.set()

    monkeypatch.setattr(services, "write_job_heartbeat", fail_twice)
    job = run(lambda _: {"recovered": recovered.wait(10)})
    assert (job.state, job.result) == (JobState.SUCCEEDED, {"recovered": True})


def test_progress_is_written_rarely_but_its_stages_and_ends_always(run, monkeypatch):
    written = []
    report = services.report_progress

    def count(job, **progress):
        written.append((progress["stage"], progress["done"]))
        report(job, **progress)

    monkeypatch.setattr(services, "report_progress", count)
    monkeypatch.setattr(runner, "PROGRESS_EVERY_S", 60)

    def body(context):
        for stage in ("Reading", "Writing"):
            for item in range(100):
                context.progress(stage, item, 100)
            context.progress(stage, 100, 100)

    job = run(body)
    assert written == [("Reading", 0), ("Reading", 100), ("Writing", 0), ("Writing", 100)]
    assert (job.stage, job.done, job.total, job.percent) == ("Writing", 100, 100, 100)
