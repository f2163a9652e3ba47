"""The measures of a data set as a job: each utterance against its original, then mean, spread and n by gender.

The recipe `basic`: pitch correlation (official form, over voiced frames, and realigned; F0 by Praat), duration, level,
and of a sample the predicted naturalness of both forms.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from anonymization.app.selectors import outputs_keep_duration
from common.arrays import Samples
from common.errors import InputError
from common.problems import Problem, Severity
from evaluation.app.audio_measures.services import draw_figures
from evaluation.app.models import EvaluationRun, MetricValue, UtteranceMeasure
from evaluation.app.runs.context import pitch_minimum
from evaluation.app.runs.kinds import MEASURES
from evaluation.metrics import catalogue, naturalness
from evaluation.metrics.audio_checks import audio_problems, check_audio
from evaluation.metrics.averages import summarise
from evaluation.metrics.pitch import pitch_correlation, realigned_pitch_correlation
from portal.challenges.models import Gender, Role
from portal.core.storage import load_audio
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from portal.submissions.models import SubmittedFile
from speech.audio.files import AudioError
from speech.pitch.estimators import F0Track, praat_estimator, track_f0_praat

REALIGNED = "dynamic time warping, slopes 1/2 to 2, within 1 s"


@job_kind("measure", title="Measures of a data set", queue=Queue.CPU, memory_mb=1000)
def measure_data_set(context: JobContext) -> dict[str, Any]:
    """Body of the job: measure each utterance that has no measure yet, then the values and figures of the set."""
    run = EvaluationRun.objects.select_related("data_set", "submission").get(pk=context.parameters["run"])
    files = list(
        SubmittedFile.objects.filter(submission=run.submission, data_set=run.data_set)
        .select_related("utterance__speaker")
        .order_by("utterance__name")
    )
    heard = _choose_heard(run, files)
    measured = set(run.measures.values_list("file_id", flat=True))
    problems: list[Problem] = []
    tracks: dict[str, F0Track] = {}
    keeps = run.data_set is None or outputs_keep_duration(run.submission, run.data_set)
    for done, file in enumerate(files):
        context.progress("Measuring", done, len(files))
        if file.pk in measured:
            continue
        try:
            other = files[(done + 1) % len(files)] if len(files) > 1 else None
            context.problems += _measure_one(run, file, other, tracks, keeps_duration=keeps, is_heard=file.pk in heard)
        except (AudioError, InputError, OSError) as error:
            expected = "original and anonymised audio that can be compared"
            remedy = "Fix this utterance in the submission."
            problems.append(Problem("not-measured", file.utterance.name, expected, str(error), remedy))
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
    _store_values(run)
    minimum = pitch_minimum(run.submission.system.edition)
    drawn = [minimum.value, minimum.label] if minimum else []
    return {"utterances": len(files), "contours": draw_figures(run), "minimum": drawn}


def _choose_heard(run: EvaluationRun, files: list[SubmittedFile]) -> set[int]:
    """Return the files whose naturalness is predicted: a sample of trial sets, which are ranked; none without the
    network."""
    if run.measured_set.role != Role.TRIAL or naturalness.missing():
        return set()
    chosen = naturalness.choose_sample([file.utterance.speaker.name for file in files], naturalness.SAMPLE)
    return {files[place].pk for place in chosen}


def _measure_one(
    run: EvaluationRun,
    file: SubmittedFile,
    other: SubmittedFile | None,
    tracks: dict[str, F0Track],
    *,
    keeps_duration: bool,
    is_heard: bool,
) -> list[Problem]:
    """Store the measures of one utterance; what is out of order in it.

    Args:
        other: another file of the set, whose contour is unrelated.
        tracks: F0 contours of anonymised files that are measured next, by key of their audio.
        is_heard: whether its naturalness is predicted.
    """
    original, rate = load_audio(file.utterance.audio)
    anonymised, anonymised_rate = load_audio(file.audio)
    if rate != anonymised_rate:
        raise InputError(f"Expected {rate} Hz as in the original, found {anonymised_rate} Hz.")
    check = check_audio(original, anonymised, rate)
    problems = audio_problems(check, file.utterance.name, keeps_duration=keeps_duration)
    try:
        pitch = _pitch_values(file, other, tracks, original, anonymised, rate)
    except InputError as error:
        pitch, name, expected = {}, file.utterance.name, "speech long enough for an F0 contour"
        remedy = "Its pitch correlation is left out; n is the number of utterances in the mean."
        problems.append(Problem("pitch-not-measured", name, expected, str(error), remedy, Severity.WARNING))
    UtteranceMeasure.objects.get_or_create(
        run=run,
        file=file,
        defaults={
            "duration_difference_ms": check.duration_difference_ms,
            "level_change_db": check.level_change_db,
            "peak_dbfs": check.peak_dbfs,
            "faults": [problem.code for problem in problems],
            **pitch,
            **(_predicted(file, original, anonymised, rate) if is_heard else {}),
        },
    )
    return problems


def _pitch_values(
    file: SubmittedFile,
    other: SubmittedFile | None,
    tracks: dict[str, F0Track],
    original: Samples,
    anonymised: Samples,
    rate: int,
) -> dict[str, Any]:
    f0_original = track_f0_praat(original, rate)
    f0_anonymised = tracks.pop(file.audio, None) or track_f0_praat(anonymised, rate)
    pitch = pitch_correlation(f0_original.hz, f0_anonymised.hz)
    return {
        "pitch_correlation": pitch.rho,
        "voiced_pitch_correlation": pitch.rho_voiced,
        "realigned_pitch_correlation": realigned_pitch_correlation(f0_original.hz, f0_anonymised.hz).rho_voiced,
        "unrelated_pitch_correlation": _unrelated(f0_original, other, tracks, rate),
        "lag_frames": pitch.lag_frames,
    }


def _unrelated(
    f0_original: F0Track, other: SubmittedFile | None, tracks: dict[str, F0Track], rate: int
) -> float | None:
    """Return the correlation of a contour with the anonymised form of another utterance, realigned; None without
    one."""
    if other is None:
        return None
    try:
        tracks[other.audio] = track_f0_praat(load_audio(other.audio)[0], rate)
        return realigned_pitch_correlation(f0_original.hz, tracks[other.audio].hz).rho_voiced
    except (AudioError, InputError, OSError):
        return None  # the other one is told of in its own turn


def _predicted(file: SubmittedFile, original: Samples, anonymised: Samples, rate: int) -> dict[str, float | None]:
    """Return predicted naturalness of both forms; that of an original which was heard before is taken from there."""
    before = UtteranceMeasure.objects.filter(
        file__utterance=file.utterance_id,
        file__utterance__audio=file.utterance.audio,
        run__recipe_version=MEASURES.version,
        predicted_original__isnull=False,
    ).values_list("predicted_original", flat=True)
    return {
        "predicted_naturalness": naturalness.predict_naturalness(anonymised, rate),
        "predicted_original": next(iter(before[:1]), None) or naturalness.predict_naturalness(original, rate),
    }


@transaction.atomic
def _store_values(run: EvaluationRun) -> None:
    """Mean, spread and n of each measure over all utterances and by gender."""
    rows = run.measures.values_list(
        "file__utterance__speaker__gender",
        "pitch_correlation",
        "voiced_pitch_correlation",
        "realigned_pitch_correlation",
        "unrelated_pitch_correlation",
        "predicted_naturalness",
        "duration_difference_ms",
        "level_change_db",
    )
    columns: tuple[tuple[catalogue.Metric, str], ...] = (
        (catalogue.PITCH_CORRELATION, f"official 2022, {praat_estimator()}"),
        (catalogue.PITCH_CORRELATION_VOICED, f"jointly voiced frames, {praat_estimator()}"),
        (catalogue.PITCH_CORRELATION_REALIGNED, f"{REALIGNED}, {praat_estimator()}"),
        (catalogue.PITCH_CORRELATION_UNRELATED, f"{REALIGNED}, {praat_estimator()}"),
        (catalogue.PREDICTED_NATURALNESS, naturalness.ESTIMATOR),
        (catalogue.DURATION_DIFFERENCE, "samples"),
        (catalogue.LEVEL_CHANGE, "root mean square"),
    )
    values = []
    for gender in ("", *Gender.values):
        chosen = [row[1:] for row in rows if gender in ("", row[0])]
        for position, (metric, estimator) in enumerate(columns):
            present = [value for row in chosen if (value := row[position]) is not None]
            if present:
                found, identity = summarise(present), {"metric": metric.key, "estimator": estimator, "gender": gender}
                number = {"value": found.mean, "spread": found.std, "n": found.n}
                values.append(MetricValue(run=run, data_set=run.measured_set.name, **identity, **number))
    run.values.all().delete()
    MetricValue.objects.bulk_create(values)
