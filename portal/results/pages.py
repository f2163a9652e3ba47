"""What the pages of systems show, put together from what the other parts know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest
from django.utils import timezone

from anonymization.methods.pseudo_speakers import Parameter
from anonymization.methods.registry import get_method
from anonymization.models import AnonymizationRun
from evaluation import faults, selectors
from evaluation.figures.histogram import MINIMUM_PITCH_CORRELATION, describe
from evaluation.metrics.catalogue import PITCH_CORRELATION
from evaluation.metrics.pitch import MINIMUM_OF_2022
from evaluation.metrics.summary import Distribution, distribute
from evaluation.models import EvaluationRun
from evaluation.services import FIGURE_THEMES, figure_key
from portal.challenges.models import Gender, Role
from portal.challenges.selectors import corpora_for, summaries
from portal.core.media import signed_address
from portal.core.wording import time_left
from portal.jobs.models import Job, State
from portal.jobs.rules import remaining_time
from portal.jobs.selectors import with_estimates
from portal.submissions.models import Submission, SubmittedFile, System
from portal.submissions.selectors import systems_for

PAGE_SIZE = 50
RUNS_THAT_TELL_THE_PACE = 20


# What to expect of the numbers of a method (docs/methods.md).
EXPECTATIONS = {
    "mcadams-2022": (
        "Each speaker of an enrolment or trial set has one α for all utterances, and ρF0 follows α more than anything "
        "else: from about 0.4 at α = 0.5 to 0.8 at α = 0.9. The published means of B2 are 0.61 to 0.70 for female and "
        "0.53 to 0.66 for male sets. They average over many speakers; a set of a few has only a few values of α, so "
        "its mean can lie anywhere between 0.3 and 0.8 with nothing wrong. Compare systems on sets with many speakers."
    ),
}


# The list of systems -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SystemRow:
    """A system in a list: its files, how far its jobs are, and its pitch correlation where trial sets were measured."""

    system: System
    files: int
    jobs: dict[str, int]
    pitch: selectors.PitchTable | None

    @property
    def jobs_total(self) -> int:
        return sum(self.jobs.values())

    @property
    def jobs_ended(self) -> int:
        return self.jobs_total - self.jobs.get(State.WAITING, 0) - self.jobs.get(State.RUNNING, 0)

    @property
    def state(self) -> str:
        """The state that most asks for attention; nothing where there is no job."""
        order = (State.RUNNING, State.WAITING, State.FAILED, State.CANCELLED, State.SUCCEEDED)
        return next((state.value for state in order if self.jobs.get(state)), "")

    @property
    def state_text(self) -> str:
        if self.state in {State.RUNNING, State.WAITING}:
            return f"{self.state}, {self.jobs_ended} of {self.jobs_total} jobs ended"
        if self.state in {State.FAILED, State.CANCELLED}:
            return f"{self.jobs[self.state]} of {self.jobs_total} jobs {self.state}"
        return "measured" if self.state else "no jobs"


def list_page(request: HttpRequest) -> dict[str, Any]:
    systems = systems_for(request.user).order_by("-created_at", "-pk")
    page = Paginator(systems, PAGE_SIZE).get_page(request.GET.get("page"))
    return {
        "page": page,
        "rows": system_rows(list(page.object_list)),
        "minimum": MINIMUM_OF_2022,
        "corpora": summaries(corpora_for(request.user)),
    }


def system_rows(systems: list[System]) -> list[SystemRow]:
    """Files, jobs and results of these systems, in four queries whatever their number."""
    counted = SubmittedFile.objects.filter(submission__system__in=systems).order_by()
    files = dict(counted.values_list("submission__system").annotate(Count("pk")))
    states: dict[int, dict[str, int]] = {system.pk: {} for system in systems}
    for run_model in (AnonymizationRun, EvaluationRun):
        rows = run_model.objects.filter(submission__system__in=systems, job__isnull=False).order_by()
        for system, state, n in rows.values_list("submission__system", "job__state").annotate(Count("pk")):
            states[system][state] = states[system].get(state, 0) + n
    pitch = selectors.compare_systems(systems)
    return [SystemRow(system, files.get(system.pk, 0), states[system.pk], pitch.get(system.pk)) for system in systems]


# A system ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Provenance:
    """What made the files of a system; `expectation`: what a reader should know before comparing its numbers."""

    title: str
    reference: str
    runs: int
    method: str
    recipe_version: str
    code_version: str
    seed: int
    parameters: tuple[Parameter, ...]
    expectation: str


@dataclass(frozen=True)
class SetFigure:
    """The histogram of a data set for light and dark pages, with its words."""

    run: EvaluationRun
    image: str
    dark: str
    alt: str


def system_page(request: HttpRequest, system: System) -> dict[str, Any]:
    submission = submission_of(system)
    runs = selectors.finished_runs(submission)
    values = selectors.values_of(runs)
    counts = selectors.counts_of(submission.pk)
    judged = selectors.trial_runs(runs) or runs
    worst, best = selectors.extremes(judged)
    return {
        "system": system,
        "corpus": system.corpus,
        "submission": submission,
        "files": counts.files,
        "provenance": provenance_of(submission),
        "progress": progress_of(system),
        "runs": runs,
        "judged_are_trials": any(run.data_set.role == Role.TRIAL for run in judged),
        "comparison": selectors.compare_pitch(runs, values, counts),
        "minimum": MINIMUM_OF_2022,
        "table": selectors.result_table(runs, values, counts),
        "figures": [figure for run in judged if (figure := set_figure(request, run, values))],
        **_numbers_of(judged),
        "worst": worst,
        "best": best,
        "faults": faults.fault_groups(runs),
    }


def submission_of(system: System) -> Submission:
    """The newest submission of a system, or "not found"."""
    submission = system.submissions.first()
    if submission is None:
        raise Http404
    return submission


def provenance_of(submission: Submission) -> Provenance | None:
    """How the portal itself made these files; None for files made elsewhere."""
    runs = list(submission.anonymization_runs.order_by("pk"))
    if not runs:
        return None
    method = get_method(runs[0].method)
    return Provenance(
        title=method.title,
        reference=method.reference,
        runs=len(runs),
        method=method.name,
        recipe_version=", ".join(sorted({run.recipe_version for run in runs})),
        code_version=", ".join(sorted({run.code_version for run in runs})),
        seed=runs[0].seed,
        parameters=method.parameters,
        expectation=EXPECTATIONS.get(method.name, ""),
    )


def set_figure(request: HttpRequest, run: EvaluationRun, values: selectors.RunValues) -> SetFigure | None:
    groups = {
        str(Gender(gender).label): summary
        for gender in values.genders_of(run)
        if (summary := values.pitch(run, gender))
    }
    if not groups:
        return None
    drawn = Distribution(groups=tuple(groups), summaries=tuple(groups.values()), bins=())
    light, dark = (signed_address(request, figure_key(run, theme)) for theme in FIGURE_THEMES)
    words = f"Histogram of {PITCH_CORRELATION.label} in {run.data_set.name}. "
    return SetFigure(
        run=run,
        image=light,
        dark=dark,
        alt=words + describe(drawn, MINIMUM_PITCH_CORRELATION, PITCH_CORRELATION.decimals),
    )


def _numbers_of(runs: list[EvaluationRun]) -> dict[str, Any]:
    """The bars of all these histograms in common bins: a row for each data set and gender."""
    rho = selectors.rho_by_set(runs)
    if not rho:
        return {}
    numbers = distribute(rho)
    counts = zip(*(each.counts for each in numbers.bins), strict=True)
    return {"bins": numbers.bins, "number_rows": list(zip(numbers.groups, numbers.summaries, counts, strict=True))}


# A new system --------------------------------------------------------------------------------------


def work_per_second() -> float | None:
    """Seconds that anonymising and measuring one second of speech took lately; None before this portal did both."""
    costs = [_cost(run_model) for run_model in (AnonymizationRun, EvaluationRun)]
    return None if None in costs else sum(cost for cost in costs if cost)


def _cost(run_model: type[AnonymizationRun] | type[EvaluationRun]) -> float | None:
    runs = run_model.objects.filter(job__state=State.SUCCEEDED).annotate(speech=Sum("data_set__utterances__duration_s"))
    rows = runs.order_by("-pk").values_list("job__started_at", "job__finished_at", "speech")[:RUNS_THAT_TELL_THE_PACE]
    known = [(ended - started, speech) for started, ended, speech in rows if started and ended and speech]
    speech_s = sum(speech for _, speech in known)
    return sum(took.total_seconds() for took, _ in known) / speech_s if speech_s else None


# Progress of a system ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Progress:
    """How far the jobs of a system are. Jobs stand in the order of their work."""

    jobs: list[Job]
    estimate: str

    @property
    def is_active(self) -> bool:
        return any(not job.has_ended for job in self.jobs)

    @property
    def ended(self) -> int:
        return sum(job.has_ended for job in self.jobs)

    @property
    def running(self) -> list[Job]:
        return [job for job in self.jobs if job.state == State.RUNNING]

    @property
    def failed(self) -> list[Job]:
        return [job for job in self.jobs if job.state == State.FAILED]

    @property
    def cancelled(self) -> int:
        return sum(job.state == State.CANCELLED for job in self.jobs)


def progress_of(system: System, now: datetime | None = None) -> Progress:
    of_system = Q(anonymization_run__submission__system=system) | Q(evaluation_run__submission__system=system)
    now = now or timezone.now()
    jobs = with_estimates(Job.objects.filter(of_system).order_by("created_at", "pk"), now)
    return Progress(jobs, time_left(_remaining(jobs, now)))


def _remaining(jobs: list[Job], now: datetime) -> timedelta | None:
    """Time until all jobs have ended, from what the ended ones took; unknown before the first has."""
    took = [job.finished_at - job.started_at for job in jobs if job.finished_at and job.started_at]
    running = [remaining_time(job, now) or timedelta() for job in jobs if job.state == State.RUNNING]
    waiting = sum(job.state == State.WAITING for job in jobs)
    if not took or not (running or waiting):
        return None
    each = sum(took, timedelta()) / len(took)
    return (sum(running, timedelta()) + waiting * each) / max(1, len(running))
