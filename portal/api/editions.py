"""Editions, what they expect, and their boards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404, HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.access import Scope
from portal.api.base import WITH_CSV, ApiView, TomlRenderer
from portal.api.serializers.edition_fields import (
    AuditSearchSerializer,
    AuditSerializer,
    CopySerializer,
    EditionFieldsSerializer,
)
from portal.api.serializers.editions import BoardSerializer, EditionSerializer, ExpectedSerializer, FreezeSerializer
from portal.api.serializers.teams import FullTeamSerializer, TeamFieldsSerializer, TeamSerializer
from portal.api.teams import full
from portal.challenges.editions import change_edition, copy_edition, create_edition
from portal.challenges.models import Edition
from portal.challenges.selectors import (
    edition_for,
    editions_for,
    editions_organised_by,
    managed_edition_for,
    recipe_text_of,
)
from portal.core.exports import csv_response
from portal.core.panels import panel_data
from portal.results import board_services
from portal.results.board import board_for
from portal.results.board_exports import board_as_dict, board_rows
from portal.submissions.expected import expected_of
from portal.submissions.selectors import corrected_system_for
from portal.teams.audit_trail import trail_of, trail_rows
from portal.teams.models import Team
from portal.teams.selectors import chosen_team_of, team_of, teams_by_edition, teams_of
from portal.teams.services import register_team

TO_ORGANISE = {"POST": (Scope.ORGANIZE,)}


def _context(user: Any) -> dict[str, Any]:
    """What the asker is in every edition."""
    return {"teams": teams_by_edition(user), "organised": editions_organised_by(user)}


def shown(user: Any, edition: Edition, status: int = 200) -> Response:
    """An edition as the asker sees it."""
    return Response(EditionSerializer(edition, context=_context(user)).data, status=status)


def _require_organizer(user: Any) -> None:
    """Editions are made by organizers; to others there is nothing here."""
    if not (user.is_authenticated and user.is_organizer):
        raise Http404


class EditionList(ApiView):
    is_open = True
    scopes = TO_ORGANISE

    @extend_schema(responses=EditionSerializer(many=True), operation_id="list_editions")
    def get(self, request: Request) -> Response:
        """The editions that you may see, the newest first."""
        return self.paginated(editions_for(request.user), EditionSerializer, **_context(request.user))

    @extend_schema(request=EditionFieldsSerializer, responses={201: EditionSerializer}, operation_id="create_edition")
    def post(self, request: Request) -> Response:
        """Make an edition, for organizers; with no `organizers` given it is yours alone."""
        _require_organizer(request.user)
        fields = {"organizers": [request.user]} | self.body(EditionFieldsSerializer, user=request.user)
        return shown(request.user, create_edition(by=request.user, **fields), 201)


class EditionDetail(ApiView):
    is_open = True
    scopes = {"PATCH": (Scope.ORGANIZE,)}

    @extend_schema(responses=EditionSerializer, operation_id="show_edition")
    def get(self, request: Request, edition: str) -> Response:
        """One edition: its dates, what an archive has to hold, and what you are in it."""
        return shown(request.user, edition_for(request.user, edition))

    @extend_schema(request=EditionFieldsSerializer, responses=EditionSerializer, operation_id="change_edition")
    def patch(self, request: Request, edition: str) -> Response:
        """Other fields of an edition that you organise; name, recipe and corpus only until the first submission."""
        managed = managed_edition_for(request.user, edition)
        fields = self.body(EditionFieldsSerializer, partial=True, user=request.user, edition=managed)
        return shown(request.user, change_edition(edition=managed, by=request.user, **fields))


class CopyEdition(ApiView):
    scopes = TO_ORGANISE

    @extend_schema(request=CopySerializer, responses={201: EditionSerializer}, operation_id="copy_edition")
    def post(self, request: Request, edition: str) -> Response:
        """The same edition under another name, without teams and not listed; for organizers."""
        _require_organizer(request.user)
        managed = managed_edition_for(request.user, edition)
        return shown(request.user, copy_edition(edition=managed, by=request.user, **self.body(CopySerializer)), 201)


class RecipeText(ApiView):
    is_open = True
    renderer_classes = [TomlRenderer]

    @extend_schema(responses={(200, "application/toml"): OpenApiTypes.STR}, operation_id="show_recipe")
    def get(self, request: Request, edition: str) -> HttpResponse:
        """The recipe of an edition as a TOML file."""
        chosen = edition_for(request.user, edition)
        headers = {"Content-Disposition": f'attachment; filename="{chosen.name}.toml"'}
        return HttpResponse(recipe_text_of(chosen), content_type="application/toml; charset=utf-8", headers=headers)


class Audit(ApiView):
    renderer_classes = WITH_CSV

    @extend_schema(
        parameters=[AuditSearchSerializer],
        responses={(200, "application/json"): AuditSerializer(many=True), (200, "text/csv"): OpenApiTypes.STR},
        operation_id="list_audit",
    )
    def get(self, request: Request, edition: str) -> HttpResponse:
        """Who did what in an edition that you organise, the newest first; the CSV holds the whole trail."""
        managed = managed_edition_for(request.user, edition)
        team = chosen_team_of(managed, str(self.query(AuditSearchSerializer).get("team", "")))
        events = trail_of(managed, team)
        if self.wants_csv:
            return csv_response(f"audit-{managed.name}.csv", trail_rows(events.iterator(chunk_size=500)))
        return self.paginated(events, AuditSerializer)


class Expected(ApiView):
    @extend_schema(
        parameters=[
            OpenApiParameter(
                "system", str, description="Name or label of one of your systems: what its next version would inherit."
            )
        ],
        responses=ExpectedSerializer,
        operation_id="show_expected",
    )
    def get(self, request: Request, edition: str) -> HttpResponse:
        """What an archive is held against, as `vp verify` reads it; for members of approved teams and organizers."""
        chosen = edition_for(request.user, edition)
        _require_taking_part(request.user, chosen)
        wanted = request.query_params.get("system", "")
        system = corrected_system_for(request.user, chosen, wanted) if wanted else None
        name = f"{system.name if system else chosen.name}-expected.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        text = expected_of(chosen, system=system).to_json()
        return HttpResponse(text, content_type="application/json", headers=headers)


def _require_taking_part(user: Any, edition: Edition) -> None:
    """Names and hashes of the originals are for those who were given the corpus."""
    team = team_of(user, edition)
    takes_part = team is not None and team.state == Team.State.APPROVED
    if not takes_part and not edition.organizers.filter(pk=user.pk).exists():
        raise Http404


class EditionTeams(ApiView):
    scopes = {"POST": (Scope.SUBMIT,)}

    @extend_schema(responses=TeamSerializer(many=True), operation_id="list_teams_of_edition")
    def get(self, request: Request, edition: str) -> Response:
        """The teams of an edition that you organise, those that wait first."""
        return self.paginated(teams_of(managed_edition_for(request.user, edition)), TeamSerializer)

    @extend_schema(request=TeamFieldsSerializer, responses={201: FullTeamSerializer}, operation_id="register_team")
    def post(self, request: Request, edition: str) -> Response:
        """Register a team while registration is open; you own it, and it submits once an organizer approved it."""
        chosen = edition_for(request.user, edition)
        fields = self.body(TeamFieldsSerializer)
        return full(register_team(edition=chosen, by=request.user, now=timezone.now(), **fields), 201)


class BoardDetail(ApiView):
    is_open = True
    renderer_classes = WITH_CSV

    @extend_schema(
        responses={(200, "application/json"): BoardSerializer, (200, "text/csv"): OpenApiTypes.STR},
        operation_id="show_board",
    )
    def get(self, request: Request, edition: str) -> HttpResponse:
        """The board: everybody's once it is published, its organizers' before. As CSV by `format=csv` or `Accept`."""
        board = board_for(request.user, edition)
        if self.wants_csv:
            return csv_response(f"{edition}-board.csv", board_rows(board))
        return Response(board_as_dict(board) | panel_data("board", request, board))


class BoardDeed(ApiView):
    """What an organizer does with a board; the answer is the edition as it then is."""

    scopes = TO_ORGANISE

    def do(self, edition: str, service: Callable[..., Edition], **given: Any) -> Response:
        managed = managed_edition_for(self.request.user, edition)
        changed = service(edition=managed, by=self.request.user, **given)
        return shown(self.request.user, changed)


class PublishBoard(BoardDeed):
    @extend_schema(request=None, responses=EditionSerializer, operation_id="publish_board")
    def post(self, request: Request, edition: str) -> Response:  # noqa: ARG002
        """Show the board to everybody and tell its teams."""
        return self.do(edition, partial(board_services.publish_board, now=timezone.now()))


class UnpublishBoard(BoardDeed):
    @extend_schema(request=None, responses=EditionSerializer, operation_id="unpublish_board")
    def post(self, request: Request, edition: str) -> Response:  # noqa: ARG002
        """Hide the board from all but its organizers."""
        return self.do(edition, board_services.unpublish_board)


class FreezeBoard(BoardDeed):
    @extend_schema(request=FreezeSerializer, responses=EditionSerializer, operation_id="freeze_board")
    def post(self, request: Request, edition: str) -> Response:  # noqa: ARG002
        """Let the board rest on what had been evaluated by a time, or by now."""
        now = timezone.now()
        at = self.body(FreezeSerializer).get("at") or now
        return self.do(edition, board_services.freeze_board, at=at, now=now)


class UnfreezeBoard(BoardDeed):
    @extend_schema(request=None, responses=EditionSerializer, operation_id="unfreeze_board")
    def post(self, request: Request, edition: str) -> Response:  # noqa: ARG002
        """Let the board follow every evaluation again."""
        return self.do(edition, board_services.unfreeze_board)
