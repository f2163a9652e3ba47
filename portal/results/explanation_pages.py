"""What the page of an anonymised utterance says about one instant of it: a picture, its numbers and its words.

Files that the portal's own methods made are explained from inside, all others by what can be seen of two recordings.
Nothing is stored: a picture of a voice costs less than keeping it, and an erased utterance leaves none behind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from anonymization.methods.contract import Anonymizer, PseudoSpeaker
from anonymization.methods.errors import MethodError
from anonymization.methods.explain import Explanation, best_instant, explain, last_instant
from anonymization.methods.explain_families import has_marks
from anonymization.methods.explain_served import request_drawing
from anonymization.methods.registry import get_method
from anonymization.models import AnonymizationRun
from anonymization.voices import pseudo_speaker_of
from evaluation.figures.explanation import (
    describe,
    explanation_curves,
    explanation_numbers,
    size_of,
    title_of,
)
from evaluation.figures.numbers import Cell, NumberTable
from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.audio import AudioError
from evaluation.metrics.f0 import F0Track
from evaluation.models import UtteranceMeasure
from evaluation.selectors import measure_of
from evaluation.services import load_f0
from portal.core.audio import load_audio
from portal.core.exports import csv_response
from portal.core.media import CONTENT_TYPES, secured
from portal.results.drawing import DrawingError, draughtsman
from portal.submissions.models import SubmittedFile
from portal.submissions.selectors import relation_to
from portal.submissions.visibility import Relation

THEMES: dict[str, Theme] = {"light": "light", "dark": "dark"}
IMAGES: dict[str, ImageFormat] = {"svg": "svg", "png": "png", "pdf": "pdf"}
TABLES = {"csv": explanation_numbers, "curves": explanation_curves}
SHAPES = ("", "narrow")
REFUSED = 422
_AGAIN_S = 10
_LONGEST_SHOWN = 20
READING = (
    "Thin lines are the spectra of 40 ms, thick ones their envelopes; a dot is a resonance of the original, a triangle "
    "one of the anonymised voice."
)


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
    """The method, the voice and the options that made a file here; none of them for files made elsewhere."""

    method: Anonymizer | None = None
    voice: PseudoSpeaker | None = None
    options: dict[str, Any] = field(default_factory=dict)


def explanation_of(
    request: HttpRequest, file: SubmittedFile, measure: UtteranceMeasure | None = None
) -> dict[str, Any]:  # fmt: skip
    """What compare.html shows: the instant asked for by `at`, in seconds, or the loudest voiced one.

    `problem`: why there is nothing to show; `error`: why the instant that was asked for is not shown.

    measure: of the file, where it is at hand.
    """
    asked = request.GET.get("at", "")
    try:
        pair = _load_pair(file)
    except UnreadableError as found:
        return {"problem": str(found)}
    try:
        at_s, error = _instant_of(pair, asked), ""
    except MethodError as refused:
        at_s, error = _instant_of(pair, ""), str(refused)
    making = _making_of(request, file)
    explanation = _explained(pair, at_s, making, measure or measure_of(file))
    return {
        "error": error,
        "asked": asked if error else f"{explanation.at_s:.2f}",
        "order": request.GET.get("order", ""),
        "latest": f"{pair.latest_s:.2f}",
        "is_known": bool(explanation.title),
        "figure": _figure(file, explanation),
    }


def explanation_file(request: HttpRequest, file: SubmittedFile) -> HttpResponse:
    """The picture of an instant as `format` (svg, png, pdf) in `theme` and `shape`, or its numbers (csv, curves).

    Not found where the recordings cannot be read; an instant that they do not have is refused by a sentence, and 503
    by one says that nothing could be drawn now.
    """
    theme, kind, shape = (request.GET.get(name, "") for name in ("theme", "format", "shape"))
    kind = kind or "svg"
    if (theme or "light") not in THEMES or kind not in IMAGES.keys() | TABLES.keys() or shape not in SHAPES:
        raise Http404
    try:
        pair = _load_pair(file)
        at_s = _instant_of(pair, request.GET.get("at", ""))
    except UnreadableError as found:
        raise Http404(str(found)) from found
    except MethodError as refused:
        return _sentence(refused, REFUSED)
    making = _making_of(request, file)
    explanation = _explained(pair, at_s, making, measure_of(file))
    name = f"{file.submission.system.name}-{file.utterance.name}-{explanation.at_s:.2f}s"
    if kind in TABLES:
        table = TABLES[kind](explanation)
        return csv_response(f"{name}{'-curves' if kind == 'curves' else ''}.csv", (table.columns, *table.rows))
    line = request_drawing(
        explanation,
        theme=THEMES[theme or "light"],
        image_format=IMAGES[kind],
        narrow=shape == "narrow",
        to_mark=(pair.samples, pair.output) if making.method and has_marks(making.method) else None,
    )
    try:
        drawn = draughtsman.draw(line)
    except DrawingError as found:
        response = _sentence(found, 503)
        response["Retry-After"] = str(_AGAIN_S)
        return response
    response = HttpResponse(drawn, content_type=CONTENT_TYPES[f".{kind}"])
    response["Content-Disposition"] = f'inline; filename="{name}.{kind}"'
    return secured(response, settings.AUDIO_LINK_S)


def _sentence(words: Exception, status: int) -> HttpResponse:
    return HttpResponse(str(words), status=status, content_type="text/plain; charset=utf-8")


def _load_pair(file: SubmittedFile) -> Pair:
    try:
        samples, rate = load_audio(file.utterance.audio)
        output, output_rate = load_audio(file.audio)
        latest_s = last_instant(samples, output, rate)
    except (AudioError, MethodError, OSError) as found:
        raise UnreadableError(f"The recordings cannot be explained: {found}") from found
    if rate != output_rate:
        raise UnreadableError(
            f"The recordings cannot be explained: the original has {rate} Hz, the anonymised one {output_rate} Hz."
        )
    return Pair(samples, output, rate, math.floor(latest_s * 100) / 100)


def _instant_of(pair: Pair, asked: str) -> float:
    """The instant asked for in seconds, or the best one.

    Raises:
        MethodError: it is none that both recordings have.
    """
    if not asked:
        return min(best_instant(pair.samples[: pair.output.size], pair.rate), pair.latest_s)
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


def _explained(pair: Pair, at_s: float, making: Making, measure: UtteranceMeasure | None) -> Explanation:
    """Pitch marks are left to the process that draws them."""
    f0_hz = _measured_f0(measure, at_s)
    return explain(
        making.method, pair.samples, pair.output, pair.rate, making.voice, making.options, at_s, f0_hz,
        with_marks=False,
    )  # fmt: skip


def _making_of(request: HttpRequest, file: SubmittedFile) -> Making:
    """Nothing for files made elsewhere, and for all but organizers: with its voice an anonymisation can be undone."""
    if relation_to(request.user, file.submission.system) is not Relation.ORGANIZER:
        return Making()
    run = AnonymizationRun.objects.filter(submission=file.submission_id, data_set=file.data_set_id).first()
    if run is None:
        return Making()
    run.data_set = file.data_set
    try:
        return Making(get_method(run.method), pseudo_speaker_of(run, file.utterance), run.options)
    except MethodError:  # a plug-in that this machine has no more
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


def _figure(file: SubmittedFile, explanation: Explanation) -> dict[str, Any]:
    """As the component `figure.html` takes it."""
    at = f"{explanation.at_s:.2f}"
    address = reverse("systems:explanation", args=[file.submission.system.name, file.pk])

    def link(**words: str) -> str:
        return f"{address}?{urlencode({'at': at} | words)}"

    return {
        "title": title_of(explanation),
        "caption": f"{describe(explanation)} {READING}",
        "alt": f"{title_of(explanation)}. {describe(explanation)}",
        "image": link(theme="light"),
        "dark": link(theme="dark"),
        "size": size_of(),
        "narrow": {
            "image": link(theme="light", shape="narrow"),
            "dark": link(theme="dark", shape="narrow"),
            "size": size_of(narrow=True),
        },
        **_table(explanation_numbers(explanation)),
        "downloads": [
            {"label": label, "url": link(format=kind)}
            for kind, label in (
                ("svg", "SVG"),
                ("png", "PNG"),
                ("pdf", "PDF"),
                ("csv", "numbers (CSV)"),
                ("curves", "curves (CSV)"),
            )
        ],
    }


def _table(numbers: NumberTable) -> dict[str, Any]:
    """Columns and rows for people: units beside quantities, no more digits than mean something, a row for each pole."""
    rows: list[list[str]] = []
    for quantity, unit, before, after in numbers.rows:
        if str(quantity).endswith(", radius"):  # which no method changes
            rows[-1][0] += f" (radius {_text(before, unit)})"
        else:
            rows.append([f"{quantity}, {unit}", _text(before, unit), _text(after, unit)])
    return {"columns": ["At this instant", "Original", "Anonymised"], "rows": rows}


def _text(value: Cell, unit: Cell) -> str:
    decimals = {"Hz": 0, "dBFS": 1}.get(str(unit), 3)
    return "none" if value is None else f"{value:.{decimals}f}".replace("-", "−")
