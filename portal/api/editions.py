"""Editions, their audit log and their leaderboards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.response import Response

from common.errors import ProblemsError
from evaluation.protocols.recipes import shipped_editions
from portal.accounts.models import User
from portal.accounts.selectors import find_organizers
from portal.api.access import Scope, require_organizer
from portal.api.base import WITH_CSV, ApiView, Computed, ModelShape, Shape, TomlRenderer, Who, operation
from portal.api.teams import FullTeamSerializer, TeamFieldsSerializer, TeamSerializer, full
from portal.challenges import services as editing
from portal.challenges.models import Corpus, Edition
from portal.challenges.rules import Phase, publishes_at_once, registration_phase, submission_phase
from portal.challenges.selectors import (
    corpora_for_edition,
    edition_for,
    editions_for,
    editions_organised_by,
    export_recipe,
    managed_edition_for,
)
from portal.core.clock import read_clock
from portal.core.downloads import as_download, csv_response
from portal.core.panels import panel_data
from portal.corpora.selectors import corpus_for
from portal.editions import selectors as proposals
from portal.editions.audit_log import describe_action, describe_details, export_events, select_events
from portal.editions.forms import MOST_ORGANIZERS
from portal.jobs.services import NotPossible
from portal.leaderboard import services
from portal.leaderboard.exports import leaderboard_as_dict, leaderboard_rows
from portal.leaderboard.selectors import leaderboard_for
from portal.submissions.requirements import requires_audio, requires_scores
from portal.teams import services as teams
from portal.teams.selectors import find_chosen_team, list_teams, teams_by_edition

TEXT, FLAG = serializers.CharField(), serializers.BooleanField()
PHASES = {Phase.BEFORE: "before", Phase.OPEN: "open", Phase.LATE: "late", Phase.CLOSED: "closed"}


class EditionFieldsSerializer(ModelShape):
    """The fields of an edition: `protocol` names a shipped recipe, `recipe_text` is a custom recipe instead."""

    protocol = serializers.ChoiceField(shipped_editions(), required=False)
    corpus = serializers.SlugField(
        required=False, allow_null=True, max_length=60, help_text="Its name; null: no speech."
    )
    organizers = serializers.ListField(
        child=serializers.EmailField(max_length=254),
        required=False,
        max_length=MOST_ORGANIZERS,
        help_text="E-mail addresses of accounts, your own among them.",
    )

    class Meta:
        model = Edition
        fields = (*editing.FIELDS, "organizers")
        extra_kwargs: ClassVar[Mapping[str, Any]] = {
            "name": {"validators": []},  # the services ask whether it is taken
            "recipe_text": {"trim_whitespace": False, "allow_blank": False},
        }

    def validate_corpus(self, name: str | None) -> Corpus | None:
        """Return a corpus that the asker may choose."""
        if name is None:
            return None
        corpora = corpora_for_edition(self.context["user"], self.context.get("edition"))
        found = corpora.filter(name=name).first()
        if found is None:
            raise serializers.ValidationError(f"There is no corpus {name} that you may choose.")
        return found

    def validate_organizers(self, addresses: list[str]) -> list[User]:
        """Return the accounts of the addresses; the person who asks stays among them."""
        edition = self.context.get("edition")
        try:
            return find_organizers(
                addresses, by=self.context["user"], present=edition.organizers.all() if edition else ()
            )
        except ProblemsError as error:
            raise serializers.ValidationError(error.problems) from None

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require one recipe: a shipped one has no text of its own."""
        if {"protocol", "recipe_text"} <= attrs.keys():
            raise serializers.ValidationError({"recipe_text": "Give a protocol or a custom recipe, not both."})
        if "protocol" in attrs:
            return attrs | {"recipe_text": ""}
        if "recipe_text" in attrs:
            return attrs | {"recipe_text": attrs["recipe_text"].replace("\r\n", "\n"), "protocol": ""}
        if not self.partial:
            raise serializers.ValidationError(
                {"protocol": "Name a shipped recipe, or give a custom one as recipe_text."}
            )
        return attrs


class CopySerializer(ModelShape):
    """Title and name of the copy."""

    class Meta:
        model = Edition
        fields = ("title", "name")
        extra_kwargs: ClassVar[Mapping[str, Any]] = {"name": {"validators": []}}


class AuditSearchSerializer(Shape):
    """Whose actions."""

    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team only.")


class FreezeSerializer(Shape):
    """The time of the freeze."""

    at = serializers.DateTimeField(required=False, allow_null=True, help_text="A time in the past; now if missing.")


