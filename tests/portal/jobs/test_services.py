"""What changes a job's row, one change at a time; the queue is real, its messages go nowhere."""

import re
import threading

import pytest
from django.db import connection

from common.problems import Problem
from portal.core.models import AuditEvent
from portal.jobs import services
from portal.jobs.models import Actor, Job, JobState, Queue
from tests.portal.factories import make_organizer

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def make(kind="test-fault", **fields):
    return services.create_job(kind=kind, title="Work", parameters={"divisor": 1}, **fields)


def claimed(job=None):
    return services.claim_job((job or make()).pk)


def texts(job):
    return list(job.events.values_list("text", flat=True))


def test_created_job_waits_and_is_sent_after_the_transaction(sent, django_capture_on_commit_callbacks):
    organizer = make_organizer()
    with django_capture_on_commit_callbacks(execute=True):
        job = make(by=organizer)
        assert sent == []
    job.refresh_from_db()
    assert (job.state, job.queue, job.times_sent, sent) == (JobState.WAITING, Queue.CPU, 1, [str(job.pk)])
    event = AuditEvent.objects.get(action="job.created")
    assert (event.actor, event.subject_id) == (organizer, str(job.pk))


def test_queue_that_fails_leaves_the_job_waiting(monkeypatch):
    def refuse(*_, **__):
        raise ConnectionRefusedError("nobody listens")

    monkeypatch.setattr(services.current_app, "send_task", refuse)
    job = make()
    assert not services.send(job)
    job.refresh_from_db()
    assert (job.state, job.sent_at, job.times_sent) == (JobState.WAITING, None, 0)


def test_log_tells_start_and_end_of_a_job_without_its_words(sent, caplog, django_capture_on_commit_callbacks):
    with caplog.at_level("INFO", "portal.jobs.states"), django_capture_on_commit_callbacks(execute=True):
        job = claimed()
        services.release_job(job, "Somebody is named here.", attempt_counts=False)
        services.finish_job(claimed(job), JobState.FAILED, failure="Somebody is named here, too.")
        waiting = make()
        services.request_cancel(waiting, by=make_organizer())
    told = [one.getMessage() for one in caplog.records if one.name == "portal.jobs.states"]
    its, other = (f"Job {one.pk} (test-fault, queue cpu): " for one in (job, waiting))
    # What a transaction changes is told when that is through.
    assert told[:2] == 2 * [f"{its}started by a process without a name, attempt 1."]
    assert [told[2], told[4]] == [f"{its}back in the queue.", f"{other}cancelled."]
    assert re.fullmatch(rf"{re.escape(its)}failed after \d+\.\d s\.", told[3])


def test_follower_is_not_claimed_before_its_parent_has_succeeded():
    parent = make()
    follower = make(after=parent)
    assert services.claim_job(follower.pk) is None
    services.finish_job(claimed(parent), JobState.SUCCEEDED)
    assert services.claim_job(follower.pk).attempt == 1


@pytest.mark.django_db(transaction=True)
def test_claim_is_won_by_one_of_many(sent):
    job = make()
    start, won, errors = threading.Barrier(8), [], []

    def claim():
        try:
            start.wait(10)
            won.append(services.claim_job(job.pk))
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    winners = [job for job in won if job]
    assert (errors, len(won), len(winners)) == ([], 8, 1)
    job.refresh_from_db()
    assert (job.state, job.attempt, job.claim) == (JobState.RUNNING, 1, winners[0].claim)


def test_process_that_lost_its_claim_writes_nothing():
    job = make()
    old = services.claim_job(job.pk)
    services.release_job(old, "Lost.")
    new = services.claim_job(job.pk)
    with pytest.raises(services.ClaimLost):
        services.write_job_heartbeat(old)
    with pytest.raises(services.ClaimLost):
        services.report_progress(old, stage="Old", done=9, total=9)
    assert not services.finish_job(old, JobState.SUCCEEDED, result={"from": "old"})
    assert not services.release_job(old, "Lost again.")
    job.refresh_from_db()
    assert (job.state, job.attempt, job.claim, job.stage, job.result) == (JobState.RUNNING, 2, new.claim, "", {})


def test_what_no_database_stores_is_escaped_in_results_and_sentences():
    broken = "caf\udce9\0.wav"
    job = claimed()
    problem = Problem(code="bad", file=broken, expected="a name", found=broken, remedy="Rename it.")
    services.log_event(job, broken)
    services.finish_job(job, JobState.FAILED, result={"file": broken}, failure=broken, problems=[problem])
    row = Job.objects.get()
    escaped = "caf\\udce9\\x00.wav"
    assert (row.failure, row.result, row.problems[0]["file"]) == (escaped, {"file": escaped}, escaped)
    assert texts(row)[1:] == [escaped, escaped]


def test_success_sends_the_followers(sent, django_capture_on_commit_callbacks):
    parent = make()
    follower = make(after=parent)
    job = claimed(parent)
    with django_capture_on_commit_callbacks(execute=True):
        services.finish_job(job, JobState.SUCCEEDED)
    follower.refresh_from_db()
    assert (sent, follower.state, follower.times_sent) == ([str(follower.pk)], JobState.WAITING, 1)


