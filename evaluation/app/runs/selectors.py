"""Reads evaluation runs for pages, exports and API: the one that counts, its numbers, and how far others are.

Access is checked before: numbers follow the rule of visibility of `portal.submissions.rules`. Queries
are constant in number, however many runs and submissions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db.models import Q

from evaluation.app.models import EvaluationRun, MetricValue
from evaluation.app.runs.kinds import CHAINED_JOBS, ENGINE_KINDS, EngineText, RunKind, describe_engine, name_preset
from evaluation.formats.results import Gender, NumberIdentity, Speech
from evaluation.objective_results.values import Basis, Number
from portal.jobs.models import Job, JobState
from portal.jobs.rules import can_cancel, can_run_again, is_ending
from portal.jobs.selectors import JobsProgress, with_estimates
from portal.submissions.models import Submission

NumbersOfRuns = Mapping[int, Mapping[NumberIdentity, Number]]  # by primary key of the run
# What identifies a number, and what is known of it: columns of `MetricValue`, the latter also fields of `Number`.
IDENTITY = ("data_set", "gender", "metric", "estimator", "training", "enrolment", "speech")
FACTS = ("n", "spread", "low", "high", "reported", "reported_text", "reported_in", "agrees")
GENDERS = {
    MetricValue.Gender.ALL.value: Gender.ALL,
    MetricValue.Gender.FEMALE.value: Gender.FEMALE,
    MetricValue.Gender.MALE.value: Gender.MALE,
    MetricValue.Gender.MIXED.value: Gender.MIXED,
}


def list_newest_finished(
    kind: RunKind, submissions: Iterable[Submission], as_of: datetime | None = None
) -> list[EvaluationRun]:
    """Return the runs that count: of each submission and what its kind counts by the newest finished one, in one query.

    Args:
        as_of: what had finished by then, for a frozen leaderboard; None for now.

    Returns:
        The runs with job and data set, in the order in which their data sets or engines were first met.
    """
    return pick_newest_finished(kind, list_finished(submissions, kind), as_of)


def list_finished(submissions: Iterable[Submission], *kinds: RunKind) -> list[EvaluationRun]:
    """Return every finished run of these kinds with job and data set, the newest first."""
    given = {one.pk: one for one in submissions}
    of_kinds = EvaluationRun.objects.filter(kind__in=[one.kind for one in kinds])
    runs = of_kinds.filter(submission__in=list(given), job__state=JobState.SUCCEEDED)
    related = runs.select_related("job", "data_set__corpus").defer("job__problems", "job__parameters")
    found = list(related.order_by("-pk"))
    for run in found:
        run.submission = given[run.submission_id]
    return found


def select_finished(kind: RunKind, runs: Iterable[EvaluationRun]) -> list[EvaluationRun]:
    """Return the finished runs of a kind among runs with their jobs."""
    return [run for run in runs if run.kind == kind.kind and run.job and run.job.state == JobState.SUCCEEDED]


def pick_newest_finished(
    kind: RunKind, runs: Iterable[EvaluationRun], as_of: datetime | None = None
) -> list[EvaluationRun]:
    """Return those that count among runs with their jobs, the newest first; as `list_newest_finished` gives them."""
    newest: dict[tuple[int, Any, str], EvaluationRun] = {}
    for run in reversed(select_finished(kind, runs)):
        if as_of is None or (run.job and run.job.finished_at is not None and run.job.finished_at <= as_of):
            newest[run.submission_id, getattr(run, kind.counts_by), name_preset(run)] = run
    return list(newest.values())


def list_runs(submission: Submission, *kinds: str) -> list[EvaluationRun]:
    """Return every run of these kinds with its job and data set, whatever became of it, the newest first."""
    found = EvaluationRun.objects.filter(submission=submission, kind__in=kinds)
    runs = list(found.select_related("job", "data_set__corpus").order_by("-pk"))
    for run in runs:
        run.submission = submission
    return runs


# Numbers -------------------------------------------------------------------------------------------


def read_numbers(runs: Iterable[EvaluationRun], wanted: Q | None = None) -> dict[int, dict[NumberIdentity, Number]]:
    """Return all numbers of some runs, or those wanted, by primary key of the run, in one query."""
    found: dict[int, dict[NumberIdentity, Number]] = {}
    keys = [run.pk for run in runs]
    if keys:
        rows = MetricValue.objects.filter(wanted or Q(), run__in=keys).order_by("pk")
        for run, value, basis, *rest in rows.values_list("run_id", "value", "basis", *IDENTITY, *FACTS):
            identity = _identity(*rest[: len(IDENTITY)])
            number = Number(identity, value, Basis(basis), *rest[len(IDENTITY) :])
            found.setdefault(run, {})[identity] = number
    return found


@lru_cache(4096)  # runs of one edition have the same few thousand
def _identity(data_set: str, gender: str, metric: str, estimator: str, *speeches: str) -> NumberIdentity:
    training, enrolment, speech = (Speech(one) if one else None for one in speeches)
    test = training, enrolment, speech or Speech.ANONYMISED
    return NumberIdentity(data_set, GENDERS[gender], metric, estimator, *test)


# Jobs ----------------------------------------------------------------------------------------------


def list_job_chains(runs: Iterable[EvaluationRun]) -> dict[int, list[Job]]:
    """`list_jobs` of each run by its key, in one query."""
    found: dict[int, list[Job]] = {}
    jobs = Job.objects.filter(parameters__run__in=[run.pk for run in runs], kind__in=CHAINED_JOBS)
    for job in jobs.order_by("created_at", "pk"):
        found.setdefault(job.parameters["run"], []).append(job)
    return found


def list_jobs(run: EvaluationRun) -> list[Job]:
    """Return all jobs of a run of an engine, first to last."""
    return list_job_chains([run]).get(run.pk, [])


def measure_pace(engine_key: str) -> float | None:
    """Return seconds of work for a second of speech, as the newest job of this engine measured it; None where none
    has."""
    jobs = Job.objects.filter(
        kind__in=[one.data_set_job for one in ENGINE_KINDS],
        state=JobState.SUCCEEDED,
        result__engine=engine_key,
        result__speech_s__gt=0,
    )
    found = jobs.order_by("-finished_at").values_list("result", flat=True).first()
    return found["work_s"] / found["speech_s"] if found else None


@dataclass(frozen=True, kw_only=True)
class EngineRun(JobsProgress):
    """A run of an engine that has not ended, or has ended without numbers. jobs: its chain, first to last."""

    run: EvaluationRun
    engine: EngineText

    @property
    def at_work(self) -> Job | None:
        """Return the job that a worker has."""
        return next(iter(self.running), None)

    @property
    def stopped(self) -> Job | None:
        """Return the job that failed, or else the one that was cancelled; those behind it only followed."""
        return next(iter(self.failed), None) or next(
            (job for job in self.jobs if job.state == JobState.CANCELLED), None
        )

    @property
    def state(self) -> JobState:
        if self.is_active:
            return JobState.RUNNING if self.at_work else JobState.WAITING
        return JobState(self.stopped.state) if self.stopped else JobState.SUCCEEDED

    @property
    def is_ending(self) -> bool:
        """Return whether somebody has cancelled it and its worker has not come to the end of an item yet."""
        return is_ending(self.jobs)

    @property
    def can_cancel(self) -> bool:
        return not self.is_ending and any(can_cancel(job) for job in self.jobs)

    @property
    def can_continue(self) -> bool:
        return not self.is_active and any(can_run_again(job) for job in self.jobs)


@dataclass(frozen=True)
class EngineRuns:
    """The newest run of each engine that has not succeeded."""

    active: list[EngineRun]
    stopped: list[EngineRun]

    @property
    def jobs(self) -> int:
        return sum(len(one.jobs) for one in self.active)

    @property
    def ended(self) -> int:
        return sum(one.ended for one in self.active)


def group_unfinished(runs: Iterable[EvaluationRun]) -> EngineRuns:
    """Return those of the runs, the newest first, that are under way or stopped: one query more where there are any.

    Of each engine only the newest run counts: what went wrong before it is past.
    """
    newest: dict[tuple[str, str], EvaluationRun] = {}
    for run in runs:
        newest.setdefault((run.engine, name_preset(run)), run)
    open_runs = [run for run in newest.values() if run.job is None or run.job.state != JobState.SUCCEEDED]
    chains: Mapping[int, list[Job]] = list_job_chains(open_runs) if open_runs else {}
    with_estimates(job for jobs in chains.values() for job in jobs)
    shown = [EngineRun(jobs=chains.get(run.pk, []), run=run, engine=describe_engine(run)) for run in open_runs]
    return EngineRuns([one for one in shown if one.is_active], [one for one in shown if not one.is_active])
