"""Reads the numbers of a submission for pages and exports: the newest finished run of each data set, nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from evaluation.formats.problems import Severity
from evaluation.metrics.audio_checks import MAX_CLIPPED_SHARE, MAX_DURATION_DIFFERENCE_MS, MAX_LEVEL_CHANGE_DB
from evaluation.metrics.catalogue import (
    DURATION_DIFFERENCE,
    LEVEL_CHANGE,
    METRICS,
    PITCH_CORRELATION,
    Direction,
    Metric,
)
from evaluation.metrics.pitch import MINIMUM_OF_2022
from evaluation.metrics.summary import Summary, pool
from evaluation.models import EvaluationRun, MetricValue, UtteranceMeasure
from portal.challenges.models import Gender, Role
from portal.core.wording import decimals
from portal.jobs.models import State
from portal.submissions.models import Submission, SubmittedFile

ROLE_ORDER = (Role.TRIAL, Role.ENROLMENT, Role.TRAINING)


def finished_runs(submission: Submission) -> list[EvaluationRun]:
    """The newest finished run of each data set, by name of the data set."""
    runs = EvaluationRun.objects.filter(submission=submission, job__state=State.SUCCEEDED)
    newest: dict[int, EvaluationRun] = {}
    for run in runs.select_related("data_set", "job").order_by("pk"):
        newest[run.data_set_id] = run
    return sorted(newest.values(), key=lambda run: run.data_set.name)


def trial_runs(runs: Iterable[EvaluationRun]) -> list[EvaluationRun]:
    """The runs that the protocol judges: those of trial sets."""
    return [run for run in runs if run.data_set.role == Role.TRIAL]


@dataclass(frozen=True)
class RunValues:
    """All values of some runs, read in one query."""

    by_row: dict[tuple[int, str], dict[str, MetricValue]]

    def of(self, run: EvaluationRun, gender: str) -> dict[str, MetricValue]:
        return self.by_row.get((run.pk, gender), {})

    def genders_of(self, run: EvaluationRun) -> list[str]:
        return [gender for gender in Gender.values if (run.pk, gender) in self.by_row]

    def pitch(self, run: EvaluationRun, gender: str) -> Summary | None:
        value = self.of(run, gender).get(PITCH_CORRELATION.key)
        return Summary(value.value, value.spread or 0.0, value.n) if value else None

    def estimators(self, metric: Metric) -> list[str]:
        return sorted({found[metric.key].estimator for found in self.by_row.values() if metric.key in found})


def values_of(runs: Iterable[EvaluationRun]) -> RunValues:
    by_row: dict[tuple[int, str], dict[str, MetricValue]] = {}
    for value in MetricValue.objects.filter(run__in=list(runs)):
        by_row.setdefault((value.run_id, value.gender), {})[value.metric] = value
    return RunValues(by_row)


@dataclass(frozen=True)
class ResultCell:
    """One number of a table as a reader meets it; empty where nothing could be measured."""

    metric: Metric
    value: MetricValue | None

    @property
    def text(self) -> str:
        return number_text(self.value.value, self.metric) if self.value else ""

    @property
    def spread(self) -> str:
        return decimals(self.value.spread, self.metric.decimals) if self.value else ""


def number_text(number: float | None, metric: Metric) -> str:
    """A number with the metric's decimals, a sign where zero is best, and a true minus."""
    if number is None:
        return ""
    text = decimals(number, metric.decimals)
    return f"+{text}" if metric.direction == Direction.NEAR_ZERO and float(text.replace("−", "-")) > 0 else text


@dataclass(frozen=True)
class ResultRow:
    """One line of a system's table: the cells of a data set and gender in the order of the metrics.

    `n`: utterances; `span`: how many lines this data set has, 0 except in its first one.
    """

    run: EvaluationRun
    gender: str
    n: int
    cells: list[ResultCell]
    span: int


@dataclass(frozen=True)
class ResultGroup:
    """The rows of all data sets of one role."""

    role: Role
    rows: list[ResultRow]


@dataclass(frozen=True)
class ResultTable:
    """`estimators`: for each metric of the table, how its numbers were estimated."""

    metrics: list[Metric]
    groups: list[ResultGroup]
    estimators: list[tuple[Metric, str]]

    @property
    def width(self) -> int:
        """Columns: data set, gender and n before the metrics."""
        return 3 + len(self.metrics)


