"""Starts the measures of a submission's audio, and keeps what they share: F0 contours and figures."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from evaluation.app.audio_measures.selectors import (
    contours_key,
    figure_key,
    find_realigned_example,
    group_correlations_by_gender,
    load_f0,
)
from evaluation.app.models import EvaluationRun, UtteranceMeasure
from evaluation.app.runs.context import pitch_minimum
from evaluation.app.runs.kinds import MEASURES
from evaluation.app.runs.services import start_run, store_figure
from evaluation.figures.contours import Contour, ContourPlot, describe_contours
from evaluation.figures.histogram import make_pitch_plot
from evaluation.metrics.pitch import realigned_pitch_correlation
from portal.challenges.models import DataSet
from portal.core.storage import replace_named
from portal.jobs.models import Job
from portal.submissions.models import Submission
from speech.pitch.estimators import F0Track, praat_estimator

RECIPE = "basic"


def start_measures(
    *, submission: Submission, data_set: DataSet, after: Job | None = None, by: Any = None
) -> EvaluationRun:
    """One run and its job, which waits for the job `after`."""
    run = MEASURES.make_run(submission, data_set=data_set, recipe=RECIPE)
    return start_run(run, job=MEASURES.job, title=f"Measure {data_set} · {submission.system}", after=after, by=by)


def find_or_store_f0(audio_key: str, extract: Callable[[], F0Track]) -> tuple[str, F0Track]:
    """The F0 contour of a stored file with its key, extracted once for all runs."""
    key = f"derived/f0/{praat_estimator().replace(' ', '_').replace('(', '').replace(')', '')}/{audio_key}.npz"
    with suppress(FileNotFoundError):
        return key, load_f0(key)
    track = extract()
    packed = io.BytesIO()
    np.savez_compressed(
        packed, hz=track.hz, start_s=track.start_s, step_s=track.step_s, estimator=np.str_(track.estimator)
    )
    replace_named(key, packed.getvalue())
    return key, track


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
    store_figure(partial(figure_key, run), plot, **words)
    return _draw_contours(run, example) if (example := find_realigned_example(run)) else {}


def _draw_contours(run: EvaluationRun, example: UtteranceMeasure) -> dict[str, float]:
    found = {
        "plain": float(example.pitch_correlation or 0),
        "realigned": float(example.realigned_pitch_correlation or 0),
    }
    original, anonymised = load_f0(example.f0_original), load_f0(example.f0_anonymised)
    warped = realigned_pitch_correlation(original.hz, anonymised.hz).warped
    named = (("original", original.hz), ("anonymised", anonymised.hz), ("anonymised, realigned", warped))
    plot = ContourPlot([Contour(name, hz, original.start_s, original.step_s) for name, hz in named])
    store_figure(
        partial(contours_key, run),
        plot,
        title="F0 contours of one utterance",
        description=describe_contours(**found),
    )
    return found
