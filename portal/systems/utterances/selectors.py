"""One instant of an anonymised utterance: both recordings, what made the file, and what there is to say of it.

Files that the portal's own methods made are explained from inside, all others by what can be seen of two recordings.
Nothing is stored: a picture of a voice costs less than keeping it, and an erased utterance leaves none behind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from django.http import HttpRequest

from anonymization.app.models import AnonymizationRun
from anonymization.app.networks import find_run_method
from anonymization.app.selectors import NETWORKS
from anonymization.app.voice_assignment import find_pseudo_speaker
from anonymization.explanation.explain import Explanation, explain, find_best_instant, find_last_instant
from anonymization.methods.contract import Anonymizer, MethodError, PseudoSpeaker
from evaluation.app.audio_measures.selectors import load_f0
from evaluation.app.models import UtteranceMeasure
from portal.core.storage import load_audio
from portal.submissions.models import SubmittedFile
from portal.submissions.rules import Relation
from portal.submissions.selectors import relation_to
from speech.audio.files import AudioError
from speech.pitch.estimators import F0Track

_LONGEST_SHOWN = 20


class UnreadableError(Exception):
    """The recordings of a file cannot be explained; says why in a sentence."""


@dataclass(frozen=True)
class Pair:
    """Original and anonymised utterance, int16, with their rate in Hz and the last instant of both in seconds."""

    samples: npt.NDArray[np.int16]
    output: npt.NDArray[np.int16]
    rate: int
    latest_s: float


@dataclass(frozen=True)
class Making:
    """The run, the method, the voice and the options that made a file here; none of them for files made elsewhere."""

    run: AnonymizationRun | None = None
    method: Anonymizer | None = None
    voice: PseudoSpeaker | None = None
    options: dict[str, Any] = field(default_factory=dict)


def load_pair(file: SubmittedFile) -> Pair:
    if not file.audio:
        raise UnreadableError("The recordings cannot be explained: the anonymised one was deleted.")
    try:
        samples, rate = load_audio(file.utterance.audio)
        output, output_rate = load_audio(file.audio)
        latest_s = find_last_instant(samples, output, rate)
    except (AudioError, MethodError, OSError) as found:
        raise UnreadableError(f"The recordings cannot be explained: {found}") from found
    if rate != output_rate:
        raise UnreadableError(
            f"The recordings cannot be explained: the original has {rate} Hz, the anonymised one {output_rate} Hz."
        )
    return Pair(samples, output, rate, math.floor(latest_s * 100) / 100)


def find_instant(pair: Pair, asked: str) -> float:
    """The instant asked for in seconds, or the best one.

    Raises:
        MethodError: it is none that both recordings have.
    """
    if not asked:
        return min(find_best_instant(pair.samples[: pair.output.size], pair.rate), pair.latest_s)
    shown = asked if len(asked) <= _LONGEST_SHOWN else f"{asked[:_LONGEST_SHOWN]}…"
    try:
        at_s = float(asked)
    except ValueError:
        at_s = math.nan
    if not 0 <= at_s <= pair.latest_s:
        raise MethodError(
            f"An instant is a number of seconds from 0 to {pair.latest_s:.2f}, where both recordings are; "
            f"found “{shown}”."
        )
    return min(round(at_s, 2), pair.latest_s)


def explain_pair(pair: Pair, at_s: float, making: Making, measure: UtteranceMeasure | None) -> Explanation:
    """Pitch marks are left to the process that draws them."""
    f0_hz = _measured_f0(measure, at_s)
    return explain(
        making.method, pair.samples, pair.output, pair.rate, making.voice, making.options, at_s, f0_hz, with_marks=False
    )


def find_making(request: HttpRequest, file: SubmittedFile) -> Making:
    """Nothing for files made elsewhere, and for all but organizers: with its voice an anonymisation can be undone."""
    if relation_to(request.user, file.submission.system) is not Relation.ORGANIZER:
        return Making()
    runs = AnonymizationRun.objects.select_related(NETWORKS)
    run = runs.filter(submission=file.submission_id, data_set=file.data_set_id).first()
    if run is None:
        return Making()
    run.data_set = file.data_set
    try:
        return Making(run, find_run_method(run), find_pseudo_speaker(run, file.utterance), run.options)
    except MethodError:  # a plug-in that is gone, or somebody who came after the voices were planned
        return Making()


def _measured_f0(measure: UtteranceMeasure | None, at_s: float) -> tuple[float, float] | None:
    """F0 of both voices as the player shows it, 0 where unvoiced; None before it was measured."""
    if measure is None or not (measure.f0_original and measure.f0_anonymised):
        return None
    try:
        tracks = load_f0(measure.f0_original), load_f0(measure.f0_anonymised)
    except (OSError, ValueError):
        return None
    return _hertz_at(tracks[0], at_s), _hertz_at(tracks[1], at_s)


def _hertz_at(track: F0Track, at_s: float) -> float:
    frame = round((at_s - track.start_s) / track.step_s)
    return float(track.hz[frame]) if 0 <= frame < track.hz.size else 0.0
