"""Teams, their members and invitations, and who the asker is."""

from __future__ import annotations

from typing import Any

from django.db.models import prefetch_related_objects
from django.utils import timezone
from django_countries import countries
from django_countries.serializer_fields import CountryField
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.models import AccessToken
from portal.api.access import Scope
from portal.api.base import ApiViewSet, LineSerializerField, StrictModelSerializer, StrictSerializer
from portal.challenges.models import Edition
from portal.challenges.selectors import edition_for, managed_edition_for, managed_editions_for
from portal.teams import selectors, services
from portal.teams.models import Invitation, Membership, Team
from portal.teams.rules import InvitationState, invitation_state


class TeamSerializer(serializers.ModelSerializer[Team]):
    """A team in short; `label`, such as T11, is empty before it was approved."""

    edition = serializers.SlugRelatedField[Edition](slug_field="name", read_only=True)
    country = CountryField()

    class Meta:
        model = Team
        fields = (
            *("id", "name", "label", "edition", "state", "affiliation", "country", "is_academic"),
            *("created_at", "decided_at", "members_frozen_at"),
        )


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A person in a team, with their number there."""

    name = serializers.CharField(source="user.get_full_name")

    class Meta:
        model = Membership
        fields = ("id", "name", "role", "joined_at")


class FullTeamSerializer(TeamSerializer):
    """A team with its people; the first accepted submission ends its open invitations."""

    open_invitations = serializers.SerializerMethodField()
    members = MemberSerializer(many=True, source="memberships")

    class Meta:
        model = Team
        fields = (
            *TeamSerializer.Meta.fields,
            *("contact", "contact_email", "state_note", "open_invitations", "members"),
        )

    def get_open_invitations(self, team: Team) -> int:
        return selectors.list_open_invitations(team, timezone.now()).count()


class TeamFieldsSerializer(StrictModelSerializer):
    """What a team says of itself, as the evaluation plan asks for it."""

    name = LineSerializerField(max_length=80)
    contact = LineSerializerField(max_length=120, help_text="The person to ask about the team.")
    affiliation = LineSerializerField(max_length=200, help_text="University, institute or company.")
    country = serializers.ChoiceField(list(countries), help_text="ISO 3166, two letters.")

    class Meta:
        model = Team
        fields = services.FIELDS
        extra_kwargs = {"is_academic": {"required": True}}


class TeamSearchSerializer(serializers.Serializer[Any]):
    edition = serializers.SlugField(required=False, help_text="Of this edition only.")


class DecisionSerializer(StrictSerializer):
    """Whether a team takes part; the note stands in the mail to the team and on its page."""

    decision = serializers.ChoiceField(["approve", "decline"])
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class InviteSerializer(StrictModelSerializer):
    """Whom to invite; the person joins with an account of this address."""

    class Meta:
        model = Invitation
        fields = ("email",)


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation; only its mail contains its link, or without a mail server the answer to whoever makes it."""

    state = serializers.SerializerMethodField()
    address = serializers.CharField(help_text="The link to pass on, this once, where no mail brings it; else empty.")

    class Meta:
        model = Invitation
        fields = ("id", "email", "state", "created_at", "expires_at", "address")

    def get_state(self, invitation: Invitation) -> InvitationState:
        return invitation_state(invitation, timezone.now())


class TokenSerializer(serializers.ModelSerializer[AccessToken]):
    """An access token, without its secret."""

    scopes = serializers.ListField(child=serializers.ChoiceField(AccessToken.Scope.choices))

    class Meta:
        model = AccessToken
        fields = ("name", "scopes", "expires_at")


class MeSerializer(serializers.Serializer[Any]):
    """Your account and token (null for requests by session), your teams, and the editions that you organise."""

    name = serializers.CharField()
    email = serializers.EmailField()
    is_organizer = serializers.BooleanField(help_text="May create editions and import corpora.")
    token = TokenSerializer(allow_null=True)
    teams = TeamSerializer(many=True)
    organises = serializers.ListField(child=serializers.SlugField(), help_text="Names of editions.")


class MeViewSet(ApiViewSet):
    """Your account, what your token may do, your teams and the editions that you organise."""

    serializer_class = MeSerializer

    def retrieve(self, request: Request) -> Response:
        user: Any = request.user
        me = {
            "name": str(user),
            "email": user.email,
            "is_organizer": user.is_organizer,
            "token": request.auth,
            "teams": selectors.list_own_teams(user),
            "organises": managed_editions_for(user).values_list("name", flat=True),
        }
        return Response(self.get_serializer(me).data)