class AuditSerializer(Shape):
    """Something that a person or the portal did."""

    at = serializers.DateTimeField()
    actor = Computed(serializers.CharField(allow_null=True), lambda event, _: event.actor and str(event.actor))
    action = serializers.CharField()
    action_text = Computed(TEXT, lambda event, _: describe_action(event), help_text="The action in words.")
    subject = serializers.CharField()
    kind = Computed(
        TEXT, lambda event, _: event.subject_type.rpartition(".")[2], help_text="What the subject is, such as team."
    )
    details = Computed(TEXT, lambda event, _: describe_details(event))


def _team_number(edition: Edition, context: Mapping[str, Any]) -> int | None:
    team = context["teams"].get(edition.pk)
    return team.pk if team else None


class EditionSerializer(ModelShape):
    """An edition: what is open when, what an archive must hold, and your part in it."""

    protocol = Computed(
        TEXT,
        lambda edition, _: edition.protocol_name,
        help_text="The shipped recipe that it follows; “own” for a custom recipe.",
    )
    registration_phase = Computed(
        serializers.ChoiceField(["before", "open", "closed"]),
        lambda edition, _: PHASES[registration_phase(edition, timezone.now())],
    )
    submission_phase = Computed(
        serializers.ChoiceField(["before", "open", "late", "closed"]),
        lambda edition, _: PHASES[submission_phase(edition, timezone.now())],
    )
    audio_required = Computed(FLAG, lambda edition, _: requires_audio(edition))
    scores_required = Computed(FLAG, lambda edition, _: requires_scores(edition))
    public_at_once = Computed(
        serializers.BooleanField(help_text="Whether the numbers of a submission are public as soon as computed."),
        lambda edition, _: publishes_at_once(edition),
    )
    your_team = Computed(
        serializers.IntegerField(allow_null=True, help_text="Number of your team in this edition."), _team_number
    )
    you_organise = Computed(FLAG, lambda edition, context: edition.pk in context["organised"])

    class Meta:
        model = Edition
        fields = (
            *("name", "title", "description", "protocol", "track", "is_listed"),
            *("registration_phase", "registration_opens_at", "registration_closes_at"),
            *("submission_phase", "submissions_open_at", "submissions_close_at", "late_until"),
            *("speech_kept_until", "speech_deleted_at", "submissions_per_team", "largest_archive_bytes"),
            *("audio_required", "scores_required", "description_required"),
            *("published_at", "recipe_changed_at", "frozen_at", "public_at_once", "your_team", "you_organise"),
        )


# The leaderboard -----------------------------------------------------------------------------------------
class AverageSerializer(Shape):
    """A column of a leaderboard."""

    metric = estimator = label = unit = better = serializers.CharField()  # type: ignore[assignment]


class ReasonSerializer(Shape):
    """A reason, as a code for programs and as a sentence for people."""

    code = text = serializers.CharField()


class MeasuredSerializer(Shape):
    """An average with its interval."""

    value = serializers.FloatField()
    low = high = serializers.FloatField(allow_null=True)
    is_reported = serializers.BooleanField(help_text="Stated by the team; not confirmed by what was submitted.")


class EntrySerializer(Shape):
    """A system on a leaderboard."""

    system = label = title = serializers.CharField()  # type: ignore[assignment]
    team = serializers.CharField(allow_null=True)
    kind = serializers.CharField()
    is_late = is_reported = serializers.BooleanField()
    weak_attack = serializers.ListField(
        child=serializers.CharField(), help_text="Why the attack behind its EER is not reliable; empty where it is."
    )
    doubts = serializers.ListField(
        child=serializers.CharField(), help_text="What stands beside its EER on the page, in some words each."
    )
    averages = serializers.DictField(child=MeasuredSerializer(), help_text="By metric.")


class UnrankableSerializer(EntrySerializer):
    """A system that cannot be ranked."""

    reasons = ReasonSerializer(many=True)


class RowSerializer(EntrySerializer):
    """A system in a ranking."""

    place = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True)
    groups = serializers.ListField(child=serializers.IntegerField())
    reasons = notes = ReasonSerializer(many=True)


class ConditionSerializer(Shape):
    """A minimum EER that a system must reach."""

    number = serializers.IntegerField()
    minimum_eer = below_eer = serializers.FloatField(allow_null=True)
    text = serializers.CharField()


class RankedBySerializer(Shape):
    """The utility that decides."""

    metric = estimator = better = serializers.CharField()


class DistanceSerializer(Shape):
    """How far a system is from a condition."""

    system = serializers.CharField()
    distance = serializers.FloatField()


class RankingSerializer(Shape):
    """One condition by one utility."""

    condition = ConditionSerializer()
    ranked_by = RankedBySerializer()
    rows = RowSerializer(many=True)
    groups = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()), help_text="Systems whose intervals overlap."
    )
    nearest = DistanceSerializer(allow_null=True)
    just_missed = DistanceSerializer(many=True)


