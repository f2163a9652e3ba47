"""Starts the measures of a submission's audio, and keeps their figures."""

from __future__ import annotations

from functools import partial
from typing import Any

from evaluation.app.audio_measures.selectors import (
    contours_key,
    figure_key,
    find_realigned_example,
    group_correlations_by_gender,
)
from evaluation.app.models import EvaluationRun, UtteranceMeasure
from evaluation.app.runs.context import pitch_minimum
from evaluation.app.runs.kinds import MEASURES
from evaluation.app.runs.services import start_run, store_figure
from evaluation.figures.contours import Contour, ContourPlot, describe_contours
from evaluation.figures.histogram import make_pitch_plot
from evaluation.metrics.pitch import realigned_pitch_correlation
from portal.challenges.models import DataSet
from portal.core.storage import load_audio
from portal.jobs.models import Job
from portal.submissions.models import Submission
from speech.pitch.estimators import track_f0_praat

RECIPE = "basic"


def start_measures(
    *, submission: Submission, data_set: DataSet, after: Job | None = None, by: Any = None
) -> EvaluationRun:
    """Return one run and its job, which waits for the job `after`."""
    run = MEASURES.make_run(submission, data_set=data_set, recipe=RECIPE)
    return start_run(run, job=MEASURES.job, title=f"Measure {data_set} · {submission.system}", after=after, by=by)


def draw_figures(run: EvaluationRun) -> dict[str, float]:
    """Draw and keep the run's histogram of ρF0 and the contours of one utterance; none without a value.

    Returns:
        Pitch correlations of that utterance, ``plain`` and ``realigned``; empty without one.
    """
    groups = group_correlations_by_gender(run)
    if not groups:
        return {}
    threshold = pitch_minimum(run.submission.system.edition)
    plot, words = make_pitch_plot(groups, threshold)
    store_figure(run, partial(figure_key, run), plot, **words)
    return _draw_contours(run, example) if (example := find_realigned_example(run)) else {}


def _draw_contours(run: EvaluationRun, example: UtteranceMeasure) -> dict[str, float]:
    found = {
        "plain": float(example.pitch_correlation or 0),
        "realigned": float(example.realigned_pitch_correlation or 0),
    }
    audio = example.file.utterance.audio, example.file.audio
    original, anonymised = (track_f0_praat(*load_audio(key)) for key in audio)
    warped = realigned_pitch_correlation(original.hz, anonymised.hz).warped
    named = (("original", original.hz), ("anonymised", anonymised.hz), ("anonymised, realigned", warped))
    plot = ContourPlot([Contour(name, hz, original.start_s, original.step_s) for name, hz in named])
    store_figure(
        run,
        partial(contours_key, run),
        plot,
        title="F0 contours of one utterance",
        description=describe_contours(**found),
    )
    return found
