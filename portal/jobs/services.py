"""Everything that changes a job's row. A change of state is a conditional update: of two processes only one wins."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import F

from common.errors import NotPossible as NotPossible
from common.problems import Problem
from portal.core import audit, logs
from portal.core.clock import read_clock
from portal.jobs.kinds import call_on_again, call_on_end, find_obstacle, get_kind
from portal.jobs.models import Actor, Job, JobEvent, JobState, Queue
from portal.jobs.rules import can_cancel, can_run_again, is_ending, is_last_attempt, is_ready
from portal.jobs.workers import has_card, this_worker

log = logging.getLogger(__name__)
# Starts and ends of jobs; JSON logs have them at the default level (settings.LOGGING).
states = logging.getLogger("portal.jobs.states")
# The one Celery task, `portal.jobs.tasks.run_job`.
RUN_JOB = "portal.run_job"


class ClaimLost(Exception):  # noqa: N818
    """The job was taken from this process; whatever it still does must not be written."""


@transaction.atomic
def create_job(
    *,
    kind: str,
    title: str,
    parameters: dict[str, Any],
    by: Any = None,
    after: Job | None = None,
    edition: str = "",
    corpus: str = "",
    team: int = 0,
    engine: str = "",
    card: bool | None = None,
    run_here: bool = False,
) -> Job:
    """Return a new waiting job; it is sent to the queue when the transaction is through and nothing has to run before
    it.

    `edition`: name of the edition it works for, whose organizers alone see it then.
    `corpus`: name of the corpus it works on where that is for no edition; organizers who may see it see the job.
    `team`: number of the team whose turn it takes (`find_next`).
    `engine`: what a worker must have to take it, by the name under which workers tell theirs.
    `card`: True where it cannot run without a graphics card, False where it must not use one; None leaves that to its
        kind and to `PORTAL_CARD_JOBS`.
    `run_here`: the caller executes the job itself, at once; it is sent only should the caller fail to.
    """
    now = read_clock()
    job = Job.objects.create(
        kind=kind,
        queue=_choose_queue(kind, card, now),
        title=title,
        parameters=parameters,
        edition=edition,
        corpus=corpus,
        team=team,
        engine=engine,
        needs_card=card is True,
        created_by=by,
        after=after,
        created_at=now,
        waiting_since=now,
        sent_at=now if run_here else None,
    )
    audit.record("job.created", job, actor=by)
    if is_ready(job) and not run_here:
        transaction.on_commit(partial(send, job))
    return job


def _choose_queue(kind: str, card: bool | None, now: datetime) -> Queue:
    """Return where a job of this kind goes: to a graphics card where it needs one, or can use one and there is one."""
    found = get_kind(kind)
    if card is None and found.uses_card:
        card = settings.CARD_JOBS == "always" or (settings.CARD_JOBS == "auto" and has_card(now, kind))
    return Queue.GPU if card else found.queue


def leave_card(now: datetime) -> None:
    """Let jobs that also run without a graphics card go on there where no worker has one any more, or a large one."""
    if settings.CARD_JOBS == "always":
        return
    waiting = Job.objects.filter(queue=Queue.GPU, state=JobState.WAITING, needs_card=False)
    for kind in set(waiting.values_list("kind", flat=True)):
        if not has_card(now, kind):
            waiting.filter(kind=kind).update(queue=get_kind(kind).queue, sent_at=None, times_sent=0)


def send(job: Job, *, again: bool = False) -> bool:
    """Tell the queue about a waiting job. A queue that does not answer is no failure: the scheduler tries again.

    Args:
        again: a worker that cannot run the job passes its message on. That is no sign that messages are lost, so it
            does not make the scheduler more patient.
    """
    try:
        current_app.send_task(
            RUN_JOB,
            (str(job.pk),),
            queue=job.queue,
            soft_time_limit=settings.JOB_SOFT_LIMIT_S,
            time_limit=settings.JOB_HARD_LIMIT_S,
            retry=False,
        )
    except Exception as error:
        log.warning("The queue did not take job %s (%s); the scheduler will try again.", job.pk, error)
        return False
    Job.objects.filter(pk=job.pk).update(sent_at=read_clock(), times_sent=F("times_sent") + int(not again))
    return True


def claim_job(job_id: uuid.UUID | str) -> Job | None:
    """Take a waiting job whose turn it is; None when it is not waiting any more (another process was faster)."""
    job = Job.objects.select_related("after").filter(pk=job_id).first()
    if job is None or not is_ready(job):
        return None
    now = read_clock()
    taken = Job.objects.filter(pk=job_id, state=JobState.WAITING, cancel_requested_at=None).update(
        state=JobState.RUNNING,
        claim=uuid.uuid4(),
        worker=this_worker(),
        attempt=F("attempt") + 1,
        started_at=now,
        heartbeat_at=now,
        progress_since=None,
        stage="",
        memory_bytes=0,
    )
    if not taken:
        return None
    job.refresh_from_db()
    log_event(job, f"Started, attempt {job.attempt}.")
    _log_state(job, f"started by {job.worker or 'a process without a name'}, attempt {job.attempt}")
    return job


def write_job_heartbeat(job: Job) -> bool:
    """Give a heartbeat; tells whether the job is asked to stop.

    Raises:
        ClaimLost: the job is no longer this process's.
    """
    if not _held(job).update(heartbeat_at=read_clock()):
        raise ClaimLost
    return Job.objects.filter(pk=job.pk, cancel_requested_at__isnull=False).exists()


def report_progress(job: Job, *, stage: str, done: int, total: int) -> None:
    """Write how far the job is.

    Raises:
        ClaimLost: the job is no longer this process's.
    """
    if job.progress_since is None or job.stage != stage:
        job.progress_since, job.progress_from = read_clock(), done
    job.stage, job.done, job.total = stage, done, total
    fields = {name: getattr(job, name) for name in ("stage", "done", "total", "progress_from", "progress_since")}
    if not _held(job).update(heartbeat_at=read_clock(), **fields):
        raise ClaimLost


@transaction.atomic
def finish_job(
    job: Job,
    state: JobState,
    *,
    result: dict[str, Any] | None = None,
    failure: str = "",
    actor: Actor = Actor.NOBODY,
    remedy: str = "",
    problems: Iterable[Problem] = (),
) -> bool:
    """End a job held by this process, let its followers run or cancel them; False when it was taken from us."""
    ended = _held(job).update(
        state=state,
        claim=None,
        finished_at=read_clock(),
        memory_bytes=job.memory_bytes,
        result=_storable(result or {}),
        failure=_storable(failure),
        failure_actor=actor,
        failure_remedy=_storable(remedy),
        problems=_storable([asdict(problem) for problem in problems]),
    )
    if not ended:
        return False
    job.refresh_from_db()
    level = JobEvent.Level.ERROR if state == JobState.FAILED else JobEvent.Level.INFO
    log_event(job, failure or f"{job.get_state_display().capitalize()}.", level=level)
    took = job.finished_at - job.started_at if job.finished_at and job.started_at else timedelta()
    transaction.on_commit(partial(_log_state, job, f"{job.state} after {took.total_seconds():.1f} s"))
    call_on_end(job)
    settle_followers(job)
    return True


@transaction.atomic
def release_job(job: Job, why: str, *, attempt_counts: bool = True) -> bool:
    """Give a job held by this process back to the queue, or end it when it was cancelled or has no attempt left.

    False when it was taken from us.
    """
    row = Job.objects.select_for_update().filter(pk=job.pk)
    if row.values_list("cancel_requested_at", flat=True).first():
        return finish_job(job, JobState.CANCELLED, failure="Cancelled; what was finished is kept.")
    if attempt_counts and is_last_attempt(job):
        return finish_job(
            job, JobState.FAILED, failure=why, actor=Actor.OPERATOR, remedy="Fix the cause, then run the job again."
        )
    attempt = job.attempt if attempt_counts else job.attempt - 1
    freed = _held(job).update(
        state=JobState.WAITING, claim=None, attempt=attempt, waiting_since=read_clock(), sent_at=None, times_sent=0
    )
    if freed:
        log_event(job, why, level=JobEvent.Level.WARNING)
        transaction.on_commit(partial(_log_state, job, "back in the queue"))
    return bool(freed)


def settle_followers(job: Job) -> None:
    """Send the jobs that waited for this one, or cancel them when it did not succeed."""
    for follower in job.followers.filter(state=JobState.WAITING):
        follower.after = job
        if job.state == JobState.SUCCEEDED:
            transaction.on_commit(partial(send, follower))
        elif job.has_ended:
            _end_waiting(follower, f"Not run: it follows “{job.title}”, which {_how_ended(job)}.")


@transaction.atomic
def request_cancel(job: Job, *, by: Any) -> Job:
    """Cancel a waiting job at once, ask a running one to stop.

    Raises:
        NotPossible: the job has ended, or was asked before.
    """
    job = Job.objects.select_for_update().get(pk=job.pk)
    if not can_cancel(job):
        raise NotPossible("This job has ended or is being cancelled already.")
    audit.record("job.cancelled", job, actor=by)
    if not _end_waiting(job, f"Cancelled by {by}.", asked_at=read_clock()):
        Job.objects.filter(pk=job.pk, state=JobState.RUNNING).update(cancel_requested_at=read_clock())
        log_event(job, f"{by} asked to cancel.")
    job.refresh_from_db()
    return job


def cancel_those(jobs: Iterable[Job], *, by: Any) -> None:
    """Cancel all of these that have not ended; to cancel one may cancel another of them that follows it."""
    for job in jobs:
        with transaction.atomic():
            if can_cancel(Job.objects.select_for_update().get(pk=job.pk)):
                request_cancel(job, by=by)


@transaction.atomic
def run_again(job: Job, *, by: Any, with_followers: bool = True) -> Job:
    """Let a failed or cancelled job run once more; it continues from what it had kept.

    Args:
        with_followers: whether those that were cancelled with it come back.

    Raises:
        NotPossible: the job has not failed, what it follows has not succeeded, or what it reads is gone or changed.
    """
    if job.after is not None and job.after.state in {JobState.FAILED, JobState.CANCELLED}:
        raise NotPossible(
            f"This job follows “{job.after.title}”, which {_how_ended(job.after)}. Run that one again first."
        )
    if can_run_again(job) and (obstacle := find_obstacle(job)):
        raise NotPossible(f"{obstacle.sentence} {obstacle.remedy}.")
    again = can_run_again(job) and Job.objects.filter(pk=job.pk, state=job.state).update(**_fresh_start())
    if not again:
        raise NotPossible("Only a failed or cancelled job can run again.")
    audit.record("job.run_again", job, actor=by)
    job.refresh_from_db()
    log_event(job, f"{by} let it run again.")
    call_on_again(job)
    # What somebody cancelled by itself stays cancelled.
    cancelled = job.followers.filter(state=JobState.CANCELLED, cancel_requested_at=None)
    for follower in cancelled if with_followers else ():
        run_again(follower, by=by)
    if is_ready(job):
        transaction.on_commit(partial(send, job))
    return job


def cancel_chain(chain: Sequence[Job], *, by: Any) -> None:
    """End jobs of which each follows the one before: what is at work is asked to stop, what waits ends with it.

    Raises:
        NotPossible: all have ended, or that was asked before.
    """
    active = next((job for job in chain if can_cancel(job)), None)
    if active is None or is_ending(chain):
        raise NotPossible("This run has ended or is being cancelled already.")
    request_cancel(active, by=by)


def continue_chain(chain: Sequence[Job], *, by: Any) -> None:
    """Let jobs of which each follows the one before go on where one failed or was cancelled.

    Raises:
        NotPossible: none of them failed or was cancelled.
    """
    stopped = next((job for job in chain if can_run_again(job)), None)
    if stopped is None:
        raise NotPossible("Only a failed or cancelled run can be continued.")
    run_again(stopped, by=by)
    # Those that were cancelled one by one do not follow automatically.
    for job in chain:
        job.refresh_from_db()
        if job.pk != stopped.pk and can_run_again(job):
            run_again(job, by=by)


def log_event(job: Job, text: str, *, level: JobEvent.Level = JobEvent.Level.INFO) -> None:
    JobEvent.objects.create(job=job, attempt=job.attempt, level=level, text=_storable(text))


def _log_state(job: Job, what: str) -> None:
    """A line of the log without title or sentence, which may name people."""
    named = logs.job_id.set(str(job.pk))
    states.info("Job %s (%s, queue %s): %s.", job.pk, job.kind, job.queue, what)
    logs.job_id.reset(named)


def _storable(value: Any) -> Any:
    """Return the same with NUL and what is no Unicode escaped: broken files contain both and databases refuse them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value


def _held(job: Job) -> Any:
    return Job.objects.filter(pk=job.pk, state=JobState.RUNNING, claim=job.claim)


def _fresh_start() -> dict[str, Any]:
    unset = ("sent_at", "claim", "cancel_requested_at", "finished_at")
    fresh = {"state": JobState.WAITING, "waiting_since": read_clock(), "times_sent": 0, "attempt": 0, "problems": []}
    return fresh | dict.fromkeys(unset) | dict.fromkeys(("failure", "failure_actor", "failure_remedy"), "")


def _end_waiting(job: Job, sentence: str, *, asked_at: datetime | None = None) -> bool:
    ended = Job.objects.filter(pk=job.pk, state=JobState.WAITING).update(
        state=JobState.CANCELLED, cancel_requested_at=asked_at, finished_at=read_clock(), failure=sentence
    )
    if ended:
        job.refresh_from_db()
        log_event(job, sentence)
        transaction.on_commit(partial(_log_state, job, job.state))
        call_on_end(job)
        settle_followers(job)
    return bool(ended)


def _how_ended(job: Job) -> str:
    return "was cancelled" if job.state == JobState.CANCELLED else "failed"
