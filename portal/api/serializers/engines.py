"""The portal's own attackers and recognisers, their runs and their numbers, as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from evaluation.models import EvaluationRun
from portal.api.serializers.submissions import JobSerializer
from portal.api.serializers.systems import MissingSerializer, NumberSerializer
from portal.jobs.models import State

MOST_SETS = 200


class EngineSerializer(serializers.Serializer[Any]):
    """An attacker or recogniser that this portal knows."""

    kind = serializers.ChoiceField([EvaluationRun.Kind.ATTACK.value, EvaluationRun.Kind.RECOGNITION.value])
    name = serializers.CharField()
    key = serializers.CharField(help_text="Name and version, under which its work is kept.")
    title = serializers.CharField()
    description = serializers.CharField()
    licence = serializers.CharField(help_text="Of its weights.")
    source = serializers.CharField()  # type: ignore[assignment]
    is_default = serializers.BooleanField()
    missing = serializers.CharField(help_text="Why it cannot run here; empty where it can.")


class EngineNameSerializer(serializers.Serializer[Any]):
    """What attacked or recognised in a run."""

    name = serializers.CharField()
    key = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    licence = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    training = serializers.CharField(help_text="The speech that it was trained on: original or anonymised.")


class RunSerializer(serializers.Serializer[Any]):
    """A run of an attacker or recogniser and its jobs, first to last."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    engine = EngineNameSerializer()
    state = serializers.ChoiceField(State.choices, help_text="Of its last job; cancelled too where an earlier failed.")
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    jobs = JobSerializer(many=True)


class _SetsSerializer(serializers.Serializer[Any]):
    engine = serializers.CharField(required=False, max_length=80, help_text="Its name; the default without it.")
    data_sets = serializers.ListField(
        child=serializers.CharField(max_length=80), required=False, max_length=MOST_SETS, allow_empty=False,
        help_text="Names of data sets; all that are possible without it.",
    )  # fmt: skip


class StartAttackSerializer(_SetsSerializer):
    """Which attacker, on which trial sets."""

    trained = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31,
        help_text="A training run of this system, in place of an engine: a semi-informed attack.",
    )  # fmt: skip
    seed = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1, help_text="Of that run.")
    preset = serializers.CharField(required=False, max_length=40, help_text="How vectors are compared, such as 2024.")


class StartRecognitionSerializer(_SetsSerializer):
    """Which recogniser, on which data sets."""


class AttackNumbersSerializer(serializers.Serializer[Any]):
    """What an attacker found: its newest finished run."""

    run = serializers.IntegerField()
    engine = EngineNameSerializer()
    finished_at = serializers.DateTimeField(allow_null=True)
    numbers = NumberSerializer(many=True)
    missing = MissingSerializer(many=True, required=False, help_text="For its own only.")


class WordRowSerializer(serializers.Serializer[Any]):
    """Word errors of a data set; rates and limits in per cent."""

    data_set = serializers.CharField()
    gender = serializers.CharField()
    speech = serializers.CharField()
    utterances = serializers.IntegerField()
    speakers = serializers.IntegerField()
    words = serializers.IntegerField()
    insertions = serializers.IntegerField()
    deletions = serializers.IntegerField()
    substitutions = serializers.IntegerField()
    error_rate = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    honest = serializers.FloatField(allow_null=True, help_text="Missing hypotheses count as deleted.")
    clipped = serializers.FloatField(allow_null=True, help_text="No utterance has more errors than words.")


class WordDifferenceSerializer(serializers.Serializer[Any]):
    """Word error rate of anonymised less that of original speech, in points, by paired resamples of speakers."""

    data_set = serializers.CharField()
    gender = serializers.CharField()
    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class RecognitionNumbersSerializer(serializers.Serializer[Any]):
    """What a recogniser understood: its newest finished run."""

    run = serializers.IntegerField()
    engine = EngineNameSerializer()
    finished_at = serializers.DateTimeField(allow_null=True)
    rule = serializers.CharField(help_text="How texts were made comparable.")
    rows = WordRowSerializer(many=True)
    differences = WordDifferenceSerializer(many=True)
    averages = NumberSerializer(many=True)
    notes = serializers.ListField(child=serializers.CharField())
