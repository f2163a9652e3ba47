"""Everything that changes a team: registration, the organizer's decision, its fields, its freezing, its withdrawal.

Who belongs to it changes in `members`. Every function is one transaction with one row in the audit trail.
"""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.urls import reverse
from django.utils import timezone

from portal.accounts.notice_kinds import NoticeKind
from portal.challenges.models import Edition
from portal.core import audit
from portal.jobs.services import NotPossible
from portal.teams import rules
from portal.teams.models import Membership, Team
from portal.teams.notices import notify_organizers, notify_team

FIELDS = ("name", "contact", "contact_email", "affiliation", "country", "is_academic")


class NameTaken(NotPossible):
    """Another team of the edition has this name."""


@transaction.atomic
def register_team(*, edition: Edition, by: Any, now: datetime, **fields: Any) -> Team:
    """A new team that waits for approval, owned by whoever registers it; `fields` as in `FIELDS`.

    Raises:
        NotPossible: registration is closed, the person has a team, or the name is taken.
    """
    edition = lock_edition(edition)
    _refuse(rules.registration_refusal(edition, team=active_team_of(by, edition), now=now))
    _refuse_name(edition, fields["name"])
    team = Team.objects.create(edition=edition, **fields)
    team.memberships.create(user=by, role=Membership.Role.OWNER)
    audit.record("team.registered", team, actor=by)
    notify_organizers(
        team=team,
        kind=NoticeKind.REGISTERED,
        subject=f"the team “{team}” registered",
        lines=[
            f"{by} registered the team “{team}” ({team.affiliation}). It submits nothing before you approved it.",
        ],
        url=reverse("teams:decide", args=[team.pk]),
        besides=by,
    )
    return team


@transaction.atomic
def change_team(*, team: Team, by: Any, **fields: Any) -> Team:
    """Other fields of a team; the name only until the first submission.

    Raises:
        NotPossible: the name is fixed or taken.
    """
    edition = lock_edition(team.edition)
    team = lock_team(team)
    changed = {name: value for name, value in fields.items() if getattr(team, name) != value}
    before = {name: getattr(team, name) for name in changed}
    if "name" in changed:
        _refuse(rules.renaming_refusal(team))
        _refuse_name(edition, changed["name"], besides=team)
    for name, value in changed.items():
        setattr(team, name, value)
    if changed:
        team.save(update_fields=list(changed))
        audit.record("team.changed", team, actor=by, changes=audit.changes(before, changed))
    return team


@transaction.atomic
def approve_team(*, team: Team, by: Any, now: datetime, note: str = "") -> Team:
    """Let a team take part; its first approval gives it the next number of the edition, such as T11.

    Raises:
        NotPossible: it is approved or withdrawn, or one of its members takes part in another team by now.
    """
    edition = lock_edition(team.edition)
    team = lock_team(team)
    _refuse(rules.approval_refusal(team))
    people = team.memberships.values("user")
    others = edition.teams.filter(state__in=rules.ACTIVE_STATES, memberships__user__in=people).exclude(pk=team.pk)
    if other := others.first():
        raise NotPossible(f"A member of “{team}” takes part in the team “{other}” by now; a person has one team only.")
    if team.number is None:
        team.number = (edition.teams.aggregate(highest=Max("number"))["highest"] or 0) + 1
    _decide(team, Team.State.APPROVED, note, now)
    audit.record("team.approved", team, actor=by, label=team.label, note=note)
    notify_team(
        team=team,
        kind=NoticeKind.MEMBERSHIP,
        subject=f"your team “{team}” takes part",
        lines=[
            f"The organizer approved your team “{team}”. In this edition it is known as {team.label}.",
            *_note_lines(note),
        ],
        url=team.get_absolute_url(),
    )
    return team


