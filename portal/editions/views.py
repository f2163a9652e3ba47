"""Pages of editions: the list, one edition with its rules, its form, its copy, its data, its teams, its audit log."""

from __future__ import annotations

import hashlib
from functools import partial
from itertools import chain, count
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from common.errors import NotPossible, Refused
from common.stored_zip import count_bytes
from portal.accounts.access import member_action, member_page, member_read, open_page, open_read, organizer_page
from portal.challenges import selectors
from portal.challenges.data_files import list_members, read_data_file, read_everything
from portal.challenges.models import DataFile, Edition
from portal.challenges.services import prepare_data_files
from portal.core.downloads import as_download, csv_response
from portal.core.fields import posted, show_form
from portal.core.signed_urls import attached_response
from portal.editions import audit_log, pages
from portal.editions.forms import CopyForm, EditionForm
from portal.editions.selectors import free_title
from portal.teams import services
from portal.teams.forms import TeamForm
from portal.teams.models import Team
from portal.teams.pages import team_rows
from portal.teams.rules import INVITATION_LASTS, link_problem, registration_problem
from portal.teams.selectors import data_files_for, find_chosen_team, find_registration_link, registration_code
from portal.teams.services import find_active_team

PAGE_SIZE = 25
EVENTS_ON_A_PAGE = 20


@open_read
def edition_list(request: HttpRequest) -> HttpResponse:
    """Show the editions that this visitor may see, newest first."""
    seen = selectors.editions_for(request.user)
    listed = seen.filter(archived_at=None)
    page = Paginator(listed, PAGE_SIZE).get_page(request.GET.get("page"))
    rows = pages.edition_rows(request.user, list(page.object_list), timezone.now())
    context = {"page": page, "rows": rows, "has_archived": not rows and seen.exists()}
    return render(request, "editions/list.html", context)


@open_read
def edition_detail(request: HttpRequest, edition: str) -> HttpResponse:
    chosen = selectors.edition_for(request.user, edition)
    return render(request, "editions/detail.html", pages.edition_page(request.user, chosen, timezone.now()))


@open_read
def data(request: HttpRequest, edition: str) -> HttpResponse:
    """Show what there is for teams, and for those who may have it the files."""
    chosen = selectors.edition_for(request.user, edition)
    return render(request, "editions/data.html", pages.data_page(request, chosen, timezone.now()))


