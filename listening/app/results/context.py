"""Puts a page of results together for one reader: what they may see of the analysis, its figures, its addresses.

What does not depend on the request is made once and kept by the key of the results, whose content never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db.models import Min
from django.http import Http404, HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from listening.analysis.contents import ABOUT_LISTENERS
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Results, Table
from listening.models import StudySystem
from listening.results.listener_pages import ListenersPage, listeners_page
from listening.results.result_headlines import chosen_sorting
from listening.results.result_pages import EVERY, Reader, ResultsPage, chosen_scores, results_page
from listening.results.result_shown_figures import ShownFigure, shown_figures
from listening.results.result_visibility import Part, remarks_on_nobody, rows_for_everybody
from listening.results.selectors import Shown, is_open_to_all, parsed_results, systems_named
from listening.results.system_pages import HeardPage, SystemPage, heard_page, heard_utterances, system_page
from portal.submissions.models import SubmittedFile
from portal.submissions.selectors import systems_for
from portal.submissions.visibility import Part as SystemPart

if TYPE_CHECKING:
    from listening.analysis.figures import Figure

KEPT = 16  # pages in a process
# Of a design: right answers of control trials, which may be used again, what its own pages show, the name of a file.
OF_ORGANIZERS = frozenset({"gold", "certificate", "stimuli", "read_from"})


def visible_results(shown: Shown) -> Results:
    """What was found, without what this person may not see: tables of listeners, rows of others' utterances, and of the
    design what only its organizers have."""
    tables = {path: table for path in shown.results.tables if (table := _visible(shown, path)) is not None}
    study = dict(shown.results.study)
    if not shown.is_organizer:
        study["design"] = {name: told for name, told in study.get("design", {}).items() if name not in OF_ORGANIZERS}
        study["design"].pop("remarks", None)  # they stand among the remarks of the results, as far as they may be seen
    return replace(shown.results, study=study, tables=tables, remarks=tuple(_remarks(shown)))


def study_context(shown: Shown, query: Mapping[str, str]) -> dict[str, Any]:
    """The page of a study; without its body while there is no analysis."""
    context = context_of(shown, query)
    if shown.analysis is None:
        return context
    page, body = _study_page(*_key(shown, context["reader"]), chosen_sorting(query), tuple(_remarks(shown)))
    has_listeners = shown.may_see(Part.LISTENERS) and shown.results.table("raw", "listeners") is not None
    return context | {"page": page, "body": body, "has_listeners": has_listeners}


def system_context(shown: Shown, name: str, request: HttpRequest) -> dict[str, Any]:
    """The page of a system; Http404 where the study does not have it, or nothing is analysed yet."""
    # Before anything is computed or kept: made-up names would cost time and drive out the pages that are asked for.
    if shown.analysis is None or name in (ORIGINAL, EVERY) or name not in systems_named(shown.analysis.results):
        raise Http404
    context = context_of(shown, request.GET)
    page, body = _system_page(*_key(shown, context["reader"]), name)
    if page is None:
        raise Http404
    heard, system = None, shown.study.systems.filter(code=name).select_related("submission__system").first()
    if shown.may_see(Part.UTTERANCES) and (shown.is_organizer or name in shown.own_systems):
        heard = _heard(shown, name, system, context["scores"])
    return context | {
        "page": page,
        "body": body,
        "heard": heard,
        "system": name,
        "label": page.label,
        "objective": _objective(system, request.user),
    }


def listeners_context(shown: Shown, query: Mapping[str, str]) -> dict[str, Any]:
    """The page of listeners; Http404 while nothing is analysed, and once somebody withdrew since."""
    context = context_of(shown, query)
    if shown.analysis is None or not shown.may_see(Part.LISTENERS):
        raise Http404
    reader: Reader = context["reader"]
    return context | {"page": _listeners_page(*_key(shown, reader))}


def context_of(shown: Shown, query: Mapping[str, str]) -> dict[str, Any]:
    """What every page of results needs."""
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
        "scores": scores,
        "has_scores": shown.analysis is not None and any(path.startswith("raw/") for path in shown.results.tables),
        "reader": Reader(shown.study.name, scores, shown.is_organizer, tables),
    }


# What is kept --------------------------------------------------------------------------------------


def _key(shown: Shown, reader: Reader) -> tuple[str, frozenset[str], str, Reader]:
    assert shown.analysis is not None  # noqa: S101
    return shown.analysis.results, frozenset(shown.analysis.figures), shown.analysis.fingerprint[:12], reader


@lru_cache(maxsize=KEPT)
def _study_page(
    results: str, drawn: frozenset[str], mark: str, reader: Reader, sorting: tuple[str, str], remarks: tuple[str, ...]
) -> tuple[ResultsPage, SafeString]:  # fmt: skip
    found = replace(parsed_results(results), remarks=remarks)
    if not _sees_listeners(reader):
        found = replace(found, tables={path: rows_for_everybody(table) for path, table in found.tables.items()})
    figures = _figures_of(results, drawn, mark, reader, lambda one: not one.system and not one.is_about_listeners)
    page = results_page(found, reader, figures, sorting)
    return page, render_to_string("results/_body.html", {"page": page, "study": found.study})


@lru_cache(maxsize=KEPT)
def _system_page(
    results: str, drawn: frozenset[str], mark: str, reader: Reader, name: str
) -> tuple[SystemPage | None, SafeString]:  # fmt: skip
    figures = _figures_of(results, drawn, mark, reader, lambda one: one.system == name and not one.is_about_listeners)
    page = system_page(parsed_results(results), reader, name, figures)
    return page, render_to_string("results/_system_body.html", {"page": page})


@lru_cache(maxsize=KEPT)
def _listeners_page(results: str, drawn: frozenset[str], mark: str, reader: Reader) -> ListenersPage:
    figures = _figures_of(results, drawn, mark, reader, lambda one: one.is_about_listeners)
    return listeners_page(parsed_results(results), reader, figures)


def _sees_listeners(reader: Reader) -> bool:
    """Whether what is for organizers alone is for this reader; once somebody withdrew, it is for nobody."""
    return reader.tables >= ABOUT_LISTENERS


def _figures_of(
    results: str, drawn: frozenset[str], mark: str, reader: Reader, wanted: Callable[[Figure], bool]
) -> list[ShownFigure]:  # fmt: skip
    def may_see(one: Figure) -> bool:
        return wanted(one) and (_sees_listeners(reader) or not one.is_for_organizers)

    return shown_figures(results, reader.study, reader.scores, drawn, mark, reader.csv, may_see)


# What one person may see ---------------------------------------------------------------------------


def _visible(shown: Shown, path: str) -> Table | None:
    try:
        return shown.table(*path.split("/", 1))
    except Http404:
        return None


def _remarks(shown: Shown) -> list[str]:
    """The remarks; those that name a listener are for organizers."""
    remarks = list(shown.results.remarks)
    if shown.may_see(Part.LISTENERS):
        return remarks
    assert shown.analysis is not None  # noqa: S101
    return list(_remarks_of_nobody(shown.analysis.results))


@lru_cache(maxsize=KEPT)
def _remarks_of_nobody(results: str) -> tuple[str, ...]:
    return remarks_on_nobody(parsed_results(results))


def _objective(system: StudySystem | None, user: Any) -> str:
    """The address of a system's objective numbers; empty for whom they are not, and for what is no system here."""
    if system is None:
        return ""
    found = systems_for(user, SystemPart.NUMBERS).filter(pk=system.submission.system_id).first()
    return found.get_absolute_url() if found is not None else ""


def _heard(shown: Shown, name: str, system: StudySystem | None, scores: str) -> HeardPage:
    """Single utterances of a system, each with the page that plays it where its file is known."""
    utterances, disagreements = (_visible(shown, f"{scores}/{table}") for table in ("utterances", "disagreements"))
    addresses: dict[str, str] = {}
    if system is not None:
        wanted = heard_utterances(utterances, disagreements, name=name)
        files = SubmittedFile.objects.filter(submission=system.submission, utterance__name__in=wanted)
        for utterance, pk in files.order_by().values_list("utterance__name").annotate(Min("pk")):
            addresses[utterance] = reverse("systems:compare", args=[system.submission.system.name, pk])
    return heard_page(utterances, disagreements, name, scores, addresses)