@transaction.atomic
def decline_team(*, team: Team, by: Any, now: datetime, note: str = "") -> Team:
    """Do not let a team take part; it may be approved later.

    Raises:
        NotPossible: it has submitted, or is declined or withdrawn.
    """
    team = lock_team(team)
    _refuse(rules.declining_refusal(team))
    _decide(team, Team.State.DECLINED, note, now)
    audit.record("team.declined", team, actor=by, note=note)
    notify_team(
        team=team,
        kind=NoticeKind.MEMBERSHIP,
        subject=f"your team “{team}” was declined",
        lines=[f"The organizer declined your team “{team}”.", *_note_lines(note)],
        url=team.get_absolute_url(),
    )
    return team


@transaction.atomic
def withdraw_team(*, team: Team, by: Any) -> Team:
    """Take a team out of its edition, by its owner or the organizer; what it submitted stays.

    Raises:
        NotPossible: it is withdrawn already.
    """
    team = lock_team(team)
    if team.state == Team.State.WITHDRAWN:
        raise NotPossible(f"The team “{team}” is withdrawn already.")
    team.state = Team.State.WITHDRAWN
    team.save(update_fields=["state"])
    team.invitations.filter(accepted_at=None, revoked_at=None).update(revoked_at=timezone.now())
    audit.record("team.withdrawn", team, actor=by)
    notify_team(
        team=team,
        kind=NoticeKind.MEMBERSHIP,
        subject=f"your team “{team}” was withdrawn",
        lines=[f"{by} withdrew the team “{team}”. It can submit nothing more; what it submitted stays."],
        url=team.get_absolute_url(),
    )
    return team


@transaction.atomic
def freeze_members(*, team: Team, now: datetime) -> Team:
    """From now on members neither join nor leave by themselves; nothing happens where that holds already.

    Open invitations are revoked, for nobody could accept them.
    """
    frozen = Team.objects.filter(pk=team.pk, members_frozen_at=None).update(members_frozen_at=now)
    team.refresh_from_db(fields=["members_frozen_at"])
    if frozen:
        members = [str(membership.user) for membership in team.memberships.select_related("user")]
        waiting = team.invitations.filter(accepted_at=None, revoked_at=None, expires_at__gt=now)
        revoked = list(waiting.values_list("email", flat=True))
        waiting.update(revoked_at=now)
        audit.record("team.members_frozen", team, members=members, revoked_invitations=revoked)
    return team


@transaction.atomic
def release_members(*, team: Team, by: Any) -> Team:
    """Let members join and leave again, until the next submission.

    Raises:
        NotPossible: they are not frozen.
    """
    released = Team.objects.filter(pk=team.pk, members_frozen_at__isnull=False).update(members_frozen_at=None)
    if not released:
        raise NotPossible(f"The members of “{team}” are not fixed.")
    team.refresh_from_db(fields=["members_frozen_at"])
    audit.record("team.members_released", team, actor=by)
    return team


def lock_edition(edition: Edition) -> Edition:
    """Two who register, join or are approved at once wait for each other here; within a transaction."""
    return Edition.objects.select_for_update().get(pk=edition.pk)


def lock_team(team: Team) -> Team:
    """The team as it stands now, held until the transaction ends."""
    return Team.objects.select_for_update(of=("self",)).select_related("edition").get(pk=team.pk)


def active_team_of(user: Any, edition: Edition) -> Team | None:
    """The team in which a person takes part; a declined or withdrawn one binds nobody."""
    return edition.teams.filter(state__in=rules.ACTIVE_STATES, memberships__user=user).first()


def _decide(team: Team, state: Team.State, note: str, now: datetime) -> None:
    team.state, team.state_note, team.decided_at = state, note, now
    team.save(update_fields=["state", "state_note", "decided_at", "number"])


def _note_lines(note: str) -> list[str]:
    return [f"The organizer wrote: {note}"] if note else []


def _refuse_name(edition: Edition, name: str, *, besides: Team | None = None) -> None:
    taken = (team for team in edition.teams.all() if _looks(team.name) == _looks(name))
    if any(team != besides for team in taken):
        raise NameTaken(f"Another team of this edition is called “{name}”. Choose another name.")


def _looks(name: str) -> str:
    """The same for names that a reader takes for one another: capitals and the Unicode form make no other team."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _refuse(sentence: str) -> None:
    if sentence:
        raise NotPossible(sentence)
