"""Pages of the versions of a recipe: what each changes, who moves by it, and publishing by the adopted one."""

from __future__ import annotations

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from portal.accounts.access import member_page, open_read
from portal.challenges.selectors import export_version, managed_edition_for
from portal.core.clock import read_clock
from portal.core.downloads import as_download, csv_response
from portal.core.fields import posted, show_form
from portal.core.mail import if_mailed
from portal.leaderboard import services
from portal.leaderboard.recipe_versions import pages
from portal.leaderboard.recipe_versions.forms import VersionForm
from portal.leaderboard.selectors import version_for, versions_for
from portal.leaderboard.views import act_and_show


@open_read
def versions(request: HttpRequest, edition: str) -> HttpResponse:
    """The versions of the recipe that this visitor may read."""
    found, manages, listed = versions_for(request.user, edition)
    return render(request, "leaderboard/recipe_versions/list.html", pages.versions_page(found, listed, manages=manages))


@member_page
def new_version(request: HttpRequest, edition: str) -> HttpResponse:
    """Propose another recipe, starting from the adopted one."""
    managed = managed_edition_for(request.user, edition)
    form = VersionForm(posted(request), request.FILES or None, edition=managed)
    made = form.propose(by=request.user) if form.is_valid() else None
    if made is not None:
        messages.success(request, f"{made} is a draft. See below who would move.")
        return redirect("leaderboard:version", managed.name, made.number)
    return show_form(request, "leaderboard/recipe_versions/new.html", form, edition=managed)


@open_read
def version(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """One version of the recipe: what it changes and, for those who may see it, who moves."""
    view = version_for(request.user, edition, number)
    return render(request, "leaderboard/recipe_versions/detail.html", pages.version_page(view))


@open_read
def version_recipe(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """A version of the recipe as a TOML file."""
    chosen = version_for(request.user, edition, number).version
    response = HttpResponse(export_version(chosen), content_type="application/toml; charset=utf-8")
    return as_download(response, f"{edition}-version-{number}.toml")


@open_read
def version_csv(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """Who moves by a version, in every ranking."""
    rows = pages.comparison_rows(pages.comparison_of(version_for(request.user, edition, number)))
    return csv_response(f"{edition}-version-{number}-moves.csv", rows)


@member_page
def adopt_version(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    """Show once more who moves, then adopt a draft."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        action = partial(services.adopt_version, edition=managed, number=number, now=read_clock(), by=request.user)
        return act_and_show(request, managed, action, f"Recipe version {number} is adopted.")
    view = version_for(request.user, edition, number)
    return render(request, "leaderboard/recipe_versions/adopt.html", pages.version_page(view))


@member_page
@require_POST
def withdraw_version(request: HttpRequest, edition: str, number: int) -> HttpResponse:
    managed = managed_edition_for(request.user, edition)
    action = partial(services.withdraw_version, edition=managed, number=number, now=read_clock(), by=request.user)
    return act_and_show(request, managed, action, f"Recipe version {number} is withdrawn.")


@member_page
def publish_again(request: HttpRequest, edition: str) -> HttpResponse:
    """Show who moves, then publish by the adopted version of the recipe."""
    managed = managed_edition_for(request.user, edition)
    if request.method == "POST":
        action = partial(services.publish_version, edition=managed, now=read_clock(), by=request.user)
        told = f"The leaderboard is published by recipe version {managed.recipe_number}"
        return act_and_show(request, managed, action, f"{told}{if_mailed(', and its teams are notified')}.")
    return render(request, "leaderboard/recipe_versions/again.html", pages.again_page(managed))
