"""Everything that changes a team: registration, the organizer's decision, its fields, its members, its withdrawal.

Every function is one transaction with one row in the audit log. The secret of an invitation stands in its mail only, or
without a mail server on the page of its inviter, this once. It serves once, to an account with the invited address, and
for a time that `rules` states; a second invitation has a secret of its own and makes the first one worthless.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Max
from django.urls import reverse
from django.utils import timezone

from common.errors import NotPossible
from common.line_texts import fold_line
from portal.accounts.rules import NotificationKind
from portal.challenges.models import Edition
from portal.core import audit
from portal.core.mail import NOT_SENT, absolute, if_mailed, render_mail
from portal.teams import rules
from portal.teams.models import DataAcceptance, Invitation, Membership, Team
from portal.teams.notifications import notify_organizers, notify_team
from portal.teams.selectors import data_access, hash_secret, list_open_invitations, new_secret

FIELDS = ("name", "contact", "contact_email", "affiliation", "country", "is_academic")
INVITATIONS_PER_DAY = 30


@transaction.atomic
def register_team(*, edition: Edition, by: Any, now: datetime, is_invited: bool = False, **fields: Any) -> Team:
    """Return a new team that waits for approval, owned by the person who registers it; `fields` as in `FIELDS`.

    Raises:
        NotPossible: registration is closed, the person has a team, or the name is taken.
    """
    edition = lock_edition(edition)
    team = find_active_team(by, edition)
    _refuse(rules.registration_problem(edition, team=team, now=now, is_invited=is_invited))
    _refuse_name(edition, fields["name"])
    team = Team.objects.create(edition=edition, **fields)
    team.memberships.create(user=by, role=Membership.Role.OWNER)
    audit.record("team.registered", team, actor=by, **({"by_link": True} if is_invited else {}))
    _tell_organizers(team, "registered", by=by)
    return team


@transaction.atomic
def replace_registration_link(*, edition: Edition, by: Any) -> Edition:
    """End every link that was given out to register a team in this edition; those made from now on work."""
    edition = lock_edition(edition)
    edition.registration_link_number += 1
    edition.save(update_fields=["registration_link_number"])
    audit.record("edition.registration_link_replaced", edition, actor=by)
    return edition


@transaction.atomic
def change_team(*, team: Team, by: Any, **fields: Any) -> Team:
    """Other fields of a team; the name only until the first accepted submission.

    Raises:
        NotPossible: the name is fixed or taken.
    """
    edition = lock_edition(team.edition)
    team = lock_team(team)
    changed = {name: value for name, value in fields.items() if getattr(team, name) != value}
    before = {name: getattr(team, name) for name in changed}
    if "name" in changed:
        _refuse(rules.renaming_problem(team))
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
    _refuse(rules.approval_problem(team))
    _refuse_second_teams(edition, team)
    if team.number is None:
        team.number = (edition.teams.aggregate(highest=Max("number"))["highest"] or 0) + 1
    _decide(team, Team.State.APPROVED, note, now)
    audit.record("team.approved", team, actor=by, label=team.label, note=note)
    _tell_members(team, "approved", by=by, note=note)
    return team


@transaction.atomic
def decline_team(*, team: Team, by: Any, now: datetime, note: str = "") -> Team:
    """Do not let a team take part; it may be approved later. Without a note, that of an earlier decline stays.

    Raises:
        NotPossible: it has submitted, or is declined or withdrawn.
    """
    team = lock_team(team)
    _refuse(rules.declining_problem(team))
    earlier = team.state_note if team.state == Team.State.WAITING else ""
    _decide(team, Team.State.DECLINED, note or earlier, now)
    audit.record("team.declined", team, actor=by, note=note)
    _tell_members(team, "declined", by=by, note=note, earlier=earlier, again_from=rules.next_asking(team, now))
    return team


@transaction.atomic
def ask_again(*, team: Team, by: Any, now: datetime) -> Team:
    """Let a declined team wait for approval again, and tell the organizers.

    Raises:
        NotPossible: it is not declined, asked within the last day, or one of its members takes part in another team.
    """
    edition = lock_edition(team.edition)
    team = lock_team(team)
    _refuse(rules.asking_problem(team, now))
    _refuse_second_teams(edition, team)
    team.state, team.asked_again_at = Team.State.WAITING, now
    team.save(update_fields=["state", "asked_again_at"])
    audit.record("team.asked_again", team, actor=by)
    _tell_organizers(team, "asked_again", by=by)
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
    _tell_members(team, "withdrawn", by=by)
    return team


@transaction.atomic
def freeze_members(*, team: Team, now: datetime) -> Team:
    """From now on members neither join nor leave without an organizer; nothing happens where that holds already.

    Open invitations are revoked, for nobody could accept them.
    """
    frozen = Team.objects.filter(pk=team.pk, members_frozen_at=None).update(members_frozen_at=now)
    team.refresh_from_db(fields=["members_frozen_at"])
    if frozen:
        members = [str(membership.user) for membership in team.memberships.select_related("user")]
        waiting = list_open_invitations(team, now)
        revoked = list(waiting.values_list("email", flat=True))
        waiting.update(revoked_at=now)
        audit.record("team.members_frozen", team, members=members, revoked_invitations=revoked)
    return team


@transaction.atomic
def release_members(*, team: Team, by: Any) -> Team:
    """Let members join and leave again, until the next accepted submission.

    Raises:
        NotPossible: they are not frozen.
    """
    released = Team.objects.filter(pk=team.pk, members_frozen_at__isnull=False).update(members_frozen_at=None)
    if not released:
        raise NotPossible(f"The members of “{team}” are not fixed.")
    team.refresh_from_db(fields=["members_frozen_at"])
    audit.record("team.members_released", team, actor=by)
    return team


@transaction.atomic
def accept_data(*, edition: Edition, by: Any, now: datetime, text: str) -> DataAcceptance:
    """Keep that a person accepted the terms of an edition's data; once for the same words.

    Args:
        text: the terms that the person read.

    Raises:
        NotPossible: this person may not have the data, or the terms have changed since.
    """
    access = data_access(by, lock_edition(edition))
    if not access.may_accept:
        raise NotPossible("The data is for members of approved teams and organizers, where the organizer shares it.")
    if access.acceptance is not None:
        return access.acceptance
    if " ".join(text.split()) != " ".join(access.terms.split()):
        raise NotPossible("The terms have changed since you read them. Read them again.")
    kept = DataAcceptance.objects.create(edition=edition, team=access.team, user=by, text=access.terms, accepted_at=now)
    audit.record("data.accepted", access.team or edition, actor=by, text=access.terms)
    return kept


def lock_edition(edition: Edition) -> Edition:
    """Return two who register, join or are approved at once wait for each other here; within a transaction."""
    return Edition.objects.select_for_update().get(pk=edition.pk)


def lock_team(team: Team) -> Team:
    """Return the team as it stands now, held until the transaction ends."""
    return Team.objects.select_for_update(of=("self",)).select_related("edition").get(pk=team.pk)


def find_active_team(user: Any, edition: Edition) -> Team | None:
    """Return the team in which a person takes part; a declined or withdrawn one binds nobody."""
    return edition.teams.filter(state__in=rules.ACTIVE_STATES, memberships__user=user).first()


def _decide(team: Team, state: Team.State, note: str, now: datetime) -> None:
    team.state, team.state_note, team.decided_at = state, note, now
    team.save(update_fields=["state", "state_note", "decided_at", "number"])


def _refuse_second_teams(edition: Edition, team: Team) -> None:
    people = team.memberships.values("user")
    others = edition.teams.filter(state__in=rules.ACTIVE_STATES, memberships__user__in=people).exclude(pk=team.pk)
    if other := others.first():
        raise NotPossible(f"A member of “{team}” takes part in the team “{other}” by now; a person has one team only.")


def naming_problem(edition: Edition, name: str, *, besides: Team | None = None) -> str:
    """Return why a team of an edition cannot have this name: another one has it."""
    taken = (team for team in edition.teams.all() if fold_line(team.name) == fold_line(name))
    is_taken = any(team != besides for team in taken)
    return f"Another team of this edition is called “{name}”. Choose another name." if is_taken else ""


def _refuse_name(edition: Edition, name: str, *, besides: Team | None = None) -> None:
    if sentence := naming_problem(edition, name, besides=besides):
        raise NotPossible(sentence)


def _refuse(sentence: str) -> None:
    if sentence:
        raise NotPossible(sentence)


def invite_member(*, team: Team, email: str, by: Any, now: datetime) -> Invitation:
    """Send an invitation to an address; without a mail server its link is its `address`.

    Raises:
        NotPossible: nobody can join, the address belongs to a member or is invited, or the mail could not be sent.
    """
    secret = new_secret()
    invitation = _make_invitation(team, email, by, now, secret)
    address = absolute(reverse("teams:invitation", args=[secret]))
    invitation.address = if_mailed("", address)
    try:
        _invitation_mail(invitation, address).send()
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
    # Asked first: an invitation that cannot be sent again had better stay.
    _refuse(rules.joining_problem(invitation.team) or _daily_problem(invitation.team, now))
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
        NotPossible: as `acceptance_problem` says.
    """
    lock_edition(invitation.team.edition)
    team = lock_team(invitation.team)
    invitation = Invitation.objects.select_related("team__edition").get(pk=invitation.pk)
    _refuse(acceptance_problem(invitation, by, now))
    membership = team.memberships.create(user=by)
    Invitation.objects.filter(pk=invitation.pk).update(accepted_at=now)
    audit.record("team.member_joined", team, actor=by, member=str(by), email=invitation.email)
    _tell_members(team, "joined", by=by)
    return membership


