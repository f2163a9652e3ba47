"""Systems and what they delivered.

An `Upload` receives an archive part by part; when it is complete it becomes a `Submission`: one version of a system's
anonymised files and of the results that its team computed.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.urls import reverse

from portal.challenges.models import Corpus, DataSet, Edition, Utterance
from portal.jobs.models import Job
from portal.teams.models import Team


class System(models.Model):
    """A named anonymiser. A team's is known by its label in the edition (``T11-p1``); the organizer's are baselines.

    `name` is unique in the portal and part of addresses (``vpc2022-t11-p1``).
    """

    class Kind(models.TextChoices):
        PRIMARY = "primary"
        CONTRASTIVE = "contrastive"

    name = models.SlugField(max_length=60, unique=True)
    label = models.CharField(max_length=40, blank=True)
    title = models.CharField(max_length=120)
    corpus = models.ForeignKey(Corpus, null=True, blank=True, on_delete=models.CASCADE, related_name="systems")
    edition = models.ForeignKey(Edition, null=True, blank=True, on_delete=models.CASCADE, related_name="systems")
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE, related_name="systems")
    kind = models.CharField(max_length=12, choices=Kind.choices, blank=True)
    is_baseline = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True, help_text="Since then in no list and no choice.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["edition", "label"], condition=~models.Q(label=""), name="system_label_once_in_edition"
            )
        ]

    def __str__(self) -> str:
        return self.label or self.name

    def get_absolute_url(self) -> str:
        return reverse("systems:detail", args=[self.name])

    @property
    def place_of_work(self) -> dict[str, Any]:
        """Return whose jobs on it are: of its edition, or else corpus, and of its team (arguments of `create_job`)."""
        corpus = self.corpus.name if self.corpus else ""
        place = {"edition": self.edition.name} if self.edition else {"corpus": corpus}
        return place | {"team": self.team_id or 0}


TEST_JOB = "make-own-test"  # makes a listening test of an uploaded archive


class Upload(models.Model):
    """An archive on its way in. `offset`: how many bytes are acknowledged, which no crash takes back.

    The archive of a corpus, or of a listening test of own recordings, has no edition: `imported_as` says what it
    becomes (the arguments of `start_import`, or of a job of the kind `TEST_JOB`).

    `team` is empty for a baseline that an organizer uploads. `system` is empty while the archive shall make a new
    system of the kind `system_kind`. `claimed_sha256` is what the sender says of the whole file, `sha256` what came.
    """

    class State(models.TextChoices):
        RECEIVING = "receiving"
        COMPLETE = "complete"  # every byte is here and a submission was made of it
        REFUSED = "refused"  # every byte is here, but no submission may be made of it: `refusal` says why
        ABANDONED = "abandoned"  # by its sender
        EXPIRED = "expired"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    edition = models.ForeignKey(Edition, null=True, blank=True, on_delete=models.CASCADE, related_name="uploads")
    imported_as = models.JSONField(default=dict, blank=True)
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE, related_name="uploads")
    system = models.ForeignKey(System, null=True, blank=True, on_delete=models.CASCADE, related_name="uploads")
    system_kind = models.CharField(max_length=12, choices=System.Kind.choices, blank=True)
    system_title = models.CharField(max_length=120, blank=True)
    file_name = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()
    offset = models.PositiveBigIntegerField(default=0)
    claimed_sha256 = models.CharField(max_length=64, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.RECEIVING)
    refusal = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="uploads"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_byte_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    is_new = False  # where it was begun just now, and not found

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.file_name} ({self.id})"


class Submission(models.Model):
    """One version of a system's files; it never changes once complete.

    `inherits`: the submission whose files stand in for what this archive does not hold. `report`: key of the whole
    validation report (JSON); `report_summary`: the same by data set and cause, as pages show it. `is_held`: its numbers
    stand on no leaderboard until an organizer releases them.
    """

    class State(models.TextChoices):
        RECEIVED = "received"
        CHECKING = "checking"
        REFUSED = "refused"
        ACCEPTED = "accepted"
        EVALUATING = "evaluating"
        EVALUATED = "evaluated"
        FAILED = "failed", "evaluation failed"
        WITHDRAWN = "withdrawn"

    system = models.ForeignKey(System, on_delete=models.CASCADE, related_name="submissions")
    version = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACCEPTED)
    upload = models.OneToOneField(Upload, null=True, blank=True, on_delete=models.RESTRICT, related_name="submission")
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="submissions"
    )
    is_late = models.BooleanField(default=False)
    inherits = models.ForeignKey("self", null=True, blank=True, on_delete=models.RESTRICT, related_name="heirs")
    job = models.OneToOneField(Job, null=True, blank=True, on_delete=models.PROTECT, related_name="submission")
    report = models.CharField(max_length=120, blank=True)
    report_summary = models.JSONField(default=list, blank=True)
    errors = models.PositiveIntegerField(default=0)
    warnings = models.PositiveIntegerField(default=0)
    notes = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    evaluated_at = models.DateTimeField(null=True, blank=True)
    is_held = models.BooleanField(default=False)

    class Meta:
        ordering = ["-version"]
        constraints = [models.UniqueConstraint(fields=["system", "version"], name="submission_version_once")]

    def __str__(self) -> str:
        return f"{self.system} version {self.version}"

    def get_absolute_url(self) -> str:
        return reverse("submissions:detail", args=[self.pk])


class SubmissionEvent(models.Model):
    """A step in the life of a submission, as its timeline shows it."""

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    state = models.CharField(max_length=10, choices=Submission.State.choices)
    note = models.TextField(blank=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)

    class Meta:
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return f"{self.submission}: {self.state}"


class SubmittedFile(models.Model):
    """The anonymised form of one utterance in one data set.

    `received_as`: its path in the archive; `converted_from`: what it was before it became 16-bit mono at the rate of
    the corpus; empty where nothing had to be done.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="files")
    data_set = models.ForeignKey(DataSet, on_delete=models.RESTRICT, related_name="+")
    utterance = models.ForeignKey(Utterance, on_delete=models.RESTRICT, related_name="submitted_files")
    audio = models.CharField(max_length=120)
    samples = models.PositiveIntegerField()
    rate_hz = models.PositiveIntegerField()
    received_as = models.CharField(max_length=400, blank=True)
    converted_from = models.CharField(max_length=80, blank=True)
    is_inherited = models.BooleanField(default=False)

    class Meta:
        ordering = ["utterance__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "data_set", "utterance"], name="submitted_file_once_in_data_set"
            )
        ]

    def __str__(self) -> str:
        return f"{self.utterance} of {self.submission}"


