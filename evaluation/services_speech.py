"""What own attacks and own recognition have in common: a chain of jobs, one for each data set, one for the numbers.

The last job is the run's own. Whoever cancels a run ends the whole chain; whoever lets it run again continues it where
it stopped, because what was made of a recording is kept by its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from evaluation.models import EvaluationRun
from portal.core import audit
from portal.core.version import code_version
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, State
from portal.jobs.rules import can_cancel, can_run_again
from portal.jobs.services import NotPossible, create_job, request_cancel, run_again
from portal.submissions.models import Submission

# A submission whose speech is there to be heard.
HEARD = frozenset({
    Submission.State.ACCEPTED, Submission.State.EVALUATING, Submission.State.EVALUATED, Submission.State.FAILED,
})  # fmt: skip
UNDER_WAY = (State.WAITING, State.RUNNING)
GONE = frozenset({Submission.State.REFUSED, Submission.State.WITHDRAWN})


def require_speech(submission: Submission, data_sets: Iterable[str]) -> None:
    """That these data sets of a submission are there as they will stay.

    Raises:
        NotPossible: it is not accepted, or an anonymiser is still at work on them.
    """
    if submission.state not in HEARD:
        raise NotPossible(f"{submission} is {submission.get_state_display().lower()}; there is no speech to work on.")
    runs = submission.anonymization_runs.filter(data_set__name__in=list(data_sets))
    unfinished = runs.exclude(job__state=State.SUCCEEDED).select_related("data_set").first()
    if unfinished is not None:
        raise NotPossible(
            f"The anonymisation of {unfinished.data_set} has not finished; start this once it has succeeded."
        )


def require_standing(submission: Submission) -> None:
    """That a job may go on with a submission, which may have been withdrawn since the job was made.

    Raises:
        JobFailure: it was withdrawn or refused.
    """
    if submission.state in GONE:
        raise JobFailure(
            f"{submission} is {submission.get_state_display().lower()}, so nothing is computed of its speech any more.",
            actor=Actor.NOBODY,
            remedy="There is nothing to do; numbers of other versions are not touched.",
        )


@transaction.atomic
def start_chain(
    *, run: EvaluationRun, kinds: tuple[str, str], titles: tuple[str, str], data_sets: Iterable[str],
    after: Job | None, by: Any,
) -> EvaluationRun:  # fmt: skip
    """Save a run with its jobs: one of the first kind for each data set, then one of the second, each after the other.

    Raises:
        NotPossible: a run of the same engine over this submission is under way.
    """
    submission = run.submission
    # Of two who press the button at once the second sees the run of the first.
    Submission.objects.select_for_update().filter(pk=submission.pk).first()
    same = EvaluationRun.objects.filter(submission=submission, kind=run.kind, engine=run.engine)
    if same.filter(job__state__in=UNDER_WAY).exists():
        raise NotPossible(f"{titles[1]} is under way already; cancel it first, or wait for its numbers.")
    run.code_version = code_version()
    run.save()
    edition = submission.system.edition_name
    for name in data_sets:
        after = create_job(
            kind=kinds[0], title=f"{titles[0]}, {name} · {submission.system}"[:200],
            parameters={"run": run.pk, "data_set": name}, edition=edition, by=by, after=after,
        )  # fmt: skip
    run.job = create_job(
        kind=kinds[1], title=f"{titles[1]} · {submission.system}"[:200], parameters={"run": run.pk}, edition=edition,
        by=by, after=after,
    )  # fmt: skip
    run.save(update_fields=["job"])
    audit.record("evaluation.started", run, actor=by, engine=run.engine)
    return run


def job_chain(run: EvaluationRun, jobs: Mapping[int, list[Job]] | None = None) -> list[Job]:
    """All jobs of a run, first to last.

    Args:
        jobs: by key of the run what `chains_of` found, where it is at hand.
    """
    return (jobs if jobs is not None else chains_of([run])).get(run.pk, [])


def chains_of(runs: Iterable[EvaluationRun]) -> dict[int, list[Job]]:
    """`job_chain` of each run by its key, in one query."""
    wanted = [run.pk for run in runs]
    found: dict[int, list[Job]] = {}
    for job in Job.objects.filter(parameters__run__in=wanted, kind__in=KINDS).order_by("created_at", "pk"):
        found.setdefault(job.parameters["run"], []).append(job)
    return found


KINDS = ("vectors", "attack", "hypotheses", "recognition")


def cancel_run(run: EvaluationRun, by: Any) -> None:
    """End a run: what is at work is asked to stop, what waits for it is cancelled with it.

    Raises:
        NotPossible: it has ended, or was asked before.
    """
    chain = job_chain(run)
    active = next((job for job in chain if can_cancel(job)), None)
    if active is None or is_ending(chain):
        raise NotPossible("This run has ended or is being cancelled already.")
    request_cancel(active, by=by)


def is_ending(chain: Iterable[Job]) -> bool:
    """Whether a job at work was asked to stop; those behind it follow when it does."""
    return any(job.cancel_requested_at is not None and not job.has_ended for job in chain)


def continue_run(run: EvaluationRun, by: Any) -> None:
    """Let a failed or cancelled run go on where it stopped.

    Raises:
        NotPossible: nothing in it failed or was cancelled.
    """
    chain = job_chain(run)
    stopped = next((job for job in chain if can_run_again(job)), None)
    if stopped is None:
        raise NotPossible("Only a failed or cancelled run can go on.")
    run_again(stopped, by=by)
    # Those that were cancelled one by one do not follow by themselves.
    for job in chain:
        job.refresh_from_db()
        if job.pk != stopped.pk and can_run_again(job):
            run_again(job, by=by)
