"""The board of an edition for everybody, and its policy, publication and time for its organizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.access import member_page, open_page
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_edition_for
from portal.core.exports import csv_response
from portal.core.media import CONTENT_TYPES
from portal.core.panels import panel_data, panels_of
from portal.results import board_exports, board_policy_pages, board_services
from portal.results.board import board_for, unlike_on_board
from portal.results.board_figures import figure_file
from portal.results.board_forms import FreezeForm, PolicyForm
from portal.results.board_pages import board_page

FIGURE_S = 300  # a browser may keep a figure so long; its address changes with what it shows


@require_safe
@open_page
def board_detail(request: HttpRequest, edition: str) -> HttpResponse:
    board = board_for(request.user, edition)
    manages = request.user.is_authenticated and board.edition.organizers.filter(pk=request.user.pk).exists()
    unlike = unlike_on_board(board) if manages else {}
    page = board_page(board, request.GET.get("sort", ""), request.GET.get("order", ""), unlike)
    panels = [] if board.is_empty else panels_of("board", request, board)
    return render(request, "boards/detail.html", page | {"manages": manages, "panels": panels})


@require_safe
@open_page
def board_csv(request: HttpRequest, edition: str) -> HttpResponse:
    return csv_response(f"{edition}-board.csv", board_exports.board_rows(board_for(request.user, edition)))


@require_safe
@open_page
def board_json(request: HttpRequest, edition: str) -> HttpResponse:
    board = board_for(request.user, edition)
    found = board_exports.board_as_dict(board) | panel_data("board", request, board)
    return _download(JsonResponse(found), edition, "json")


@require_safe
@open_page
def board_latex(request: HttpRequest, edition: str) -> HttpResponse:
    text = board_exports.board_as_latex(board_for(request.user, edition))
    return _download(HttpResponse(text, content_type="application/x-tex; charset=utf-8"), edition, "tex")


@require_safe
@open_page
def board_figure(request: HttpRequest, edition: str, figure: str, extension: str) -> HttpResponse:
    """A figure of the board; SVG has a dark form for dark pages, the trade-off a narrow one for phones."""
    theme, shape = request.GET.get("theme", "light"), request.GET.get("shape", "")
    content = figure_file(board_for(request.user, edition), figure, extension, theme, shape)
    response = HttpResponse(content, content_type=CONTENT_TYPES[f".{extension}"])
    response["Cache-Control"] = f"private, max-age={FIGURE_S}"
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    response["Content-Disposition"] = f'inline; filename="{edition}-{figure}.{extension}"'
    return response


@member_page
def policy(request: HttpRequest, edition: str) -> HttpResponse:
    """The draft policy as a form, and what it would change."""
    managed = managed_edition_for(request.user, edition)
    given = request.POST if request.method == "POST" else None
    form = PolicyForm(given, edition=managed, shown=board_policy_pages.edited_policy(managed))
    if form.is_valid():
        saved = board_services.save_draft_policy(edition=managed, policy=form.chosen, by=request.user)
        said = "The draft is saved; see below what it would change." if saved.draft_policy else "This policy is live."
        messages.success(request, said)
        return redirect("boards:policy", managed.name)
    page = board_policy_pages.policy_page(managed) | {"form": form}
    return render(request, "boards/policy.html", page, status=422 if form.errors else 200)


@member_page
def live(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask, then make the draft live."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        deed = partial(board_services.make_policy_live, edition=managed, by=request.user)
        return _done(request, managed, deed, "The policy is live.")
    return render(request, "boards/live.html", board_policy_pages.policy_page(managed))


@member_page
@require_POST
def discard(request: HttpRequest, edition: str) -> HttpResponse:
    managed = managed_edition_for(request.user, edition)
    board_services.discard_draft_policy(edition=managed, by=request.user)
    messages.success(request, "The draft is gone.")
    return redirect("boards:policy", managed.name)


@member_page
def publish(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask, then publish; of a published board, ask whether to take it back."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        deed = partial(board_services.publish_board, edition=managed, now=timezone.now(), by=request.user)
        return _done(request, managed, deed, "The board is published, and its teams get a notice.")
    return render(request, "boards/publish.html", board_policy_pages.publish_page(managed))


@member_page
@require_POST
def unpublish(request: HttpRequest, edition: str) -> HttpResponse:
    managed = managed_edition_for(request.user, edition)
    deed = partial(board_services.unpublish_board, edition=managed, by=request.user)
    return _done(request, managed, deed, "The board is hidden from all but its organizers.")


@member_page
def freeze(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask as of when, show what the board would hold, then freeze."""
    managed = managed_edition_for(request.user, edition)
    form = FreezeForm(request.POST if request.method == "POST" else None, now=timezone.now())
    is_chosen = form.is_valid()
    if is_chosen and form.cleaned_data["confirmed"]:
        return _done(request, managed, partial(form.freeze, edition=managed, by=request.user), "The board is frozen.")
    page = board_policy_pages.freeze_page(managed, form.chosen if is_chosen else None) | {"form": form}
    return render(request, "boards/freeze.html", page, status=422 if form.errors else 200)


@member_page
@require_POST
def unfreeze(request: HttpRequest, edition: str) -> HttpResponse:
    managed = managed_edition_for(request.user, edition)
    deed = partial(board_services.unfreeze_board, edition=managed, by=request.user)
    return _done(request, managed, deed, "The board follows every evaluation again.")


def _done(request: HttpRequest, edition: Edition, deed: Callable[[], Any], success: str) -> HttpResponse:
    """Do it and show the board; what its state does not allow is said there."""
    try:
        deed()
    except board_services.BoardError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, success)
    return redirect("boards:detail", edition.name)


def _download(response: HttpResponse, edition: str, extension: str) -> HttpResponse:
    response["Content-Disposition"] = f'attachment; filename="{edition}-board.{extension}"'
    return response
