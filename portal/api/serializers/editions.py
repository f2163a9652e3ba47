"""Editions and their boards as the API gives them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.challenges.models import Edition
from portal.challenges.rules import Phase, registration_phase, submission_phase

PHASES = {Phase.BEFORE: "before", Phase.OPEN: "open", Phase.LATE: "late", Phase.CLOSED: "closed"}


class EditionSerializer(serializers.Serializer[Edition]):
    """An edition: what is open when, what an archive has to hold, and what the asker is in it."""

    name = serializers.SlugField(help_text="By which addresses know it.")
    title = serializers.CharField()
    description = serializers.CharField()
    protocol = serializers.CharField(source="recipe_name", help_text="Whose recipe it follows; “own” for its own.")
    track = serializers.CharField()
    is_listed = serializers.BooleanField()
    registration_phase = serializers.SerializerMethodField()
    registration_opens_at = serializers.DateTimeField(allow_null=True)
    registration_closes_at = serializers.DateTimeField(allow_null=True)
    submission_phase = serializers.SerializerMethodField()
    submissions_open_at = serializers.DateTimeField(allow_null=True)
    submissions_close_at = serializers.DateTimeField(allow_null=True)
    late_until = serializers.DateTimeField(allow_null=True)
    submissions_per_team = serializers.IntegerField()
    largest_archive_bytes = serializers.IntegerField()
    audio_required = serializers.SerializerMethodField()
    scores_required = serializers.BooleanField()
    description_required = serializers.BooleanField()
    published_at = serializers.DateTimeField(allow_null=True, help_text="Since when its board is public.")
    frozen_at = serializers.DateTimeField(allow_null=True, help_text="Of which time its board is, where it is frozen.")
    your_team = serializers.SerializerMethodField()
    you_organise = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ChoiceField(["before", "open", "closed"]))
    def get_registration_phase(self, edition: Edition) -> str:
        return PHASES[registration_phase(edition, timezone.now())]

    @extend_schema_field(serializers.ChoiceField(["before", "open", "late", "closed"]))
    def get_submission_phase(self, edition: Edition) -> str:
        return PHASES[submission_phase(edition, timezone.now())]

    def get_audio_required(self, edition: Edition) -> bool:
        return edition.audio_required and edition.corpus_id is not None

    @extend_schema_field(serializers.IntegerField(allow_null=True, help_text="The asker's team, by its number here."))
    def get_your_team(self, edition: Edition) -> int | None:
        team = self.context["teams"].get(edition.pk)
        return team.pk if team else None

    def get_you_organise(self, edition: Edition) -> bool:
        return edition.pk in self.context["organised"]

    def to_representation(self, instance: Edition) -> dict[str, Any]:
        instance.recipe_name = "own" if instance.recipe_text else instance.protocol  # type: ignore[attr-defined]
        return super().to_representation(instance)


class FreezeSerializer(serializers.Serializer[Any]):
    """As of when."""

    at = serializers.DateTimeField(required=False, allow_null=True, help_text="A time that has passed; without it now.")


# The board -----------------------------------------------------------------------------------------


class AverageSerializer(serializers.Serializer[Any]):
    """A column of a board."""

    metric = serializers.CharField()
    estimator = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    unit = serializers.CharField()
    better = serializers.CharField()


class ReasonSerializer(serializers.Serializer[Any]):
    """Why something is as it is, for programs and for people."""

    code = serializers.CharField()
    text = serializers.CharField()


class MeasuredSerializer(serializers.Serializer[Any]):
    """An average with its interval."""

    value = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    is_claimed = serializers.BooleanField(help_text="What the team states; nothing that was sent confirms it.")


class EntrySerializer(serializers.Serializer[Any]):
    """A system on a board."""

    system = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    title = serializers.CharField()
    team = serializers.CharField(allow_null=True)
    kind = serializers.CharField()
    is_late = serializers.BooleanField()
    is_claimed = serializers.BooleanField()
    averages = serializers.DictField(child=MeasuredSerializer(), help_text="By metric.")


class UnrankableSerializer(EntrySerializer):
    """A system that cannot be ranked."""

    reasons = ReasonSerializer(many=True)


class RowSerializer(EntrySerializer):
    """A system in a ranking."""

    place = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True)
    groups = serializers.ListField(child=serializers.IntegerField())
    reasons = ReasonSerializer(many=True)
    notes = ReasonSerializer(many=True)


class ConditionSerializer(serializers.Serializer[Any]):
    """How private a system has to be."""

    number = serializers.IntegerField()
    minimum_eer = serializers.FloatField(allow_null=True)
    below_eer = serializers.FloatField(allow_null=True)
    text = serializers.CharField()


class RankedBySerializer(serializers.Serializer[Any]):
    """The utility that decides."""

    metric = serializers.CharField()
    estimator = serializers.CharField()
    better = serializers.CharField()


class DistanceSerializer(serializers.Serializer[Any]):
    """How far a system is from a condition."""

    system = serializers.CharField()
    distance = serializers.FloatField()


class RankingSerializer(serializers.Serializer[Any]):
    """One condition by one utility."""

    condition = ConditionSerializer()
    ranked_by = RankedBySerializer()
    rows = RowSerializer(many=True)
    groups = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()), help_text="Systems that cannot be told apart."
    )
    nearest = DistanceSerializer(allow_null=True)
    just_missed = DistanceSerializer(many=True)


class HeardNumberSerializer(serializers.Serializer[Any]):
    """A number of a system; `group`: letters, systems that share one cannot be told apart."""

    by = serializers.ChoiceField(["objective", "listeners"])
    unit = serializers.CharField()
    value = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    group = serializers.CharField()


class HeardSystemSerializer(serializers.Serializer[Any]):
    """A system that listeners heard, or unprotected speech."""

    system = serializers.CharField(allow_null=True, help_text="Null for unprotected speech.")
    label = serializers.CharField()  # type: ignore[assignment]
    remark = serializers.CharField()
    numbers = serializers.DictField(child=HeardNumberSerializer(), help_text="By measure.")


class HeardStudySerializer(serializers.Serializer[Any]):
    """What listeners said in a study, beside the objective averages."""

    study = serializers.CharField()
    title = serializers.CharField()
    form = serializers.CharField()
    is_simulated = serializers.BooleanField()
    is_preview = serializers.BooleanField(help_text="Only the edition's organizers see it.")
    published_at = serializers.DateTimeField(allow_null=True)
    scores = serializers.CharField(
        allow_null=True, help_text="“normalised”, or “raw” by `scores=raw`; null where there is no such choice."
    )
    systems = HeardSystemSerializer(many=True)


class BoardSerializer(serializers.Serializer[Any]):
    """A board with its policy, its rankings, and whoever is in none of them."""

    edition = serializers.CharField()
    title = serializers.CharField()
    protocol = serializers.CharField()
    published_at = serializers.DateTimeField(allow_null=True)
    as_of = serializers.DateTimeField(allow_null=True)
    measured_at = serializers.DateTimeField(allow_null=True)
    policy = serializers.DictField()
    averages = AverageSerializer(many=True)
    rankings = RankingSerializer(many=True)
    unrankable = UnrankableSerializer(many=True)
    outside = EntrySerializer(many=True, help_text="Baselines and the original speech.")
    listeners = HeardStudySerializer(many=True, required=False, help_text="Where studies of its systems have results.")


class InheritedSerializer(serializers.Serializer[Any]):
    """What a further version of a system inherits unless its archive holds it."""

    system = serializers.CharField()
    version = serializers.IntegerField(help_text="The newest that hands anything down; 0 where none does.")
    speech = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    documents = serializers.ListField(child=serializers.CharField(), help_text="Paths of the newest sound ones.")
    newest_documents = serializers.ListField(
        child=serializers.CharField(), help_text="Paths of those of that version, which an archive may complete."
    )


class ExpectedSerializer(serializers.Serializer[Any]):
    """What `vp verify` holds an archive against."""

    format = serializers.CharField()
    version = serializers.IntegerField()
    edition = serializers.CharField()
    audio_required = serializers.BooleanField()
    scores_required = serializers.BooleanField()
    description_required = serializers.BooleanField()
    limits = serializers.DictField()
    recipe = serializers.CharField(help_text="TOML.")
    data_sets = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    utterances = serializers.DictField(
        child=serializers.ListField(), help_text="By name: samples, rate in Hz, SHA-256 of the original's samples."
    )
    trial_counts = serializers.DictField(child=serializers.ListField(child=serializers.IntegerField()))
    needed_to_rank = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="By number that a rank rests on: the kinds of files of which one gives it.",
    )
    inherited = InheritedSerializer(required=False, help_text="Where a system was named.")
