"""Measures a submission: creates evaluation runs and their jobs, and is the body of those jobs.

The recipe `basic`: pitch correlation (official form and over voiced frames, F0 by Praat), duration and level of each
utterance against its original, then mean, spread and n by gender.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
from django.core.files.storage import default_storage
from django.db import transaction

from evaluation.figures.histogram import pitch_histogram
from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.audio import AudioError
from evaluation.formats.problems import Problem, Severity
from evaluation.metrics.audio_checks import audio_problems, check_audio
from evaluation.metrics.catalogue import (
    DURATION_DIFFERENCE,
    LEVEL_CHANGE,
    PITCH_CORRELATION,
    PITCH_CORRELATION_VOICED,
    Metric,
)
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.f0 import F0Track, praat_estimator, track_f0_praat
from evaluation.metrics.pitch import pitch_correlation
from evaluation.metrics.summary import summarise
from evaluation.models import EvaluationRun, MetricValue, UtteranceMeasure
from evaluation.selectors_objective import pitch_minimum
from portal.challenges.models import DataSet, Gender
from portal.core import audit
from portal.core.audio import Samples, load_audio
from portal.core.storage import replace_named
from portal.core.version import code_version
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job
from portal.jobs.runner import JobContext
from portal.jobs.services import create_job
from portal.submissions.models import Submission, SubmittedFile

RECIPE, RECIPE_VERSION = "basic", "1"
FIGURE_THEMES: tuple[Theme, ...] = ("light", "dark")


@transaction.atomic
def start_evaluation(
    *, submission: Submission, data_set: DataSet, after: Job | None = None, by: Any = None
) -> EvaluationRun:
    """One run and its job, which waits for the job `after`."""
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.MEASURES,
        data_set=data_set,
        recipe=RECIPE,
        recipe_version=RECIPE_VERSION,
        code_version=code_version(),
    )
    run.job = create_job(
        kind="measure",
        title=f"Measure {data_set} · {submission.system}",
        edition=submission.system.edition_name,
        parameters={"run": run.pk},
        by=by,
        after=after,
    )
    run.save(update_fields=["job"])
    audit.record("evaluation.started", run, actor=by)
    return run


def run_evaluation(context: JobContext) -> dict[str, Any]:
    """Body of the job: measure each utterance that has no measure yet, then the values and figures of the set."""
    run = EvaluationRun.objects.select_related("data_set", "submission").get(pk=context.parameters["run"])
    files = list(
        SubmittedFile.objects.filter(submission=run.submission, data_set=run.data_set)
        .select_related("utterance__speaker")
        .order_by("utterance__name")
    )
    measured = set(run.measures.values_list("file_id", flat=True))
    problems: list[Problem] = []
    for done, file in enumerate(files):
        context.progress("Measuring", done, len(files))
        if file.pk in measured:
            continue
        try:
            context.problems += _measure_one(run, file)
        except (AudioError, MetricInputError, OSError) as error:
            problems.append(_failed_utterance(file, error))
            if done == 0:
                break
    context.progress("Measuring", len(files) - len(problems), len(files))
    if problems or not files:
        raise JobFailure(
            f"{len(problems)} of {len(files)} utterances of {run.data_set} could not be measured.",
            actor=Actor.ORGANIZER,
            remedy="The report names each with its reason.",
            problems=problems,
        )
    context.progress("Drawing the figures", 0, 0)
    _write_values(run)
    draw_figures(run)
    return {"utterances": len(files)}


def _measure_one(run: EvaluationRun, file: SubmittedFile) -> list[Problem]:
    """Store the measures of one utterance; what is out of order in it."""
    original, rate = load_audio(file.utterance.audio)
    anonymised, anonymised_rate = load_audio(file.audio)
    if rate != anonymised_rate:
        raise MetricInputError(f"Expected {rate} Hz as in the original, found {anonymised_rate} Hz.")
    check = check_audio(original, anonymised, rate)
    problems = audio_problems(check, file.utterance.name)
    try:
        pitch = _pitch_values(file, original, anonymised, rate)
    except MetricInputError as error:
        pitch = {}
        problems.append(_without_pitch(file, error))
    UtteranceMeasure.objects.get_or_create(
        run=run,
        file=file,
        defaults={
            "duration_difference_ms": check.duration_difference_ms,
            "level_change_db": check.level_change_db,
            "peak_dbfs": check.peak_dbfs,
            "faults": [problem.code for problem in problems],
            **pitch,
        },
    )
    return problems


def _pitch_values(file: SubmittedFile, original: Samples, anonymised: Samples, rate: int) -> dict[str, Any]:
    key_original, f0_original = _f0(file.utterance.audio, lambda: track_f0_praat(original, rate))
    key_anonymised, f0_anonymised = _f0(file.audio, lambda: track_f0_praat(anonymised, rate))
    pitch = pitch_correlation(f0_original.hz, f0_anonymised.hz)
    return {
        "pitch_correlation": pitch.rho,
        "voiced_pitch_correlation": pitch.rho_voiced,
        "lag_frames": pitch.lag_frames,
        "f0_original": key_original,
        "f0_anonymised": key_anonymised,
    }


def _f0(audio_key: str, extract: Callable[[], F0Track]) -> tuple[str, F0Track]:
    """The F0 contour of a stored file, extracted once for all runs."""
    key = f"derived/f0/{praat_estimator().replace(' ', '_').replace('(', '').replace(')', '')}/{audio_key}.npz"
    if default_storage.exists(key):
        return key, load_f0(key)
    track = extract()
    packed = io.BytesIO()
    np.savez_compressed(
        packed,
        hz=track.hz,
        start_s=track.start_s,
        step_s=track.step_s,
        estimator=np.str_(track.estimator),
    )
    replace_named(key, packed.getvalue())
    return key, track


def load_f0(key: str) -> F0Track:
    """A stored F0 contour."""
    with default_storage.open(key) as file, np.load(io.BytesIO(file.read())) as packed:
        return F0Track(
            hz=packed["hz"],
            start_s=float(packed["start_s"]),
            step_s=float(packed["step_s"]),
            estimator=str(packed["estimator"]),
        )


@transaction.atomic
def _write_values(run: EvaluationRun) -> None:
    """Mean, spread and n of each measure over all utterances and by gender."""
    rows = run.measures.values_list(
        "file__utterance__speaker__gender",
        "pitch_correlation",
        "voiced_pitch_correlation",
        "duration_difference_ms",
        "level_change_db",
    )
    columns: tuple[tuple[Metric, str], ...] = (
        (PITCH_CORRELATION, f"official 2022, {praat_estimator()}"),
        (PITCH_CORRELATION_VOICED, f"jointly voiced frames, {praat_estimator()}"),
        (DURATION_DIFFERENCE, "samples"),
        (LEVEL_CHANGE, "root mean square"),
    )
    values = []
    for gender in ("", *Gender.values):
        chosen = [row[1:] for row in rows if gender in ("", row[0])]
        for position, (metric, estimator) in enumerate(columns):
            values += _value(run, metric, estimator, gender, (row[position] for row in chosen))
    run.values.all().delete()
    MetricValue.objects.bulk_create(values)


def _value(
    run: EvaluationRun, metric: Metric, estimator: str, gender: str, numbers: Iterable[float | None]
) -> list[MetricValue]:
    present = [number for number in numbers if number is not None]
    if not present:
        return []
    summary = summarise(present)
    return [
        MetricValue(
            run=run,
            data_set=run.measured_set.name,
            metric=metric.key,
            estimator=estimator,
            gender=gender,
            value=summary.mean,
            spread=summary.std,
            n=summary.n,
        )
    ]


def rho_by_gender(run: EvaluationRun) -> dict[str, list[float]]:
    """Pitch correlations of the run's utterances by the name of the gender."""
    rows = run.measures.filter(pitch_correlation__isnull=False).values_list(
        "file__utterance__speaker__gender", "pitch_correlation"
    )
    groups: dict[str, list[float]] = {str(gender.label): [] for gender in Gender}
    for gender, rho in rows:
        groups[str(Gender(gender).label)].append(cast("float", rho))
    return {label: values for label, values in groups.items() if values}


