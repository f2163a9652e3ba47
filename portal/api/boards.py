"""What a board ranks by: the live policy, the draft that an organizer tries out, and who would move."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.protocols.board_policy import policy_as_dict, policy_in_words, policy_of
from portal.api.access import Scope
from portal.api.base import ApiView
from portal.api.serializers.boards import DraftSerializer, LivePolicySerializer, PolicySerializer
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_edition_for
from portal.results import board_services
from portal.results.board import policy_by
from portal.results.board_policy_pages import policy_page


class LivePolicy(ApiView):
    @extend_schema(responses=LivePolicySerializer, operation_id="show_live_policy")
    def get(self, request: Request, edition: str) -> Response:
        """What the board of an edition that you organise ranks by."""
        return _live(managed_edition_for(request.user, edition))


class MakeLive(ApiView):
    scopes = {"POST": (Scope.ORGANIZE,)}

    @extend_schema(request=None, responses=LivePolicySerializer, operation_id="make_policy_live")
    def post(self, request: Request, edition: str) -> Response:
        """Rank the board by the draft from now on."""
        managed = managed_edition_for(request.user, edition)
        return _live(board_services.make_policy_live(edition=managed, by=request.user))


class DraftPolicy(ApiView):
    scopes = dict.fromkeys(("PUT", "DELETE"), (Scope.ORGANIZE,))

    @extend_schema(responses=DraftSerializer, operation_id="show_draft_policy")
    def get(self, request: Request, edition: str) -> Response:
        """The draft, and what it would change; `policy` is null where there is none."""
        return _draft(managed_edition_for(request.user, edition))

    @extend_schema(request=PolicySerializer, responses=DraftSerializer, operation_id="draft_policy")
    def put(self, request: Request, edition: str) -> Response:
        """Try a policy out: whatever is left out is as the recipe says. One that is live already leaves no draft."""
        managed = managed_edition_for(request.user, edition)
        policy = policy_of(managed.recipe, managed.track, self.body(PolicySerializer))
        return _draft(board_services.save_draft_policy(edition=managed, policy=policy, by=request.user))

    @extend_schema(request=None, responses={204: None}, operation_id="discard_draft_policy")
    def delete(self, request: Request, edition: str) -> Response:
        """Forget the draft."""
        managed = managed_edition_for(request.user, edition)
        board_services.discard_draft_policy(edition=managed, by=request.user)
        return Response(status=204)


def _live(edition: Edition) -> Response:
    policy = policy_by(edition, edition.board_policy)
    found = {"policy": policy_as_dict(policy), "words": policy_in_words(policy)}
    return Response(LivePolicySerializer(found).data)


def _draft(edition: Edition) -> Response:
    page = policy_page(edition)
    policy = page["draft"].policy if "draft" in page else None
    found = {
        "policy": policy_as_dict(policy) if policy else None,
        "words": policy_in_words(policy) if policy else [],
        "changes": page.get("changes", []),
    }
    return Response(DraftSerializer(found).data)
