"""Trainings of networks of anonymisers, with their cards."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.mixins import ListModelMixin

from anonymization.app.models import NetworkSeed, NetworkTraining
from anonymization.app.network_training.selectors import list_jobs, sum_up_state, trainings_for
from portal.api.access import HasScope, IsOrganizer
from portal.api.base import ApiViewSet
from portal.api.submissions import JobSerializer
from portal.challenges.models import Corpus
from portal.jobs.models import JobState


class DecoderSerializer(serializers.ModelSerializer[NetworkSeed]):
    """A decoder that was trained here."""

    class Meta:
        model = NetworkSeed
        fields = ("training", "seed")


class NetworkSeedSerializer(serializers.ModelSerializer[NetworkSeed]):
    """A training by one seed.

    `losses`: means since the state before, names of the columns first. `card`: what it was made of and what it is
    worth; empty until it has ended.
    """

    job = JobSerializer(allow_null=True)

    class Meta:
        model = NetworkSeed
        fields = ("seed", "job", "losses", "card")


class NetworkTrainingSerializer(serializers.ModelSerializer[NetworkTraining]):
    """A network of a recipe, trained on data sets of a corpus once for each seed.

    `changes`: the values that are not those of the recipe. `decoder`: whose content was learnt from; null where that
    is the one that ships, or none.
    """

    corpus = serializers.SlugRelatedField[Corpus](slug_field="name", read_only=True)
    decoder = DecoderSerializer(allow_null=True)
    state = serializers.SerializerMethodField()
    seeds = NetworkSeedSerializer(many=True)

    class Meta:
        model = NetworkTraining
        fields = (
            *("id", "recipe", "corpus", "data_sets", "changes", "decoder", "licence"),
            *("state", "created_at", "seeds"),
        )

    def get_state(self, training: NetworkTraining) -> JobState:
        return sum_up_state(list_jobs(training))


class NetworkTrainingViewSet(ListModelMixin, ApiViewSet):
    """Trainings of networks of anonymisers on corpora that you may see, the newest first, with their cards."""

    permission_classes = [HasScope, IsOrganizer]
    serializer_class = NetworkTrainingSerializer

    def get_queryset(self) -> Any:
        return trainings_for(self.request.user)
