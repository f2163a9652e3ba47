"""Teams, the organizer's decision about them, their invitations, and who the asker is."""

from __future__ import annotations

from django.db.models import prefetch_related_objects
from django.utils import timezone
from django_countries import countries
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.models import AccessToken
from portal.api.base import ApiView, Computed, LineField, Shape, Who, operation
from portal.challenges.selectors import managed_editions_for
from portal.teams import selectors, services
from portal.teams.models import Membership, Team
from portal.teams.rules import InvitationState, invitation_state


class TeamSerializer(Shape):
    """A team in short."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    label = serializers.CharField(help_text="Such as T11; empty before the team was approved.")  # type: ignore[assignment]
    edition = serializers.SlugField(source="edition.name")
    state = serializers.ChoiceField(Team.State.choices)
    affiliation = serializers.CharField()
    country = serializers.CharField(source="country.code", help_text="ISO 3166, two letters.")
    is_academic = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)
    members_frozen_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when members can neither join nor leave without an organizer."
    )


class MemberSerializer(Shape):
    """A person in a team."""

    id = serializers.IntegerField(help_text="Number of the member in this team.")
    name = serializers.CharField(source="user.get_full_name")
    role = serializers.ChoiceField(Membership.Role.choices)
    joined_at = serializers.DateTimeField()


class FullTeamSerializer(TeamSerializer):
    """A team with its people."""

    contact = serializers.CharField()
    contact_email = serializers.EmailField()
    state_note = serializers.CharField(help_text="What the organizer wrote when deciding.")
    open_invitations = Computed(
        serializers.IntegerField(help_text="How many; the first accepted submission ends them."),
        lambda team, _: selectors.list_open_invitations(team, timezone.now()).count(),
    )
    members = MemberSerializer(many=True, source="memberships.all")


class TeamFieldsSerializer(Shape):
    """What a team says of itself, as the evaluation plan asks for it."""

    name = LineField(max_length=80)
    contact = LineField(max_length=120, help_text="The person to ask about the team.")
    contact_email = serializers.EmailField(max_length=254)
    affiliation = LineField(max_length=200, help_text="University, institute or company.")
    country = serializers.CharField(min_length=2, max_length=2, help_text="ISO 3166, two letters.")
    is_academic = serializers.BooleanField(help_text="A university or public research.")

    def validate_country(self, code: str) -> str:
        if code.upper() not in countries.countries:
            raise serializers.ValidationError("Expected two letters of a country, such as FR.")
        return code.upper()


class TeamSearchSerializer(Shape):
    """Which teams."""

    edition = serializers.SlugField(required=False, help_text="Of this edition only.")


class DecisionSerializer(Shape):
    """Whether a team takes part."""

    decision = serializers.ChoiceField(["approve", "decline"])
    note = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=2000,
        help_text="Included in the mail to the team and on its page.",
    )


class InviteSerializer(Shape):
    """Whom to invite."""

    email = serializers.EmailField(max_length=254, help_text="The person joins with an account of this address.")


class InvitationSerializer(Shape):
    """An invitation; only its mail contains its link, or without a mail server the answer to whoever makes it."""

    id = serializers.IntegerField()
    email = serializers.EmailField()
    state = Computed(
        serializers.ChoiceField([state.value for state in InvitationState]),
        lambda invitation, _: invitation_state(invitation, timezone.now()).value,
    )
    created_at = expires_at = serializers.DateTimeField()
    address = serializers.CharField(help_text="The link to pass on, this once, where no mail brings it; else empty.")


class TokenSerializer(Shape):
    """An access token, without its secret."""

    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(AccessToken.Scope.choices))
    expires_at = serializers.DateTimeField(allow_null=True)


class MeSerializer(Shape):
    """Your account and token, your teams, and the editions that you organise."""

    name = serializers.CharField()
    email = serializers.EmailField()
    is_organizer = serializers.BooleanField(help_text="May create editions and import corpora.")
    token = TokenSerializer(allow_null=True, help_text="Null for requests by session.")
    teams = TeamSerializer(many=True)
    organises = serializers.ListField(child=serializers.SlugField(), help_text="Names of editions.")


@operation(MeSerializer, who=Who.ACCOUNT)
def show_me(api: ApiView) -> Response:
    """Your account, what your token may do, your teams and the editions that you organise."""
    found = {
        "name": str(api.user),
        "email": api.user.email,
        "is_organizer": api.user.is_organizer,
        "token": api.request.auth,
        "teams": selectors.list_own_teams(api.user),
        "organises": managed_editions_for(api.user).values_list("name", flat=True),
    }
    return Response(MeSerializer(found).data)


@operation(TeamSerializer(many=True), asks=TeamSearchSerializer, who=Who.ACCOUNT)
def list_teams(api: ApiView) -> Response:
    """Your teams, and those of the editions that you organise."""
    search = api.query(TeamSearchSerializer)
    found = selectors.teams_for(api.user).order_by("-edition__created_at", "number", "name", "pk")
    if "edition" in search:
        found = found.filter(edition__name=search["edition"])
    return api.paginated(found, TeamSerializer)


@operation(FullTeamSerializer, who=Who.TEAM)
def show_team(api: ApiView, pk: int) -> Response:
    """One team with its members."""
    return full(selectors.team_for(api.user, pk))


@operation(
    FullTeamSerializer,
    takes=TeamFieldsSerializer,
    who=Who.OWNER,
    example={"contact": "Ada Lovelace", "is_academic": True},
)
def change_team(api: ApiView, pk: int) -> Response:
    """Other fields of a team, by its owner or the organizers; the name only until the first accepted submission."""
    team = selectors.steered_team_for(api.user, pk)
    return full(services.change_team(team=team, by=api.user, **api.body(TeamFieldsSerializer, partial=True)))


@operation(None, status=204, who=Who.MEMBER)
def leave_team(api: ApiView, pk: int) -> Response:
    """Leave a team that you belong to and do not own, until its first accepted submission."""
    services.leave_team(team=selectors.joined_team_for(api.user, pk), by=api.user)
    return Response(status=204)


@operation(FullTeamSerializer, who=Who.OWNER)
def withdraw_team(api: ApiView, pk: int) -> Response:
    """Take a team out of its edition, by its owner or the organizers; what it submitted stays."""
    return full(services.withdraw_team(team=selectors.steered_team_for(api.user, pk), by=api.user))


@operation(FullTeamSerializer)
def release_members(api: ApiView, pk: int) -> Response:
    """Let members of a team of an edition that you organise join and leave until the next accepted submission."""
    return full(services.release_members(team=selectors.managed_team_for(api.user, pk), by=api.user))


@operation(FullTeamSerializer, who=Who.OWNER)
def remove_member(api: ApiView, pk: int, membership: int) -> Response:
    """Take a member out, by the team's owner or, once it has submitted, the organizers only."""
    team = selectors.steered_team_for(api.user, pk)
    chosen = selectors.get_member(team, membership)
    is_organizer = team.edition.organizers.filter(pk=api.user.pk).exists()
    return full(services.remove_member(membership=chosen, by=api.user, is_organizer=is_organizer))


