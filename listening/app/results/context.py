"""Puts a page or a file of results together for one reader: what they may see of an analysis, figures, addresses.

What does not depend on the request is made once and kept by the key of the results, whose content never changes. Files:
a table as CSV, everything as JSON, a drawn figure, the bundle that makes all of it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from django.core.files.storage import default_storage
from django.db.models import Min
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from common.latex import latex_document
from common.tables import DataTable, Group, Order, Row, Table
from listening.analysis.bundle import write_bundle
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import Results
from listening.app.models import Condition
from listening.app.results.figures import Reader, shown_figures
from listening.app.results.labels import EVERY
from listening.app.results.pages import chosen_scores, list_asked, listeners_page, results_page
from listening.app.results.rules import ResultsPart, rows_for_everybody
from listening.app.results.selectors import (
    Shown,
    figures_in,
    is_open_to_all,
    list_notes,
    list_outdated,
    names_withdrawn,
    parsed_results,
    systems_named,
)
from listening.app.results.system_pages import heard_page, system_page
from listening.app.results.tables import Shape, chosen_sorting
from listening.app.sessions.selectors import read_screening
from listening.app.studies.rules import describe_published_results
from portal.core.downloads import as_download, latex_response
from portal.core.signed_urls import CONTENT_TYPES, secured
from portal.submissions.models import SubmittedFile
from portal.submissions.rules import SystemPart
from portal.submissions.selectors import systems_for

PAGES_KEPT = 16  # in a process
FIGURE_S = 300  # a browser may keep a figure so long; its address changes with what it shows
# Of a design: right answers of control trials, which may be used again, what its own pages show, the name of a file.
OF_ORGANIZERS = frozenset({"gold", "certificate", "stimuli", "read_from"})


def visible_results(shown: Shown) -> Results:
    """Return what this person may see of results: no tables of listeners, rows of others' utterances or secrets of the
    design, but for its organizers."""
    tables = {path: table for path in shown.results.tables if (table := _visible(shown, path)) is not None}
    study = dict(shown.results.study)
    if not shown.is_organizer:
        study["design"] = {name: told for name, told in study.get("design", {}).items() if name not in OF_ORGANIZERS}
        study["design"].pop("remarks", None)  # they stand among the notes of the results, as far as they may be seen
    return replace(shown.results, study=study, tables=tables, remarks=tuple(list_notes(shown)))


def study_context(shown: Shown, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of a study; without its body while there is no analysis."""
    context = page_context(shown, query)
    if shown.analysis is None:
        return context
    made_of = (*_key(shown, context["reader"]), chosen_sorting(query), tuple(list_notes(shown)))
    page, body = _study_page(*made_of, is_imported=bool(shown.study.imported))
    has_listeners = shown.may_see(ResultsPart.LISTENERS) and shown.results.table("common", "screening") is not None
    told = {
        "asked": list_asked(shown.study),
        "screening": read_screening(shown.study),
        "outdated": list_outdated(shown.study),
    }
    return context | told | {"page": page, "body": body, "has_listeners": has_listeners}


def system_context(shown: Shown, name: str, request: HttpRequest) -> dict[str, Any]:
    """Return the page of a system; Http404 where the study does not have it, or nothing is analysed yet."""
    # Before anything is computed or kept: made-up names would cost time and drive out the pages that are asked for.
    if shown.analysis is None or name in (ORIGINAL, EVERY) or name not in systems_named(shown.analysis.results):
        raise Http404
    context = page_context(shown, request.GET)
    page, body = _system_page(*_key(shown, context["reader"]), name)
    if page is None:
        raise Http404
    heard, system = None, shown.study.systems.filter(code=name).select_related("submission__system").first()
    if shown.may_see(ResultsPart.UTTERANCES) and (shown.is_organizer or name in shown.own_systems):
        heard = _heard(shown, name, system, context["reader"])
    told = {"page": page, "body": body, "heard": heard, "system": name, "label": page["label"]}
    told["outdated"] = [one for one in list_outdated(shown.study) if one.code == name]
    return context | told | {"objective": _objective(system, request.user)}