class TeamViewSet(ListModelMixin, RetrieveModelMixin, ApiViewSet):
    """Your teams, and those of the editions that you organise."""

    serializer_class = FullTeamSerializer
    answers = {"list": TeamSerializer, "leave": None}
    bodies = {"partial_update": TeamFieldsSerializer, "decide": DecisionSerializer}
    queries = {"list": TeamSearchSerializer}

    def get_queryset(self) -> Any:
        teams = selectors.teams_for(self.request.user)
        if self.action != "list":
            return teams.prefetch_related("memberships__user")
        edition = self.read_query().get("edition")
        teams = teams.order_by("-edition__created_at", "number", "name", "pk")
        return teams.filter(edition__name=edition) if edition else teams

    def partial_update(self, request: Request, pk: int) -> Response:
        """Change fields of a team, by its owner or the organizers; the name until the first accepted submission."""
        team = selectors.steered_team_for(request.user, pk)
        return answer_team(services.change_team(team=team, by=request.user, **self.read_body()))

    def leave(self, request: Request, pk: int) -> Response:
        """Leave a team that you belong to and do not own, until its first accepted submission."""
        services.leave_team(team=selectors.joined_team_for(request.user, pk), by=request.user)
        return Response(status=204)

    def withdraw(self, request: Request, pk: int) -> Response:
        """Take a team out of its edition, by its owner or the organizers; what it submitted stays."""
        team = selectors.steered_team_for(request.user, pk)
        return answer_team(services.withdraw_team(team=team, by=request.user))

    def release(self, request: Request, pk: int) -> Response:
        """Let members join and leave until the next accepted submission, by the organizers of the edition."""
        team = selectors.managed_team_for(request.user, pk)
        return answer_team(services.release_members(team=team, by=request.user))

    def decide(self, request: Request, pk: int) -> Response:
        """Approve or decline a team of an edition that you organise."""
        team = selectors.managed_team_for(request.user, pk)
        body = self.read_body()
        decide = services.approve_team if body["decision"] == "approve" else services.decline_team
        return answer_team(decide(team=team, by=request.user, now=timezone.now(), note=body["note"].strip()))

    def remove_member(self, request: Request, pk: int, membership: int) -> Response:
        """Take a member out, by the team's owner or, once it has submitted, the organizers only."""
        team = selectors.steered_team_for(request.user, pk)
        member = selectors.get_member(team, membership)
        is_organizer = team.edition.organizers.filter(pk=request.user.pk).exists()
        return answer_team(services.remove_member(membership=member, by=request.user, is_organizer=is_organizer))

    def transfer(self, request: Request, pk: int, membership: int) -> Response:
        """Make a member the owner, by the owner, who stays as a member, or the organizers."""
        team = selectors.steered_team_for(request.user, pk)
        services.transfer_team(membership=selectors.get_member(team, membership), by=request.user)
        return answer_team(team)


class EditionTeamViewSet(ListModelMixin, ApiViewSet):
    """The teams of an edition that you organise, those that wait first."""

    serializer_class = TeamSerializer
    answers = {"create": FullTeamSerializer}
    bodies = {"create": TeamFieldsSerializer}
    scopes = {"create": (Scope.SUBMIT,)}

    def get_queryset(self) -> Any:
        return selectors.list_teams(managed_edition_for(self.request.user, self.kwargs["edition"]))

    def create(self, request: Request, edition: str) -> Response:
        """Register a team while registration is open; you own it, and it submits once an organizer approved it."""
        chosen = edition_for(request.user, edition)
        team = services.register_team(edition=chosen, by=request.user, now=timezone.now(), **self.read_body())
        return answer_team(team, status=201)


class InvitationViewSet(ListModelMixin, ApiViewSet):
    """Whom a team invited; for its owner and the organizers."""

    serializer_class = InvitationSerializer
    bodies = {"create": InviteSerializer}

    def get_queryset(self) -> Any:
        return selectors.steered_team_for(self.request.user, self.kwargs["pk"]).invitations.all()

    def create(self, request: Request, pk: int) -> Response:
        """Invite a person by mail; for the team's owner and the organizers."""
        team = selectors.steered_team_for(request.user, pk)
        invitation = services.invite_member(team=team, **self.read_body(), by=request.user, now=timezone.now())
        return Response(self.get_serializer(invitation).data, status=201)

    def revoke(self, request: Request, pk: int, invitation: int) -> Response:
        """Revoke an invitation, by the team's owner or the organizers; its link no longer works."""
        chosen = selectors.get_invitation(selectors.steered_team_for(request.user, pk), invitation)
        revoked = services.revoke_invitation(invitation=chosen, by=request.user, now=timezone.now())
        return Response(self.get_serializer(revoked).data)


def answer_team(team: Team, status: int = 200) -> Response:
    """Return a team with its people as an answer."""
    prefetch_related_objects([team], "memberships__user")
    return Response(FullTeamSerializer(team).data, status=status)
