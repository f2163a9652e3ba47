"""The leaderboard of an edition for everybody, and its policy, publication and time for its organizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from anonymization.methods.measured import read_measurements
from common.tables import DataTable, latex_table
from portal.accounts.access import member_page, open_read
from portal.challenges.models import Edition
from portal.challenges.selectors import export_version, managed_edition_for
from portal.core.clock import read_clock
from portal.core.downloads import as_download, csv_response, json_response, latex_response
from portal.core.drawing import DrawingError, answer_not_drawn
from portal.core.fields import posted, show_form
from portal.core.mail import if_mailed
from portal.core.media import CONTENT_TYPES, secured
from portal.core.panels import make_panels, panel_data
from portal.leaderboard import exports, method_pages, pages, policy_pages, published_pages, services, version_pages
from portal.leaderboard.figures import draw_file, figure_file
from portal.leaderboard.forms import FreezeForm, PolicyForm, VersionForm
from portal.leaderboard.selectors import (
    describe_under_way,
    find_unpublished,
    leaderboard_for,
    list_held,
    list_own_teams,
    mismatches_on_leaderboard,
    version_for,
    versions_for,
)
from portal.leaderboard.tables import HIDE
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
    panels = [] if leaderboard.is_empty else make_panels("leaderboard", request, leaderboard)
    page |= {"manages": manages, "panels": panels, "held": held, "stopped": stopped}
    page["under_way"] = describe_under_way(leaderboard, request.user, with_names=manages)
    return render(request, "leaderboard/detail.html", page)


@open_read
def leaderboard_csv(request: HttpRequest, edition: str) -> HttpResponse:
    return csv_response(f"{edition}-leaderboard.csv", exports.leaderboard_rows(leaderboard_for(request.user, edition)))


@open_read
def leaderboard_json(request: HttpRequest, edition: str) -> HttpResponse:
    leaderboard = leaderboard_for(request.user, edition)
    found = exports.leaderboard_as_dict(leaderboard) | panel_data("leaderboard", request, leaderboard)
    return json_response(f"{edition}-leaderboard.json", found)


@open_read
def leaderboard_latex(request: HttpRequest, edition: str) -> HttpResponse:
    text = exports.leaderboard_as_latex(leaderboard_for(request.user, edition))
    return latex_response(f"{edition}-leaderboard.tex", text)


@open_read
def leaderboard_figure(request: HttpRequest, edition: str, figure: str, extension: str) -> HttpResponse:
    """A figure of the leaderboard; SVG has a dark form for dark pages, the trade-off a narrow one for phones."""
    with_published = request.GET.get("published", "") != HIDE
    leaderboard = leaderboard_for(request.user, edition)
    draw = partial(figure_file, leaderboard, figure, extension, with_published=with_published)
    return _figure_response(request, draw, f"{edition}-{figure}.{extension}")


@open_read
def published_results(request: HttpRequest) -> HttpResponse:
    choice = published_pages.read_choice(request.GET)
    page = published_pages.published_page(choice) | {"panels": make_panels("published", request, choice)}
    has = {"figures": page["figures"], "listeners": page["panels"]}
    parts = {key: label for key, label in published_pages.PARTS.items() if has.get(key, True)}
    asked = request.GET.get("part", "")
    page |= {"parts": parts, "part": asked if asked in parts else next(iter(parts))}
    return render(request, "leaderboard/published.html", page)


@open_read
def published_csv(request: HttpRequest) -> HttpResponse:
    return csv_response("published.csv", published_pages.published_rows(published_pages.read_choice(request.GET)))


@open_read
def published_json(request: HttpRequest) -> HttpResponse:
    head, *rows = published_pages.published_rows(published_pages.read_choice(request.GET))
    return json_response("published.json", {"numbers": DataTable(head, rows).records()})


@open_read
def published_latex(request: HttpRequest) -> HttpResponse:
    table = published_pages.make_table(published_pages.read_choice(request.GET), is_file=True)
    return latex_response("published.tex", "\n".join([*latex_table(table, table.title), ""]))


@open_read
def published_figure(request: HttpRequest, figure: str, extension: str) -> HttpResponse:
    """A figure of the published results, as asked for in the address."""
    drawing = published_pages.list_published_drawings(published_pages.read_choice(request.GET)).get(figure)
    return _figure_response(request, partial(draw_file, drawing, extension), f"published-{figure}.{extension}")


@open_read
def method_comparison(request: HttpRequest) -> HttpResponse:
    return render(request, "leaderboard/methods.html", method_pages.methods_page())


@open_read
def methods_csv(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    return csv_response("anonymizers.csv", method_pages.method_rows())


@open_read
def methods_json(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    head, *rows = method_pages.method_rows()
    return json_response("anonymizers.json", {"methods": DataTable(tuple(head), rows).records()})


@open_read
def methods_latex(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    table = method_pages.numbers_table(read_measurements())
    return latex_response("anonymizers.tex", "\n".join([*latex_table(table, table.title), ""]))


@open_read
def method_figure(request: HttpRequest, figure: str, extension: str) -> HttpResponse:
    drawing = method_pages.list_method_drawings().get(figure)
    return _figure_response(request, partial(draw_file, drawing, extension), f"anonymizers-{figure}.{extension}")


def _figure_response(request: HttpRequest, draw: Callable[..., bytes], filename: str) -> HttpResponse:
    """A drawn figure in the theme and shape of the address, or why it is not drawn."""
    try:
        content = draw(theme=request.GET.get("theme", "light"), shape=request.GET.get("shape", ""))
    except DrawingError as found:
        return answer_not_drawn(found)
    extension = filename.rpartition(".")[2]
    response = secured(HttpResponse(content, content_type=CONTENT_TYPES[f".{extension}"]), FIGURE_S)
    response["Content-Disposition"] = f'inline; filename="{filename}"'
    return response


@member_page
def policy(request: HttpRequest, edition: str) -> HttpResponse:
    """The draft policy as a form, and what it would change."""
    managed = managed_edition_for(request.user, edition)
    form = PolicyForm(posted(request), edition=managed, shown=policy_pages.edited_policy(managed))
    if form.is_valid():
        saved = services.save_draft_policy(edition=managed, policy=form.chosen, by=request.user)
        said = "The draft is saved; see below what it would change." if saved.draft_policy else "This policy is live."
        messages.success(request, said)
        return redirect("leaderboard:policy", managed.name)
    return show_form(request, "leaderboard/policy.html", form, **policy_pages.policy_page(managed))


@member_page
def live(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask, then make the draft live."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        action = partial(services.make_policy_live, edition=managed, by=request.user)
        return _done(request, managed, action, "The policy is live.")
    return render(request, "leaderboard/live.html", policy_pages.policy_page(managed))


@member_page
@require_POST
def discard(request: HttpRequest, edition: str) -> HttpResponse:
    managed = managed_edition_for(request.user, edition)
    services.discard_draft_policy(edition=managed, by=request.user)
    messages.success(request, "The draft was discarded.")
    return redirect("leaderboard:policy", managed.name)


@member_page
def publish(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask, then publish; of a published leaderboard, ask whether to take it back."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        publish_it = partial(services.publish_leaderboard, edition=managed, now=read_clock(), by=request.user)
        action = partial(publish_it, releases="releases" in request.POST)
        return _done(
            request, managed, action, f"The leaderboard is published{if_mailed(', and its teams are notified')}."
        )
    return render(request, "leaderboard/publish.html", policy_pages.publish_page(managed))


@member_page
def freeze(request: HttpRequest, edition: str) -> HttpResponse:
    """Ask as of when, show what the leaderboard would hold, then freeze."""
    managed = managed_edition_for(request.user, edition)
    form = FreezeForm(posted(request), now=read_clock())
    is_chosen = form.is_valid()
    if is_chosen and form.cleaned_data["confirmed"]:
        return _done(
            request, managed, partial(form.freeze, edition=managed, by=request.user), "The leaderboard is frozen."
        )
    page = policy_pages.freeze_page(managed, form.chosen if is_chosen else None)
    return show_form(request, "leaderboard/freeze.html", form, **page)


@member_page
def publish_again(request: HttpRequest, edition: str) -> HttpResponse:
    """Show who moves, then publish by the adopted version of the recipe."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        action = partial(services.publish_version, edition=managed, now=read_clock(), by=request.user)
        told = f"The leaderboard is published by recipe version {managed.recipe_number}"
        return _done(request, managed, action, f"{told}{if_mailed(', and its teams are notified')}.")
    return render(request, "leaderboard/again.html", version_pages.again_page(managed))