class HeardNumberSerializer(Shape):
    """A number of a system; `group`: letters, systems that share one do not differ significantly."""

    by = serializers.ChoiceField(["objective", "listeners"])
    unit = serializers.CharField()
    value = serializers.FloatField()
    low = high = serializers.FloatField(allow_null=True)
    group = serializers.CharField()


class HeardSystemSerializer(Shape):
    """A system that listeners heard, or unprotected speech."""

    system = serializers.CharField(allow_null=True, help_text="Null for unprotected speech.")
    label = remark = serializers.CharField()  # type: ignore[assignment]
    numbers = serializers.DictField(child=HeardNumberSerializer(), help_text="By measure.")


class HeardStudySerializer(Shape):
    """What listeners said in a study, beside the objective averages."""

    study = title = form = serializers.CharField()
    is_simulated = serializers.BooleanField()
    is_preview = serializers.BooleanField(help_text="Only the edition's organizers see it.")
    published_at = serializers.DateTimeField(allow_null=True)
    scores = serializers.CharField(
        allow_null=True, help_text="“normalised”, or “raw” by `scores=raw`; null where there is no such choice."
    )
    systems = HeardSystemSerializer(many=True)


class RuleChangeSerializer(Shape):
    """A change of the rules: what held and what holds, in sentences."""

    at = serializers.DateTimeField()
    before = after = serializers.ListField(child=serializers.CharField())
    is_pending = serializers.BooleanField(help_text="Whether the leaderboard follows only once published again.")


class LeaderboardSerializer(Shape):
    """A leaderboard with its policy, its rankings, and the systems that are in none of them."""

    edition = title = protocol = serializers.CharField()
    published_at = as_of = measured_at = serializers.DateTimeField(allow_null=True)
    changes = RuleChangeSerializer(many=True, help_text="Since it was first published, the newest first.")
    policy = serializers.DictField()
    averages = AverageSerializer(many=True)
    rankings = RankingSerializer(many=True)
    unrankable = UnrankableSerializer(many=True)
    outside = EntrySerializer(many=True, help_text="Baselines and the original speech.")
    listeners = HeardStudySerializer(many=True, required=False, help_text="Where studies of its systems have results.")


# Operations ----------------------------------------------------------------------------------------------
def _context(user: Any) -> dict[str, Any]:
    """Return what the asker is in every edition."""
    return {"teams": teams_by_edition(user), "organised": editions_organised_by(user)}


def shown(user: Any, edition: Edition, status: int = 200) -> Response:
    """Return an edition as the asker sees it."""
    return Response(EditionSerializer(edition, context=_context(user)).data, status=status)


@operation(EditionSerializer(many=True), who=Who.EVERYBODY)
def list_editions(api: ApiView) -> Response:
    """The editions that you may see, the newest first."""
    return api.paginated(editions_for(api.user).filter(archived_at=None), EditionSerializer, **_context(api.user))


@operation(
    EditionSerializer,
    takes=EditionFieldsSerializer,
    status=201,
    who=Who.ORGANIZER,
    example={
        "title": "Autumn challenge",
        "name": "autumn",
        "protocol": "2024",
        "is_listed": True,
        "submissions_close_at": "2027-01-31T12:00:00Z",
        "submissions_per_team": 3,
    },
)
def create_edition(api: ApiView) -> Response:
    """Make an edition, for organizers; with no `organizers` given it is yours alone."""
    require_organizer(api.user)
    fields = {"organizers": [api.user]} | api.body(EditionFieldsSerializer, user=api.user)
    return shown(api.user, editing.create_edition(by=api.user, **fields), 201)


@operation(EditionSerializer, who=Who.EVERYBODY)
def show_edition(api: ApiView, edition: str) -> Response:
    """One edition: its dates, what an archive must hold, and your part in it."""
    return shown(api.user, edition_for(api.user, edition))


@operation(
    EditionSerializer,
    takes=EditionFieldsSerializer,
    example={"is_listed": True, "submissions_close_at": "2027-02-28T12:00:00Z", "submissions_per_team": 5},
)
def change_edition(api: ApiView, edition: str) -> Response:
    """Other fields of an edition that you organise; name, recipe and corpus only until the first submission."""
    managed = managed_edition_for(api.user, edition)
    fields = api.body(EditionFieldsSerializer, partial=True, user=api.user, edition=managed)
    return shown(api.user, editing.change_edition(edition=managed, by=api.user, **fields))


@operation(EditionSerializer, takes=CopySerializer, status=201, example={"title": "Spring challenge", "name": "spring"})
def copy_edition(api: ApiView, edition: str) -> Response:
    """The same edition under another name, without teams and not listed; for organizers."""
    require_organizer(api.user)
    managed = managed_edition_for(api.user, edition)
    return shown(api.user, editing.copy_edition(edition=managed, by=api.user, **api.body(CopySerializer)), 201)


