"""Pages of editions: the list, one edition with its rules, its form, its copy, its teams and its audit trail."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.accounts.access import member_page, open_page, organizer_page
from portal.challenges import selectors
from portal.challenges.edition_forms import CopyForm, EditionForm, shipped_recipes
from portal.core.exports import csv_response
from portal.core.panels import panels_of
from portal.teams import audit_trail, pages
from portal.teams.forms import TeamForm
from portal.teams.rules import registration_refusal
from portal.teams.selectors import chosen_team_of
from portal.teams.services import active_team_of

PAGE_SIZE = 25
EVENTS_ON_A_PAGE = 25


@require_safe
@open_page
def edition_list(request: HttpRequest) -> HttpResponse:
    """The editions that this visitor may see, newest first."""
    page = Paginator(selectors.editions_for(request.user), PAGE_SIZE).get_page(request.GET.get("page"))
    rows = pages.edition_rows(request.user, list(page.object_list), timezone.now())
    return render(request, "editions/list.html", {"page": page, "rows": rows})


@require_safe
@open_page
def edition_detail(request: HttpRequest, edition: str) -> HttpResponse:
    chosen = selectors.edition_for(request.user, edition)
    page = pages.edition_page(request.user, chosen, timezone.now())
    return render(request, "editions/detail.html", page | {"panels": panels_of("edition", request, chosen)})


@require_safe
@open_page
def recipe(request: HttpRequest, edition: str) -> HttpResponse:
    """The recipe as a TOML file."""
    chosen = selectors.edition_for(request.user, edition)
    response = HttpResponse(selectors.recipe_text_of(chosen), content_type="application/toml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{chosen.name}.toml"'
    return response


@organizer_page
def new_edition(request: HttpRequest) -> HttpResponse:
    posted = (request.POST, request.FILES) if request.method == "POST" else ()
    form = EditionForm(*posted, user=request.user)
    made = form.save() if form.is_valid() else None
    if made is not None:
        messages.success(request, f"The edition {made} is made.")
        return redirect(made)
    context = {"form": form, "recipes": shipped_recipes()}
    return render(request, "editions/new.html", context, status=422 if form.errors else 200)


@member_page
def edit_edition(request: HttpRequest, edition: str) -> HttpResponse:
    chosen = selectors.managed_edition_for(request.user, edition)
    posted = (request.POST, request.FILES) if request.method == "POST" else ()
    form = EditionForm(*posted, user=request.user, edition=chosen)
    changed = form.save() if form.is_valid() else None
    if changed is not None:
        messages.success(request, "The edition is saved.")
        return redirect(changed)
    context = {"form": form, "edition": chosen}
    return render(request, "editions/edit.html", context, status=422 if form.errors else 200)


@organizer_page
def copy_edition(request: HttpRequest, edition: str) -> HttpResponse:
    chosen = selectors.managed_edition_for(request.user, edition)
    initial = {"title": f"{chosen.title} (copy)"[:120], "name": f"{chosen.name[:35]}-copy"}
    form = CopyForm(request.POST if request.method == "POST" else None, initial=initial)
    copied = form.save(edition=chosen, by=request.user) if form.is_valid() else None
    if copied is not None:
        messages.success(request, "The copy is made; only its organizers see it.")
        return redirect(copied)
    context = {"form": form, "edition": chosen}
    return render(request, "editions/copy.html", context, status=422 if form.errors else 200)


@member_page
def register(request: HttpRequest, edition: str) -> HttpResponse:
    """Register a team; where that is not possible the page says why."""
    chosen, now = selectors.edition_for(request.user, edition), timezone.now()
    refusal = registration_refusal(chosen, team=active_team_of(request.user, chosen), now=now)
    form = TeamForm(request.POST if request.method == "POST" else None, contact=request.user)
    team = form.register(edition=chosen, by=request.user, now=now) if form.is_valid() else None
    if team is not None:
        messages.success(request, f"The team {team} is registered. Invite its members now.")
        return redirect(team)
    context = {"form": form, "edition": chosen, "refusal": refusal}
    return render(request, "teams/register.html", context, status=422 if form.errors else 200)


@require_safe
@member_page
def team_list(request: HttpRequest, edition: str) -> HttpResponse:
    chosen = selectors.managed_edition_for(request.user, edition)
    return render(request, "editions/teams.html", {"edition": chosen, "rows": pages.team_rows(chosen)})


@require_safe
@member_page
def audit(request: HttpRequest, edition: str) -> HttpResponse:
    """Who did what in an edition, of one of its teams on request (``?team=…``)."""
    chosen = selectors.managed_edition_for(request.user, edition)
    team = chosen_team_of(chosen, request.GET.get("team", ""))
    page = Paginator(audit_trail.trail_of(chosen, team), EVENTS_ON_A_PAGE).get_page(request.GET.get("page"))
    rows = [(event, audit_trail.deed_of(event), audit_trail.details_of(event)) for event in page.object_list]
    context = {"edition": chosen, "team": team, "teams": chosen.teams.all(), "page": page, "rows": rows}
    return render(request, "editions/audit.html", context)


@require_safe
@member_page
def audit_csv(request: HttpRequest, edition: str) -> HttpResponse:
    """The whole trail, or that of one team, as a CSV file."""
    chosen = selectors.managed_edition_for(request.user, edition)
    team = chosen_team_of(chosen, request.GET.get("team", ""))
    events = audit_trail.trail_of(chosen, team).iterator(chunk_size=500)
    return csv_response(f"audit-{chosen.name}.csv", audit_trail.trail_rows(events))
