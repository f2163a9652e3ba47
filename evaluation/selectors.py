"""Reads the numbers of a submission for pages and exports."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from evaluation.metrics.catalogue import METRICS, Metric
from evaluation.models import EvaluationRun, MetricValue, UtteranceMeasure
from portal.jobs.models import State
from portal.submissions.models import Submission, SubmittedFile


def finished_runs(submission: Submission) -> list[EvaluationRun]:
    """The newest finished run of each data set, by name of the data set."""
    runs = EvaluationRun.objects.filter(submission=submission, job__state=State.SUCCEEDED)
    newest: dict[int, EvaluationRun] = {}
    for run in runs.select_related("data_set", "job").order_by("pk"):
        newest[run.data_set_id] = run
    return sorted(newest.values(), key=lambda run: run.data_set.name)


@dataclass(frozen=True)
class ResultRow:
    """One line of a system's table: the values of a data set and gender, in the order of the metrics."""

    run: EvaluationRun
    gender: str
    n: int
    values: list[MetricValue | None]


@dataclass(frozen=True)
class ResultTable:
    metrics: list[Metric]
    rows: list[ResultRow]


def result_table(runs: list[EvaluationRun]) -> ResultTable:
    """All numbers of these runs: one row for each data set and gender that has utterances."""
    metrics = list(METRICS.values())
    values: dict[tuple[int, str], dict[str, MetricValue]] = {}
    for value in MetricValue.objects.filter(run__in=runs):
        values.setdefault((value.run_id, value.gender), {})[value.metric] = value
    rows = [
        ResultRow(
            run=run,
            gender=str(gender.label),
            n=max(value.n for value in found.values()),
            values=[found.get(metric.key) for metric in metrics],
        )
        for run in runs
        for gender in _genders_of(run, values)
        if (found := values.get((run.pk, gender.value)))
    ]
    return ResultTable(metrics=metrics, rows=rows)


def _genders_of(
    run: EvaluationRun, values: dict[tuple[int, str], dict[str, MetricValue]]
) -> list[MetricValue.Gender]:
    """Women, men and all; only the one gender where a set has one."""
    present = [
        gender
        for gender in (MetricValue.Gender.FEMALE, MetricValue.Gender.MALE)
        if (run.pk, gender.value) in values
    ]
    return present if len(present) == 1 else [*present, MetricValue.Gender.ALL]


def measures_of(run: EvaluationRun) -> QuerySet[UtteranceMeasure]:
    return run.measures.select_related(
        "file__utterance__speaker", "file__submission__system", "file__data_set"
    )


def extremes(
    run: EvaluationRun, count: int = 5
) -> tuple[list[UtteranceMeasure], list[UtteranceMeasure]]:
    """The utterances of lowest and of highest pitch correlation, the most extreme first."""
    measured = measures_of(run).filter(pitch_correlation__isnull=False)
    worst = list(measured.order_by("pitch_correlation", "pk")[:count])
    shown = [measure.pk for measure in worst]
    best = list(measured.exclude(pk__in=shown).order_by("-pitch_correlation", "pk")[:count])
    return worst, best


def faulty_measures(runs: list[EvaluationRun]) -> QuerySet[UtteranceMeasure]:
    """Utterances with anything out of order."""
    return (
        UtteranceMeasure.objects.filter(~Q(faults=[]), run__in=runs)
        .select_related("file__utterance", "file__submission__system", "file__data_set")
        .order_by("file__data_set__name", "file__utterance__name")
    )


def measure_of(file: SubmittedFile) -> UtteranceMeasure | None:
    """The newest finished measure of a file."""
    return (
        file.measures.filter(run__job__state=State.SUCCEEDED)
        .select_related("run")
        .order_by("-run_id")
        .first()
    )
