"""The scheduler's round, on rows of every kind at once where it matters."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from portal.core.health import last_pulse
from portal.jobs import services
from portal.jobs.models import Job, State
from portal.jobs.sweeper import sweep

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch):
    """Primary keys of the jobs for which a message was sent, in order; the queue takes all."""
    keys = []
    monkeypatch.setattr(services.current_app, "send_task", lambda _, arguments, **__: keys.append(arguments[0]))
    return keys


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


def test_lost_job_waits_again_and_is_sent_in_the_same_round(sent):
    job = make_lost()
    assert sweep() == 2
    assert (outcome(job), job.attempt, sent) == ((State.WAITING, ""), 1, [str(job.pk)])


def test_lost_job_ends_with_a_sentence_where_it_cannot_be_tried_again(sent):
    hard = timedelta(seconds=settings.JOB_HARD_LIMIT_S + 2)
    used_up = make_lost(attempt=3)
    cancelled = make_lost(cancel_requested_at=timezone.now())
    too_long = make_lost(started_at=timezone.now() - hard)
    assert sweep() == 3
    assert outcome(used_up) == (
        State.FAILED,
        "The worker's process died 3 times while it ran this job, last at “Working”.",
    )
    assert outcome(cancelled) == (State.CANCELLED, "Cancelled; what was finished is kept.")
    assert outcome(too_long) == (
        State.FAILED,
        f"Timed out: it ran longer than the limit of {settings.JOB_HARD_LIMIT_S} s for one job.",
    )
    assert sent == []


def test_living_job_is_left_alone(sent):
    job = make()
    services.claim_job(job.pk)
    assert (sweep(), sent) == (0, [])
    assert outcome(job) == (State.RUNNING, "")


def test_waiting_jobs_are_sent_oldest_first_when_their_turn_has_come(sent):
    now = timezone.now()
    parent, younger = make(waiting_since=now), make(waiting_since=now + timedelta(seconds=1))
    make(after=parent)
    older = make(waiting_since=now - timedelta(seconds=1))
    assert sweep() == 3
    assert sent == [str(older.pk), str(parent.pk), str(younger.pk)]
    assert sweep() == 0


def test_lost_message_is_sent_again_after_a_while(sent):
    job = make()
    sweep()
    for silence_s, copies in [(19, 1), (21, 2), (21, 2), (41, 3)]:
        Job.objects.update(sent_at=timezone.now() - timedelta(seconds=silence_s))
        sweep()
        assert len(sent) == copies
    assert (outcome(job), job.times_sent) == ((State.WAITING, ""), 3)


def test_follower_of_a_failed_job_is_cancelled_should_nobody_have_told_it(sent):
    parent = make()
    follower = make(after=parent)
    Job.objects.filter(pk=parent.pk).update(state=State.FAILED)
    assert sweep() == 1
    assert outcome(follower) == (State.CANCELLED, "Not run: it follows “Work”, which failed.")


def test_queue_that_is_down_is_tried_once_in_a_round(monkeypatch):
    tries = []

    def refuse(_, arguments, **__):
        tries.append(arguments)
        raise ConnectionRefusedError("nobody listens")

    monkeypatch.setattr(services.current_app, "send_task", refuse)
    for _ in range(5):
        make()
    assert (sweep(), len(tries)) == (0, 1)
    assert last_pulse("scheduler") is not None
