"""Results as files: a table as CSV, everything as JSON, a drawn figure, the bundle that makes all of it again."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from django.core.files.storage import default_storage
from django.http import Http404, HttpResponse, StreamingHttpResponse

from listening.results.result_shown import visible_results
from listening.results.result_visibility import Part
from listening.results.selectors import KEPT, Shown, figures_in
from portal.core.media import CONTENT_TYPES, secured

FIGURE_S = 300  # a browser may keep a figure so long; its address changes with what it shows


def table_file(shown: Shown, scores: str, name: str) -> HttpResponse:
    """A table with every digit, as far as this person may see it."""
    table = shown.table(scores, name)
    return _file(table.csv(), "text/csv; charset=utf-8", f"{shown.study.name}-{scores}-{name}.csv")


def results_file(shown: Shown) -> HttpResponse:
    """Everything that this person may see."""
    text = visible_results(shown).as_json()
    return _file(text, "application/json; charset=utf-8", f"{shown.study.name}-results.json")


def figure_file(shown: Shown, scores: str, name: str, extension: str, theme: str) -> HttpResponse:
    """A drawn figure; SVG has a form for dark pages."""
    if shown.analysis is None or f".{extension}" not in CONTENT_TYPES or theme not in ("light", "dark"):
        raise Http404
    path = f"{scores}/{name}-{theme}.svg" if extension == "svg" else f"{scores}/{name}.{extension}"
    key = shown.analysis.figures.get(path)
    if key is None or not (
        shown.may_see(Part.LISTENERS) or f"{scores}/{name}" in _of_everybody(shown.analysis.results)
    ):
        raise Http404
    with default_storage.open(key) as stored:
        response = HttpResponse(stored.read(), content_type=CONTENT_TYPES[f".{extension}"])
    response["Content-Disposition"] = f'inline; filename="{shown.study.name}-{scores}-{name}.{extension}"'
    return secured(response, FIGURE_S)


def bundle_file(shown: Shown) -> HttpResponse:
    """Inputs, settings, tables and figures in one zip; "not found" where the inputs are gone."""
    from listening.analysis.bundle import bundle

    analysis = shown.analysis
    if analysis is None or not analysis.inputs or not shown.may_see(Part.BUNDLE):
        raise Http404
    with default_storage.open(analysis.inputs) as stored:
        inputs = stored.read()
    response = StreamingHttpResponse(
        bundle(inputs, shown.results, _Figures(analysis.figures)), content_type="application/zip"
    )
    response["Content-Disposition"] = f'attachment; filename="{shown.study.name}-results.zip"'
    return cast("HttpResponse", response)


class _Figures(dict[str, Any]):
    """Drawn files by their paths, each read when it is asked for."""

    def __getitem__(self, path: str) -> bytes:
        with default_storage.open(super().__getitem__(path)) as stored:
            content: bytes = stored.read()
        return content


@lru_cache(maxsize=KEPT)
def _of_everybody(results: str) -> frozenset[str]:
    """The figures that are not for organizers alone, as scores and name."""
    return frozenset(f"{one.scores}/{one.name}" for one in figures_in(results) if not one.is_for_organizers)


def _file(text: str, content_type: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
