"""Leaderboards, and what they compute and rank by: their policy and their recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from django.http import HttpResponse
from django.utils import timezone
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from common.toml_files import LARGEST_TOML_BYTES
from evaluation.protocols.ranking.policy import (
    LATE,
    SEVERAL_SYSTEMS,
    Policy,
    make_policy,
    policy_as_dict,
    policy_in_words,
)
from evaluation.protocols.recipes import BASES, shipped_editions
from listening.app.results.pages import chosen_scores
from portal.api.access import HasScope
from portal.api.base import WITH_CSV, ApiViewSet, StrictSerializer, shape
from portal.api.editions import EditionSerializer, answer_edition
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_edition_for
from portal.core.clock import read_clock
from portal.core.downloads import csv_response
from portal.leaderboard import services
from portal.leaderboard.exports import leaderboard_as_dict, leaderboard_rows
from portal.leaderboard.listeners import listeners_as_dict
from portal.leaderboard.selectors import leaderboard_for


class FreezeSerializer(StrictSerializer):
    """The time of the freeze."""

    at = serializers.DateTimeField(required=False, allow_null=True, help_text="A time in the past; now if missing.")


class PolicySerializer(StrictSerializer):
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


class RecipeTextSerializer(StrictSerializer):
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


class LeaderboardViewSet(ApiViewSet):
    """Leaderboards: everybody reads a published one, organizers change theirs."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    serializer_class = EditionSerializer
    answers = {"retrieve": shape("Leaderboard")}
    bodies = {"freeze": FreezeSerializer}
    formats = {"retrieve": WITH_CSV}

    def retrieve(self, request: Request, edition: str) -> HttpResponse:
        """Show the leaderboard: everybody's once it is published, its organizers' before. As CSV by `format=csv`."""
        leaderboard = leaderboard_for(request.user, edition)
        if self.wants_csv:
            return csv_response(f"{edition}-leaderboard.csv", leaderboard_rows(leaderboard))
        said = listeners_as_dict(request.user, leaderboard, chosen_scores(request.query_params))
        return Response(leaderboard_as_dict(leaderboard) | said)

    def _change(self, edition: str, service: Callable[..., Edition], **options: Any) -> Response:
        """Do what an organizer does with a leaderboard; the answer is the edition as it then is."""
        managed = managed_edition_for(self.request.user, edition)
        return answer_edition(self.request, service(edition=managed, by=self.request.user, **options))

    def publish(self, request: Request, edition: str) -> Response:
        """Publish the leaderboard, after a change of the recipe once more, and notify its teams; for organizers."""
        return self._change(edition, services.publish_leaderboard, now=timezone.now())

    def unpublish(self, request: Request, edition: str) -> Response:
        """Hide the leaderboard from all but its organizers."""
        return self._change(edition, services.unpublish_leaderboard)

    def freeze(self, request: Request, edition: str) -> Response:
        """Freeze the leaderboard to what had been evaluated by a given time, or by now; for organizers."""
        now = read_clock()
        return self._change(edition, services.freeze_leaderboard, at=self.read_body().get("at") or now, now=now)

    def unfreeze(self, request: Request, edition: str) -> Response:
        """Unfreeze the leaderboard: it follows every evaluation again; for organizers."""
        return self._change(edition, services.unfreeze_leaderboard)


class PolicyViewSet(ApiViewSet):
    """What the leaderboard of an edition that you organise computes and ranks by."""

    answers = dict.fromkeys(("retrieve", "update", "recipe"), shape("LeaderboardPolicy"))
    bodies = {"update": PolicySerializer, "recipe": RecipeTextSerializer}

    def retrieve(self, request: Request, edition: str) -> Response:
        return _answer_policy(managed_edition_for(request.user, edition))

    def update(self, request: Request, edition: str) -> Response:
        """Rank by another policy, for organizers; what is left out is as the recipe says.

        What is published stays until it is published again.
        """
        managed = managed_edition_for(request.user, edition)
        policy = make_policy(managed.recipe, managed.track, self.read_body())
        return _answer_policy(services.change_policy(edition=managed, policy=policy, now=read_clock(), by=request.user))

    def recipe(self, request: Request, edition: str) -> Response:
        """Change the recipe after the first submission, for organizers: all is evaluated again.

        What is published stays until it is published again. Every reason why it cannot be is among the `errors`.
        """
        managed = managed_edition_for(request.user, edition)
        body = self.read_body()
        chosen = {"text": body.get("recipe_text", "").replace("\r\n", "\n"), "protocol": body.get("protocol", "")}
        return _answer_policy(services.change_recipe(edition=managed, now=read_clock(), by=request.user, **chosen))


def _answer_policy(edition: Edition) -> Response:
    policy = edition.policy
    return Response({"policy": policy_as_dict(policy), "words": policy_in_words(policy)})
