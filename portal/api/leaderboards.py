"""What a leaderboard ranks by: the live policy, the draft that an organizer tries out, and who would move."""

from __future__ import annotations

from typing import get_args

from rest_framework import serializers
from rest_framework.response import Response

from evaluation.metrics.averages import Policy
from evaluation.protocols.ranking.policy import (
    BASES,
    LATE,
    SEVERAL_SYSTEMS,
    make_policy,
    policy_as_dict,
    policy_in_words,
)
from portal.api.base import ApiView, Shape, operation
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_edition_for
from portal.leaderboard import services
from portal.leaderboard.policy_pages import policy_page
from portal.leaderboard.selectors import policy_by


class PolicySerializer(Shape):
    """What an organizer may decide about a leaderboard."""

    minimum_eers = serializers.ListField(
        child=serializers.FloatField(), required=False, help_text="Limit of each condition, in per cent, ascending."
    )
    policy = serializers.ChoiceField(
        get_args(Policy),
        required=False,
        help_text="Whether a system competes in every condition that it meets, or in the last of these.",
    )
    inclusive = serializers.BooleanField(
        required=False, help_text="Whether an average exactly at a minimum reaches it."
    )
    note_within = serializers.FloatField(required=False, help_text="Averages this close to a minimum are noted.")
    gates = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        required=False,
        help_text="Further minima of the recipe by metric; null for none.",
    )
    late = serializers.ChoiceField(LATE, required=False)
    basis = serializers.ChoiceField(BASES, required=False, help_text="Whether reported numbers are ranked too.")
    several_systems = serializers.ChoiceField(SEVERAL_SYSTEMS, required=False, help_text="How those of a team rank.")


class LivePolicySerializer(Shape):
    """A policy with everything that decides a rank, also in sentences."""

    policy = serializers.DictField()
    words = serializers.ListField(child=serializers.CharField())


class MoveSerializer(Shape):
    """A system whose rank changes."""

    system = serializers.CharField(source="entry.key")
    label = serializers.CharField(source="entry.label")  # type: ignore[assignment]
    before = serializers.CharField(help_text="Its rank, or why it has none.")
    after = serializers.CharField()
    direction = serializers.ChoiceField(["up", "down", "same"])


class ConditionMovesSerializer(Shape):
    """What happens in one condition."""

    condition = serializers.CharField(source="title")
    ranked_by = serializers.CharField(source="utility")
    is_new = is_gone = serializers.BooleanField()
    moves = MoveSerializer(many=True)
    unmoved = serializers.IntegerField(help_text="How many keep their rank.")


class DraftSerializer(Shape):
    """A draft beside the live policy."""

    policy = serializers.DictField(allow_null=True)
    words = serializers.ListField(child=serializers.CharField())
    changes = ConditionMovesSerializer(many=True)


@operation(LivePolicySerializer)
def show_live_policy(api: ApiView, edition: str) -> Response:
    """What the leaderboard of an edition that you organise ranks by."""
    return _live(managed_edition_for(api.user, edition))


@operation(LivePolicySerializer)
def make_policy_live(api: ApiView, edition: str) -> Response:
    """Rank the leaderboard by the draft from now on."""
    return _live(services.make_policy_live(edition=managed_edition_for(api.user, edition), by=api.user))


@operation(DraftSerializer)
def show_draft_policy(api: ApiView, edition: str) -> Response:
    """The draft, and what it would change; `policy` is null where there is none."""
    return _draft(managed_edition_for(api.user, edition))


@operation(
    DraftSerializer,
    takes=PolicySerializer,
    example={"minimum_eers": [10, 20, 30, 40], "policy": "cumulative", "inclusive": True, "several_systems": "best"},
)
def draft_policy(api: ApiView, edition: str) -> Response:
    """Try a policy out: whatever is left out is as the recipe says. One that is live already leaves no draft."""
    managed = managed_edition_for(api.user, edition)
    policy = make_policy(managed.recipe, managed.track, api.body(PolicySerializer))
    return _draft(services.save_draft_policy(edition=managed, policy=policy, by=api.user))


@operation(None, status=204)
def discard_draft_policy(api: ApiView, edition: str) -> Response:
    """Discard the draft."""
    services.discard_draft_policy(edition=managed_edition_for(api.user, edition), by=api.user)
    return Response(status=204)


def _live(edition: Edition) -> Response:
    policy = policy_by(edition, edition.leaderboard_policy)
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