# Versions of the recipe ----------------------------------------------------------------------------


@open_read
def versions(request: HttpRequest, edition: str) -> HttpResponse:
    """The versions of the recipe that this visitor may read."""
    found, manages, listed = versions_for(request.user, edition)
    return render(request, "leaderboard/versions.html", version_pages.versions_page(found, listed, manages=manages))


@member_page
def new_version(request: HttpRequest, edition: str) -> HttpResponse:
    """Propose another recipe, starting from the adopted one."""
    managed = managed_edition_for(request.user, edition)
    form = VersionForm(posted(request), request.FILES or None, edition=managed)
    made = form.propose(by=request.user) if form.is_valid() else None
    if made is not None:
        messages.success(request, f"{made} is a draft. See below who would move.")
        return redirect("leaderboard:version", managed.name, made.number)
    return show_form(request, "leaderboard/new_version.html", form, edition=managed)


@open_read
def version(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """One version of the recipe: what it changes and, for those who may see it, who moves."""
    return render(
        request, "leaderboard/version.html", version_pages.version_page(version_for(request.user, edition, number))
    )


@open_read
def version_recipe(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """A version of the recipe as a TOML file."""
    chosen = version_for(request.user, edition, number).version
    response = HttpResponse(export_version(chosen), content_type="application/toml; charset=utf-8")
    return as_download(response, f"{edition}-version-{number}.toml")


@open_read
def version_csv(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """Who moves by a version, in every ranking."""
    rows = version_pages.comparison_rows(version_pages.comparison_of(version_for(request.user, edition, number)))
    return csv_response(f"{edition}-version-{number}-moves.csv", rows)


@member_page
def adopt_version(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """Show once more who moves, then adopt a draft."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        action = partial(services.adopt_version, edition=managed, number=number, now=read_clock(), by=request.user)
        return _done(request, managed, action, f"Recipe version {number} is adopted.")
    view = version_for(request.user, edition, number)
    return render(request, "leaderboard/adopt.html", version_pages.version_page(view))


@member_page
@require_POST
def withdraw_version(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    managed = managed_edition_for(request.user, edition)
    action = partial(services.withdraw_version, edition=managed, number=number, now=read_clock(), by=request.user)
    return _done(request, managed, action, f"Recipe version {number} is withdrawn.")


def _taking_back(service: Callable[..., Edition], success: str) -> Callable[..., HttpResponse]:
    @member_page
    @require_POST
    def take_back(request: HttpRequest, edition: str) -> HttpResponse:
        managed = managed_edition_for(request.user, edition)
        return _done(request, managed, partial(service, edition=managed, by=request.user), success)

    return take_back


unpublish = _taking_back(services.unpublish_leaderboard, "The leaderboard is hidden from all but its organizers.")
unfreeze = _taking_back(services.unfreeze_leaderboard, "The leaderboard follows every evaluation again.")


def _done(request: HttpRequest, edition: Edition, action: Callable[[], Any], success: str) -> HttpResponse:
    """Do it and show the leaderboard; what its state does not allow is said there."""
    try:
        action()
    except services.LeaderboardError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, success)
    return redirect("leaderboard:detail", edition.name)
