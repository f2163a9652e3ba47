"""A study: what is asked, of which systems, in which words; and its design: items, and the trials of each block."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse

from portal.challenges.models import DataSet, Edition, Utterance
from portal.jobs.models import Job
from portal.submissions.models import Submission


class Task(models.TextChoices):
    """What an evaluator is asked about a trial; the first three are rated on the study's scale, in 2022's order."""

    VERIFIABILITY = "verifiability"
    NATURALNESS = "naturalness"
    INTELLIGIBILITY = "intelligibility"
    LINKABILITY = "linkability"
    TRANSCRIPTION = "transcription"


def _link_key() -> str:
    return secrets.token_urlsafe(12)


def _seed() -> int:
    return secrets.randbelow(2**31)


class Study(models.Model):
    """One listening test.

    `data_sets`: the trial and enrolment sets whose recordings are heard.
    `link_key`: the secret part of the address that evaluators are given. `certificate`: what the independent checker
    found in the design, as `listening.design.certificate` writes it; empty until there is a design. `screening`,
    `questionnaire` and `platform_settings` are validated by `listening.studies.plans`.
    """

    class Form(models.TextChoices):
        RATING = "rating", "rating of single utterances and pairs"
        LINKABILITY = "linkability", "placing of voices on a board"
        TRANSCRIPTION = "transcription", "writing down what is heard"

    class State(models.TextChoices):
        DRAFT = "draft"
        PREPARING = "preparing", "stimuli are being made"
        PREPARED = "prepared", "ready to launch"
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"

    class Pages(models.TextChoices):
        TOGETHER = "together", "all tasks of a trial on one page"
        SEPARATE = "separate", "each task on a page of its own"

    class RolePlay(models.TextChoices):
        BROADCASTER = "broadcaster"
        CALL_CENTRE = "call-centre", "call centre"
        OWN = "own", "own text"

    class Platform(models.TextChoices):
        OWN = "own", "own link"
        PROLIFIC = "prolific"
        MTURK = "mturk", "Mechanical Turk"

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    edition = models.ForeignKey(Edition, on_delete=models.PROTECT, related_name="studies")
    data_sets = models.ManyToManyField(DataSet, related_name="studies", blank=True)
    form = models.CharField(max_length=13, choices=Form.choices, default=Form.RATING)
    state = models.CharField(max_length=9, choices=State.choices, default=State.DRAFT)
    is_simulated = models.BooleanField(default=False, help_text="Its answers are simulated, as every page says.")
    link_key = models.CharField(max_length=32, unique=True, default=_link_key)

    tasks = models.JSONField(default=list)  # of `Task`, in the order of asking
    pages = models.CharField(max_length=8, choices=Pages.choices, default=Pages.TOGETHER)
    scale_points = models.PositiveSmallIntegerField(
        default=10, validators=[MinValueValidator(2), MaxValueValidator(10)]
    )
    plays_at_most = models.PositiveSmallIntegerField(null=True, blank=True)  # None: as often as wanted
    role_play = models.CharField(max_length=11, choices=RolePlay.choices, default=RolePlay.BROADCASTER)
    languages = models.JSONField(default=list)  # of the texts on offer, the first one is the default: ["en", "fr"]
    questionnaire = models.JSONField(default=list, blank=True)
    screening = models.JSONField(default=dict, blank=True)
    platform = models.CharField(max_length=8, choices=Platform.choices, default=Platform.OWN)
    platform_settings = models.JSONField(default=dict, blank=True)

    evaluators = models.PositiveSmallIntegerField(default=52, validators=[MinValueValidator(1)])
    trials_per_evaluator = models.PositiveSmallIntegerField(default=52, validators=[MinValueValidator(1)])
    originals_per_evaluator = models.PositiveSmallIntegerField(default=26)
    practice_trials = models.PositiveSmallIntegerField(default=3)
    gold_trials = models.PositiveSmallIntegerField(default=2)
    bridge_trials = models.PositiveSmallIntegerField(default=0)
    board_samples = models.PositiveSmallIntegerField(
        default=12, validators=[MinValueValidator(6), MaxValueValidator(16)]
    )
    board_dimensions = models.PositiveSmallIntegerField(default=2)
    board_groups = models.BooleanField("evaluators draw groups", default=False)
    relaxations = models.JSONField(default=list, blank=True)  # rules of the design that may give way, by name
    seed = models.PositiveBigIntegerField(default=_seed)
    pay_per_hour = models.DecimalField(max_digits=6, decimal_places=2, default=12)
    currency = models.CharField(max_length=3, default="EUR")
    lease_minutes = models.PositiveSmallIntegerField(default=45)

    certificate = models.JSONField(default=dict, blank=True)
    stimuli = models.JSONField(default=dict, blank=True)  # what every stimulus file has in common, once they are made
    job = models.OneToOneField(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="prepared_study")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    launched_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    imported = models.CharField(max_length=120, blank=True)  # key of the inputs of ratings collected elsewhere
    published_analysis = models.ForeignKey(
        "listening.Analysis", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    results_published_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        verbose_name_plural = "studies"

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("studies:detail", args=[self.name])

    @property
    def is_designed(self) -> bool:
        return bool(self.certificate)

    @property
    def is_launched(self) -> bool:
        return self.launched_at is not None


class StudySystem(models.Model):
    """A system that is listened to, by one of its submissions. `code` names it in the design, never to an evaluator."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="systems")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="studies")
    code = models.CharField(max_length=40)

    class Meta:
        ordering = ["code"]
        constraints = [models.UniqueConstraint(fields=["study", "code"], name="study_system_code_once")]

    def __str__(self) -> str:
        return self.code


