"""What the pages of systems show, put together from what the other parts know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.http import Http404, HttpRequest
from django.utils import timezone

from anonymization.methods.pseudo_speakers import PseudoSpeaker
from anonymization.models import AnonymizationRun
from anonymization.services import pseudo_speaker_of
from evaluation.metrics.catalogue import METRICS, PITCH_CORRELATION
from evaluation.metrics.summary import Distribution, distribute
from evaluation.models import EvaluationRun, MetricValue, UtteranceMeasure
from evaluation.selectors import extremes, faulty_measures, finished_runs, measures_of, result_table
from evaluation.services import figure_key, load_f0, rho_by_gender
from portal.core.media import signed_address
from portal.jobs.models import Job, State
from portal.jobs.rules import remaining_time
from portal.submissions.models import SubmittedFile, System
from portal.submissions.selectors import systems_for

# Order by name in an address: what it says on the page, and the order itself. Missing values always come last.
MEASURE_ORDERS = {
    "lowest": ("lowest pitch correlation first", F("pitch_correlation").asc(nulls_last=True)),
    "highest": ("highest pitch correlation first", F("pitch_correlation").desc(nulls_last=True)),
    "louder": ("louder than the original first", F("level_change_db").desc(nulls_last=True)),
    "softer": ("softer than the original first", F("level_change_db").asc(nulls_last=True)),
    "name": ("by name", F("file__utterance__name").asc()),
}


def system_rows(user: Any) -> QuerySet[System]:
    """Systems with the state of their jobs, newest first."""
    return (
        systems_for(user)
        .annotate(
            files=Count("submissions__files", distinct=True),
            jobs_ahead=Count(
                "submissions__evaluation_runs__job",
                distinct=True,
                filter=Q(
                    submissions__evaluation_runs__job__state__in=[State.WAITING, State.RUNNING]
                ),
            ),
            jobs_failed=Count(
                "submissions__evaluation_runs__job",
                distinct=True,
                filter=Q(
                    submissions__evaluation_runs__job__state__in=[State.FAILED, State.CANCELLED]
                ),
            ),
        )
        .order_by("-created_at")
    )


@dataclass(frozen=True)
class SetFigure:
    """The histogram of one data set with its numbers and its extreme utterances."""

    run: EvaluationRun
    light: str
    dark: str
    downloads: list[tuple[str, str]]
    distribution: Distribution
    worst: list[UtteranceMeasure]
    best: list[UtteranceMeasure]


def system_page(request: HttpRequest, system: System) -> dict[str, Any]:
    submission = system.submissions.first()
    if submission is None:
        raise Http404
    runs = finished_runs(submission)
    jobs = jobs_of(system)
    return {
        "system": system,
        "corpus": system.corpus,
        "submission": submission,
        "anonymization_runs": submission.anonymization_runs.select_related("data_set", "job"),
        "jobs": jobs,
        "any_active": any(not job.has_ended for job in jobs),
        "table": result_table(runs),
        "figures": [_set_figure(request, run) for run in runs],
        "faulty": faulty_measures(runs)[:50],
    }


def jobs_of(system: System) -> list[Job]:
    """The jobs of a system in the order of their work, with their estimates."""
    jobs = Job.objects.filter(
        Q(anonymization_run__submission__system=system)
        | Q(evaluation_run__submission__system=system)
    ).order_by("created_at")
    found = list(jobs)
    now = timezone.now()
    for job in found:
        job.remaining = remaining_time(job, now)
    return found


def _set_figure(request: HttpRequest, run: EvaluationRun) -> SetFigure:
    worst, best = extremes(run)
    light = signed_address(request, figure_key(run, "light"))
    downloads = [("SVG", light)]
    downloads += [
        (kind.upper(), signed_address(request, figure_key(run, "light", kind)))
        for kind in ("png", "pdf")
    ]
    return SetFigure(
        run=run,
        light=light,
        dark=signed_address(request, figure_key(run, "dark")),
        downloads=downloads,
        distribution=distribute(rho_by_gender(run)),
        worst=worst,
        best=best,
    )


def run_of(system: System, data_set: str) -> EvaluationRun:
    """The finished run of a system on a data set, or "not found"."""
    submission = system.submissions.first()
    for run in finished_runs(submission) if submission else ():
        if run.data_set.name == data_set:
            return run
    raise Http404


def pseudo_speaker_of_file(file: SubmittedFile) -> PseudoSpeaker | None:
    """The voice that the portal's own method gave this file; None for files made elsewhere."""
    run = AnonymizationRun.objects.filter(
        submission=file.submission, data_set=file.data_set
    ).first()
    return pseudo_speaker_of(run, file.utterance) if run else None


def f0_as_json(measure: UtteranceMeasure) -> dict[str, Any]:
    return {
        side: {
            "start_s": track.start_s,
            "step_s": track.step_s,
            "hz": [round(hz, 1) for hz in track.hz.tolist()],
        }
        for side, track in (
            ("original", load_f0(measure.f0_original)),
            ("anonymised", load_f0(measure.f0_anonymised)),
        )
    }


def value_rows(system: System) -> Iterator[list[Any]]:
    """Every number of a system with all that identifies it, as rows of a CSV file."""
    yield [
        "system",
        "version",
        "data_set",
        "gender",
        "metric",
        "estimator",
        "unit",
        "better",
        "value",
        "spread",
        "n",
    ] + [
        "recipe",
        "code",
    ]
    submission = system.submissions.first()
    runs = finished_runs(submission) if submission else []
    for value in (
        MetricValue.objects.filter(run__in=runs)
        .select_related("run__data_set")
        .order_by("run__data_set__name", "metric", "gender")
    ):
        metric = METRICS[value.metric]
        yield [
            system.name,
            submission.version,
            value.run.data_set.name,
            value.get_gender_display(),
            value.metric,
            value.estimator,
            metric.unit,
            metric.direction,
            value.value,
            value.spread,
            value.n,
            f"{value.run.recipe} {value.run.recipe_version}",
            value.run.code_version,
        ]


def measure_rows(run: EvaluationRun) -> Iterator[list[Any]]:
    """Every utterance of a run with its measures, as rows of a CSV file."""
    yield [
        "utterance", "speaker", "gender", PITCH_CORRELATION.key, "pitch_correlation_voiced", "lag_frames",
        "duration_difference_ms", "level_change_db", "peak_dbfs", "faults",
    ]  # fmt: skip
    for measure in measures_of(run).order_by("file__utterance__name"):
        utterance = measure.file.utterance
        yield [
            utterance.name,
            utterance.speaker.name,
            utterance.speaker.gender,
            measure.pitch_correlation,
            measure.voiced_pitch_correlation,
            measure.lag_frames,
            measure.duration_difference_ms,
            measure.level_change_db,
            measure.peak_dbfs,
            " ".join(measure.faults),
        ]