def result_table(runs: list[EvaluationRun], values: RunValues) -> ResultTable:
    """All numbers of these runs, trial sets first: one row for each data set and gender that has utterances."""
    metrics = list(METRICS.values())
    groups = [
        ResultGroup(role, [row for run in runs if run.data_set.role == role for row in _rows_of(run, values)])
        for role in ROLE_ORDER
    ]
    return ResultTable(
        metrics=metrics,
        groups=[group for group in groups if group.rows],
        estimators=[(metric, "; ".join(values.estimators(metric))) for metric in metrics],
    )


def _rows_of(run: EvaluationRun, values: RunValues) -> list[ResultRow]:
    """Women, men and all; only the one gender where a set has one."""
    present = values.genders_of(run)
    shown = present if len(present) == 1 else [*present, ""]
    found = [(gender, values.of(run, gender)) for gender in shown if values.of(run, gender)]
    return [
        ResultRow(
            run=run,
            gender=str(MetricValue.Gender(gender).label),
            n=max(value.n for value in row.values()),
            cells=[ResultCell(metric, row.get(metric.key)) for metric in METRICS.values()],
            span=0 if position else len(found),
        )
        for position, (gender, row) in enumerate(found)
    ]


@dataclass(frozen=True)
class PitchComparison:
    """Pitch correlation of one trial set by gender, beside the minimum of 2022."""

    subset: str
    female: Summary | None
    male: Summary | None

    @property
    def genders(self) -> tuple[tuple[str, Summary | None], ...]:
        return ("female", self.female), ("male", self.male)

    @property
    def average(self) -> float:
        """Mean of the genders' means, as the plan of 2022 averages; of the only one where there is one."""
        means = [summary.mean for summary in (self.female, self.male) if summary]
        return sum(means) / len(means)

    @property
    def margin(self) -> float:
        return self.average - MINIMUM_OF_2022

    @property
    def distance(self) -> float:
        return abs(self.margin)

    @property
    def is_above(self) -> bool:
        return self.margin > 0


@dataclass(frozen=True)
class PitchTable:
    """`rows`: each trial set, its female and male parts as one; `total`: all of them, where there are several."""

    rows: list[PitchComparison]
    total: PitchComparison | None


def compare_pitch(runs: list[EvaluationRun], values: RunValues) -> PitchTable:
    """The trial sets beside the minimum of 2022; the total takes the utterances of all sets together."""
    parts: dict[str, dict[str, list[Summary]]] = {}
    for run in trial_runs(runs):
        genders = values.genders_of(run)
        for gender in genders:
            summary = values.pitch(run, gender)
            if summary is not None:
                subset = _subset_name(run.data_set.name, genders)
                parts.setdefault(subset, {}).setdefault(gender, []).append(summary)
    rows = [PitchComparison(subset, *_pooled([found])) for subset, found in parts.items()]
    total = PitchComparison("All trial sets", *_pooled(parts.values())) if len(rows) > 1 else None
    return PitchTable(rows, total)


def _pooled(parts: Iterable[dict[str, list[Summary]]]) -> tuple[Summary | None, Summary | None]:
    """Female and male utterances of these sets together."""
    sets = list(parts)
    found = [[summary for each in sets for summary in each.get(gender, [])] for gender in Gender.values]
    female, male = (pool(summaries) if summaries else None for summaries in found)
    return female, male


def _subset_name(data_set: str, genders: list[str]) -> str:
    """``libri_dev_trials_f`` and ``libri_dev_trials_m`` are the two halves of ``libri_dev_trials``."""
    return data_set.replace(f"trials_{genders[0]}", "trials", 1) if len(genders) == 1 else data_set


def measures_of(*runs: EvaluationRun) -> QuerySet[UtteranceMeasure]:
    return UtteranceMeasure.objects.filter(run__in=runs).select_related(
        "file__utterance__speaker", "file__submission__system", "file__data_set"
    )


def extremes(runs: list[EvaluationRun], count: int = 6) -> tuple[list[UtteranceMeasure], list[UtteranceMeasure]]:
    """The utterances of lowest and of highest pitch correlation, the most extreme first; none of them in both."""
    worst, best = (_first_measures(runs, order, count) for order in ("", "-"))
    apart = {measure.pk for measure in worst}.isdisjoint(measure.pk for measure in best)
    if apart:
        return worst, best
    rising = list(dict.fromkeys([*worst, *reversed(best)]))
    half = (len(rising) + 1) // 2
    return rising[:half], rising[half:][::-1]


def _first_measures(runs: list[EvaluationRun], sign: str, count: int) -> list[UtteranceMeasure]:
    order = (f"{sign}pitch_correlation", f"{sign}pk")
    # Chosen before anything is joined to them.
    chosen = UtteranceMeasure.objects.filter(run__in=runs, pitch_correlation__isnull=False).order_by(*order)[:count]
    return list(measures_of(*runs).filter(pk__in=chosen.values("pk")).order_by(*order))