@member_action
def accept_data(request: HttpRequest, edition: str) -> HttpResponse:
    """Accept the terms that the page showed."""
    chosen = selectors.edition_for(request.user, edition)
    try:
        services.accept_data(edition=chosen, by=request.user, now=timezone.now(), text=request.POST.get("terms", ""))
        messages.success(request, "You have accepted the terms. The files are below.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("editions:data", edition=chosen.name)


@member_action
def prepare_data(request: HttpRequest, edition: str) -> HttpResponse:
    """Make the files for teams again."""
    chosen = selectors.managed_edition_for(request.user, edition)
    prepare_data_files(edition=chosen, by=request.user)
    return redirect("editions:data", edition=chosen.name)


@member_read
def data_file(request: HttpRequest, edition: str, file: str) -> HttpResponse:
    """Return a file for teams, or one archive of all, whole or a part of it."""
    file = file.replace("\0", "")  # PostgreSQL refuses to look for it
    chosen = selectors.edition_for(request.user, edition)
    files = data_files_for(request.user, chosen)
    if file == pages.CHECKSUMS and files:
        lines = "".join(pages.checksum_lines(files))
        return as_download(HttpResponse(lines, content_type="text/plain; charset=utf-8"), file)
    try:
        if file == pages.name_archive(chosen) and files:
            return send_everything(request, file, list(files))
        return send_data_file(request, get_object_or_404(files, name=file))
    except Refused as busy:
        return HttpResponse(
            str(busy), status=busy.status, content_type="text/plain; charset=utf-8", headers=busy.headers
        )


def send_data_file(request: HttpRequest, file: DataFile) -> HttpResponse:
    """Return the bytes that were asked for of a file.

    Raises:
        Refused: as many download as may at a time.
    """
    answer = attached_response(request, file.name, file.bytes, file.sha256, partial(read_data_file, file))
    return cast("HttpResponse", answer)


def send_everything(request: HttpRequest, name: str, files: list[DataFile]) -> HttpResponse:
    """Send the bytes that were asked for of one archive of these files.

    Raises:
        Refused: as many download as may at a time.
    """
    digest = hashlib.sha256("".join(pages.checksum_lines(files)).encode()).hexdigest()
    size = count_bytes(partial(list_members, files))
    return cast("HttpResponse", attached_response(request, name, size, digest, partial(read_everything, files)))


@open_read
def recipe(request: HttpRequest, edition: str) -> HttpResponse:
    """Return the recipe as a TOML file."""
    chosen = selectors.edition_for(request.user, edition)
    response = HttpResponse(selectors.export_recipe(chosen), content_type="application/toml; charset=utf-8")
    return as_download(response, f"{chosen.name}.toml")


def _sent(request: HttpRequest) -> tuple[Any, ...]:
    return (request.POST, request.FILES) if request.method == "POST" else ()


def go_on(request: HttpRequest, place: Edition | Team, success: str) -> HttpResponse:
    """Show what was made, and say so there."""
    messages.success(request, success)
    return redirect(place)


def warn_of_past_deadline(request: HttpRequest, edition: Edition) -> None:
    """Say of a deadline that was just given that it is over, which is seldom meant."""
    closed = edition.submissions_close_at
    if closed is not None and closed < timezone.now():
        messages.warning(request, f"The deadline {closed:%Y-%m-%d %H:%M} UTC is in the past.")


@member_page
def edit_edition(request: HttpRequest, edition: str) -> HttpResponse:
    chosen = selectors.managed_edition_for(request.user, edition)
    deadline = chosen.submissions_close_at
    form = EditionForm(*_sent(request), user=request.user, edition=chosen)
    changed = form.save() if form.is_valid() else None
    if changed is not None:
        if changed.submissions_close_at != deadline:
            warn_of_past_deadline(request, changed)
        return go_on(request, changed, "The edition is saved.")
    return show_form(request, "editions/edit.html", form, edition=chosen)


@organizer_page
def copy_edition(request: HttpRequest, edition: str) -> HttpResponse:
    chosen = selectors.managed_edition_for(request.user, edition)
    names = chain([f"{chosen.name[:35]}-copy"], (f"{chosen.name[:32]}-copy-{number}" for number in count(2)))
    free = next(name for name in names if not Edition.objects.filter(name=name).exists())
    initial = {"title": free_title(f"{chosen.title} (copy)", request.user), "name": free}
    form = CopyForm(posted(request), initial=initial)
    copied = form.save(edition=chosen, by=request.user) if form.is_valid() else None
    if copied is not None:
        return go_on(request, copied, "The copy is made; only its organizers see it.")
    return show_form(request, "editions/copy.html", form, edition=chosen)


@open_page
def register(request: HttpRequest, edition: str) -> HttpResponse:
    """Register a team; where that is not possible the page says why. The link of an organizer opens unlisted ones."""
    code, now = request.GET.get("invitation", ""), timezone.now()
    link = find_registration_link(edition, code) if code else None
    problem = link_problem(link, now)
    seen = selectors.editions_for(request.user).filter(name=edition).first()
    if code and (not request.user.is_authenticated or (problem and seen is None)):
        context = {"link": link, "problem": problem, "seen": seen}
        return render(request, "teams/registration_link.html", context, status=404 if problem else 200)
    if not request.user.is_authenticated:
        raise Http404
    is_invited = link is not None and not problem
    chosen = link.edition if link is not None and is_invited else selectors.edition_for(request.user, edition)
    refusal = registration_problem(chosen, team=find_active_team(request.user, chosen), now=now, is_invited=is_invited)
    form = TeamForm(posted(request), edition=chosen, contact=request.user)
    given = {"edition": chosen, "by": request.user, "now": now, "is_invited": is_invited}
    team = form.register(**given) if form.is_valid() else None
    if team is not None:
        return go_on(request, team, f"The team {team} is registered. Invite its members now.")
    return show_form(request, "teams/register.html", form, edition=chosen, refusal=refusal)


@member_read
def team_list(request: HttpRequest, edition: str) -> HttpResponse:
    chosen, now = selectors.managed_edition_for(request.user, edition), timezone.now()
    address = request.build_absolute_uri(chosen.get_absolute_url())
    code = urlencode({"invitation": registration_code(chosen, by=request.user, now=now)})
    link = request.build_absolute_uri(f"{reverse('editions:register', args=[chosen.name])}?{code}")
    context = {"edition": chosen, "rows": team_rows(chosen), "address": address, "link": link}
    return render(request, "editions/teams.html", context | {"link_ends_at": now + INVITATION_LASTS})


@member_action
def replace_link(request: HttpRequest, edition: str) -> HttpResponse:
    """End the links that invite to register a team; the page then shows a new one."""
    chosen = selectors.managed_edition_for(request.user, edition)
    services.replace_registration_link(edition=chosen, by=request.user)
    messages.success(request, "The earlier links no longer work. The new one is under “Invite a team by a link”.")
    return redirect("editions:teams", chosen.name)


@member_read
def audit(request: HttpRequest, edition: str) -> HttpResponse:
    """Who did what in an edition, of one of its teams on request (``?team=…``)."""
    chosen = selectors.managed_edition_for(request.user, edition)
    team = find_chosen_team(chosen, request.GET.get("team", ""))
    page = Paginator(audit_log.select_events(chosen, team), EVENTS_ON_A_PAGE).get_page(request.GET.get("page"))
    rows = [(event, audit_log.describe_action(event), audit_log.describe_details(event)) for event in page.object_list]
    context = {"edition": chosen, "team": team, "teams": chosen.teams.all(), "page": page, "rows": rows}
    return render(request, "editions/audit.html", context)


@member_read
def audit_csv(request: HttpRequest, edition: str) -> HttpResponse:
    """Return the whole trail, or that of one team, as a CSV file."""
    chosen = selectors.managed_edition_for(request.user, edition)
    team = find_chosen_team(chosen, request.GET.get("team", ""))
    events = audit_log.select_events(chosen, team).iterator(chunk_size=500)
    return csv_response(f"audit-{chosen.name}.csv", audit_log.export_events(events))
