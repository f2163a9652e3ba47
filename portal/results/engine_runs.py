"""Runs of this portal's attackers and recognisers as their pages show them: under way, failed, and what may be done.

A run is a chain of jobs. Of each engine only the newest run counts: what went wrong before it is past.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest

from evaluation.encoders import EngineText
from evaluation.models import EvaluationRun
from evaluation.selectors_attack import engine_text
from evaluation.services_speech import chains_of, is_ending
from portal.jobs.models import Job, State
from portal.jobs.rules import can_cancel, can_run_again
from portal.jobs.selectors import with_estimates
from portal.results.shown import View
from portal.submissions.models import System
from portal.submissions.selectors import relation_to
from portal.submissions.visibility import Relation

CANCELLABLE = (EvaluationRun.Kind.ATTACK, EvaluationRun.Kind.RECOGNITION)


@dataclass(frozen=True)
class EngineRun:
    """A run that has not ended, or has ended without numbers. jobs: its chain, first to last."""

    run: EvaluationRun
    engine: EngineText
    jobs: list[Job]

    @property
    def is_active(self) -> bool:
        return any(not job.has_ended for job in self.jobs)

    @property
    def ended(self) -> int:
        return sum(job.has_ended for job in self.jobs)

    @property
    def at_work(self) -> Job | None:
        """The job that a worker has."""
        return next((job for job in self.jobs if job.state == State.RUNNING), None)

    @property
    def stopped(self) -> Job | None:
        """The job that failed, or else the one that was cancelled; those behind it only followed."""
        failed = (job for job in self.jobs if job.state == State.FAILED)
        return next(failed, None) or next((job for job in self.jobs if job.state == State.CANCELLED), None)

    @property
    def state(self) -> State:
        if self.is_active:
            return State.RUNNING if self.at_work else State.WAITING
        return State(self.stopped.state) if self.stopped else State.SUCCEEDED

    @property
    def is_ending(self) -> bool:
        """Whether somebody has cancelled it and its worker has not come to the end of an item yet."""
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


def unfinished_runs(runs: list[EvaluationRun]) -> EngineRuns:
    """Those of the runs, the newest first, that are under way or stopped: one query more where there are any."""
    newest: dict[str, EvaluationRun] = {}
    for run in runs:
        newest.setdefault(run.engine, run)
    open_runs = [run for run in newest.values() if run.job is None or run.job.state != State.SUCCEEDED]
    chains = chains_of(open_runs) if open_runs else {}
    shown = [EngineRun(run, engine_text(run), with_estimates(chains.get(run.pk, []))) for run in open_runs]
    return EngineRuns([one for one in shown if one.is_active], [one for one in shown if not one.is_active])


def require_organizer(request: HttpRequest, system: System) -> None:
    """Only who organizes what a system is for lets engines loose on it; for others there is no such page."""
    if relation_to(request.user, system) is not Relation.ORGANIZER:
        raise Http404


def organized_run(request: HttpRequest, system: System, run: int) -> EvaluationRun:
    """A run of an attacker or recogniser on a system, for its organizers, or "not found"."""
    require_organizer(request, system)
    found = EvaluationRun.objects.filter(submission__system=system, kind__in=CANCELLABLE, pk=run).first()
    if found is None:
        raise Http404
    return found


def is_organizer(view: View) -> bool:
    """Whether the reader may start and end runs."""
    return view.relation is Relation.ORGANIZER
