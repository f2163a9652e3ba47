"""Systems and their numbers as the API gives them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from evaluation.models import UtteranceMeasure
from portal.submissions.models import Submission, System


class SystemSerializer(serializers.Serializer[System]):
    """A system. Its numbers are public once its board is; the rest stays with its team and the organizers."""

    name = serializers.SlugField(help_text="By which addresses know it.")
    label = serializers.CharField(source="__str__", help_text="Such as T11-p1.")  # type: ignore[assignment]
    title = serializers.CharField()
    edition = serializers.SerializerMethodField()
    team = serializers.SerializerMethodField()
    kind = serializers.ChoiceField([*System.Kind.choices, ("", "a baseline")])
    is_baseline = serializers.BooleanField()

    @extend_schema_field(serializers.SlugField(allow_null=True))
    def get_edition(self, system: System) -> str | None:
        return system.edition.name if system.edition else None

    @extend_schema_field(serializers.CharField(allow_null=True, help_text="Its name."))
    def get_team(self, system: System) -> str | None:
        return system.team.name if system.team else None


class VersionSerializer(serializers.Serializer[Submission]):
    """A submission of the system."""

    submission = serializers.IntegerField(source="pk")
    version = serializers.IntegerField()
    state = serializers.ChoiceField(Submission.State.choices)
    created_at = serializers.DateTimeField()
    evaluated_at = serializers.DateTimeField(allow_null=True)


class FullSystemSerializer(SystemSerializer):
    """A system with what the asker may see of its versions: all of its own, of others none."""

    shown_version = serializers.IntegerField(help_text="Whose numbers you meet without asking for a version.")
    is_own = serializers.BooleanField()
    versions = VersionSerializer(many=True)


class SystemSearchSerializer(serializers.Serializer[Any]):
    """Which systems."""

    edition = serializers.SlugField(required=False, help_text="Of this edition.")
    team = serializers.IntegerField(required=False, min_value=1, max_value=2**31, help_text="Of this team.")


class VersionQuerySerializer(serializers.Serializer[Any]):
    """Which version."""

    version = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31,
        help_text="For its team and organizers; else the one on the board.",
    )


class NumberSerializer(serializers.Serializer[Any]):
    """One number with all that identifies it; what the team claims is shown to its own only."""

    data_set = serializers.CharField()
    gender = serializers.CharField()
    metric = serializers.CharField()
    estimator = serializers.CharField()
    attack_model = serializers.CharField()
    training = serializers.CharField()
    enrolment = serializers.CharField()
    speech = serializers.CharField()
    unit = serializers.CharField()
    better = serializers.CharField()
    value = serializers.FloatField()
    spread = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField(allow_null=True)
    basis = serializers.CharField(help_text="What the value rests on, in words.")
    category = serializers.CharField(help_text="The letter of a ZEBRA category, whose value is 0 to 6; else empty.")
    is_recomputed = serializers.BooleanField()
    claimed = serializers.FloatField(required=False, allow_null=True)
    claimed_category = serializers.CharField(required=False, help_text="The letter that is claimed; else empty.")
    claimed_in = serializers.CharField(required=False, help_text="The file and line that state it.")
    agrees = serializers.BooleanField(required=False, allow_null=True, help_text="In print; null where nothing does.")


class MissingSerializer(serializers.Serializer[Any]):
    """A number that the recipe asks for and that could not be computed."""

    what = serializers.CharField()
    reason = serializers.CharField()
    is_ranked = serializers.BooleanField(help_text="Whether the board needs it.")


class SpeechNumberSerializer(serializers.Serializer[Any]):
    """What was measured on the audio of a data set."""

    system = serializers.CharField()
    version = serializers.IntegerField()
    data_set = serializers.CharField()
    role = serializers.CharField()
    gender = serializers.CharField()
    metric = serializers.CharField()
    estimator = serializers.CharField()
    unit = serializers.CharField()
    better = serializers.CharField()
    value = serializers.FloatField()
    spread = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    recipe = serializers.CharField()
    code = serializers.CharField()


class ValuesSerializer(serializers.Serializer[Any]):
    """Every number of a system."""

    system = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    edition = serializers.CharField(allow_null=True)
    version = serializers.IntegerField()
    measured_at = serializers.DateTimeField(allow_null=True)
    numbers = NumberSerializer(many=True)
    speech = SpeechNumberSerializer(many=True)
    missing = MissingSerializer(many=True, required=False, help_text="For its own only.")


class FileQuerySerializer(VersionQuerySerializer):
    """Of which data set."""

    data_set = serializers.SlugField(help_text="As the corpus names it.")


class MeasureSerializer(serializers.Serializer[UtteranceMeasure]):
    """What was measured on one utterance."""

    file = serializers.IntegerField(source="file_id")
    utterance = serializers.CharField(source="file.utterance.name")
    speaker = serializers.CharField(source="file.utterance.speaker.name")
    gender = serializers.CharField(source="file.utterance.speaker.get_gender_display")
    pitch_correlation = serializers.FloatField(allow_null=True)
    pitch_correlation_voiced = serializers.FloatField(source="voiced_pitch_correlation", allow_null=True)
    lag_frames = serializers.IntegerField(allow_null=True)
    duration_difference_ms = serializers.FloatField()
    level_change_db = serializers.FloatField(allow_null=True)
    peak_dbfs = serializers.FloatField(allow_null=True)
    faults = serializers.ListField(child=serializers.CharField())