def figure_key(run: EvaluationRun, theme: str, image_format: str = "svg") -> str:
    return f"derived/figures/{run.pk}/pitch-{theme}.{image_format}"


def draw_figures(run: EvaluationRun) -> None:
    """Draw and keep the run's histogram of ρF0 for light and dark pages and for print; none without a value."""
    groups = rho_by_gender(run)
    if not groups:
        return
    threshold = pitch_minimum(run.submission.system.edition)
    for theme in FIGURE_THEMES:
        replace_named(figure_key(run, theme), pitch_histogram(groups, threshold=threshold, theme=theme))
    formats: tuple[ImageFormat, ...] = ("png", "pdf")
    for image_format in formats:
        replace_named(
            figure_key(run, "light", image_format),
            pitch_histogram(groups, threshold=threshold, image_format=image_format),
        )


def _without_pitch(file: SubmittedFile, error: Exception) -> Problem:
    return Problem(
        code="pitch-not-measured",
        file=file.utterance.name,
        expected="speech long enough for an F0 contour",
        found=str(error),
        remedy="Its pitch correlation is left out; n tells how many utterances the mean rests on.",
        severity=Severity.WARNING,
    )


def _failed_utterance(file: SubmittedFile, error: Exception) -> Problem:
    return Problem(
        code="not-measured",
        file=file.utterance.name,
        expected="original and anonymised audio that can be compared",
        found=str(error),
        remedy="Mend this utterance in the submission.",
    )