@operation(FullTeamSerializer, who=Who.OWNER)
def transfer_team(api: ApiView, pk: int, membership: int) -> Response:
    """Make a member the owner; who was the owner stays as a member."""
    team = selectors.steered_team_for(api.user, pk)
    services.transfer_team(membership=selectors.get_member(team, membership), by=api.user)
    return full(team)


@operation(FullTeamSerializer, takes=DecisionSerializer, example={"decision": "approve", "note": "Welcome."})
def decide_team(api: ApiView, pk: int) -> Response:
    """Approve or decline a team of an edition that you organise."""
    team = selectors.managed_team_for(api.user, pk)
    wish = api.body(DecisionSerializer)
    service = services.approve_team if wish["decision"] == "approve" else services.decline_team
    return full(service(team=team, by=api.user, now=timezone.now(), note=wish["note"].strip()))


@operation(InvitationSerializer(many=True), who=Who.OWNER)
def list_invitations(api: ApiView, pk: int) -> Response:
    """Whom a team invited; for its owner and the organizers."""
    return api.paginated(selectors.steered_team_for(api.user, pk).invitations.all(), InvitationSerializer)


@operation(
    InvitationSerializer, takes=InviteSerializer, status=201, who=Who.OWNER, example={"email": "ada@university.example"}
)
def invite_member(api: ApiView, pk: int) -> Response:
    """Invite a person by mail; for the team's owner and the organizers."""
    team = selectors.steered_team_for(api.user, pk)
    email = api.body(InviteSerializer)["email"]
    made = services.invite_member(team=team, email=email, by=api.user, now=timezone.now())
    return Response(InvitationSerializer(made).data, status=201)


@operation(InvitationSerializer, who=Who.OWNER)
def revoke_invitation(api: ApiView, pk: int, invitation: int) -> Response:
    """Revoke an invitation; its link no longer works."""
    chosen = selectors.get_invitation(selectors.steered_team_for(api.user, pk), invitation)
    revoked = services.revoke_invitation(invitation=chosen, by=api.user, now=timezone.now())
    return Response(InvitationSerializer(revoked).data)


def full(team: Team, status: int = 200) -> Response:
    """Return a team with its people."""
    prefetch_related_objects([team], "memberships__user")
    return Response(FullTeamSerializer(team).data, status=status)
