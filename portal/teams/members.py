"""Who belongs to a team: invitations by mail, joining, leaving, removing, handing over.

The secret of an invitation stands in its mail only. It serves once, to an account with the invited address, and for a
time that `rules` states; a second mail has a secret of its own and makes the first one worthless.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.mail import EmailMessage
from django.db import transaction
from django.urls import reverse

from portal.accounts.notice_kinds import NoticeKind
from portal.core import audit
from portal.core.addresses import absolute
from portal.jobs.services import NotPossible
from portal.teams import rules
from portal.teams.models import Invitation, Membership, Team
from portal.teams.notices import NOT_SENT, notify_team
from portal.teams.secrets import hash_of, new_secret
from portal.teams.services import active_team_of, lock_edition, lock_team

INVITATIONS_PER_DAY = 30


def invite_member(*, team: Team, email: str, by: Any, now: datetime) -> Invitation:
    """Send an invitation to an address.

    Raises:
        NotPossible: nobody can join, the address belongs to a member or is invited, or the mail could not be sent.
    """
    secret = new_secret()
    invitation = _make_invitation(team, email, by, now, secret)
    try:
        _invitation_mail(invitation, secret).send()
    except NOT_SENT as error:
        revoke_invitation(invitation=invitation, by=by, now=now)
        raise NotPossible(f"The mail to {email} could not be sent ({error}). Try again later.") from error
    return invitation


def invite_again(*, invitation: Invitation, by: Any, now: datetime) -> Invitation:
    """Revoke an invitation and send a new one to the same address.

    Raises:
        NotPossible: it was accepted, nobody can join any more, the team sent too many, or the mail could not be sent.
    """
    if invitation.accepted_at is not None:
        raise NotPossible(f"{invitation.email} has accepted already.")
    # Asked first: an invitation that cannot be sent anew had better stay.
    if sentence := rules.joining_refusal(invitation.team) or _daily_refusal(invitation.team, now):
        raise NotPossible(sentence)
    if rules.invitation_state(invitation, now) is rules.InvitationState.OPEN:
        revoke_invitation(invitation=invitation, by=by, now=now)
    return invite_member(team=invitation.team, email=invitation.email, by=by, now=now)


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: Any, now: datetime) -> Invitation:
    """Make the link of an invitation worthless.

    Raises:
        NotPossible: it was accepted, or cannot be accepted any more anyway.
    """
    state = rules.invitation_state(invitation, now)
    changed = state is rules.InvitationState.OPEN and Invitation.objects.filter(
        pk=invitation.pk, accepted_at=None, revoked_at=None
    ).update(revoked_at=now)
    if not changed:
        raise NotPossible(f"The invitation to {invitation.email} is {state} already.")
    invitation.refresh_from_db()
    audit.record("team.invitation_revoked", invitation.team, actor=by, email=invitation.email)
    return invitation


@transaction.atomic
def accept_invitation(*, invitation: Invitation, by: Any, now: datetime) -> Membership:
    """Join the team that one was invited to.

    Raises:
        NotPossible: as `acceptance_refusal` says.
    """
    lock_edition(invitation.team.edition)
    team = lock_team(invitation.team)
    invitation = Invitation.objects.select_related("team__edition").get(pk=invitation.pk)
    if sentence := acceptance_refusal(invitation, by, now):
        raise NotPossible(sentence)
    membership = team.memberships.create(user=by)
    Invitation.objects.filter(pk=invitation.pk).update(accepted_at=now)
    audit.record("team.member_joined", team, actor=by, member=str(by), email=invitation.email)
    _tell(team, f"{by} joined “{team}”", f"{by} accepted the invitation and is a member of your team “{team}” now.")
    return membership


def acceptance_refusal(invitation: Invitation, user: Any, now: datetime) -> str:
    """Why a person who follows the link of an invitation cannot accept it, or ""."""
    team = invitation.team
    if sentence := rules.acceptance_refusal(invitation, email=user.email, now=now):
        return sentence
    other = active_team_of(user, team.edition)
    if other == team:
        return f"You are a member of “{team}” already."
    if other is not None:
        return f"You belong to the team “{other}” of this edition already; a person takes part in one team only."
    return rules.joining_refusal(team)


@transaction.atomic
def leave_team(*, team: Team, by: Any) -> Team:
    """Leave a team of one's own will.

    Raises:
        NotPossible: the owner cannot, nobody can once the team has submitted, or one does not belong to it any more.
    """
    team = lock_team(team)
    membership = _as_it_is(team, user=by)
    if sentence := rules.leaving_refusal(team, is_owner=membership.role == Membership.Role.OWNER):
        raise NotPossible(sentence)
    membership.delete()
    audit.record("team.member_left", team, actor=by, member=str(by))
    _tell(team, f"{by} left “{team}”", f"{by} left your team “{team}”.")
    return team


@transaction.atomic
def remove_member(*, membership: Membership, by: Any, is_organizer: bool) -> Team:
    """Take a member out of a team; once it has submitted, only the organizer can.

    Raises:
        NotPossible: the member owns the team or has left it, or its members are fixed.
    """
    team = lock_team(membership.team)
    membership = _as_it_is(team, pk=membership.pk)
    if sentence := rules.removing_refusal(team, membership, is_organizer=is_organizer):
        raise NotPossible(sentence)
    member = str(membership.user)
    membership.delete()
    audit.record("team.member_removed", team, actor=by, member=member, was_frozen=team.members_frozen_at is not None)
    _tell(team, f"{member} was removed from “{team}”", f"{by} removed {member} from your team “{team}”.")
    return team


@transaction.atomic
def transfer_team(*, membership: Membership, by: Any) -> Membership:
    """Make a member the owner; who was the owner stays as a member.

    Raises:
        NotPossible: this member is the owner already, or has left the team.
    """
    team = lock_team(membership.team)
    membership = _as_it_is(team, pk=membership.pk)
    if membership.role == Membership.Role.OWNER:
        raise NotPossible(f"{membership.user} owns “{team}” already.")
    team.memberships.filter(role=Membership.Role.OWNER).update(role=Membership.Role.MEMBER)
    membership.role = Membership.Role.OWNER
    membership.save(update_fields=["role"])
    audit.record("team.transferred", team, actor=by, owner=str(membership.user))
    _tell(
        team,
        f"{membership.user} owns “{team}” now",
        f"{by} handed your team “{team}” over to {membership.user}, who invites, removes and hands over from now on.",
    )
    return membership


@transaction.atomic
def _make_invitation(team: Team, email: str, by: Any, now: datetime, secret: str) -> Invitation:
    team = lock_team(team)
    if sentence := rules.joining_refusal(team) or _inviting_refusal(team, email, now):
        raise NotPossible(sentence)
    invitation = team.invitations.create(
        email=email, secret_hash=hash_of(secret), invited_by=by, expires_at=now + rules.INVITATION_LASTS
    )
    audit.record("team.member_invited", team, actor=by, email=email)
    return invitation


def _inviting_refusal(team: Team, email: str, now: datetime) -> str:
    if team.memberships.filter(user__email__iexact=email).exists():
        return f"{email} belongs to the team already."
    open_ones = team.invitations.filter(accepted_at=None, revoked_at=None, expires_at__gt=now)
    if open_ones.filter(email__iexact=email).exists():
        return f"{email} is invited already. Send that invitation again, or revoke it."
    return _daily_refusal(team, now)


def _daily_refusal(team: Team, now: datetime) -> str:
    if team.invitations.filter(created_at__gt=now - timedelta(days=1)).count() >= INVITATIONS_PER_DAY:
        return f"A team can send {INVITATIONS_PER_DAY} invitations a day. Go on tomorrow."
    return ""


def _as_it_is(team: Team, **wanted: Any) -> Membership:
    """A membership as it stands while its team is locked: another request may have changed or ended it."""
    membership = team.memberships.select_related("user").filter(**wanted).first()
    if membership is None:
        raise NotPossible(f"This person does not belong to “{team}” any more.")
    return membership


def _invitation_mail(invitation: Invitation, secret: str) -> EmailMessage:
    team, inviter = invitation.team, invitation.invited_by
    paragraphs = [
        "Hello,",
        f"{inviter} invites you to the team “{team}” ({team.affiliation}), which takes part in {team.edition}.",
        f"Follow this link to join. It serves once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC, and needs an "
        f"account with the address {invitation.email}; without one you can make it on the way:",
        absolute(reverse("teams:invitation", args=[secret])),
        "-- \nYou get this mail because a member of that team gave your address on the VoicePrivacy Portal. If you do "
        "not want to join, do nothing: the link ends by itself.",
    ]
    return EmailMessage(
        subject=" ".join(f"{team.edition}: invitation to the team “{team}”".split()),
        body="\n\n".join(paragraphs) + "\n",
        to=[invitation.email],
    )


def _tell(team: Team, subject: str, line: str) -> None:
    notify_team(team=team, kind=NoticeKind.MEMBERSHIP, subject=subject, lines=[line], url=team.get_absolute_url())
