"""Policies of boards as the API takes and gives them."""

from __future__ import annotations

from typing import Any, get_args

from rest_framework import serializers

from evaluation.metrics.averages import Policy
from evaluation.protocols.board_policy import BASES, LATE, SEVERAL_SYSTEMS


class PolicySerializer(serializers.Serializer[Any]):
    """What an organizer may decide about a board."""

    minimum_eers = serializers.ListField(
        child=serializers.FloatField(), required=False, help_text="Of each condition, in per cent, ascending."
    )
    policy = serializers.ChoiceField(
        get_args(Policy), required=False,
        help_text="Whether a system competes in every condition that it meets, or in the last of these.",
    )  # fmt: skip
    inclusive = serializers.BooleanField(
        required=False, help_text="Whether an average exactly at a minimum reaches it."
    )
    note_within = serializers.FloatField(required=False, help_text="Averages this close to a minimum are noted.")
    gates = serializers.DictField(
        child=serializers.FloatField(allow_null=True), required=False,
        help_text="Further minima of the recipe by metric; null for none.",
    )  # fmt: skip
    late = serializers.ChoiceField(LATE, required=False)
    basis = serializers.ChoiceField(BASES, required=False, help_text="Whether claimed numbers are ranked too.")
    several_systems = serializers.ChoiceField(SEVERAL_SYSTEMS, required=False, help_text="Of one team.")


class LivePolicySerializer(serializers.Serializer[Any]):
    """A policy with all that decides a place, and in sentences."""

    policy = serializers.DictField()
    words = serializers.ListField(child=serializers.CharField())


class MoveSerializer(serializers.Serializer[Any]):
    """A system whose place differs."""

    system = serializers.CharField(source="entry.key")
    label = serializers.CharField(source="entry.label")  # type: ignore[assignment]
    before = serializers.CharField(help_text="Its rank, or why it has none.")
    after = serializers.CharField()
    direction = serializers.ChoiceField(["up", "down", "same"])


class ConditionMovesSerializer(serializers.Serializer[Any]):
    """What happens in one condition."""

    condition = serializers.CharField(source="title")
    ranked_by = serializers.CharField(source="utility")
    is_new = serializers.BooleanField()
    is_gone = serializers.BooleanField()
    moves = MoveSerializer(many=True)
    unmoved = serializers.IntegerField(help_text="How many keep their place.")


class DraftSerializer(serializers.Serializer[Any]):
    """A draft beside the live policy."""

    policy = serializers.DictField(allow_null=True)
    words = serializers.ListField(child=serializers.CharField())
    changes = ConditionMovesSerializer(many=True)