def acceptance_problem(invitation: Invitation, user: Any, now: datetime) -> str:
    """Return why a person who follows the link of an invitation cannot accept it, or ""."""
    team = invitation.team
    if sentence := rules.acceptance_problem(invitation, email=user.email, now=now):
        return sentence
    other = find_active_team(user, team.edition)
    if other == team:
        return f"You are a member of “{team}” already."
    if other is not None:
        return f"You belong to the team “{other}” of this edition already; a person takes part in one team only."
    return rules.joining_problem(team)


@transaction.atomic
def leave_team(*, team: Team, by: Any) -> Team:
    """Leave a team of one's own will.

    Raises:
        NotPossible: the owner cannot, nobody can once the team has submitted, or one does not belong to it any more.
    """
    team = lock_team(team)
    membership = _as_it_is(team, user=by)
    _refuse(rules.leaving_problem(team, is_owner=membership.role == Membership.Role.OWNER))
    membership.delete()
    new_contact = _replace_contact(team, membership.user, by=by)
    audit.record("team.member_left", team, actor=by, member=str(by))
    _tell_members(team, "left", by=by, new_contact=new_contact)
    return team


@transaction.atomic
def remove_member(*, membership: Membership, by: Any, is_organizer: bool) -> Team:
    """Take a member out of a team; once it has submitted, only the organizer can.

    Raises:
        NotPossible: the member owns the team or has left it, or its members are fixed.
    """
    team = lock_team(membership.team)
    membership = _as_it_is(team, pk=membership.pk)
    _refuse(rules.removing_problem(team, membership, is_organizer=is_organizer))
    member = str(membership.user)
    membership.delete()
    new_contact = _replace_contact(team, membership.user, by=by)
    audit.record("team.member_removed", team, actor=by, member=member, was_frozen=team.members_frozen_at is not None)
    _tell_members(team, "removed", by=by, member=member, new_contact=new_contact)
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
    _tell_members(team, "transferred", by=by, member=membership.user)
    return membership