class StudyText(models.Model):
    """A text that evaluators read, in one language; a change makes a new version, and sessions keep what they saw."""

    class Kind(models.TextChoices):
        CONSENT = "consent"
        ROLE_PLAY = "role-play"
        INSTRUCTIONS = "instructions"
        THANKS = "thanks"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="texts")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    language = models.CharField(max_length=8)
    version = models.PositiveSmallIntegerField()
    text = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["kind", "language", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["study", "kind", "language", "version"], name="study_text_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} ({self.language}) version {self.version}"


class Stimulus(models.Model):
    """A recording as evaluators hear it. `system` is empty for the original. Equal container for all of a study.

    `source`: key of the stored recording it was made from. `duration_s`: of the speech, without what pads the file.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="stimulus_files")
    system = models.ForeignKey(StudySystem, null=True, blank=True, on_delete=models.PROTECT, related_name="stimuli")
    utterance = models.ForeignKey(Utterance, on_delete=models.PROTECT, related_name="+")
    source = models.CharField(max_length=120)
    file = models.CharField(max_length=120, blank=True)
    bytes = models.PositiveIntegerField(default=0)
    duration_s = models.FloatField(default=0)
    facts = models.JSONField(default=dict, blank=True)  # gain_db, peak, level before and after

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "system", "utterance"], name="stimulus_once"),
            models.UniqueConstraint(
                fields=["study", "utterance"], condition=models.Q(system=None), name="original_stimulus_once"
            ),
        ]

    def __str__(self) -> str:
        return f"stimulus {self.pk}"


class Item(models.Model):
    """What one trial presents: sample A, and where it is compared sample B; or the samples of a board.

    `system` is empty for original speech, `is_target` where no voices are compared. `expected`: of a gold item by
    task the lowest and highest right rating, such as ``{"verifiability": [9, 10]}``.
    """

    class Purpose(models.TextChoices):
        SCORED = "scored"
        PRACTICE = "practice"
        GOLD = "gold"
        BRIDGE = "bridge"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="items")
    purpose = models.CharField(max_length=8, choices=Purpose.choices, default=Purpose.SCORED)
    key = models.CharField(max_length=200)  # its name in the design
    system = models.ForeignKey(StudySystem, null=True, blank=True, on_delete=models.PROTECT, related_name="items")
    is_target = models.BooleanField(null=True)
    expected = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="item_key_once")]

    def __str__(self) -> str:
        return self.key


class ItemSample(models.Model):
    """A stimulus of an item: slot ``a`` (the trial utterance) and ``b`` (enrolment), or ``1``, ``2``, … of a board."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="samples")
    slot = models.CharField(max_length=2)
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["item", "slot"], name="item_slot_once")]

    def __str__(self) -> str:
        return f"{self.item} {self.slot}"


class Trial(models.Model):
    """An item at its place in a block; practice trials come first, gold and bridge trials stand among the others."""

    block = models.ForeignKey("listening.Block", on_delete=models.CASCADE, related_name="trials")
    position = models.PositiveSmallIntegerField()  # from 1
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="trials")

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["block", "position"], name="trial_position_once")]

    def __str__(self) -> str:
        return f"trial {self.position} of {self.block}"
