"""What the pages of a data set and of one anonymised utterance show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.db.models import F, OrderBy
from django.http import Http404, HttpRequest
from django.urls import reverse

from anonymization.app.models import AnonymizationRun
from anonymization.app.voice_assignment import pair_parameters
from common.tables import Cell, Column, Table, number_columns, number_table, plain_table
from evaluation.app.audio_measures import selectors
from evaluation.app.audio_measures.selectors import find_problem_code, group_correlations_by_gender
from evaluation.app.models import EvaluationRun, UtteranceMeasure
from evaluation.app.runs.context import pitch_minimum
from evaluation.figures.histogram import Threshold
from evaluation.metrics.averages import distribute
from evaluation.metrics.catalogue import (
    DURATION_DIFFERENCE,
    LEVEL_CHANGE,
    PITCH_CORRELATION,
    PITCH_CORRELATION_REALIGNED,
    PITCH_CORRELATION_VOICED,
    PREDICTED_NATURALNESS,
    Metric,
)
from portal.challenges.selectors import may_see_corpus
from portal.core.labels import decimals
from portal.core.signed_urls import voice_sources
from portal.submissions.models import SubmittedFile
from portal.submissions.rules import Relation, sharing_problem
from portal.submissions.selectors import ACCEPTED, relations_to
from portal.systems.pages import PAGE_SIZE, drawn_minimum, set_figure
from portal.systems.selectors import View, may_read_words
from portal.systems.tables import measures_table
from portal.systems.utterances.selectors import (
    Making,
    find_making,
)
from speech.pitch.estimators import STEP_S

DEFAULT_ORDER = "lowest"
_REALIGNED = "realigned pitch correlation first"
_VOICED = "pitch correlation over voiced frames first"


@dataclass(frozen=True)
class Order:
    """An order of utterances: its words, the column of the table it belongs to, and the field, falling with a minus."""

    text: str
    column: str
    field: str

    @property
    def is_falling(self) -> bool:
        return self.field.startswith("-")

    @property
    def by(self) -> OrderBy:
        """Missing values come last, both ways."""
        return OrderBy(F(self.field.removeprefix("-")), descending=self.is_falling, nulls_last=True)


# By the name of an order in an address.
MEASURE_ORDERS = {
    "lowest": Order("lowest pitch correlation first", "pitch", "pitch_correlation"),
    "highest": Order("highest pitch correlation first", "pitch", "-pitch_correlation"),
    "voiced-lowest": Order(f"lowest {_VOICED}", "voiced", "voiced_pitch_correlation"),
    "voiced-highest": Order(f"highest {_VOICED}", "voiced", "-voiced_pitch_correlation"),
    "realigned-lowest": Order(f"lowest {_REALIGNED}", "realigned", "realigned_pitch_correlation"),
    "realigned-highest": Order(f"highest {_REALIGNED}", "realigned", "-realigned_pitch_correlation"),
    "unnatural": Order("lowest predicted naturalness first", "predicted", "predicted_naturalness"),
    "natural": Order("highest predicted naturalness first", "predicted", "-predicted_naturalness"),
    "shorter": Order("shorter than the original first", "duration", "duration_difference_ms"),
    "longer": Order("longer than the original first", "duration", "-duration_difference_ms"),
    "softer": Order("softer than the original first", "level", "level_change_db"),
    "louder": Order("louder than the original first", "level", "-level_change_db"),
    "name": Order("by name", "name", "file__utterance__name"),
    "name-reversed": Order("by name, reversed", "name", "-file__utterance__name"),
    "speaker": Order("by speaker", "speaker", "file__utterance__speaker__name"),
    "speaker-reversed": Order("by speaker, reversed", "speaker", "-file__utterance__speaker__name"),
}
# Both voices as they are: the level is part of what an anonymiser does.
PLAYER_NOTE = "Neither level is changed."
MEASURE_COLUMNS = (
    ("name", "Utterance", None),
    ("speaker", "Speaker", None),
    ("pitch", "ρF0", PITCH_CORRELATION),
    ("voiced", "ρF0 voiced", PITCH_CORRELATION_VOICED),
    ("realigned", "ρF0 realigned", PITCH_CORRELATION_REALIGNED),
    ("predicted", "DNSMOS", PREDICTED_NATURALNESS),
    ("duration", "Duration", DURATION_DIFFERENCE),
    ("level", "Level", LEVEL_CHANGE),
)


# A data set of a system ----------------------------------------------------------------------------


def find_run(view: View, data_set: str) -> EvaluationRun:
    """Return the finished run of a system on a data set, or "not found"."""
    for run in selectors.list_finished_runs(view.submission):
        if run.measured_set.name == data_set:
            return run
    raise Http404


def data_set_page(request: HttpRequest, view: View, data_set: str) -> dict[str, Any]:
    run = find_run(view, data_set)
    order = _read_order(request)
    values = selectors.read_values([run])
    counts = selectors.count_files(run.submission_id)
    page = _measure_page(request, run, order)
    rows = [_measure_row(measure) for measure in page.object_list]
    return view.context | {
        "corpus": run.measured_set.corpus,
        "run": run,
        "estimators": values.estimators,
        "measures": measures_table([run], values, counts, "This data set by gender."),
        "figure": _whole_figure(request, run, values, pitch_minimum(view.system.edition)),
        "page": page,
        "rows": rows,
        "utterances": _utterances_table(view, rows, order, request.GET.dict()),
        "order": order,
        "order_text": MEASURE_ORDERS[order].text,
    }


def _read_order(request: HttpRequest) -> str:
    order = request.GET.get("order", DEFAULT_ORDER)
    return order if order in MEASURE_ORDERS else DEFAULT_ORDER


def _measure_page(request: HttpRequest, run: EvaluationRun, order: str) -> Page[UtteranceMeasure]:
    measures = selectors.select_measures(run).order_by(MEASURE_ORDERS[order].by, "pk")
    return Paginator(measures, PAGE_SIZE).get_page(request.GET.get("page"))


def _measure_row(measure: UtteranceMeasure) -> dict[str, Any]:
    numbers = [selectors.format_number(number, metric) for metric, number in _list_numbers(measure)]
    return {
        "measure": measure,
        "texts": [*numbers, lag_text(measure)],
        "problems": ", ".join(find_problem_code(code).title for code in measure.faults),
    }


def _utterances_table(view: View, rows: list[dict[str, Any]], order: str, query: Mapping[str, str]) -> Table:
    """Return the utterances of one page; a heading sorts those of all pages, a name opens both sides.

    Args:
        query: of the address of this page.
    """
    columns = [_column(key, label, metric, order, query) for key, label, metric in MEASURE_COLUMNS]
    return plain_table(
        "Utterances with their measures",
        [*columns, *number_columns("Lag, ms"), Column("warnings", "Warnings", kind="text")],
        (_utterance_cells(view, row, order) for row in rows),
        styles="pin",
        missing="none",
        is_page=True,
    )


def _utterance_cells(view: View, row: dict[str, Any], order: str) -> list[Cell | str]:
    measure = row["measure"]
    utterance = measure.file.utterance
    link = f"{reverse('systems:compare', args=[view.system.name, measure.file_id])}?order={order}"
    speaker = Cell(utterance.speaker.name, aside=utterance.speaker.get_gender_display())
    return [Cell(utterance.name, link=link), speaker, *row["texts"], row["problems"]]


def _list_numbers(measure: UtteranceMeasure) -> list[tuple[Metric, float | None]]:
    """Return the measures of the columns, whose orders name their fields."""
    fields = {order.column: order.field.removeprefix("-") for order in MEASURE_ORDERS.values()}
    return [(metric, getattr(measure, fields[key])) for key, _, metric in MEASURE_COLUMNS if metric]


def lag_text(measure: UtteranceMeasure) -> str:
    """By how many ms the anonymised contour was rotated."""
    lag = measure.lag_frames
    return "" if lag is None else decimals(lag * STEP_S * 1000, 0)


def _column(key: str, label: str, metric: Metric | None, order: str, query: Mapping[str, str]) -> Column:
    """Return a heading that sorts: its next order, and how it sorts now."""
    rising, falling = (name for name, each in MEASURE_ORDERS.items() if each.column == key)
    current = MEASURE_ORDERS[order]
    sorts = current.column == key
    following = falling if sorts and not current.is_falling else rising
    kept = {name: value for name, value in query.items() if name != "page"}
    return Column(
        key,
        label,
        kind="num" if metric else "",
        unit=metric.unit if metric else "",
        query=urlencode(kept | {"order": following}),
        sorted=("desc" if current.is_falling else "asc") if sorts else "",
    )


def _line_in_words(minimum: Threshold | None) -> str:
    if minimum is None:
        return ""
    return f"; dashed: {minimum.label} of {minimum.value:g} for the mean"


def _whole_figure(
    request: HttpRequest, run: EvaluationRun, values: selectors.RunValues, minimum: Threshold | None
) -> dict[str, Any] | None:
    """Return the histogram as the component `figure.html` takes it, its numbers and files beside."""
    drawn = set_figure(request, run, values, minimum)
    if drawn is None:
        return None
    distribution = distribute(group_correlations_by_gender(run))
    groups = zip(distribution.groups, distribution.summaries, strict=True)
    return vars(drawn) | {
        "title": "Pitch correlation of each utterance",
        "caption": (
            f"Share of the utterances in each interval of ρF0. ▼: mean{_line_in_words(drawn_minimum(run, minimum))}."
        ),
        "numbers": number_table(
            "Utterances in each interval of pitch correlation",
            ["From", "to below", *(f"{group} (n = {summary.n})" for group, summary in groups)],
            ([f"{each.lower:.2f}", f"{each.upper:.2f}", *map(str, each.counts)] for each in distribution.bins),
            styles="",
        ),
    }


# One utterance, original against anonymised --------------------------------------------------------


def compare_page(request: HttpRequest, file: SubmittedFile) -> dict[str, Any]:
    order = _read_order(request)
    measure, making = selectors.find_measure(file), find_making(request, file)
    system = file.submission.system
    relations, sees_corpus = relations_to(request.user, system), may_see_corpus(request.user, file.data_set.corpus)
    return {
        "file": file,
        "system": system,
        "corpus": file.data_set.corpus,
        "may_see_corpus": sees_corpus,
        "words": file.utterance.transcript if sees_corpus or may_read_words(relations, system, file.data_set) else "",
        "measure": measure,
        "own": _own_table(file, measure),
        "problems": [find_problem_code(code) for code in measure.faults] if measure else [],
        "player": _player(request, file),
        "voice": _voice(making, file),
        "order": order,
        "order_text": MEASURE_ORDERS[order].text,
        "neighbours": _neighbours(file, measure, order),
        "may_offer": _may_offer(relations, file),
        "version_query": f"?version={file.submission.version}",
    }


def _may_offer(relations: tuple[Relation, ...], file: SubmittedFile) -> bool:
    """Return whether this reader can offer the utterance as a sample, and it is none yet."""
    submission = file.submission
    problem = sharing_problem(
        relations,
        is_baseline=submission.system.team_id is None,
        is_accepted=submission.state in ACCEPTED,
    )
    return not problem and submission.system.edition_id is not None and not hasattr(file, "shared_part")


def _player(request: HttpRequest, file: SubmittedFile) -> dict[str, Any]:
    """Return the context of the component `player.html`: the same instant of both voices."""
    sources = voice_sources(request, {"original": file.utterance.audio, "anonymised": file.audio})
    return {"title": "Original against anonymised.", "note": PLAYER_NOTE, "sources": sources}


def _own_table(file: SubmittedFile, measure: UtteranceMeasure | None) -> Table | None:
    """Return the measures of an utterance beside mean ± standard deviation of its gender in the data set."""
    if measure is None:
        return None
    gender = file.utterance.speaker.get_gender_display()
    means = selectors.read_values([measure.run]).of(measure.run, file.utterance.speaker.gender)
    rows: list[list[Cell | str]] = []
    for metric, number in _list_numbers(measure):
        label = f"{metric.label}, {metric.unit}" if metric.unit else metric.label
        mean = Cell("none")
        if found := means.get(metric.key):
            spread = decimals(found.spread, metric.decimals)
            mean = Cell(selectors.format_number(found.value, metric), aside=f"± {spread}")
        rows.append([label, selectors.format_number(number, metric) or "none", mean])
    if lag := lag_text(measure):
        rows.append(["Lag of the anonymised contour, ms", lag, ""])
    if measure.peak_dbfs is not None:
        rows.append(["Peak of the anonymised utterance, dBFS", decimals(measure.peak_dbfs, 1), ""])
    heads = "This utterance", f"{file.data_set.name}, {gender}"
    return number_table("Numbers of this utterance", ["Measure", *heads], rows)


def _voice(making: Making, file: SubmittedFile) -> dict[str, Any] | None:
    """Return the pseudo-speaker of a file, with the value and the effect of each parameter, and who shares its
    voice."""
    if making.run is None or making.method is None or making.voice is None:
        return None
    found = pair_parameters(making.voice, making.method.parameters)
    parameters = [(parameter, value, parameter.effect) for parameter, value in found]
    return {"parameters": parameters, "shared_by": _shared_by(making.run, file.utterance.speaker.name)}


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