def _replace_contact(team: Team, left: Any, *, by: Any) -> str:
    """Make the owner the contact person where that was the one who is no member any more; the new one's name, or ""."""
    owner = team.memberships.filter(role=Membership.Role.OWNER).select_related("user").first()
    if owner is None or team.contact_email.casefold() != left.email.casefold():
        return ""
    before = {"contact": team.contact, "contact_email": team.contact_email}
    team.contact, team.contact_email = owner.user.name or owner.user.email, owner.user.email
    team.save(update_fields=list(before))
    changed = {name: getattr(team, name) for name in before}
    audit.record("team.changed", team, actor=by, changes=audit.changes(before, changed))
    return team.contact


@transaction.atomic
def _make_invitation(team: Team, email: str, by: Any, now: datetime, secret: str) -> Invitation:
    team = lock_team(team)
    _refuse(rules.joining_problem(team) or _inviting_problem(team, email, now))
    invitation = team.invitations.create(
        email=email, secret_hash=hash_secret(secret), invited_by=by, expires_at=now + rules.INVITATION_LASTS
    )
    audit.record("team.member_invited", team, actor=by, email=email)
    return invitation


def _inviting_problem(team: Team, email: str, now: datetime) -> str:
    if team.memberships.filter(user__email__iexact=email).exists():
        return f"{email} belongs to the team already."
    if list_open_invitations(team, now).filter(email__iexact=email).exists():
        return f"{email} is invited already. Send that invitation again, or revoke it."
    return _daily_problem(team, now)


def _daily_problem(team: Team, now: datetime) -> str:
    if team.invitations.filter(created_at__gt=now - timedelta(days=1)).count() >= INVITATIONS_PER_DAY:
        return f"A team can send {INVITATIONS_PER_DAY} invitations a day. Try again tomorrow."
    return ""


def _as_it_is(team: Team, **wanted: Any) -> Membership:
    """Return a membership as it stands while its team is locked: another request may have changed or ended it."""
    membership = team.memberships.select_related("user").filter(**wanted).first()
    if membership is None:
        raise NotPossible(f"This person does not belong to “{team}” any more.")
    return membership


def _invitation_mail(invitation: Invitation, address: str) -> EmailMessage:
    context = {"invitation": invitation, "team": invitation.team, "inviter": invitation.invited_by, "address": address}
    mail = render_mail("teams/mail/invitation.txt", context)
    return EmailMessage(subject=mail.subject, body=f"{mail.text}\n", to=[invitation.email])


def _tell_organizers(team: Team, what: str, *, by: Any) -> None:
    mail = render_mail(f"teams/mail/{what}.txt", {"team": team, "by": by})
    url = reverse("teams:decide", args=[team.pk])
    notify_organizers(team=team, kind=NotificationKind.REGISTERED, mail=mail, url=url, besides=by)


def _tell_members(team: Team, what: str, *, by: Any, **context: Any) -> None:
    mail = render_mail(f"teams/mail/{what}.txt", {"team": team, "by": by, **context})
    notify_team(team=team, kind=NotificationKind.MEMBERSHIP, mail=mail, url=team.get_absolute_url(), besides=by)
