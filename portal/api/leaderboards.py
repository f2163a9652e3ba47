"""What a leaderboard ranks by: its policy, the versions of its recipe, drafts of both, and who would move."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.response import Response

from common.tables import DataTable
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
from portal.api.base import WITH_CSV, ApiView, Computed, LineField, Shape, Who, operation
from portal.challenges.models import Edition
from portal.challenges.selectors import export_version, managed_edition_for
from portal.core.clock import read_clock
from portal.core.downloads import csv_response
from portal.leaderboard import services
from portal.leaderboard.changes import list_version_changes
from portal.leaderboard.policy.pages import policy_page
from portal.leaderboard.recipe_versions.pages import (
    comparison_of,
    comparison_rows,
    is_published_version,
)
from portal.leaderboard.selectors import VersionView, policy_by, version_for, versions_for

TEXT = serializers.CharField()


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
    """Rank the leaderboard by the draft from now on; once something was submitted, that is a version of the recipe."""
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


# Versions of the recipe ----------------------------------------------------------------------------------
NUMBER = serializers.FloatField(allow_null=True)
RANK = serializers.IntegerField(allow_null=True)


class RecipeVersionSerializer(Shape):
    """A version of the recipe of an edition."""

    number = serializers.IntegerField()
    state = serializers.ChoiceField(["draft", "adopted", "withdrawn"])
    note = serializers.CharField(help_text="Why there is this version.")
    created_at = serializers.DateTimeField()
    adopted_at = withdrawn_at = serializers.DateTimeField(allow_null=True)
    is_in_use = Computed(
        serializers.BooleanField(help_text="Whether submissions are evaluated by it."),
        lambda one, _: one.number == one.edition.recipe_number,
    )
    is_published = Computed(
        serializers.BooleanField(help_text="Whether the published leaderboard is by it."),
        lambda one, _: is_published_version(one.edition, one),
    )


class ChangeSerializer(Shape):
    """A value of the recipe that differs; null where there is none."""

    key = serializers.CharField()
    before = after = serializers.CharField(allow_null=True)


class LackingSerializer(Shape):
    """A system without a number that the version ranks by."""

    label = reasons = serializers.CharField()  # type: ignore[assignment]


class ComparedSystemSerializer(Shape):
    """A system in one ranking by two versions."""

    minimum_eer = below_eer = NUMBER
    ranked_by = estimator = system = label = team = place_before = place_after = TEXT  # type: ignore[assignment]
    rank_before = rank_after = RANK
    eer_before = eer_after = eer_difference = value_before = value_after = difference = NUMBER


class WholeRecipeVersionSerializer(RecipeVersionSerializer):
    """A version with its text, what it changes and who moves."""

    follows = serializers.IntegerField(allow_null=True, help_text="The version that it is compared with.")
    recipe_text = serializers.CharField(help_text="TOML.")
    changes = ChangeSerializer(many=True)
    summary = serializers.CharField(help_text="How many move, in words; empty where you may not see it.")
    lacking = LackingSerializer(many=True)
    moves = ComparedSystemSerializer(many=True, help_text="Each system in each ranking, where you may see it.")


class ProposalSerializer(Shape):
    """A version to propose: `recipe_text`, or the name of a shipped recipe as `protocol`."""

    protocol = serializers.ChoiceField(shipped_editions(), required=False)
    recipe_text = serializers.CharField(
        required=False, trim_whitespace=False, max_length=LARGEST_TOML_BYTES, help_text="TOML."
    )
    note = LineField(max_length=300, help_text="Why there is this version.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One recipe."""
        if ("protocol" in attrs) is ("recipe_text" in attrs):
            raise serializers.ValidationError({"recipe_text": "Give recipe_text, or a protocol instead."})
        return attrs


@operation(RecipeVersionSerializer(many=True), who=Who.EVERYBODY)
def list_versions(api: ApiView, edition: str) -> Response:
    """The versions of the recipe: adopted ones for who may see the leaderboard, all for its organizers."""
    _, _, found = versions_for(api.user, edition)
    return api.paginated(found, RecipeVersionSerializer)


@operation(WholeRecipeVersionSerializer, kinds=WITH_CSV, who=Who.EVERYBODY)
def show_version(api: ApiView, edition: str, number: int) -> HttpResponse:
    """One version: its text, what it changes, and who moves once it is published. As CSV: who moves."""
    view = version_for(api.user, edition, number)
    if api.wants_csv:
        return csv_response(f"{edition}-version-{number}-moves.csv", comparison_rows(comparison_of(view)))
    return _version(view)


@operation(
    WholeRecipeVersionSerializer,
    takes=ProposalSerializer,
    status=201,
    example={"protocol": "2022", "note": "The conditions of the challenge of 2022."},
)
def propose_version(api: ApiView, edition: str) -> Response:
    """Propose a version as a draft; every reason why it cannot be is among the `errors`."""
    managed = managed_edition_for(api.user, edition)
    fields = api.body(ProposalSerializer)
    given = {"text": fields.get("recipe_text", "").replace("\r\n", "\n"), "protocol": fields.get("protocol", "")}
    made = services.propose_version(edition=managed, note=fields["note"], by=api.user, **given)
    return _version(version_for(api.user, edition, made.number), 201)


@operation(WholeRecipeVersionSerializer)
def adopt_version(api: ApiView, edition: str, number: int) -> Response:
    """Adopt a draft; a published leaderboard stays as it is until it is published again."""
    managed = managed_edition_for(api.user, edition)
    version_for(api.user, edition, number)  # or "not found"
    services.adopt_version(edition=managed, number=number, now=read_clock(), by=api.user)
    return _version(version_for(api.user, edition, number))


@operation(WholeRecipeVersionSerializer)
def withdraw_version(api: ApiView, edition: str, number: int) -> Response:
    """Withdraw a draft."""
    managed = managed_edition_for(api.user, edition)
    version_for(api.user, edition, number)  # or "not found"
    services.withdraw_version(edition=managed, number=number, now=read_clock(), by=api.user)
    return _version(version_for(api.user, edition, number))


def _version(view: VersionView, status: int = 200) -> Response:
    version, before = view.version, view.before
    changes = list_version_changes(view.edition, before, version) if before else []
    comparison = comparison_of(view) if view.may_compare else None
    head, *rows = comparison_rows(comparison) if comparison else [()]
    found = RecipeVersionSerializer(version).data | {
        "follows": before.number if before else None,
        "recipe_text": export_version(version),
        "changes": [asdict(one) for one in changes],
        "summary": " ".join(comparison.sentences) if comparison else "",
        "lacking": [{"label": label, "reasons": said} for label, said in comparison.lacking] if comparison else [],
        "moves": DataTable(head, rows).records(),
    }
    return Response(found, status=status)


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
