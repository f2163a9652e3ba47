"""What pages and API read of teams, their members and invitations."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.core.signing import BadSignature, Signer
from django.db.models import Case, Count, IntegerField, Prefetch, Q, QuerySet, Value, When
from django.shortcuts import get_object_or_404
from django.urls import Resolver404, resolve

from portal.accounts.models import User
from portal.accounts.rules import Voucher
from portal.challenges.models import DataFile, Edition
from portal.challenges.selectors import passes_speech_on, terms_of_data
from portal.core.clock import read_clock
from portal.core.mail import sends_mail
from portal.teams.models import DataAcceptance, Invitation, Membership, Team
from portal.teams.rules import (
    ACTIVE_STATES,
    INVITATION_LASTS,
    InvitationState,
    RegistrationLink,
    invitation_state,
    link_problem,
)

_links = Signer(salt="teams.registration")


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Return SHA-256 suffices: a secret of 256 random bits cannot be guessed, whatever the speed of the hash."""
    return hashlib.sha256(secret.encode("utf-8", "backslashreplace")).hexdigest()


def registration_code(edition: Edition, *, by: Any, now: datetime) -> str:
    """Return what makes a link to register a team valid for as long as an invitation."""
    ends_s = int((now + INVITATION_LASTS).timestamp())
    return _links.sign_object([edition.pk, edition.registration_link_number, by.pk, ends_s])


def find_registration_link(name: str, code: str) -> RegistrationLink | None:
    """Return what `registration_code` made for the edition of this name, whether or not it still works; None for all
    else."""
    try:
        key, number, by, ends_s = _links.unsign_object(code)
    except BadSignature:
        return None
    edition = Edition.objects.filter(name=name, pk=key).select_related("corpus").first()
    if edition is None:
        return None
    ends_at = datetime.fromtimestamp(ends_s, UTC)
    return RegistrationLink(edition, User.objects.filter(pk=by).first(), number, ends_at)


def teams_for(user: Any) -> QuerySet[Team]:
    """Return the teams that this person belongs to or whose edition they organise."""
    if not user.is_authenticated:
        return Team.objects.none()
    seen = Q(memberships__user=user) | Q(edition__organizers=user)
    return Team.objects.filter(pk__in=Team.objects.filter(seen).values("pk")).select_related("edition")


def team_for(user: Any, pk: int) -> Team:
    return get_object_or_404(teams_for(user), pk=pk)


def managed_teams_for(user: Any) -> QuerySet[Team]:
    """Return the teams of the editions that this person organises: who may decide about them."""
    if not user.is_authenticated:
        return Team.objects.none()
    return Team.objects.filter(edition__organizers=user).select_related("edition")


def managed_team_for(user: Any, pk: int) -> Team:
    return get_object_or_404(managed_teams_for(user), pk=pk)


def joined_team_for(user: Any, pk: int) -> Team:
    """Return a team that this person belongs to."""
    joined = Membership.objects.filter(user_id=user.pk or 0).values("team")
    return get_object_or_404(Team.objects.filter(pk=pk, pk__in=joined).select_related("edition"))


def find_chosen_team(edition: Edition, pk: str) -> Team | None:
    """Return the team of an edition with this key as an address gives it; None for no key.

    Raises:
        Http404: the edition has no such team.
    """
    if not pk:
        return None
    return get_object_or_404(edition.teams.filter(pk=int(pk) if pk.isdecimal() and len(pk) < 19 else 0))


def steered_team_for(user: Any, pk: int) -> Team:
    """Return a team that this person owns or whose edition they organise."""
    owned = Q(memberships__user=user, memberships__role=Membership.Role.OWNER)
    seen = Team.objects.filter(owned | Q(edition__organizers=user)) if user.is_authenticated else Team.objects.none()
    return get_object_or_404(Team.objects.filter(pk=pk, pk__in=seen.values("pk")).select_related("edition"))


def team_of(user: Any, edition: Edition) -> Team | None:
    """Return the team with which this person takes part: the newest active one, else the newest."""
    if not user.is_authenticated:
        return None
    is_over = Case(When(state__in=ACTIVE_STATES, then=Value(0)), default=Value(1), output_field=IntegerField())
    teams = Team.objects.filter(edition=edition, memberships__user=user).select_related("edition")
    return teams.order_by(is_over, "-created_at", "-pk").first()


@dataclass(frozen=True)
class DataAccess:
    """What a person is to the data of an edition.

    Attributes:
        team: with which they take part; None for organizers and people without a team.
        may_accept: whether they may have the data once they accepted its terms, which its organizers need not.
        acceptance: of the terms as they are now; None before.
        terms: what is to be accepted.
    """

    team: Team | None
    may_accept: bool
    acceptance: DataAcceptance | None
    terms: str
    is_organizer: bool

    @property
    def is_open(self) -> bool:
        """Return whether they may download."""
        return self.acceptance is not None or (self.may_accept and self.is_organizer)


