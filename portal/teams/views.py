"""Pages of teams: who they are and who belongs to them. A team that is not one's own looks like none at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.access import member_page, open_page
from portal.accounts.addresses import remember_invited
from portal.jobs.services import NotPossible
from portal.teams import members, pages, selectors, services
from portal.teams.forms import DecisionForm, InvitationForm, TeamForm
from portal.teams.rules import InvitationState, invitation_state


@require_safe
@member_page
def team_detail(request: HttpRequest, pk: int) -> HttpResponse:
    return _team_page(request, pk, InvitationForm())


@member_page
def edit_team(request: HttpRequest, pk: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    form = TeamForm(request.POST if request.method == "POST" else None, team=team)
    changed = form.save(by=request.user) if form.is_valid() else None
    if changed is not None:
        messages.success(request, "The team is saved.")
        return redirect(changed)
    context = {"form": form, "team": team, "edition": team.edition}
    return render(request, "teams/edit.html", context, status=422 if form.errors else 200)


@member_page
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Approve or decline a team, with a note to it."""
    team = selectors.managed_team_for(request.user, pk)
    form = DecisionForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and _done(request, partial(form.decide, team=team, by=request.user, now=timezone.now())):
        return redirect("editions:teams", team.edition.name)
    context = pages.team_page(request.user, team, timezone.now()) | {"form": form}
    return render(request, "teams/decide.html", context, status=422 if form.is_bound else 200)


@member_page
@require_POST
def invite(request: HttpRequest, pk: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    form = InvitationForm(request.POST)
    invitation = form.send(team=team, by=request.user, now=timezone.now()) if form.is_valid() else None
    if invitation is None:
        return _team_page(request, pk, form)
    messages.success(request, f"An invitation is on its way to {invitation.email}.")
    return redirect(team)


@member_page
@require_POST
def revoke_invitation(request: HttpRequest, pk: int, invitation: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.invitation_of(team, invitation)
    deed = partial(members.revoke_invitation, invitation=chosen, by=request.user, now=timezone.now())
    return _act(request, team, deed, f"The invitation to {chosen.email} is revoked; its link leads nowhere now.")


@member_page
@require_POST
def resend_invitation(request: HttpRequest, pk: int, invitation: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.invitation_of(team, invitation)
    deed = partial(members.invite_again, invitation=chosen, by=request.user, now=timezone.now())
    return _act(request, team, deed, f"A new invitation is on its way to {chosen.email}; the earlier link ended.")


@open_page
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Where the link of an invitation leads: whoever has no account makes one and comes back here."""
    chosen, now = selectors.invitation_by(secret), timezone.now()
    context: dict[str, Any] = {"invitation": chosen, "team": chosen.team, "edition": chosen.team.edition}
    context["is_open"] = invitation_state(chosen, now) is InvitationState.OPEN
    if not request.user.is_authenticated:
        if context["is_open"]:
            remember_invited(request, chosen.email)
        return render(request, "teams/invitation.html", context)
    if request.method == "POST" and _done(
        request, partial(members.accept_invitation, invitation=chosen, by=request.user, now=now)
    ):
        messages.success(request, f"You are a member of {chosen.team} now.")
        return redirect(chosen.team)
    context["is_member"] = not context["is_open"] and selectors.membership_for(request.user, chosen.team) is not None
    context["refusal"] = members.acceptance_refusal(chosen, request.user, now)
    return render(request, "teams/invitation.html", context)


@member_page
@require_POST
def remove_member(request: HttpRequest, pk: int, membership: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.member_of(team, membership)
    is_organizer = team.edition.organizers.filter(pk=request.user.pk).exists()
    deed = partial(members.remove_member, membership=chosen, by=request.user, is_organizer=is_organizer)
    return _act(request, team, deed, f"{chosen.user} does not belong to the team any more.")


@member_page
@require_POST
def transfer(request: HttpRequest, pk: int, membership: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.member_of(team, membership)
    deed = partial(members.transfer_team, membership=chosen, by=request.user)
    return _act(request, team, deed, f"{chosen.user} owns the team now.")


@member_page
@require_POST
def leave(request: HttpRequest, pk: int) -> HttpResponse:
    team = selectors.joined_team_for(request.user, pk)
    if not _done(request, partial(members.leave_team, team=team, by=request.user)):
        return redirect(team)
    messages.success(request, f"You left the team {team}.")
    return redirect(team.edition)


@member_page
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    return _act(request, team, partial(services.withdraw_team, team=team, by=request.user), "The team is withdrawn.")


@member_page
@require_POST
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """The organizer lets members join and leave again until the next submission."""
    team = selectors.managed_team_for(request.user, pk)
    deed = partial(services.release_members, team=team, by=request.user)
    return _act(request, team, deed, "Members can join and leave until the next submission.")


def _team_page(request: HttpRequest, pk: int, form: InvitationForm) -> HttpResponse:
    team = selectors.team_for(request.user, pk)
    context = pages.team_page(request.user, team, timezone.now()) | {"form": form}
    return render(request, "teams/detail.html", context, status=422 if form.errors else 200)


def _act(request: HttpRequest, team: Any, deed: Callable[[], Any], said: str) -> HttpResponse:
    """Do it and say so, or say why it is not possible; either way on the page of the team."""
    if _done(request, deed):
        messages.success(request, said)
    return redirect(team)


def _done(request: HttpRequest, deed: Callable[[], Any]) -> bool:
    try:
        deed()
    except NotPossible as reason:
        messages.error(request, str(reason))
        return False
    return True
