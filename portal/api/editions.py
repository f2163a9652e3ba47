"""Editions, their recipes and their audit log."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils import timezone
from django.utils.functional import cached_property
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import IsAuthenticatedOrReadOnly
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import NotPossible, ProblemsError
from evaluation.protocols.recipes import shipped_editions
from portal.accounts.models import User
from portal.accounts.selectors import find_organizers
from portal.api.access import HasScope, IsOrganizer
from portal.api.base import WITH_CSV, ApiViewSet, StrictModelSerializer, TomlRenderer
from portal.challenges import services as editing
from portal.challenges.models import EDITION_FIELDS, Corpus, Edition
from portal.challenges.rules import Phase, publishes_at_once, registration_phase, submission_phase
from portal.challenges.selectors import (
    corpora_for_edition,
    edition_for,
    editions_for,
    editions_organised_by,
    export_recipe,
    managed_edition_for,
)
from portal.core.downloads import as_download, csv_response
from portal.core.models import AuditEvent
from portal.corpora.selectors import corpus_for
from portal.editions import selectors as proposals
from portal.editions.audit_log import describe_action, describe_details, export_events, select_events
from portal.editions.forms import MOST_ORGANIZERS
from portal.submissions.requirements import requires_audio, requires_scores
from portal.teams.models import Team
from portal.teams.selectors import find_chosen_team, teams_by_edition

PHASES = {Phase.BEFORE: "before", Phase.OPEN: "open", Phase.LATE: "late", Phase.CLOSED: "closed"}


class EditionFieldsSerializer(StrictModelSerializer):
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
        fields = (*EDITION_FIELDS, "organizers")
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "name": {"validators": []},  # the services ask whether it is taken
            "recipe_text": {"trim_whitespace": False, "allow_blank": False},
        }

    def validate_corpus(self, name: str | None) -> Corpus | None:
        """Return a corpus that the asker may choose."""
        if name is None:
            return None
        corpora = corpora_for_edition(self.context["request"].user, self.context.get("edition"))
        found = corpora.filter(name=name).first()
        if found is None:
            raise serializers.ValidationError(f"There is no corpus {name} that you may choose.")
        return found

    def validate_organizers(self, addresses: list[str]) -> list[User]:
        """Return the accounts of the addresses; the person who asks stays among them."""
        edition = self.context.get("edition")
        try:
            return find_organizers(
                addresses, by=self.context["request"].user, present=edition.organizers.all() if edition else ()
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


class CopySerializer(StrictModelSerializer):
    """Title and name of the copy."""

    class Meta:
        model = Edition
        fields = ("title", "name")
        extra_kwargs: ClassVar[dict[str, Any]] = {"name": {"validators": []}}


class AuditSearchSerializer(serializers.Serializer[Any]):
    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team only.")


class AuditSerializer(serializers.ModelSerializer[AuditEvent]):
    """Something that a person or, without an actor, the portal did; `kind` says what the subject is, such as team."""

    actor = serializers.StringRelatedField[User](allow_null=True)
    action_text = serializers.SerializerMethodField()
    kind = serializers.SerializerMethodField()
    details = serializers.SerializerMethodField()

    class Meta:
        model = AuditEvent
        fields = ("at", "actor", "action", "action_text", "subject", "kind", "details")

    def get_action_text(self, event: AuditEvent) -> str:
        return describe_action(event)

    def get_kind(self, event: AuditEvent) -> str:
        return event.subject_type.rpartition(".")[2]

    def get_details(self, event: AuditEvent) -> str:
        return describe_details(event)


class EditionSerializer(serializers.ModelSerializer[Edition]):
    """An edition: what is open when, what an archive must hold, and your part in it.

    `protocol`: the shipped recipe that it follows, “own” for a custom one. `public_at_once`: whether the numbers of a
    submission are public as soon as computed. `your_team`: number of your team in this edition.
    """

    protocol = serializers.CharField(source="protocol_name")
    registration_phase = serializers.SerializerMethodField()
    submission_phase = serializers.SerializerMethodField()
    audio_required = serializers.SerializerMethodField()
    scores_required = serializers.SerializerMethodField()
    public_at_once = serializers.SerializerMethodField()
    your_team = serializers.SerializerMethodField()
    you_organise = serializers.SerializerMethodField()

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

    @cached_property
    def _teams(self) -> dict[int, Team]:
        return teams_by_edition(self.context["request"].user)

    @cached_property
    def _organised(self) -> set[int]:
        return editions_organised_by(self.context["request"].user)

    def get_registration_phase(self, edition: Edition) -> str:
        return PHASES[registration_phase(edition, timezone.now())]

    def get_submission_phase(self, edition: Edition) -> str:
        return PHASES[submission_phase(edition, timezone.now())]

    def get_audio_required(self, edition: Edition) -> bool:
        return requires_audio(edition)

    def get_scores_required(self, edition: Edition) -> bool:
        return requires_scores(edition)

    def get_public_at_once(self, edition: Edition) -> bool:
        return publishes_at_once(edition)

    def get_your_team(self, edition: Edition) -> int | None:
        return self._teams[edition.pk].pk if edition.pk in self._teams else None

    def get_you_organise(self, edition: Edition) -> bool:
        return edition.pk in self._organised


def answer_edition(request: Request, edition: Edition, status: int = 200) -> Response:
    """Return an edition as the asker sees it."""
    return Response(EditionSerializer(edition, context={"request": request}).data, status=status)


def answer_recipe(name: str, text: str) -> HttpResponse:
    """Return a recipe as a TOML file."""
    return as_download(HttpResponse(text, content_type="application/toml; charset=utf-8"), f"{name}.toml")


class EditionViewSet(ListModelMixin, RetrieveModelMixin, ApiViewSet):
    """The editions that you may see, the newest first: dates, what an archive must hold, and your part in them."""

    permission_classes = [IsAuthenticatedOrReadOnly, HasScope]
    serializer_class = EditionSerializer
    lookup_field = "name"
    lookup_url_kwarg = "edition"
    answers = {"recipe": OpenApiTypes.STR}
    bodies = {"create": EditionFieldsSerializer, "partial_update": EditionFieldsSerializer, "copy": CopySerializer}
    formats = {"recipe": [TomlRenderer]}

    def get_queryset(self) -> Any:
        editions = editions_for(self.request.user)
        return editions.filter(archived_at=None) if self.action == "list" else editions

    def get_permissions(self) -> Any:
        return [HasScope(), IsOrganizer()] if self.action in {"create", "copy"} else super().get_permissions()

    def create(self, request: Request) -> Response:
        """Make an edition, for organizers; with no `organizers` given it is yours alone."""
        fields = {"organizers": [request.user]} | self.read_body()
        return answer_edition(request, editing.create_edition(by=request.user, **fields), 201)

    def partial_update(self, request: Request, edition: str) -> Response:
        """Change an edition that you organise; name, recipe and corpus only until the first submission."""
        managed = managed_edition_for(request.user, edition)
        fields = self.read_body(edition=managed)
        return answer_edition(request, editing.change_edition(edition=managed, by=request.user, **fields))

    def copy(self, request: Request, edition: str) -> Response:
        """Make the same edition under another name, without teams and not listed; for organizers."""
        managed = managed_edition_for(request.user, edition)
        copied = editing.copy_edition(edition=managed, by=request.user, **self.read_body())
        return answer_edition(request, copied, 201)

    def recipe(self, request: Request, edition: str) -> HttpResponse:
        """Download the recipe of an edition as a TOML file."""
        chosen = edition_for(request.user, edition)
        return answer_recipe(chosen.name, export_recipe(chosen))


class CorpusViewSet(ApiViewSet):
    """Corpora that you may use."""

    permission_classes = [HasScope, IsOrganizer]
    answers = {"recipe": OpenApiTypes.STR}
    formats = {"recipe": [TomlRenderer]}

    def recipe(self, request: Request, corpus: str) -> HttpResponse:
        """Download the recipe that follows from a corpus which you may use, with every default; for organizers."""
        chosen = corpus_for(request.user, corpus)
        try:
            recipe = proposals.propose_recipe(chosen)
        except ValueError as error:
            raise NotPossible(str(error)) from error
        return answer_recipe(chosen.name, proposals.write_recipe(recipe, chosen))


class AuditViewSet(ListModelMixin, ApiViewSet):
    """Who did what in an edition that you organise, the newest first; the CSV holds the whole audit log."""

    serializer_class = AuditSerializer
    queries = {"list": AuditSearchSerializer}
    formats = {"list": WITH_CSV}

    def get_queryset(self) -> Any:
        managed = managed_edition_for(self.request.user, self.kwargs["edition"])
        return select_events(managed, find_chosen_team(managed, str(self.read_query().get("team", ""))))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        if self.wants_csv:
            rows = export_events(self.get_queryset().iterator(chunk_size=500))
            return csv_response(f"audit-{kwargs['edition']}.csv", rows)
        return super().list(request, *args, **kwargs)