@operation(OpenApiTypes.STR, kinds=[TomlRenderer], who=Who.EVERYBODY)
def show_recipe(api: ApiView, edition: str) -> HttpResponse:
    """The recipe of an edition as a TOML file."""
    chosen = edition_for(api.user, edition)
    return _as_toml(f"{chosen.name}.toml", export_recipe(chosen))


@operation(OpenApiTypes.STR, kinds=[TomlRenderer], who=Who.ORGANIZER)
def propose_recipe(api: ApiView, corpus: str) -> HttpResponse:
    """The recipe that follows from a corpus which you may use, with every default, as a TOML file; for organizers."""
    chosen = corpus_for(api.user, corpus)
    try:
        recipe = proposals.propose_recipe(chosen)
    except ValueError as error:
        raise NotPossible(str(error)) from error
    return _as_toml(f"{chosen.name}.toml", proposals.write_recipe(recipe, chosen))


def _as_toml(name: str, text: str) -> HttpResponse:
    return as_download(HttpResponse(text, content_type="application/toml; charset=utf-8"), name)


@operation(AuditSerializer(many=True), asks=AuditSearchSerializer, kinds=WITH_CSV)
def list_audit(api: ApiView, edition: str) -> HttpResponse:
    """Who did what in an edition that you organise, the newest first; the CSV holds the whole audit log."""
    managed = managed_edition_for(api.user, edition)
    team = find_chosen_team(managed, str(api.query(AuditSearchSerializer).get("team", "")))
    events = select_events(managed, team)
    if api.wants_csv:
        return csv_response(f"audit-{managed.name}.csv", export_events(events.iterator(chunk_size=500)))
    return api.paginated(events, AuditSerializer)


@operation(TeamSerializer(many=True))
def list_teams_of_edition(api: ApiView, edition: str) -> Response:
    """The teams of an edition that you organise, those that wait first."""
    return api.paginated(list_teams(managed_edition_for(api.user, edition)), TeamSerializer)


@operation(
    FullTeamSerializer,
    takes=TeamFieldsSerializer,
    status=201,
    scopes=(Scope.SUBMIT,),
    who=Who.ACCOUNT,
    example={
        "name": "Example team",
        "contact": "Ada Lovelace",
        "contact_email": "ada@university.example",
        "affiliation": "University of Example",
        "country": "FR",
        "is_academic": True,
    },
)
def register_team(api: ApiView, edition: str) -> Response:
    """Register a team while registration is open; you own it, and it submits once an organizer approved it."""
    chosen = edition_for(api.user, edition)
    fields = api.body(TeamFieldsSerializer)
    return full(teams.register_team(edition=chosen, by=api.user, now=timezone.now(), **fields), 201)


@operation(LeaderboardSerializer, kinds=WITH_CSV, who=Who.EVERYBODY)
def show_leaderboard(api: ApiView, edition: str) -> HttpResponse:
    """The leaderboard: everybody's once it is published, its organizers' before. As CSV by `format=csv` or `Accept`."""
    leaderboard = leaderboard_for(api.user, edition)
    if api.wants_csv:
        return csv_response(f"{edition}-leaderboard.csv", leaderboard_rows(leaderboard))
    return Response(leaderboard_as_dict(leaderboard) | panel_data("leaderboard", api.request, leaderboard))


def _changed(api: ApiView, edition: str, service: Callable[..., Edition], **given: Any) -> Response:
    """Do what an organizer does with a leaderboard; the answer is the edition as it then is."""
    managed = managed_edition_for(api.user, edition)
    return shown(api.user, service(edition=managed, by=api.user, **given))


@operation(EditionSerializer)
def publish_leaderboard(api: ApiView, edition: str) -> Response:
    """Publish the leaderboard, after a change of the recipe once more, and notify its teams."""
    return _changed(api, edition, services.publish_leaderboard, now=timezone.now())


@operation(EditionSerializer)
def unpublish_leaderboard(api: ApiView, edition: str) -> Response:
    """Hide the leaderboard from all but its organizers."""
    return _changed(api, edition, services.unpublish_leaderboard)


@operation(EditionSerializer, takes=FreezeSerializer, example={"at": "2026-01-31T12:00:00Z"})
def freeze_leaderboard(api: ApiView, edition: str) -> Response:
    """Freeze the leaderboard to what had been evaluated by a given time, or by now."""
    now = read_clock()
    return _changed(api, edition, services.freeze_leaderboard, at=api.body(FreezeSerializer).get("at") or now, now=now)


@operation(EditionSerializer)
def unfreeze_leaderboard(api: ApiView, edition: str) -> Response:
    """Unfreeze the leaderboard: it follows every evaluation again."""
    return _changed(api, edition, services.unfreeze_leaderboard)
