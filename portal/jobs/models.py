"""Work that runs beside the web server. The row is the truth; the queue only hints that there is something to do."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from portal.core.clock import read_clock


class Queue(models.TextChoices):
    MAIL = "mail", "mails"
    INTAKE = "intake", "what people send"
    LIGHT = "light", "short jobs"
    CPU = "cpu", "computing"
    GPU = "gpu", "graphics card"


class JobState(models.TextChoices):
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_STATES = (JobState.WAITING, JobState.RUNNING)  # of jobs that have not ended
STAGE_CHARACTERS = 80


class Actor(models.TextChoices):
    """Who must act for a failed job to succeed."""

    NOBODY = "", "nobody"
    ORGANIZER = "organizer", "the organizer"
    TEAM = "team", "the team"
    OPERATOR = "operator", "the operator"


class Job(models.Model):
    """One piece of background work: what to do, how far it is, how it ended.

    `claim` is the token of the process that holds the job; a process that lost it writes nothing any more.
    `edition` names the edition it works for, whose organizers see it; empty for work on a corpus or a baseline, which
    those who may see `corpus` see.
    `team` is the number of the team whose turn in the queue it takes; 0 for the work of organizers and of the portal.
    `engine` names what a worker must have to take it, such as a recogniser; empty where any worker may.
    `needs_card` tells that it cannot run without a graphics card.
    `worker` is the worker that runs it, or ran it last; empty in a shell.
    `memory_bytes` is the most memory that its last attempt was seen to hold.
    `progress_from` and `progress_since` say where this attempt's current stage began, for the estimate.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=40)
    queue = models.CharField(max_length=8, choices=Queue.choices)
    title = models.CharField(max_length=200)
    parameters = models.JSONField(default=dict)
    edition = models.CharField(max_length=40, blank=True)
    corpus = models.CharField(max_length=60, blank=True)
    team = models.PositiveBigIntegerField(default=0)
    engine = models.CharField(max_length=120, blank=True)
    needs_card = models.BooleanField(default=False)
    after = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="followers")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    state = models.CharField(max_length=12, choices=JobState.choices, default=JobState.WAITING)
    waiting_since = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    times_sent = models.PositiveSmallIntegerField(default=0)

    claim = models.UUIDField(null=True, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    memory_bytes = models.PositiveBigIntegerField(default=0)
    attempt = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    stage = models.CharField(max_length=STAGE_CHARACTERS, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    progress_from = models.PositiveIntegerField(default=0)
    progress_since = models.DateTimeField(null=True, blank=True)

    result = models.JSONField(default=dict)
    problems = models.JSONField(default=list)
    failure = models.TextField(blank=True)
    failure_actor = models.CharField(max_length=12, choices=Actor.choices, blank=True)
    failure_remedy = models.TextField(blank=True)

    class Meta:
        ordering = ["-created_at", "id"]
        indexes = [
            models.Index(fields=["state", "queue", "waiting_since"]),
            models.Index(fields=["queue", "team", "-started_at"]),
            models.Index(fields=["-created_at"]),
        ]
        constraints = [
            models.CheckConstraint(
                name="job_running_has_claim",
                condition=~models.Q(state="running")
                | models.Q(claim__isnull=False, heartbeat_at__isnull=False, started_at__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("jobs:detail", args=[self.pk])

    @property
    def has_ended(self) -> bool:
        return self.state not in ACTIVE_STATES

    @property
    def percent(self) -> int | None:
        return min(100, 100 * self.done // self.total) if self.total else None


class JobEvent(models.Model):
    """Something that happened to a job, kept to explain its state."""

    class Level(models.TextChoices):
        INFO = "info"
        WARNING = "warning"
        ERROR = "error"
        TRACE = "trace", "technical detail"

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(default=read_clock, editable=False)
    attempt = models.PositiveSmallIntegerField()
    level = models.CharField(max_length=8, choices=Level.choices, default=Level.INFO)
    text = models.TextField()

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return self.text