def test_failure_cancels_all_that_follows():
    parent = make()
    child = make(after=parent)
    grandchild = make(after=child)
    services.finish_job(claimed(parent), JobState.FAILED, failure="No.")
    child.refresh_from_db()
    grandchild.refresh_from_db()
    assert (child.state, child.failure) == (JobState.CANCELLED, "Not run: it follows “Work”, which failed.")
    assert (grandchild.state, grandchild.failure) == (
        JobState.CANCELLED,
        "Not run: it follows “Work”, which was cancelled.",
    )


def test_release_at_the_last_attempt_fails_the_job():
    job = make()
    for _ in range(3):
        held = services.claim_job(job.pk)
        services.release_job(held, "The database failed.")
    row = Job.objects.get()
    assert (row.state, row.attempt, row.failure) == (JobState.FAILED, 3, "The database failed.")
    assert (row.failure_actor, row.failure_remedy) == ("operator", "Fix the cause, then run the job again.")


@pytest.mark.parametrize("attempt_counts", [True, False])
def test_release_of_a_job_that_was_cancelled_ends_it(attempt_counts):
    job = claimed()
    services.request_cancel(job, by=make_organizer())
    services.release_job(job, "Stopping.", attempt_counts=attempt_counts)
    row = Job.objects.get()
    assert (row.state, row.failure) == (JobState.CANCELLED, "Cancelled; what was finished is kept.")


def test_cancel_of_a_waiting_job_ends_it_and_its_followers():
    organizer = make_organizer()
    job = make()
    follower = make(after=job)
    ended = services.request_cancel(job, by=organizer)
    follower.refresh_from_db()
    assert (ended.state, ended.failure) == (JobState.CANCELLED, f"Cancelled by {organizer}.")
    assert (follower.state, services.claim_job(job.pk)) == (JobState.CANCELLED, None)
    assert AuditEvent.objects.filter(action="job.cancelled").count() == 1


def test_cancel_of_a_running_job_asks_it_to_stop_once():
    organizer = make_organizer()
    job = services.request_cancel(claimed(), by=organizer)
    assert (job.state, job.cancel_requested_at is not None) == (JobState.RUNNING, True)
    with pytest.raises(services.NotPossible, match="being cancelled already"):
        services.request_cancel(job, by=organizer)


def test_run_again_begins_afresh_with_its_followers(sent, django_capture_on_commit_callbacks):
    parent = make()
    follower = make(after=parent)
    held = claimed(parent)
    services.finish_job(held, JobState.FAILED, failure="No.", actor=Actor.ORGANIZER, remedy="Fix it.")
    with django_capture_on_commit_callbacks(execute=True):
        again = services.run_again(held, by=make_organizer())
    follower.refresh_from_db()
    assert (again.state, again.attempt, again.failure, again.failure_remedy) == (JobState.WAITING, 0, "", "")
    assert (follower.state, follower.cancel_requested_at, sent) == (JobState.WAITING, None, [str(parent.pk)])
    assert claimed(parent).attempt == 1


def test_run_again_of_a_follower_waits_for_its_parent():
    parent = make()
    follower = make(after=parent)
    services.finish_job(claimed(parent), JobState.FAILED, failure="No.")
    follower.refresh_from_db()
    with pytest.raises(services.NotPossible, match=r"“Work”, which failed\. Run that one again first"):
        services.run_again(follower, by=make_organizer())


@pytest.mark.parametrize("state", [JobState.WAITING, JobState.RUNNING, JobState.SUCCEEDED])
def test_run_again_is_for_jobs_that_did_not_succeed(state):
    job = make()
    if state != JobState.WAITING:
        job = claimed(job)
    if state == JobState.SUCCEEDED:
        services.finish_job(job, JobState.SUCCEEDED)
    with pytest.raises(services.NotPossible, match="Only a failed or cancelled job"):
        services.run_again(job, by=make_organizer())


def test_run_again_asked_twice_happens_once():
    job = claimed()
    services.finish_job(job, JobState.FAILED, failure="No.")
    seen_by_both = Job.objects.get(), Job.objects.get()
    services.run_again(seen_by_both[0], by=make_organizer())
    with pytest.raises(services.NotPossible):
        services.run_again(seen_by_both[1], by=make_organizer())
    assert AuditEvent.objects.filter(action="job.run_again").count() == 1


def test_run_again_leaves_a_follower_cancelled_that_somebody_cancelled_by_itself():
    parent = make()
    wanted, unwanted = make(after=parent), make(after=parent)
    services.request_cancel(unwanted, by=make_organizer())
    services.request_cancel(parent, by=None)
    parent.refresh_from_db()
    services.run_again(parent, by=None)
    for follower in (wanted, unwanted):
        follower.refresh_from_db()
    assert (wanted.state, unwanted.state) == (JobState.WAITING, JobState.CANCELLED)
