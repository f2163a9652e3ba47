"""Anonymisation runs: which method, with which recipe and seed, made the files of a submission; and what networks of
methods were trained on.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils.functional import cached_property

from anonymization.methods.contract import MethodError
from anonymization.methods.registry import get_method
from portal.challenges.models import Corpus, DataSet
from portal.jobs.models import Job
from portal.submissions.models import Submission


class AnonymizationRun(models.Model):
    """One method over one data set. The same run gives the same files again, bit by bit.

    `voices`: at speaker level, for each speaker key and parameters, mixture or vector of the voice, settled at the
    start; any two differ by `voice_distance` at least. At utterance level by utterance, where vectors are made of
    recordings; other voices there follow from the names. `report`: what the checks of the output found, by cause.

    Of a method whose voices are those of target speakers: `target_set`, where they come from, `target_selection`, by
    which rule, `target_recordings`, by target the audio that is used, and `targets`, by speaker or, at utterance level,
    by utterance, who got whom; all settled when the run begins.

    `network`: of a training in the portal, that the method read in place of its own, with the decoder that it was
    trained for; `retrained`: SHA-256 of all networks that do not ship, by what they are to the method. A network whose
    training was deleted leaves only these.
    """

    class Level(models.TextChoices):
        SPEAKER = "speaker"
        UTTERANCE = "utterance"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="anonymization_runs")
    data_set = models.ForeignKey(DataSet, on_delete=models.RESTRICT, related_name="+")
    method = models.CharField(max_length=60)
    recipe_version = models.CharField(max_length=40)
    code_version = models.CharField(max_length=60)
    seed = models.PositiveBigIntegerField()
    level = models.CharField(max_length=10, choices=Level.choices, default=Level.SPEAKER)
    options = models.JSONField(default=dict, blank=True)
    voices = models.JSONField(default=dict, blank=True)
    voice_distance = models.FloatField(default=0.0)
    report = models.JSONField(default=dict, blank=True)
    target_set = models.ForeignKey(DataSet, null=True, blank=True, on_delete=models.RESTRICT, related_name="+")
    target_selection = models.CharField(max_length=40, blank=True)
    target_recordings = models.JSONField(default=dict, blank=True)
    targets = models.JSONField(default=dict, blank=True)
    network = models.ForeignKey("NetworkSeed", null=True, blank=True, on_delete=models.RESTRICT, related_name="runs")
    retrained = models.JSONField(default=dict, blank=True)
    job = models.OneToOneField(Job, null=True, on_delete=models.PROTECT, related_name="anonymization_run")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["data_set__name"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "data_set"], name="anonymization_run_once_in_data_set")
        ]

    def __str__(self) -> str:
        return f"{self.method} on {self.data_set}"

    @property
    def method_title(self) -> str:
        """Return what people read; its name where this portal no longer has the method."""
        try:
            title = get_method(self.method).title
            return f"{title}, with {self.network.label}" if self.network else title
        except MethodError:
            return self.method

    @cached_property
    def genders(self) -> dict[str, str]:
        """Of the speakers of the data set, by name."""
        return dict(self.data_set.utterances.order_by().values_list("speaker__name", "speaker__gender").distinct())

    @property
    def is_by_utterance(self) -> bool:
        return self.level == self.Level.UTTERANCE

    @property
    def networks(self) -> list[NetworkSeed]:
        """Of trainings in the portal, that the method read in place of its own."""
        return self.network.with_decoder if self.network else []


class NetworkTraining(models.Model):
    """A network of a recipe, trained on data sets of a corpus once for each seed.

    `changes`: the values that differ from those of the recipe. `decoder`: of another training, whose content is learnt
    from in place of that of the decoder that ships. `begun_with`: digest of recipe and speech, which all seeds share;
    empty until the first job has begun.
    """

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="network_trainings")
    data_sets = models.JSONField(default=list)
    recipe = models.CharField(max_length=40)
    changes = models.JSONField(default=dict, blank=True)
    decoder = models.ForeignKey(
        "NetworkSeed", null=True, blank=True, on_delete=models.RESTRICT, related_name="trainings_for_it"
    )
    licence = models.CharField(max_length=400, blank=True)
    begun_with = models.CharField(max_length=64, blank=True)
    code_version = models.CharField(max_length=60)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    class Meta:
        ordering = ["-pk"]
        verbose_name = "training"

    def __str__(self) -> str:
        return f"{self.recipe}, training {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("network-trainings:detail", args=[self.pk])


class NetworkSeed(models.Model):
    """A training by one seed, which has a job of its own.

    `losses`: means since the last state, the names of the columns first. `card`, and `files`, the keys of stored files
    by name: once it has ended.
    """

    training = models.ForeignKey(NetworkTraining, on_delete=models.CASCADE, related_name="seeds")
    seed = models.PositiveIntegerField()
    job = models.OneToOneField(Job, null=True, on_delete=models.PROTECT, related_name="network_seed")
    losses = models.JSONField(default=list, blank=True)
    card = models.JSONField(default=dict, blank=True)
    files = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["training", "seed"], name="network_seed_once")]

    def __str__(self) -> str:
        return f"{self.training}, seed {self.seed}"

    @property
    def with_decoder(self) -> list[NetworkSeed]:
        """Return what a method reads of it: itself, and the decoder of this portal that it was trained for, if any."""
        decoder = self.training.decoder
        return [self, decoder] if decoder else [self]

    @property
    def label(self) -> str:
        """Short enough for the title of a system."""
        return f"training {self.training_id}, seed {self.seed}"

    @property
    def file_name(self) -> str:
        """Return how its files are called, and the folder that its archive is unpacked into."""
        return f"{self.training.recipe}-{self.training_id}-seed-{self.seed}"
