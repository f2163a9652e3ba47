"""Corpora: the original speech that systems anonymise and that everything is measured against.

A `Corpus` holds speakers and utterances; a `DataSet` is a list of its utterances with one role; a `TrialList` says
which enrolled speaker (model) is compared with which trial utterance. An `Edition` is a challenge that runs on a
corpus by a recipe.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse

from common.toml_files import LARGEST_TOML_BYTES
from evaluation.protocols.ranking.policy import LeaderboardPolicy, make_policy
from evaluation.protocols.recipes import Recipe, Track, load_recipe, parse_recipe
from evaluation.protocols.tracks import narrow_to_track
from portal.core.fields import LineText

GIGABYTE = 10**9
LARGEST_GB = 1024  # that an edition may allow as the size of an archive
LONGEST_TEXT = 10_000
# Of an edition what forms and the API change.
EDITION_FIELDS = (
    *("title", "name", "description", "protocol", "recipe_text", "track", "corpus", "is_listed"),
    *("registration_opens_at", "registration_closes_at", "submissions_open_at", "submissions_close_at", "late_until"),
    "speech_kept_until",
    *("submissions_per_team", "largest_archive_bytes", "audio_required", "scores_required", "description_required"),
    *("shares_data", "data_terms", "holds_evaluations"),
)
# Fields of an edition that its numbers and ranks follow from.
FOLLOWED = ("protocol", "recipe_text", "leaderboard_policy", "recipe_number")


class Gender(models.TextChoices):
    FEMALE = "f", "female"
    MALE = "m", "male"


class Role(models.TextChoices):
    ENROLMENT = "enrolment"
    TRIAL = "trial"
    TRAINING = "training"


class Corpus(models.Model):
    """Speech of known people. `is_synthetic`: no person speaks here, which each page that shows it must say.

    Organizers see and hear those of their editions, their own (`created_by`) and those that are shared with them all.
    """

    name = models.SlugField(max_length=60, unique=True)
    layout = models.CharField(max_length=30)
    source = models.CharField(max_length=400, help_text="Where it was imported from.")
    licence = models.CharField(max_length=200, blank=True)
    link = models.URLField(max_length=400, blank=True, help_text="Where the speech was published.")
    is_synthetic = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name="owner", null=True, blank=True, on_delete=models.SET_NULL
    )
    is_shared = models.BooleanField("shared with all organizers", default=False)
    archived_at = models.DateTimeField(null=True, blank=True, help_text="Since then in no list and no choice.")

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "corpora"

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("corpora:detail", args=[self.name])


class Speaker(models.Model):
    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="speakers")
    name = models.CharField(max_length=120)
    gender = models.CharField(max_length=1, choices=Gender.choices)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["corpus", "name"], name="speaker_once_in_corpus")]

    def __str__(self) -> str:
        return self.name


class Utterance(models.Model):
    """One recording. `audio` is the key of its file, empty while only the lists of its corpus are known."""

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="utterances")
    speaker = models.ForeignKey(Speaker, on_delete=models.CASCADE, related_name="utterances")
    name = models.CharField(max_length=120)
    transcript = models.TextField(blank=True)
    duration_s = models.FloatField(null=True, blank=True)
    audio = models.CharField(max_length=120, blank=True)
    samples = models.PositiveIntegerField(null=True, blank=True)
    rate_hz = models.PositiveIntegerField(null=True, blank=True)
    converted_from = models.CharField(max_length=80, blank=True, help_text="What the file was before its conversion.")
    pcm_sha256 = models.CharField(
        max_length=64, blank=True, help_text="Of the samples as little-endian int16; made when first needed."
    )

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["corpus", "name"], name="utterance_once_in_corpus")]

    def __str__(self) -> str:
        return self.name


class DataSet(models.Model):
    """Utterances with one role in the evaluation, such as ``libri_dev_trials_f``."""

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="data_sets")
    name = models.SlugField(max_length=80)
    role = models.CharField(max_length=10, choices=Role.choices)
    split = models.CharField(max_length=20, blank=True, help_text="dev, test, train or nothing.")
    utterances = models.ManyToManyField(Utterance, related_name="data_sets")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["corpus", "name"], name="data_set_once_in_corpus")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("corpora:data-set", args=[self.corpus.name, self.name])


class TrialList(models.Model):
    """Comparisons of enrolled speakers with trial utterances.

    A given list is kept as a file in Kaldi's format; a same-gender product is known by its two data sets.
    """

    class Origin(models.TextChoices):
        GIVEN = "given"
        PRODUCT = "same-gender-product", "full product of the same gender"

    trial_set = models.ForeignKey(DataSet, on_delete=models.CASCADE, related_name="trial_lists")
    enrolment_set = models.ForeignKey(DataSet, on_delete=models.CASCADE, related_name="+")
    origin = models.CharField(max_length=20, choices=Origin.choices)
    model_count = models.PositiveIntegerField()
    target_count = models.PositiveIntegerField()
    nontarget_count = models.PositiveIntegerField()
    file = models.CharField(max_length=120, blank=True)

    class Meta:
        ordering = ["trial_set__name"]
        constraints = [models.UniqueConstraint(fields=["trial_set", "enrolment_set"], name="trial_list_once")]

    def __str__(self) -> str:
        return f"{self.enrolment_set} against {self.trial_set}"


class Edition(models.Model):
    """A challenge: which recipe on which corpus, who organises it, when what is open, and what its leaderboard shows.

    `recipe_text`, where given, is the organizer's custom recipe and takes the place of the shipped one that `protocol`
    names. `leaderboard_policy` holds what it is ranked by where that differs from the recipe. `recipe_number` counts
    the recipes by which submissions were evaluated; each number is of one of them. Where the recipe was changed since
    the leaderboard was published, `recipe_changed_at` says when, and `published_recipe` holds the fields `FOLLOWED` of
    before. Empty times do not limit. The leaderboard is public once `published_at` is set, and
    rests on what had been evaluated by `frozen_at`, where that is set too. With `holds_evaluations` a submission whose
    evaluation ends stands on no leaderboard until an organizer releases it.
    """

    title = LineText(max_length=120)
    name = models.SlugField(
        "short name",
        max_length=40,
        unique=True,
        help_text="Small letters, digits, hyphens and underscores; part of addresses and of the names of systems.",
    )
    description = models.CharField(
        blank=True,
        max_length=LONGEST_TEXT,
        help_text="What participants should know first; plain text, with empty lines between paragraphs.",
    )
    protocol = models.CharField(max_length=10, blank=True, help_text="A shipped recipe, such as 2022.")
    recipe_text = models.CharField(
        "custom recipe as text",
        blank=True,
        max_length=LARGEST_TOML_BYTES,
        help_text="TOML; takes the place of a shipped recipe.",
    )
    track = LineText(max_length=40, blank=True, help_text="Only if the recipe has several.")
    corpus = models.ForeignKey(Corpus, null=True, blank=True, on_delete=models.PROTECT, related_name="editions")
    organizers = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="organized_editions")
    is_listed = models.BooleanField(
        "listed", default=False, help_text="Visitors find the edition and teams can register."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True, help_text="Since then in no list and no choice.")

    registration_link_number = models.PositiveIntegerField(
        default=1, help_text="Links that invite to register a team work while they carry this number."
    )
    registration_opens_at = models.DateTimeField(
        "registration opens (UTC)", null=True, blank=True, help_text="Empty: at once."
    )
    registration_closes_at = models.DateTimeField(
        "registration closes (UTC)", null=True, blank=True, help_text="Empty: never."
    )
    submissions_open_at = models.DateTimeField(
        "submissions open (UTC)", null=True, blank=True, help_text="Empty: at once."
    )
    submissions_close_at = models.DateTimeField(
        "deadline (UTC)",
        null=True,
        blank=True,
        help_text="Later submissions are marked late or refused. Empty: no deadline.",
    )
    late_until = models.DateTimeField(
        "late submissions until (UTC)", null=True, blank=True, help_text="Empty: none are taken."
    )
    speech_kept_until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        "delete submitted speech on (UTC)",
        null=True,
        blank=True,
        help_text="Then anonymised recordings and stimuli are deleted. Numbers and answers stay, and so does the "
        "corpus. Where the portal sends mail, organizers get one 14 days before. Empty: never.",
    )
    speech_deleted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, blank=True, help_text="When that was done, the last time."
    )

    submissions_per_team = models.PositiveIntegerField(
        default=20,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="Refused ones do not count, nor those withdrawn before they were evaluated.",
    )
    largest_archive_bytes = models.PositiveBigIntegerField(
        default=20 * GIGABYTE, validators=[MinValueValidator(1), MaxValueValidator(LARGEST_GB * GIGABYTE)]
    )
    audio_required = models.BooleanField("anonymised speech is required", default=True)
    scores_required = models.BooleanField("score files are required", default=True)
    description_required = models.BooleanField("a system description (PDF) is required", default=False)

    shares_data = models.BooleanField(
        "approved teams download the speech of the corpus here",
        default=False,
        help_text="Only the owner of the corpus and operators may choose this. Leave it off where the licence forbids "
        "to pass the speech on.",
    )
    data_terms = models.CharField(
        "terms for the data",
        blank=True,
        max_length=LONGEST_TEXT,
        help_text="Teams accept them together with the licence of the corpus. Without either, they agree to use the "
        "recordings for this challenge only.",
    )

    holds_evaluations = models.BooleanField(
        "hold new evaluations back",
        default=False,
        help_text="No leaderboard, not even a published one, shows them until an organizer releases them.",
    )
    recipe_number = models.PositiveIntegerField(default=1, help_text="Of the recipe that submissions are evaluated by.")
    leaderboard_policy = models.JSONField(default=dict, blank=True)
    recipe_changed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Since the leaderboard was published; empty while it follows the recipe.",
    )
    published_recipe = models.JSONField(default=dict, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)
    frozen_at = models.DateTimeField("as of", null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("editions:detail", args=[self.name])

    @property
    def protocol_name(self) -> str:
        """Return the shipped recipe that it follows, or ``own`` for a custom one, as the API names it."""
        return "own" if self.recipe_text else self.protocol

    def as_published(self) -> Edition:
        """Return this edition as its published leaderboard shows it: by the recipe before a change, as of then.

        To be read only. It is the edition itself where the leaderboard follows the recipe of now.
        """
        changed_at = self.recipe_changed_at
        if changed_at is None or not self.published_recipe:
            return self
        found = copy(self)
        found.__dict__.pop("recipe", None)
        for name in FOLLOWED:
            setattr(found, name, self.published_recipe[name])
        found.frozen_at = min(self.frozen_at or changed_at, changed_at)
        found.published_recipe = {}
        return found

    @cached_property
    def recipe(self) -> Recipe:
        """Return how this edition computes, averages and ranks, with the data sets of its track; a custom recipe under
        the title of the edition.

        Raises:
            ProblemsError: the recipe cannot be read; forms let none of these through.
        """
        if self.recipe_text:
            return narrow_to_track(replace(_parse_own(self.recipe_text, self.name), title=self.title), self.track)
        return narrow_to_track(load_recipe(self.protocol), self.track)

    @property
    def ranked_track(self) -> Track:
        """Return the track of the recipe that this edition runs."""
        return self.recipe.tracks[self.track] if self.track else self.recipe.track

    @property
    def policy(self) -> LeaderboardPolicy:
        """Return what the leaderboard ranks by: the recipe with what organizers changed."""
        return make_policy(self.recipe, self.track, self.policy_changes)

    @property
    def policy_changes(self) -> dict[str, Any]:
        """Return what organizers changed of the ranking, without minima that the recipe does not ask for any more."""
        changes, ranking = dict(self.leaderboard_policy), self.ranked_track.ranking
        if "gates" in changes:
            known = {gate.metric for gate in ranking.gates} if ranking else set()
            changes["gates"] = {metric: one for metric, one in changes["gates"].items() if metric in known}
        return changes


@lru_cache(maxsize=64)
def _parse_own(text: str, name: str) -> Recipe:
    """Return an edition's own recipe; each text is read once in a process."""
    return parse_recipe(text, file=f"{name}.toml", is_stored=True)


class DataFile(models.Model):
    """A file of an edition that its teams download.

    `key` is where it is stored. An archive of speech is not stored as such: there `key` is the list of its recordings
    (`common.stored_zip`), from which it is streamed, always with the same bytes.
    """

    class Kind(models.TextChoices):
        SPEECH = "speech", "original speech"
        KALDI = "kaldi", "Kaldi directory"
        TRIALS = "trials", "trial list"
        EXPECTED = "expected", "expected utterances"

    edition = models.ForeignKey(Edition, on_delete=models.CASCADE, related_name="data_files")
    data_set = models.ForeignKey(DataSet, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=120)
    bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    key = models.CharField(max_length=120)

    class Meta:
        ordering = ["data_set__name", "name"]
        constraints = [models.UniqueConstraint(fields=["edition", "name"], name="data_file_once_in_edition")]

    def __str__(self) -> str:
        return self.name