def rho_by_set(runs: list[EvaluationRun]) -> dict[str, list[float]]:
    """Pitch correlations of the utterances by data set and gender."""
    names = {(run.pk, gender.value): f"{run.data_set.name}, {gender.label}" for run in runs for gender in Gender}
    groups: dict[str, list[float]] = {name: [] for name in names.values()}
    rows = UtteranceMeasure.objects.filter(run__in=runs, pitch_correlation__isnull=False)
    for run, gender, rho in rows.values_list("run_id", "file__utterance__speaker__gender", "pitch_correlation"):
        groups[names[run, gender]].append(cast("float", rho))
    return {name: values for name, values in groups.items() if values}


@dataclass(frozen=True)
class Fault:
    """What a code of `UtteranceMeasure.faults` means to a reader."""

    title: str
    meaning: str
    severity: Severity


FAULTS = {
    "not-finite": Fault("Samples that are no numbers", "Some samples are NaN or infinite.", Severity.ERROR),
    "silent": Fault("Silent", "The anonymised utterance is empty or digital silence.", Severity.ERROR),
    "identical-to-original": Fault(
        "Not anonymised", "Every sample equals the original: this speech is not protected at all.", Severity.ERROR
    ),
    "duration-differs": Fault(
        "Another duration",
        f"The duration differs by more than {MAX_DURATION_DIFFERENCE_MS:g} ms, where the recipe of 2022 warns.",
        Severity.WARNING,
    ),
    "clipped": Fault(
        "Clipped", f"More than {MAX_CLIPPED_SHARE:.1%} of the samples are at full scale.", Severity.WARNING
    ),
    "pitch-not-measured": Fault(
        "Without pitch correlation",
        "Too short for an F0 contour; left out of the pitch correlation, as n tells.",
        Severity.WARNING,
    ),
    "level-changed": Fault(
        f"Level changed by more than {MAX_LEVEL_CHANGE_DB:g} dB",
        "Fine where the anonymiser normalises levels on purpose, as B2 does with the peak of each utterance.",
        Severity.NOTE,
    ),
}
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def audio_text(measure: UtteranceMeasure) -> str:
    """Level, duration and peak of an utterance in words."""
    level = number_text(measure.level_change_db, LEVEL_CHANGE)
    parts = [f"level {level} dB" if level else "level not comparable"]
    parts.append(f"duration {number_text(measure.duration_difference_ms, DURATION_DIFFERENCE)} ms")
    if measure.peak_dbfs is not None:
        parts.append(f"peak {decimals(measure.peak_dbfs, 1)} dBFS")
    return ", ".join(parts)


@dataclass(frozen=True)
class FaultGroup:
    """All utterances with one fault: how many, and the first of them, each with its audio in words."""

    fault: Fault
    count: int
    examples: list[tuple[UtteranceMeasure, str]]

    @property
    def more(self) -> int:
        return self.count - len(self.examples)


def fault_groups(runs: list[EvaluationRun], count: int = 10) -> list[FaultGroup]:
    """Utterances with anything out of order by cause, the gravest first, in two queries whatever their number."""
    faulty = UtteranceMeasure.objects.filter(~Q(faults=[]), run__in=runs)
    counts: Counter[str] = Counter()
    for codes, n in faulty.order_by().values_list("faults").annotate(Count("pk")):
        counts.update(dict.fromkeys(codes, n))
    rank = Window(RowNumber(), partition_by=F("faults"), order_by=F("pk").asc())
    first = faulty.annotate(rank=rank).filter(rank__lte=count).values("pk")
    shown = list(measures_of(*runs).filter(pk__in=first).order_by("file__data_set__name", "file__utterance__name"))
    groups = [
        FaultGroup(fault_of(code), n, [(m, audio_text(m)) for m in shown if code in m.faults][:count])
        for code, n in counts.items()
    ]
    return sorted(groups, key=lambda group: (_SEVERITIES.index(group.fault.severity), -group.count))


def fault_of(code: str) -> Fault:
    """What a code means; a code of another version of the portal stands for itself."""
    return FAULTS.get(code, Fault(code, "", Severity.WARNING))


def measure_of(file: SubmittedFile) -> UtteranceMeasure | None:
    """The newest finished measure of a file."""
    return (
        file.measures.filter(run__job__state=State.SUCCEEDED)
        .select_related("run__data_set")
        .order_by("-run_id")
        .first()
    )
