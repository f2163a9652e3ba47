"""What a team and its people may do, and when. Every rule is a function of its arguments, `now` included.

A rule about an action gives the sentence that says why it is not possible, or "" where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from portal.challenges.rules import ARCHIVED, Phase, moment, registration_phase

if TYPE_CHECKING:
    from portal.accounts.models import User
    from portal.challenges.models import Edition
    from portal.teams.models import Invitation, Membership, Team

INVITATION_LASTS = timedelta(days=14)
ASKED_AGAIN_AFTER = timedelta(days=1)
ACTIVE_STATES = ("waiting", "approved")


class InvitationState(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    REVOKED = "revoked"
    EXPIRED = "expired"


@dataclass(frozen=True)
class RegistrationLink:
    """A link of an organizer that opens the registration of a team.

    Attributes:
        invited_by: None where that account is gone.
        number: that of the edition when the link was made.
    """

    edition: Edition
    invited_by: User | None
    number: int
    ends_at: datetime


def invitation_state(invitation: Invitation, now: datetime) -> InvitationState:
    """Return whether an invitation can still be accepted; at `expires_at` it no longer can."""
    if invitation.accepted_at is not None:
        return InvitationState.ACCEPTED
    if invitation.revoked_at is not None:
        return InvitationState.REVOKED
    return InvitationState.OPEN if now < invitation.expires_at else InvitationState.EXPIRED


def link_problem(link: RegistrationLink | None, now: datetime) -> str:
    """Return why the link of an organizer opens no registration; None is one that the portal did not make."""
    if link is None:
        return (
            "The link is not complete: perhaps its end was lost when it was copied. Copy all of it from the message "
            "that you got, or ask the organizer who sent it for a new one."
        )
    if link.number != link.edition.registration_link_number:
        return "The organizer has replaced this link. Ask for the new one."
    if now >= link.ends_at:
        return f"This link ended on {moment(link.ends_at)}. Ask the organizer who sent it for a new one."
    return ARCHIVED if link.edition.archived_at is not None else ""


def registration_problem(edition: Edition, *, team: Team | None, now: datetime, is_invited: bool = False) -> str:
    """Return why a person who belongs to `team` (None: to no active one) cannot register a team.

    Args:
        is_invited: by the link of an organizer, which counts before the edition is listed and outside of its dates.
    """
    if team is not None:
        return f"You belong to the team “{team}” of this edition already; a person takes part in one team only."
    if edition.archived_at is not None:
        return ARCHIVED
    if is_invited:
        return ""
    if not edition.is_listed:
        return "This edition is not listed yet; teams can register once it is."
    phase = registration_phase(edition, now)
    opens, closes = edition.registration_opens_at, edition.registration_closes_at
    if phase is Phase.BEFORE and opens is not None:
        return f"Registration opens on {moment(opens)}."
    if phase is Phase.CLOSED and closes is not None:
        return f"Registration closed on {moment(closes)}."
    return ""


def joining_problem(team: Team) -> str:
    """Return why nobody can be invited to this team or join it."""
    if team.state not in ACTIVE_STATES:
        return f"The team “{team}” is {team.get_state_display().lower()}; nobody can join it."
    return frozen_problem(team)


def frozen_problem(team: Team) -> str:
    """Return why members can neither join nor leave without an organizer."""
    if team.members_frozen_at is None:
        return ""
    return (
        f"The members of “{team}” are fixed since the first accepted submission on {moment(team.members_frozen_at)}. "
        "The organizer can release them."
    )


def leaving_problem(team: Team, *, is_owner: bool) -> str:
    """Return why a member cannot leave; an owner hands over first, or withdraws the team."""
    if is_owner:
        return "Hand the team over to another member first, or withdraw it: a team has an owner."
    return frozen_problem(team)


def removing_problem(team: Team, membership: Membership, *, is_organizer: bool) -> str:
    """Return why the owner or the organizer cannot remove a member."""
    if membership.role == "owner":
        return f"{membership.user} owns the team. Hand it over to another member first."
    return "" if is_organizer else frozen_problem(team)


def acceptance_problem(invitation: Invitation, *, email: str, now: datetime) -> str:
    """Return why the account of this address cannot accept an invitation, whatever its team."""
    state = invitation_state(invitation, now)
    next_step = joining_problem(invitation.team) or "Ask the team for another one."
    if state is InvitationState.ACCEPTED:
        return "This invitation was accepted already; each link serves once."
    if state is InvitationState.REVOKED:
        return f"This invitation was revoked. {next_step}"
    if state is InvitationState.EXPIRED:
        return f"This invitation ended on {moment(invitation.expires_at)}. {next_step}"
    if invitation.email.casefold() != email.casefold():
        return (
            f"This invitation is for {invitation.email}, and you are logged in as {email}. "
            "Log in with the account of that address, or ask the team to invite this one."
        )
    return ""


def renaming_problem(team: Team) -> str:
    """Return why the name of a team cannot change any more; the contact always can."""
    if team.members_frozen_at is None:
        return ""
    return f"The name is fixed since the first accepted submission on {moment(team.members_frozen_at)}."


def approval_problem(team: Team) -> str:
    """Return why the organizer cannot approve a team."""
    if team.state in ("waiting", "declined"):
        return ""
    return f"The team “{team}” is {team.get_state_display().lower()} already."


def asking_problem(team: Team, now: datetime) -> str:
    """Return why a declined team cannot ask again: at once for the first time, then once a day, as each sends mails."""
    if team.state != "declined":
        return f"The team “{team}” is {team.get_state_display().lower()}; only a declined team asks again."
    if team.edition.archived_at is not None:
        return ARCHIVED
    if again_from := next_asking(team, now):
        return f"The team can ask again from {again_from} on."
    return ""


def next_asking(team: Team, now: datetime) -> str:
    """From when on a team that asked within the last day can ask again; empty for at once."""
    if team.asked_again_at is None or now >= team.asked_again_at + ASKED_AGAIN_AFTER:
        return ""
    return moment(team.asked_again_at + ASKED_AGAIN_AFTER)


def describe_end(team: Team, now: datetime) -> str:
    """Return what a declined or withdrawn team reads beside its state: the organizer's note, and what it can do."""
    if team.state != "declined":
        return "It takes no part in this edition."
    note = team.state_note or "No reason was given."
    way = asking_problem(team, now) or "Its owner can ask again on the page of the team."
    return f"{note}{'' if note.endswith(('.', '!', '?')) else '.'} {way}"


def declining_problem(team: Team) -> str:
    """Return why the organizer cannot decline a team; not one that has submitted."""
    if team.state == "approved" and team.members_frozen_at is not None:
        return f"The team “{team}” has submitted; it can be withdrawn, not declined."
    if team.state in ACTIVE_STATES:
        return ""
    return f"The team “{team}” is {team.get_state_display().lower()} already."
