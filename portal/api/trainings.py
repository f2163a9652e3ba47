"""Trainings of networks of anonymisers, with their cards."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from anonymization.app.models import NetworkTraining
from anonymization.app.network_training.selectors import list_jobs, sum_up_state, trainings_for
from portal.api.access import require_organizer
from portal.api.base import ApiView, Shape, Who, operation
from portal.api.submissions import JobSerializer
from portal.jobs.models import JobState


class DecoderSerializer(Shape):
    """A decoder that was trained here."""

    training = serializers.IntegerField(source="training_id")
    seed = serializers.IntegerField()


class NetworkSeedSerializer(Shape):
    """A training by one seed."""

    seed = serializers.IntegerField()
    job = JobSerializer(allow_null=True)
    losses = serializers.ListField(
        child=serializers.ListField(), help_text="Means since the state before; names of the columns first."
    )
    card = serializers.DictField(help_text="What it was made of and what it is worth; empty until it has ended.")


class NetworkTrainingSerializer(Shape):
    """A network of a recipe, trained on data sets of a corpus once for each seed."""

    id = serializers.IntegerField(source="pk")
    recipe = corpus = serializers.CharField()
    data_sets = serializers.ListField(child=serializers.CharField())
    changes = serializers.DictField(
        child=serializers.CharField(), help_text="The values that are not those of the recipe."
    )
    decoder = DecoderSerializer(
        allow_null=True, help_text="Whose content was learnt from; null where that is the one that ships, or none."
    )
    licence = serializers.CharField()
    state = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    seeds = NetworkSeedSerializer(many=True)

    @extend_schema_field(serializers.ChoiceField(JobState.choices))
    def get_state(self, training: NetworkTraining) -> JobState:
        return sum_up_state(list_jobs(training))


@operation(NetworkTrainingSerializer(many=True), who=Who.ORGANIZER)
def list_network_trainings(api: ApiView) -> Response:
    """Trainings of networks of anonymisers on corpora that you may see, the newest first, with their cards."""
    user: Any = api.user
    require_organizer(user)
    return api.paginated(trainings_for(user), NetworkTrainingSerializer)