def data_access(user: Any, edition: Edition) -> DataAccess:
    """Return whether this person may download the data of an edition: organizers, and members of approved teams."""
    terms, team = terms_of_data(edition), team_of(user, edition)
    is_organizer = user.is_authenticated and edition.organizers.filter(pk=user.pk).exists()
    takes_part = team is not None and team.state == Team.State.APPROVED
    may_accept = (is_organizer or takes_part) and passes_speech_on(edition)
    acceptance = None
    if may_accept:
        accepted = edition.data_acceptances.filter(user=user, team=team if takes_part else None)
        acceptance = accepted.filter(text=terms).first()
    return DataAccess(team if takes_part else None, may_accept, acceptance, terms, is_organizer)


def data_files_for(user: Any, edition: Edition) -> QuerySet[DataFile]:
    """Return the files of an edition that this person may download: all of them or none."""
    files = edition.data_files.select_related("data_set")
    return files if data_access(user, edition).is_open else files.none()


def needs_data(user: Any, team: Team) -> bool:
    """Return whether data are shared of which this person has not accepted the terms for this team."""
    edition = team.edition
    is_shared = edition.shares_data and edition.corpus_id is not None
    return is_shared and not team.data_acceptances.filter(user=user).exists()


def list_own_teams(user: Any) -> QuerySet[Team]:
    """Return the teams that this person belongs to, the newest first."""
    return Team.objects.filter(memberships__user=user).select_related("edition").order_by("-created_at", "-pk")


def teams_by_edition(user: Any) -> dict[int, Team]:
    """As `team_of`, for every edition in which this person has a team, by the key of the edition."""
    if not user.is_authenticated:
        return {}
    teams = Team.objects.filter(memberships__user=user).order_by("created_at", "pk")
    return {team.edition_id: team for team in sorted(teams, key=lambda team: team.state in ACTIVE_STATES)}


def list_teams(edition: Edition) -> QuerySet[Team]:
    """Return the teams of an edition with their members counted (`member_count`) and their owner, those that wait
    first."""
    waiting = Case(When(state=Team.State.WAITING, then=Value(0)), default=Value(1), output_field=IntegerField())
    owner = Membership.objects.filter(role=Membership.Role.OWNER).select_related("user")
    listed = edition.teams.filter(archived_at=None).select_related("edition")
    teams = listed.prefetch_related(Prefetch("memberships", owner, to_attr="owners"))
    counted = teams.annotate(member_count=Count("memberships"), is_waiting=waiting)
    return counted.order_by("is_waiting", "number", "name")


def membership_for(user: Any, team: Team) -> Membership | None:
    """Return what this person is in a team; None for people who do not belong to it."""
    return team.memberships.filter(user_id=user.pk).first() if user.is_authenticated else None


def get_member(team: Team, pk: int) -> Membership:
    return get_object_or_404(team.memberships.filter(pk=pk).select_related("user"))


def list_open_invitations(team: Team, now: datetime) -> QuerySet[Invitation]:
    """Return those that can still be accepted."""
    return team.invitations.filter(accepted_at=None, revoked_at=None, expires_at__gt=now)


def list_invitations_of(user: Any, now: datetime) -> QuerySet[Invitation]:
    """Return the open invitations to the address of this person's account."""
    found = Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=now)
    return found.filter(email__iexact=user.email).select_related("team__edition", "invited_by")


def find_voucher(link: str) -> Voucher | None:
    """Return what vouches for an address by the link of an invitation; None is no open invitation's link.

    The link of an organizer, which names no address, vouches only where no mail could show whose an address is.
    """
    parts, now = urlsplit(link), read_clock()
    try:
        place = resolve(parts.path)
    except Resolver404:
        return None
    if place.view_name == "teams:invitation":
        found = Invitation.objects.filter(secret_hash=hash_secret(place.kwargs["secret"])).first()
        if found is None or invitation_state(found, now) is not InvitationState.OPEN:
            return None
        return Voucher(found.email, found.invited_by, "invitation", str(found.pk))
    if place.view_name == "editions:register" and not sends_mail():
        code = parse_qs(parts.query).get("invitation", [""])[0]
        offer = find_registration_link(place.kwargs["edition"], code)
        if offer and not link_problem(offer, now):
            return Voucher("", offer.invited_by, "link to register a team", offer.edition.name)
    return None


def list_ended_invitations(team: Team) -> list[str]:
    """Return the addresses whose invitations ended when the members were fixed."""
    frozen = team.members_frozen_at
    return list(team.invitations.filter(revoked_at=frozen).values_list("email", flat=True)) if frozen else []


def get_invitation(team: Team, pk: int) -> Invitation:
    return get_object_or_404(team.invitations, pk=pk)


def invitation_by(secret: str) -> Invitation:
    """Return the invitation whose mail held this secret."""
    found = Invitation.objects.filter(secret_hash=hash_secret(secret))
    return get_object_or_404(found.select_related("team__edition", "invited_by"))
