"""Systems with measures for tests of result pages: rows as the worker leaves them, without any signal processing."""

import statistics

from anonymization.app.models import AnonymizationRun
from anonymization.app.voice_assignment import give_voices, plan_run_voices
from anonymization.methods.registry import get_method
from evaluation.app.models import EvaluationRun
from evaluation.metrics.catalogue import METRICS
from tests.portal.factories import make_job

FIELDS = {
    "pitch_correlation": "pitch_correlation",
    "pitch_correlation_voiced": "voiced_pitch_correlation",
    "pitch_correlation_realigned": "realigned_pitch_correlation",
    "pitch_correlation_unrelated": "unrelated_pitch_correlation",
    "predicted_naturalness": "predicted_naturalness",
    "duration_difference": "duration_difference_ms",
    "level_change": "level_change_db",
}


def make_anonymization_run(system, data_set, state="succeeded", seed=2022, method="mcadams-2022", **fields):
    """The run and the job that made the files of a data set."""
    job = make_job(state, kind="anonymize", title=f"B2 on {data_set}", **system.place_of_work)
    return AnonymizationRun.objects.create(
        submission=system.submissions.get(),
        data_set=data_set,
        method=method,
        recipe_version="1",
        code_version="1.2.3",
        seed=seed,
        job=job,
        **fields,
    )


def make_planned_run(system, data_set, *, method="mcadams-2022", seed=2022, **fields):
    """A run at speaker level with the voices of its split."""
    run = AnonymizationRun(data_set=data_set, seed=seed)
    give_voices(run, plan_run_voices(get_method(method), run))
    voices = {"voices": run.voices, "voice_distance": run.voice_distance}
    return make_anonymization_run(system, data_set, seed=seed, method=method, **voices | fields)


def make_measured_run(system, data_set, rho=(), *, state="succeeded", **fields):
    """A run over a data set whose utterances have these pitch correlations by name, repeated from the first."""
    submission = system.submissions.get()
    job = make_job(state, kind="measure", title=f"Measures on {data_set}")
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.MEASURES,
        data_set=data_set,
        recipe="basic",
        recipe_version="1",
        code_version="1.2.3",
        job=job,
    )
    for position, file in enumerate(submission.files.filter(data_set=data_set).order_by("utterance__name")):
        run.measures.create(
            file=file,
            pitch_correlation=rho[position % len(rho)] if rho else 0.5,
            voiced_pitch_correlation=0.9 - position / 100,
            realigned_pitch_correlation=0.95 - position / 100,
            unrelated_pitch_correlation=0.5 + position / 100,
            predicted_naturalness=3.0 + position / 100,
            lag_frames=position,
            **{"duration_difference_ms": 0.0, "level_change_db": 3.0 + position, "peak_dbfs": -0.5} | fields,
        )
    write_values(run)
    return run


def write_values(run):
    for gender in ("", "f", "m"):
        measures = list(run.measures.filter(file__utterance__speaker__gender__contains=gender))
        for metric in METRICS.values():
            numbers = [number for each in measures if (number := getattr(each, FIELDS[metric.key])) is not None]
            if numbers:
                run.values.create(
                    metric=metric.key,
                    estimator=f"estimator of {metric.key}",
                    gender=gender,
                    value=statistics.fmean(numbers),
                    spread=statistics.pstdev(numbers),
                    n=len(numbers),
                )
