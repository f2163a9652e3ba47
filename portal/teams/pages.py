"""What the pages of teams show: who they are, who belongs to them, and who may act."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.urls import reverse

from portal.challenges.models import Edition
from portal.challenges.rules import submission_problem
from portal.teams import rules, selectors
from portal.teams.models import Membership, Team
from portal.teams.rules import InvitationState


def team_page(user: Any, team: Team, now: datetime) -> dict[str, Any]:
    """Return everything on the page of a team, for its members and its organizers."""
    memberships = list(team.memberships.select_related("user"))
    own = next((membership for membership in memberships if membership.user_id == user.pk), None)
    is_owner = own is not None and own.role == Membership.Role.OWNER
    is_organizer = team.edition.organizers.filter(pk=user.pk).exists()
    steers = is_owner or is_organizer
    needs_data = own is not None and selectors.needs_data(user, team)
    return {
        "team": team,
        "edition": team.edition,
        "members": [_member_row(one, own, team, steers, is_organizer=is_organizer) for one in memberships],
        "invitations": _invitation_rows(team, now) if steers else [],
        "ended_invitations": selectors.list_ended_invitations(team) if steers else [],
        "membership": own,
        "is_owner": is_owner,
        "is_organizer": is_organizer,
        "steers": steers,
        "may_invite": steers and not rules.joining_problem(team),
        "may_hand_over": is_owner and len(memberships) > 1 and not rules.frozen_problem(team),
        "may_leave": own is not None and not rules.leaving_problem(team, is_owner=is_owner),
        "may_approve": is_organizer and not rules.approval_problem(team),
        "may_decline": is_organizer and not rules.declining_problem(team),
        "may_decide": is_organizer and not (rules.approval_problem(team) and rules.declining_problem(team)),
        "asking_problem": rules.asking_problem(team, now),
        "may_withdraw": steers and team.state != Team.State.WITHDRAWN,
        "may_submit": team.state == Team.State.APPROVED,
        "needs_data": needs_data,
        "is_first": needs_data and not team.systems.exists(),
        "closed": submission_problem(team.edition, now),
        "badge": BADGES[team.state],
    }


BADGES = {"waiting": "waiting", "approved": "succeeded", "declined": "failed", "withdrawn": "cancelled"}


def team_rows(edition: Edition) -> list[tuple[Team, str]]:
    """Return the teams of an edition with the badge of their state."""
    return [(team, BADGES[team.state]) for team in selectors.list_teams(edition)]


def _member_row(
    one: Membership, own: Membership | None, team: Team, steers: bool, *, is_organizer: bool
) -> dict[str, Any]:
    """Return a member with what the visitor may do with them."""
    removable = steers and not rules.removing_problem(team, one, is_organizer=is_organizer)
    return {
        "membership": one,
        "is_self": one == own,
        "may_remove": removable and one != own,
        "may_own": steers and one.role != Membership.Role.OWNER,
    }


def _invitation_rows(team: Team, now: datetime) -> list[dict[str, Any]]:
    states = {one: rules.invitation_state(one, now) for one in team.invitations.select_related("invited_by")}
    shown = (InvitationState.OPEN, InvitationState.EXPIRED)
    return [{"invitation": one, "state": state} for one, state in states.items() if state in shown]


def team_trail(team: Team) -> list[tuple[str, str]]:
    """Return a team and the pages above its own, each with its name and address."""
    editions = ("Editions", reverse("editions:list"))
    return [editions, *((str(page), page.get_absolute_url()) for page in (team.edition, team))]
