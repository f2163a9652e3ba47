"""Teams, the organizer's decision about them, their invitations, and who the asker is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from django.db.models import prefetch_related_objects
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.access import Scope
from portal.api.base import ApiView
from portal.api.serializers.teams import (
    DecisionSerializer,
    FullTeamSerializer,
    InvitationSerializer,
    InviteSerializer,
    MeSerializer,
    TeamFieldsSerializer,
    TeamSearchSerializer,
    TeamSerializer,
)
from portal.challenges.selectors import managed_editions_for
from portal.teams import selectors
from portal.teams.members import invite_member, leave_team, remove_member, revoke_invitation, transfer_team
from portal.teams.models import Team
from portal.teams.services import approve_team, change_team, decline_team, release_members, withdraw_team


class Me(ApiView):
    @extend_schema(responses=MeSerializer, operation_id="show_me")
    def get(self, request: Request) -> Response:
        """Who you are to the portal, what your token may, your teams and the editions that you organise."""
        user: Any = request.user
        found = SimpleNamespace(
            get_full_name=str(user),
            email=user.email,
            is_organizer=user.is_organizer,
            token=request.auth,
            teams=selectors.own_teams_of(user),
            organises=list(managed_editions_for(user).values_list("name", flat=True)),
        )
        return Response(MeSerializer(found).data)  # type: ignore[arg-type]


class TeamList(ApiView):
    @extend_schema(parameters=[TeamSearchSerializer], responses=TeamSerializer(many=True), operation_id="list_teams")
    def get(self, request: Request) -> Response:
        """Your teams, and those of the editions that you organise."""
        search = self.query(TeamSearchSerializer)
        found = selectors.teams_for(request.user).order_by("-edition__created_at", "number", "name", "pk")
        if "edition" in search:
            found = found.filter(edition__name=search["edition"])
        return self.paginated(found, TeamSerializer)


class TeamDetail(ApiView):
    scopes = {"PATCH": (Scope.ORGANIZE,)}

    @extend_schema(responses=FullTeamSerializer, operation_id="show_team")
    def get(self, request: Request, pk: int) -> Response:
        """One team with its members."""
        return full(selectors.team_for(request.user, pk))

    @extend_schema(request=TeamFieldsSerializer, responses=FullTeamSerializer, operation_id="change_team")
    def patch(self, request: Request, pk: int) -> Response:
        """Other fields of a team, by its owner or the organizers; the name only until the first submission."""
        team = selectors.steered_team_for(request.user, pk)
        fields = self.body(TeamFieldsSerializer, partial=True)
        return full(change_team(team=team, by=request.user, **fields))


class LeaveTeam(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=None, responses={204: None}, operation_id="leave_team")
    def post(self, request: Request, pk: int) -> Response:
        """Leave a team that you belong to and do not own, until its first submission."""
        leave_team(team=selectors.joined_team_for(request.user, pk), by=request.user)
        return Response(status=204)


class WithdrawTeam(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=None, responses=FullTeamSerializer, operation_id="withdraw_team")
    def post(self, request: Request, pk: int) -> Response:
        """Take a team out of its edition, by its owner or the organizers; what it submitted stays."""
        return full(withdraw_team(team=selectors.steered_team_for(request.user, pk), by=request.user))


class ReleaseTeam(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=None, responses=FullTeamSerializer, operation_id="release_members")
    def post(self, request: Request, pk: int) -> Response:
        """Let members of a team of an edition that you organise join and leave until the next submission."""
        return full(release_members(team=selectors.managed_team_for(request.user, pk), by=request.user))


class RemoveMember(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=None, responses=FullTeamSerializer, operation_id="remove_member")
    def post(self, request: Request, pk: int, membership: int) -> Response:
        """Take a member out, by the team's owner or, once it has submitted, the organizers only."""
        team = selectors.steered_team_for(request.user, pk)
        chosen = selectors.member_of(team, membership)
        is_organizer = team.edition.organizers.filter(pk=request.user.pk).exists()
        return full(remove_member(membership=chosen, by=request.user, is_organizer=is_organizer))


class TransferTeam(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=None, responses=FullTeamSerializer, operation_id="transfer_team")
    def post(self, request: Request, pk: int, membership: int) -> Response:
        """Make a member the owner; who was the owner stays as a member."""
        team = selectors.steered_team_for(request.user, pk)
        transfer_team(membership=selectors.member_of(team, membership), by=request.user)
        return full(team)


class DecideTeam(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=DecisionSerializer, responses=FullTeamSerializer, operation_id="decide_team")
    def post(self, request: Request, pk: int) -> Response:
        """Approve or decline a team of an edition that you organise."""
        team = selectors.managed_team_for(request.user, pk)
        wish = self.body(DecisionSerializer)
        service = approve_team if wish["decision"] == "approve" else decline_team
        decided = service(team=team, by=request.user, now=timezone.now(), note=wish["note"].strip())
        return full(decided)


class InvitationList(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(responses=InvitationSerializer(many=True), operation_id="list_invitations")
    def get(self, request: Request, pk: int) -> Response:
        """Whom a team invited; for its owner and the organizers."""
        return self.paginated(selectors.steered_team_for(request.user, pk).invitations.all(), InvitationSerializer)

    @extend_schema(request=InviteSerializer, responses={201: InvitationSerializer}, operation_id="invite_member")
    def post(self, request: Request, pk: int) -> Response:
        """Invite a person by mail; for the team's owner and the organizers."""
        team = selectors.steered_team_for(request.user, pk)
        email = self.body(InviteSerializer)["email"]
        made = invite_member(team=team, email=email, by=request.user, now=timezone.now())
        return Response(InvitationSerializer(made).data, status=201)


class RevokeInvitation(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=None, responses=InvitationSerializer, operation_id="revoke_invitation")
    def post(self, request: Request, pk: int, invitation: int) -> Response:
        """Make the link of an invitation worthless."""
        chosen = selectors.invitation_of(selectors.steered_team_for(request.user, pk), invitation)
        revoked = revoke_invitation(invitation=chosen, by=request.user, now=timezone.now())
        return Response(InvitationSerializer(revoked).data)


def full(team: Team, status: int = 200) -> Response:
    """A team with its people."""
    prefetch_related_objects([team], "memberships__user")
    return Response(FullTeamSerializer(team).data, status=status)
