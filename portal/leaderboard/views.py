"""The leaderboard of an edition for everybody, as a page, files and figures; and what its features answer alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from common.errors import NotPossible
from listening.app.results.pages import chosen_scores
from portal.accounts.access import open_read
from portal.challenges.models import Edition
from portal.core.downloads import csv_response, json_response, latex_response
from portal.core.drawing import answer_not_drawn
from portal.core.signed_urls import CONTENT_TYPES, secured
from portal.leaderboard import exports, pages
from portal.leaderboard.figures import draw_file, list_drawings
from portal.leaderboard.listeners import CSV_COLUMNS, leaderboard_listeners, listeners_as_dict, studies_on_leaderboard
from portal.leaderboard.selectors import (
    describe_under_way,
    find_unpublished,
    leaderboard_for,
    list_held,
    list_own_teams,
    mismatches_on_leaderboard,
)
from portal.submissions.selectors import list_stopped

FIGURE_S = 300  # a browser may keep a figure so long; its address changes with what it shows


@open_read
def leaderboard_detail(request: HttpRequest, edition: str) -> HttpResponse:
    try:
        leaderboard = leaderboard_for(request.user, edition)
    except Http404:
        if waited := find_unpublished(edition):
            messages.info(
                request, f"The leaderboard of “{waited}” is not public at present: only its organizers see it."
            )
        raise
    organizers = leaderboard.edition.organizers
    # Nobody but organizers sees a preview.
    manages = leaderboard.is_preview or (
        request.user.is_authenticated and organizers.filter(pk=request.user.pk).exists()
    )
    unlike = mismatches_on_leaderboard(leaderboard) if manages else {}
    held = list_held(leaderboard.edition) if manages else []
    stopped = list_stopped(leaderboard.edition) if manages else []
    own_teams = set() if manages else list_own_teams(request.user, leaderboard.edition)
    page = pages.leaderboard_page(leaderboard, request.GET.dict(), unlike, own_teams=own_teams)
    scores = chosen_scores(request.GET)
    listeners = {} if leaderboard.is_empty else leaderboard_listeners(request.user, leaderboard, scores)
    page |= {"manages": manages, "listeners": listeners, "held": held, "stopped": stopped}
    lowest = listeners.get("lowest", {})
    page["lowest"] = [lowest[key] for key in page["leaders"] if key in lowest]
    page["listeners_figure"] = listeners.get("figure")
    page["shows_listeners"] = page["listeners_figure"] is not None and (page["asks_listeners"] or page["det"] is None)
    page["is_frozen"] = leaderboard.as_of not in (None, leaderboard.edition.recipe_changed_at)
    page["under_way"] = describe_under_way(leaderboard, request.user, with_names=manages)
    return render(request, "leaderboard/detail.html", page)


@open_read
def leaderboard_csv(request: HttpRequest, edition: str) -> HttpResponse:
    return csv_response(f"{edition}-leaderboard.csv", exports.leaderboard_rows(leaderboard_for(request.user, edition)))


@open_read
def leaderboard_json(request: HttpRequest, edition: str) -> HttpResponse:
    leaderboard = leaderboard_for(request.user, edition)
    said = listeners_as_dict(request.user, leaderboard, chosen_scores(request.GET))
    return json_response(f"{edition}-leaderboard.json", exports.leaderboard_as_dict(leaderboard) | said)


@open_read
def listeners_csv(request: HttpRequest, edition: str) -> HttpResponse:
    """Send objective and subjective numbers of the systems on a leaderboard: one row for each number."""
    leaderboard, scores = leaderboard_for(request.user, edition), chosen_scores(request.GET)
    rows = [
        row
        for one in studies_on_leaderboard(request.user, leaderboard, scores)
        for row in one.comparison.csv_rows(one.study.name, one.study.is_simulated)
    ]
    return csv_response(f"{edition}-listeners-{scores}.csv", [CSV_COLUMNS, *rows])


@open_read
def leaderboard_latex(request: HttpRequest, edition: str) -> HttpResponse:
    text = exports.leaderboard_as_latex(leaderboard_for(request.user, edition))
    return latex_response(f"{edition}-leaderboard.tex", text)


@open_read
def leaderboard_figure(request: HttpRequest, edition: str, figure: str, extension: str) -> HttpResponse:
    """Return a figure of the leaderboard; SVG has a dark form for dark pages, the trade-off a narrow one for phones."""
    drawing = list_drawings(leaderboard_for(request.user, edition)).get(figure)
    return answer_figure(request, partial(draw_file, drawing, extension), f"{edition}-{figure}.{extension}")


def answer_figure(request: HttpRequest, draw: Callable[..., bytes], filename: str) -> HttpResponse:
    """Return a drawn figure in the theme and shape of the address, or why it is not drawn."""
    try:
        content = draw(theme=request.GET.get("theme", "light"), shape=request.GET.get("shape", ""))
    except NotPossible as found:
        return answer_not_drawn(found)
    extension = filename.rpartition(".")[2]
    response = secured(HttpResponse(content, content_type=CONTENT_TYPES[f".{extension}"]), FIGURE_S)
    response["Content-Disposition"] = f'inline; filename="{filename}"'
    return response


def act_and_show(request: HttpRequest, edition: Edition, action: Callable[[], Any], success: str) -> HttpResponse:
    """Do it and show the leaderboard; what its state does not allow is said there."""
    try:
        action()
    except NotPossible as error:
        messages.error(request, str(error))
    else:
        messages.success(request, success)
    return redirect("leaderboard:detail", edition.name)
