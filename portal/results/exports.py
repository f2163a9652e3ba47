"""The numbers of a system as rows of CSV files, each with all that identifies it. Full precision, one header row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluation.metrics.catalogue import METRICS
from evaluation.models import EvaluationRun, MetricValue
from evaluation.selectors import finished_runs, measures_of
from portal.submissions.models import Submission, System

VALUE_COLUMNS = (
    "system", "version", "data_set", "role", "gender", "metric", "estimator", "unit", "better", "value", "spread", "n",
    "recipe", "code",
)  # fmt: skip
MEASURE_COLUMNS = (
    "utterance", "speaker", "gender", "pitch_correlation", "pitch_correlation_voiced", "lag_frames",
    "duration_difference_ms", "level_change_db", "peak_dbfs", "faults",
)  # fmt: skip


def value_rows(system: System, submission: Submission) -> Iterator[tuple[Any, ...]]:
    """Every number of the newest finished runs over the audio of a submission."""
    yield VALUE_COLUMNS
    runs = finished_runs(submission)
    values = MetricValue.objects.filter(run__in=runs).select_related("run__data_set")
    for value in values.order_by("run__data_set__name", "metric", "gender"):
        metric = METRICS[value.metric]
        yield (
            system.name,
            submission.version,
            value.run.measured_set.name,
            value.run.measured_set.role,
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
        )


def measure_rows(run: EvaluationRun) -> Iterator[tuple[Any, ...]]:
    """Every utterance of a run with its measures, by name."""
    yield MEASURE_COLUMNS
    for measure in measures_of(run).order_by("file__utterance__name").iterator(chunk_size=500):
        utterance = measure.file.utterance
        yield (
            utterance.name,
            utterance.speaker.name,
            utterance.speaker.get_gender_display(),
            measure.pitch_correlation,
            measure.voiced_pitch_correlation,
            measure.lag_frames,
            measure.duration_difference_ms,
            measure.level_change_db,
            measure.peak_dbfs,
            " ".join(measure.faults),
        )