def listeners_context(shown: Shown, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of listeners; Http404 while nothing is analysed, and once somebody withdrew since."""
    context = page_context(shown, query)
    if shown.analysis is None or not shown.may_see(ResultsPart.LISTENERS):
        raise Http404
    return context | {"page": _listeners_page(shown.analysis.results, context["reader"])}


def page_context(shown: Shown, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what every page of results needs."""
    scores = chosen_scores(query)
    tables = shown.tables if shown.analysis is not None else frozenset()
    return {
        "shown": shown,
        "study": shown.study,
        "analysis": shown.analysis,
        "is_organizer": shown.is_organizer,
        "is_published": shown.is_published,
        "has_published": shown.study.results_published_at is not None,
        "is_open": is_open_to_all(shown.study),
        "names_withdrawn": names_withdrawn(shown.study),
        "results_are": describe_published_results(shown.study),
        "scores": scores,
        "has_scores": shown.analysis is not None and any(path.startswith("raw/") for path in shown.results.tables),
        "reader": Reader(shown.study.name, scores, tables),
    }


# What is kept --------------------------------------------------------------------------------------


Files = tuple[tuple[str, str], ...]  # path of each drawn file, and its key in the storage


def _key(shown: Shown, reader: Reader) -> tuple[str, Files, str, Reader]:
    assert shown.analysis is not None  # noqa: S101
    return (
        shown.analysis.results,
        tuple(sorted(shown.analysis.figures.items())),
        shown.analysis.fingerprint[:12],
        reader,
    )


@lru_cache(maxsize=PAGES_KEPT)
def _study_page(
    results: str,
    drawn: Files,
    mark: str,
    reader: Reader,
    sorting: tuple[str, Order],
    notes: tuple[str, ...],
    *,
    is_imported: bool,
) -> tuple[dict[str, Any], SafeString]:
    found = replace(parsed_results(results), remarks=notes)
    if not reader.sees_listeners:
        found = replace(found, tables={path: rows_for_everybody(table) for path, table in found.tables.items()})
    shown = shown_figures(results, reader, dict(drawn), mark)
    figures = [one for one in shown if not one["system"]]
    page = results_page(found, reader, figures, sorting, is_imported=is_imported)
    return page, render_to_string("listening/results/_body.html", {"page": page, "study": found.study})


@lru_cache(maxsize=PAGES_KEPT)
def _system_page(
    results: str, drawn: Files, mark: str, reader: Reader, name: str
) -> tuple[dict[str, Any] | None, SafeString]:
    shown = shown_figures(results, reader, dict(drawn), mark)
    figures = [one for one in shown if one["system"] == name]
    page = system_page(parsed_results(results), reader, name, figures)
    return page, render_to_string("listening/results/_system_body.html", {"page": page})


@lru_cache(maxsize=PAGES_KEPT)
def _listeners_page(results: str, reader: Reader) -> dict[str, Any]:
    return listeners_page(parsed_results(results), reader)


# What one person may see ---------------------------------------------------------------------------


def _visible(shown: Shown, path: str) -> DataTable | None:
    try:
        return shown.table(*path.split("/", 1))
    except Http404:
        return None


def _objective(system: Condition | None, user: Any) -> str:
    """Return the address of a system's objective numbers; empty for whom they are hidden, or where it is no system."""
    if system is None or system.submission is None:
        return ""
    found = systems_for(user, SystemPart.NUMBERS).filter(pk=system.submission.system_id).first()
    return found.get_absolute_url() if found is not None else ""


def _heard(shown: Shown, name: str, system: Condition | None, reader: Reader) -> dict[str, Any]:
    """Return single utterances of a system, each with the page that plays it where its file is known."""
    tables = [_visible(shown, f"{reader.scores}/{table}") for table in ("utterances", "disagreements")]
    utterances, disagreements = (table.records(system=name) if table else [] for table in tables)
    addresses: dict[str, str] = {}
    if system is not None and system.submission is not None:
        wanted = {str(row["utterance"]) for row in (*utterances, *disagreements)}
        files = SubmittedFile.objects.filter(submission=system.submission, utterance__name__in=wanted)
        for utterance, pk in files.order_by().values_list("utterance__name").annotate(Min("pk")):
            addresses[utterance] = reverse("systems:compare", args=[system.submission.system.name, pk])
    return heard_page(Shape(reader, shown.results), utterances, disagreements, addresses)


def latex_file(shown: Shown, query: Mapping[str, str]) -> HttpResponse:
    """Return the unfolded tables of the page and further numbers of questions, for booktabs; no drawings or prose."""
    if shown.analysis is None:
        raise Http404
    context = study_context(shown, query)
    study, page = shown.study, context["page"]
    tables = [one["headline"] for one in page["tasks"]]
    tables += [one["tables"][0] for one in page["sections"] if one.get("is_open") and one["tables"]]
    tables += [table for one in page["answered"] for table in (*one["tables"], one["further"]) if table]
    start = f"{study}{', simulated answers' if study.is_simulated else ''}"
    printed = (
        (_printed(table), f"{start}. {table.lead}{table.caption}", f"tab:{study.name}-{number}")
        for number, table in enumerate(tables, start=1)
    )
    return latex_response(f"{study.name}-results-{context['scores']}.tex", latex_document(start, printed))


def _printed(table: Table) -> Table:
    kept = [place for place, one in enumerate(table.columns) if one.kind != "text"]
    rows = tuple(Row(tuple(row.cells[place] for place in kept)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in kept), groups=(Group(rows),))


def figure_file(shown: Shown, scores: str, name: str, extension: str, theme: str) -> HttpResponse:
    """Return a drawn figure; SVG has a form for dark pages."""
    if shown.analysis is None or f".{extension}" not in CONTENT_TYPES or theme not in ("light", "dark"):
        raise Http404
    path = f"{scores}/{name}-{theme}.svg" if extension == "svg" else f"{scores}/{name}.{extension}"
    key = shown.analysis.figures.get(path)
    if key is None or not (
        shown.may_see(ResultsPart.LISTENERS) or f"{scores}/{name}" in _of_everybody(shown.analysis.results)
    ):
        raise Http404
    with default_storage.open(key) as stored:
        response = HttpResponse(stored.read(), content_type=CONTENT_TYPES[f".{extension}"])
    response["Content-Disposition"] = f'inline; filename="{shown.study.name}-{scores}-{name}.{extension}"'
    return secured(response, FIGURE_S)


def bundle_file(shown: Shown) -> HttpResponse:
    """Return inputs, settings, tables and figures in one zip; "not found" where the inputs are gone."""
    analysis = shown.analysis
    if analysis is None or not analysis.inputs or not shown.may_see(ResultsPart.BUNDLE):
        raise Http404
    with default_storage.open(analysis.inputs) as stored:
        inputs = stored.read()
    pieces = write_bundle(inputs, shown.results, _Figures(analysis.figures))
    response = cast("HttpResponse", StreamingHttpResponse(pieces, content_type="application/zip"))
    return as_download(response, f"{shown.study.name}-results.zip")


class _Figures(dict[str, Any]):
    """Drawn files by their paths, each read when it is asked for."""

    def __getitem__(self, path: str) -> bytes:
        with default_storage.open(super().__getitem__(path)) as stored:
            content: bytes = stored.read()
        return content


@lru_cache(maxsize=PAGES_KEPT)
def _of_everybody(results: str) -> frozenset[str]:
    """Return the figures that are not for organizers alone, as scores and name."""
    return frozenset(f"{one.scores}/{one.name}" for one in figures_in(results) if not one.is_for_organizers)
