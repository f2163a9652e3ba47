"""How teams are put away, by the organizers of their edition; what stands in the way, the submissions say."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from portal.challenges.removal import edition_trail
from portal.core.removal import RemovableKind, declare_kind, declare_owned, declare_rows
from portal.jobs.models import Job
from portal.teams import rules
from portal.teams.models import DataAcceptance, Invitation, Membership, Team


def _organized_teams(user: Any) -> QuerySet[Team]:
    rows = Team.objects.select_related("edition")
    return rows if user.is_staff else rows.filter(edition__organizers=user)


declare_owned(Job, by=Team, find=lambda teams: Q(kind="send-notice", parameters__team__in=teams))
declare_rows(Team, "teams")
declare_rows(Membership, "memberships")
declare_rows(Invitation, "invitations")
declare_rows(DataAcceptance, "acceptances of the terms of the data")
declare_kind(
    RemovableKind(
        name="teams",
        word="team",
        model=Team,
        owned=_organized_teams,
        lookup="pk",
        edit=lambda team: reverse("teams:edit", args=[team.pk]),
        name_problem=rules.renaming_problem,
        archiving_note=lambda _: "Its systems and submissions stay in their lists and on the leaderboard.",
        edition=lambda team: team.edition,
        trail=lambda team: edition_trail(team.edition),
    )
)
