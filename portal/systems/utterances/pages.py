"""What the pages of a data set and of one anonymised utterance show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import F, OrderBy
from django.http import Http404, HttpRequest
from django.urls import reverse

from anonymization.methods.contract import Parameter
from anonymization.methods.errors import MethodError
from anonymization.models import AnonymizationRun
from anonymization.selectors import method_of
from anonymization.voices import parameters_with_values, pseudo_speaker_of
from evaluation import selectors
from evaluation.faults import fault_of
from evaluation.figures.histogram import Threshold
from evaluation.metrics.catalogue import (
    DURATION_DIFFERENCE,
    LEVEL_CHANGE,
    PITCH_CORRELATION,
    PITCH_CORRELATION_VOICED,
    Metric,
)
from evaluation.metrics.f0 import STEP_S
from evaluation.metrics.summary import distribute
from evaluation.models import EvaluationRun, UtteranceMeasure
from evaluation.selectors_objective import pitch_minimum
from evaluation.services import figure_key, load_f0, rho_by_gender
from portal.core.media import signed_address
from portal.core.wording import decimals
from portal.results.explanation_pages import explanation_of
from portal.results.pages import PAGE_SIZE, set_figure
from portal.results.shown import View
from portal.submissions.models import SubmittedFile
from portal.submissions.selectors import relation_to
from portal.submissions.visibility import Relation

DEFAULT_ORDER = "lowest"


@dataclass(frozen=True)
class Order:
    """An order of utterances: its words, the column of the table it belongs to, and which way that column runs."""

    text: str
    column: str
    direction: str
    by: OrderBy


def _orders(column: str, field: str, rising: tuple[str, str], falling: tuple[str, str]) -> dict[str, Order]:
    """Both ways through a column; missing values always come last."""
    return {
        rising[0]: Order(rising[1], column, "ascending", F(field).asc(nulls_last=True)),
        falling[0]: Order(falling[1], column, "descending", F(field).desc(nulls_last=True)),
    }


# By the name of an order in an address.
MEASURE_ORDERS: dict[str, Order] = {
    **_orders(
        "pitch",
        "pitch_correlation",
        ("lowest", "lowest pitch correlation first"),
        ("highest", "highest pitch correlation first"),
    ),
    **_orders(
        "voiced",
        "voiced_pitch_correlation",
        ("voiced-lowest", "lowest pitch correlation over voiced frames first"),
        ("voiced-highest", "highest pitch correlation over voiced frames first"),
    ),
    **_orders(
        "duration",
        "duration_difference_ms",
        ("shorter", "shorter than the original first"),
        ("longer", "longer than the original first"),
    ),
    **_orders(
        "level",
        "level_change_db",
        ("softer", "softer than the original first"),
        ("louder", "louder than the original first"),
    ),
    **_orders("name", "file__utterance__name", ("name", "by name"), ("name-reversed", "by name, reversed")),
    **_orders(
        "speaker",
        "file__utterance__speaker__name",
        ("speaker", "by speaker"),
        ("speaker-reversed", "by speaker, reversed"),
    ),
}
# Both voices as they are: the level is part of what an anonymiser does.
PLAYER_NOTE = "Neither level is changed."
MEASURE_COLUMNS = (
    ("name", "Utterance", None),
    ("speaker", "Speaker", None),
    ("pitch", "ρF0", PITCH_CORRELATION),
    ("voiced", "ρF0 voiced", PITCH_CORRELATION_VOICED),
    ("duration", "Duration", DURATION_DIFFERENCE),
    ("level", "Level", LEVEL_CHANGE),
)


# A data set of a system ----------------------------------------------------------------------------


def run_of(view: View, data_set: str) -> EvaluationRun:
    """The finished run of a system on a data set, or "not found"."""
    for run in selectors.finished_runs(view.submission):
        if run.measured_set.name == data_set:
            return run
    raise Http404


def data_set_page(request: HttpRequest, view: View, data_set: str) -> dict[str, Any]:
    system, run = view.system, run_of(view, data_set)
    order = _order_of(request)
    values = selectors.values_of([run])
    counts = selectors.counts_of(run.submission_id)
    page = _measure_page(request, run, order)
    return {
        "system": system,
        "corpus": run.measured_set.corpus,
        "version_query": view.query,
        "run": run,
        "table": selectors.result_table([run], values, counts),
        "figure": _whole_figure(request, run, values, pitch_minimum(system.edition)),
        "page": page,
        "rows": [_measure_row(measure) for measure in page.object_list],
        "order": order,
        "order_text": MEASURE_ORDERS[order].text,
        "columns": [_column(key, label, metric, order) for key, label, metric in MEASURE_COLUMNS],
    }


def _order_of(request: HttpRequest) -> str:
    order = request.GET.get("order", DEFAULT_ORDER)
    return order if order in MEASURE_ORDERS else DEFAULT_ORDER


def _measure_page(request: HttpRequest, run: EvaluationRun, order: str) -> Page[UtteranceMeasure]:
    measures = selectors.measures_of(run).order_by(MEASURE_ORDERS[order].by, "pk")
    return Paginator(measures, PAGE_SIZE).get_page(request.GET.get("page"))


def _measure_row(measure: UtteranceMeasure) -> dict[str, Any]:
    numbers = [selectors.number_text(number, metric) for metric, number in _numbers_of(measure)]
    return {
        "measure": measure,
        "texts": [*numbers, lag_text(measure)],
        "faults": ", ".join(fault_of(code).title for code in measure.faults),
    }


def _numbers_of(measure: UtteranceMeasure) -> tuple[tuple[Metric, float | None], ...]:
    return (
        (PITCH_CORRELATION, measure.pitch_correlation),
        (PITCH_CORRELATION_VOICED, measure.voiced_pitch_correlation),
        (DURATION_DIFFERENCE, measure.duration_difference_ms),
        (LEVEL_CHANGE, measure.level_change_db),
    )


def lag_text(measure: UtteranceMeasure) -> str:
    """By how many ms the anonymised contour was rotated."""
    lag = measure.lag_frames
    return "" if lag is None else decimals(lag * STEP_S * 1000, 0)


def _column(key: str, label: str, metric: Metric | None, order: str) -> dict[str, Any]:
    """A heading that sorts: its next order, and how it sorts now."""
    rising, falling = (name for name, each in MEASURE_ORDERS.items() if each.column == key)
    current = MEASURE_ORDERS[order]
    sorts = current.column == key
    return {
        "label": label,
        "metric": metric,
        "next": falling if sorts and current.direction == "ascending" else rising,
        "sorted": current.direction if sorts else "",
    }


def _line_in_words(minimum: Threshold | None) -> str:
    if minimum is None:
        return ""
    return f", the dashed line the {minimum.label} of {minimum.value:g}, asked of the mean, not of each utterance"


def _whole_figure(
    request: HttpRequest, run: EvaluationRun, values: selectors.RunValues, minimum: Threshold | None
) -> dict[str, Any] | None:  # fmt: skip
    """The histogram as the component `figure.html` takes it, its numbers and files beside."""
    drawn = set_figure(request, run, values, minimum)
    if drawn is None:
        return None
    distribution = distribute(rho_by_gender(run))
    groups = zip(distribution.groups, distribution.summaries, strict=True)
    files = {kind.upper(): signed_address(request, figure_key(run, "light", kind)) for kind in ("png", "pdf")}
    return {
        "image": drawn.image,
        "dark": drawn.dark,
        "size": drawn.size,
        "alt": drawn.alt,
        "title": "Pitch correlation of each utterance",
        "caption": (
            f"Histogram of ρF0, official form: the share of the utterances of {run.measured_set} in each interval. "
            f"▼ marks the mean{_line_in_words(minimum)}."
        ),
        "columns": ["From", "to below", *(f"{group} (n = {summary.n})" for group, summary in groups)],
        "rows": [[f"{each.lower:.2f}", f"{each.upper:.2f}", *each.counts] for each in distribution.bins],
        "downloads": [{"url": url, "label": label} for label, url in {"SVG": drawn.image, **files}.items()],
    }


# One utterance, original against anonymised --------------------------------------------------------


def compare_page(request: HttpRequest, file: SubmittedFile) -> dict[str, Any]:
    order = _order_of(request)
    measure = selectors.measure_of(file)
    return {
        "file": file,
        "system": file.submission.system,
        "corpus": file.data_set.corpus,
        "measure": measure,
        "measures": _measured(measure),
        "faults": [fault_of(code) for code in measure.faults] if measure else [],
        "lag": lag_text(measure) if measure else "",
        "player": _player(request, file, measure),
        "voice": _voice_of(request, file),
        "explanation": explanation_of(request, file, measure),
        "order": order,
        "order_text": MEASURE_ORDERS[order].text,
        "neighbours": _neighbours(file, measure, order),
    }


def _player(request: HttpRequest, file: SubmittedFile, measure: UtteranceMeasure | None) -> dict[str, Any]:
    """What the component `player.html` takes: the same instant of both voices, each with its F0."""
    f0 = reverse("systems:f0", args=[file.submission.system.name, file.pk]) if measure and measure.f0_original else ""
    audio = {"original": file.utterance.audio, "anonymised": file.audio}
    sources = [
        {
            "url": signed_address(request, key),
            "name": voice.capitalize(),
            "voice": voice,
            "f0_url": f"{f0}?side={voice}" if f0 else "",
        }
        for voice, key in audio.items()
    ]
    return {"title": "Original against anonymised.", "note": PLAYER_NOTE, "sources": sources}


def _measured(measure: UtteranceMeasure | None) -> list[dict[str, Any]]:
    """The measures of an utterance beside the mean of its gender in the data set."""
    if measure is None:
        return []
    means = selectors.values_of([measure.run]).of(measure.run, measure.file.utterance.speaker.gender)
    return [
        {
            "metric": metric,
            "text": selectors.number_text(number, metric),
            "mean": selectors.ResultCell(metric, means.get(metric.key)),
        }
        for metric, number in _numbers_of(measure)
    ]


@dataclass(frozen=True)
class Voice:
    """The pseudo-speaker of a file: its parameters with value and effect, and which utterances share the voice."""

    parameters: list[tuple[Parameter, float, str]]
    shared_by: str


def _voice_of(request: HttpRequest, file: SubmittedFile) -> Voice | None:
    """The voice that the portal's own method gave this file, for organizers; None for files made elsewhere."""
    run = AnonymizationRun.objects.filter(submission=file.submission, data_set=file.data_set).first()
    method = method_of(run) if run else None
    if run is None or method is None or relation_to(request.user, file.submission.system) is not Relation.ORGANIZER:
        return None
    run.data_set = file.data_set
    try:
        speaker = pseudo_speaker_of(run, file.utterance)
    except MethodError:  # somebody who came into the corpus after the voices were planned
        return None
    found = parameters_with_values(speaker, method.parameters)
    parameters = [(parameter, value, parameter.effect) for parameter, value in found]
    return Voice(parameters, _shared_by(run, file.utterance.speaker.name))