class SubmittedDocument(models.Model):
    """A file of a submission that is not speech: result and score files, transcripts, the system description."""

    class Kind(models.TextChoices):
        RESULTS = "results"
        SCORES = "scores"
        HYPOTHESES = "hypotheses"
        SIMILARITY = "similarity", "similarity matrix"
        DESCRIPTION = "description", "system description"
        OTHER = "other"

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="documents")
    path = models.CharField(max_length=400)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    key = models.CharField(max_length=120)
    bytes = models.PositiveBigIntegerField()
    is_inherited = models.BooleanField(default=False)

    class Meta:
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["submission", "path"], name="submitted_document_once")]

    def __str__(self) -> str:
        return f"{self.path} of {self.submission}"


class SharedPart(models.Model):
    """What everybody may hear or read of a submission once an organizer has released it: a sample, or the description.

    Its team offers it (`offered_at`); a baseline is offered by its organizers. Nobody else meets it before
    `released_at`, nor while the submission stands on no published leaderboard.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="shared_parts")
    file = models.OneToOneField(
        SubmittedFile, null=True, blank=True, on_delete=models.CASCADE, related_name="shared_part"
    )
    document = models.OneToOneField(
        SubmittedDocument, null=True, blank=True, on_delete=models.CASCADE, related_name="shared_part"
    )
    offered_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(file__isnull=True) ^ models.Q(document__isnull=True), name="shared_part_is_one_thing"
            )
        ]

    def __str__(self) -> str:
        return str(self.file or self.document)
