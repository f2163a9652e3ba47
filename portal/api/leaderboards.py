"""What a leaderboard computes and ranks by: its policy and its recipe."""

from __future__ import annotations

from typing import Any, get_args

from rest_framework import serializers
from rest_framework.response import Response

from common.toml_files import LARGEST_TOML_BYTES
from evaluation.protocols.ranking.conditions import Policy
from evaluation.protocols.ranking.policy import (
    LATE,
    SEVERAL_SYSTEMS,
    make_policy,
    policy_as_dict,
    policy_in_words,
)
from evaluation.protocols.recipes import BASES, shipped_editions
from portal.api.base import ApiView, Shape, operation
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_edition_for
from portal.core.clock import read_clock
from portal.leaderboard import services
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


class WholePolicySerializer(Shape):
    """A policy with everything that decides a rank, also in sentences."""

    policy = serializers.DictField()
    words = serializers.ListField(child=serializers.CharField())


class RecipeTextSerializer(Shape):
    """A recipe: `recipe_text`, or the name of a shipped one as `protocol`."""

    protocol = serializers.ChoiceField(shipped_editions(), required=False)
    recipe_text = serializers.CharField(
        required=False, trim_whitespace=False, max_length=LARGEST_TOML_BYTES, help_text="TOML."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require one recipe."""
        if ("protocol" in attrs) is ("recipe_text" in attrs):
            raise serializers.ValidationError({"recipe_text": "Give recipe_text, or a protocol instead."})
        return attrs


@operation(WholePolicySerializer)
def show_policy(api: ApiView, edition: str) -> Response:
    """Show what the leaderboard of an edition that you organise ranks by."""
    return _policy(managed_edition_for(api.user, edition))


@operation(
    WholePolicySerializer,
    takes=PolicySerializer,
    example={"minimum_eers": [10, 20, 30, 40], "policy": "cumulative", "inclusive": True, "several_systems": "best"},
)
def change_policy(api: ApiView, edition: str) -> Response:
    """Rank by another policy; what is left out is as the recipe says. What is published stays until the next time."""
    managed = managed_edition_for(api.user, edition)
    policy = make_policy(managed.recipe, managed.track, api.body(PolicySerializer))
    return _policy(services.change_policy(edition=managed, policy=policy, now=read_clock(), by=api.user))


@operation(WholePolicySerializer, takes=RecipeTextSerializer, example={"protocol": "2022"})
def change_recipe(api: ApiView, edition: str) -> Response:
    """Change the recipe after the first submission: all is evaluated again, and what is published stays.

    Every reason why it cannot be is among the `errors`.
    """
    managed = managed_edition_for(api.user, edition)
    fields = api.body(RecipeTextSerializer)
    given = {"text": fields.get("recipe_text", "").replace("\r\n", "\n"), "protocol": fields.get("protocol", "")}
    return _policy(services.change_recipe(edition=managed, now=read_clock(), by=api.user, **given))


def _policy(edition: Edition) -> Response:
    policy = policy_by(edition, edition.leaderboard_policy)
    found = {"policy": policy_as_dict(policy), "words": policy_in_words(policy)}
    return Response(WholePolicySerializer(found).data)
