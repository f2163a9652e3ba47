"""Teams, their invitations and the asker as the API takes and gives them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django_countries import countries
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.accounts.models import AccessToken, User
from portal.api.serializers.fields import LineField
from portal.teams.models import Invitation, Membership, Team
from portal.teams.rules import InvitationState, invitation_state


class TeamSerializer(serializers.Serializer[Team]):
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
        allow_null=True, help_text="Since when members neither join nor leave by themselves."
    )


class MemberSerializer(serializers.Serializer[Membership]):
    """A person in a team."""

    id = serializers.IntegerField(help_text="Of the member in this team.")
    name = serializers.CharField(source="user.get_full_name")
    role = serializers.ChoiceField(Membership.Role.choices)
    joined_at = serializers.DateTimeField()


class FullTeamSerializer(TeamSerializer):
    """A team with its people."""

    contact = serializers.CharField()
    contact_email = serializers.EmailField()
    state_note = serializers.CharField(help_text="What the organizer wrote when deciding.")
    members = MemberSerializer(many=True, source="memberships.all")


class TeamFieldsSerializer(serializers.Serializer[Any]):
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


class TeamSearchSerializer(serializers.Serializer[Any]):
    """Which teams."""

    edition = serializers.SlugField(required=False, help_text="Of this edition only.")


class DecisionSerializer(serializers.Serializer[Any]):
    """Whether a team takes part."""

    decision = serializers.ChoiceField(["approve", "decline"])
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000,
                                 help_text="Stands in the mail to the team and on its page.")  # fmt: skip


class InviteSerializer(serializers.Serializer[Any]):
    """Whom to invite."""

    email = serializers.EmailField(max_length=254, help_text="The person joins with an account of this address.")


class InvitationSerializer(serializers.Serializer[Invitation]):
    """A mail that lets its reader join; its secret stands in that mail only."""

    id = serializers.IntegerField()
    email = serializers.EmailField()
    state = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()

    @extend_schema_field(serializers.ChoiceField([state.value for state in InvitationState]))
    def get_state(self, invitation: Invitation) -> str:
        return invitation_state(invitation, timezone.now()).value


class TokenSerializer(serializers.Serializer[AccessToken]):
    """An access token, without its secret."""

    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(AccessToken.Scope.choices))
    expires_at = serializers.DateTimeField(allow_null=True)


class MeSerializer(serializers.Serializer[User]):
    """Who asks, by which token, in which teams, and for which editions."""

    name = serializers.CharField(source="get_full_name")
    email = serializers.EmailField()
    is_organizer = serializers.BooleanField(help_text="May create editions and import corpora.")
    token = TokenSerializer(allow_null=True, help_text="Null for whoever comes by session.")
    teams = TeamSerializer(many=True)
    organises = serializers.ListField(child=serializers.SlugField(), help_text="Names of editions.")
