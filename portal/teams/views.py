"""Pages of teams: who they are and who belongs to them. A team that is not one's own looks like none at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from portal.accounts.access import member_action, member_page, member_read, open_page
from portal.core.confirmation import ask_first
from portal.core.mail import if_mailed
from portal.jobs.services import NotPossible
from portal.teams import pages, selectors, services
from portal.teams.forms import DecisionForm, InvitationForm, TeamForm
from portal.teams.models import Invitation, Membership, Team
from portal.teams.rules import InvitationState, invitation_state, joining_problem, leaving_problem, removing_problem


@member_read
def team_detail(request: HttpRequest, pk: int) -> HttpResponse:
    return _team_page(request, pk, InvitationForm())


@member_page
def edit_team(request: HttpRequest, pk: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    form = TeamForm(request.POST if request.method == "POST" else None, edition=team.edition, team=team)
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
    if form.is_valid() and _done(request, form.decide, team=team, now=timezone.now()):
        what = "approved" if form.cleaned_data["decision"] == "approve" else "declined"
        messages.success(request, f"The team {team} is {what}{if_mailed(' and gets a mail')}.")
        return redirect("editions:teams", team.edition.name)
    context = pages.team_page(request.user, team, timezone.now()) | {"form": form}
    return render(request, "teams/decide.html", context, status=422 if form.is_bound else 200)


@member_action
def invite(request: HttpRequest, pk: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    form = InvitationForm(request.POST)
    invitation = form.send(team=team, by=request.user, now=timezone.now()) if form.is_valid() else None
    return _team_page(request, pk, form) if invitation is None else _show_invited(request, invitation)


def _show_invited(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    """Say that the invitation is mailed; where no mail is sent, the page shows its link, this once."""
    if invitation.address:
        return render(request, "teams/invited.html", {"invitation": invitation, "edition": invitation.team.edition})
    messages.success(request, f"An invitation is on its way to {invitation.email}; its link alone is valid.")
    return redirect(invitation.team)


@member_action
def revoke_invitation(request: HttpRequest, pk: int, invitation: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.get_invitation(team, invitation)
    said = f"The invitation to {chosen.email} is revoked; its link is no longer valid."
    return _act(request, team, said, services.revoke_invitation, invitation=chosen, now=timezone.now())


@member_action
def resend_invitation(request: HttpRequest, pk: int, invitation: int) -> HttpResponse:
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.get_invitation(team, invitation)
    try:
        return _show_invited(request, services.invite_again(invitation=chosen, by=request.user, now=timezone.now()))
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect(team)


@open_page
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the page that the link of an invitation leads to: people without an account make one and come back here."""
    chosen, now = selectors.invitation_by(secret), timezone.now()
    context: dict[str, Any] = {"invitation": chosen, "team": chosen.team, "edition": chosen.team.edition}
    context["is_open"] = invitation_state(chosen, now) is InvitationState.OPEN
    if not request.user.is_authenticated:
        context["closed"] = joining_problem(chosen.team)
        return render(request, "teams/invitation.html", context)
    accept = services.accept_invitation
    if request.method == "POST" and _done(request, accept, invitation=chosen, now=now):
        messages.success(request, f"You are a member of {chosen.team} now.")
        return redirect(chosen.team)
    context["is_member"] = not context["is_open"] and selectors.membership_for(request.user, chosen.team) is not None
    context["refusal"] = services.acceptance_problem(chosen, request.user, now)
    return render(request, "teams/invitation.html", context)


@member_page
def remove_member(request: HttpRequest, pk: int, membership: int) -> HttpResponse:
    """Ask, then take a member out."""
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.get_member(team, membership)
    is_organizer = team.edition.organizers.filter(pk=request.user.pk).exists()
    if request.method != "POST":
        problem = removing_problem(team, chosen, is_organizer=is_organizer)
        question = f"Remove {chosen.user} from {team}?"
        return _ask(request, team, "remove_member", question, action="Remove", problem=problem, person=chosen.user)
    said = f"{chosen.user} does not belong to the team any more."
    return _act(request, team, said, services.remove_member, membership=chosen, is_organizer=is_organizer)


@member_page
def transfer(request: HttpRequest, pk: int, membership: int) -> HttpResponse:
    """Ask, then make a member the owner."""
    team = selectors.steered_team_for(request.user, pk)
    chosen = selectors.get_member(team, membership)
    if request.method != "POST":
        return _ask(request, team, "hand_over", f"Hand {team} over to {chosen.user}?", action="Hand over")
    said = f"{chosen.user} owns the team now."
    return _act(request, team, said, services.transfer_team, membership=chosen)


@member_page
def leave(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then leave."""
    team = selectors.joined_team_for(request.user, pk)
    if request.method != "POST":
        own = selectors.membership_for(request.user, team)
        problem = leaving_problem(team, is_owner=own is not None and own.role == Membership.Role.OWNER)
        return _ask(request, team, "leave", f"Leave {team}?", action="Leave the team", problem=problem)
    if not _done(request, services.leave_team, team=team):
        return redirect(team)
    messages.success(request, f"You left the team {team}.")
    return redirect(team.edition)


@member_page
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what goes with a withdrawal; a post withdraws."""
    team = selectors.steered_team_for(request.user, pk)
    if request.method != "POST":
        problem = "This team is withdrawn already." if team.state == Team.State.WITHDRAWN else ""
        return _ask(request, team, "withdraw", f"Withdraw {team}?", action="Withdraw the team", problem=problem)
    return _act(request, team, "The team is withdrawn.", services.withdraw_team, team=team)


@member_action
def ask_again(request: HttpRequest, pk: int) -> HttpResponse:
    """A declined team waits for approval again."""
    team = selectors.steered_team_for(request.user, pk)
    said = "The organizer is asked again."
    return _act(request, team, said, services.ask_again, team=team, now=timezone.now())


@member_action
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """The organizer lets members join and leave again until the next accepted submission."""
    team = selectors.managed_team_for(request.user, pk)
    said = "Members can join and leave until the next submission is accepted."
    return _act(request, team, said, services.release_members, team=team)


def _team_page(request: HttpRequest, pk: int, form: InvitationForm) -> HttpResponse:
    team = selectors.team_for(request.user, pk)
    context = pages.team_page(request.user, team, timezone.now()) | {"form": form}
    return render(request, "teams/detail.html", context, status=422 if form.errors else 200)


def _ask(request: HttpRequest, team: Team, page: str, question: str, **given: Any) -> HttpResponse:
    return ask_first(request, f"teams/{page}.html", question, trail=pages.team_trail(team), team=team, **given)


def _act(request: HttpRequest, team: Any, said: str, service: Callable[..., Any], /, **given: Any) -> HttpResponse:
    """Do it and say so, or say why it is not possible; either way on the page of the team."""
    if _done(request, service, **given):
        messages.success(request, said)
    return redirect(team)


def _done(request: HttpRequest, service: Callable[..., Any], /, **given: Any) -> bool:
    try:
        service(by=request.user, **given)
    except NotPossible as reason:
        messages.error(request, str(reason))
        return False
    return True