def _shared_by(run: AnonymizationRun, speaker: str) -> str:
    data_set = run.data_set
    if run.level == AnonymizationRun.Level.UTTERANCE:
        return f"Utterance level: every utterance of {data_set.name} has a pseudo-speaker of its own."
    split = f" of the split {data_set.split}" if data_set.split else ""
    return (
        f"Speaker level: all utterances of speaker {speaker} in {data_set.role} sets{split} share this voice; in sets "
        "of another role the speaker has another one."
    )


def _neighbours(file: SubmittedFile, measure: UtteranceMeasure | None, order: str) -> dict[str, Any]:
    """Where this utterance stands in its data set, and the files before and after it."""
    if measure:
        measures = measure.run.measures.order_by(MEASURE_ORDERS[order].by, "pk")
        files = list(measures.values_list("file_id", flat=True))
    else:
        mates = SubmittedFile.objects.filter(submission=file.submission, data_set=file.data_set)
        files = list(mates.order_by("utterance__name").values_list("pk", flat=True))
    place = files.index(file.pk)
    return {
        "position": place + 1,
        "count": len(files),
        "previous": files[place - 1] if place else None,
        "next": files[place + 1] if place + 1 < len(files) else None,
    }


def f0_as_json(measure: UtteranceMeasure, side: str) -> dict[str, Any]:
    """Both contours by name, or the one of `side`: start_s, step_s and hz, 0 where unvoiced."""
    keys = {"original": measure.f0_original, "anonymised": measure.f0_anonymised}
    if side in keys:
        return _track_as_json(keys[side])
    return {name: _track_as_json(key) for name, key in keys.items()}


def _track_as_json(key: str) -> dict[str, Any]:
    track = load_f0(key)
    return {"start_s": track.start_s, "step_s": track.step_s, "hz": [round(hz, 1) for hz in track.hz.tolist()]}
