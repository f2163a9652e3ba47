"""What evaluators did: answers, what they heard, how they did in the screening, and what happened on the way."""

from __future__ import annotations

from django.db import models

from listening.models.people import Session
from listening.models.studies import Task, Trial


class Answer(models.Model):
    """What one session said about one task of one trial; never changed once it is there.

    `rating` of a rated task, `text` of a transcription, `data` of a board. `client_ms`: between the trial's
    appearance and the answer by the browser's clock. `is_late`: it waited in the browser for a connection.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="answers")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="answers")
    task = models.CharField(max_length=15, choices=Task.choices)
    rating = models.PositiveSmallIntegerField(null=True)
    text = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    received_at = models.DateTimeField()
    client_ms = models.PositiveIntegerField(null=True)
    is_late = models.BooleanField(default=False)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["session", "trial", "task"], name="answer_once")]

    def __str__(self) -> str:
        return f"{self.task} of {self.trial}"


class Serve(models.Model):
    """What the server really sent of a sample: the time of its first byte, and of its last one once all were sent.

    Of a sample sent in parts, `first_at` is when a playing that no part is late for could have begun. `ranges`: the
    bytes sent so far as pairs of first and behind the last; empty once all were.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="serves")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="serves")
    slot = models.CharField(max_length=2)
    first_at = models.DateTimeField()
    complete_at = models.DateTimeField(null=True)
    requests = models.PositiveSmallIntegerField(default=1)
    ranges = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["session", "trial", "slot"], name="serve_once")]

    def __str__(self) -> str:
        return f"{self.slot} of {self.trial}"


class Play(models.Model):
    """A playback as the browser tells it; times in ms since the trial appeared. A claim, never a proof."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="plays")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="plays")
    slot = models.CharField(max_length=2)
    started_ms = models.PositiveIntegerField()
    heard_ms = models.PositiveIntegerField()
    is_whole = models.BooleanField()
    remarks = models.JSONField(default=list, blank=True)  # such as "muted", "rate", "seek", "hidden"

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.slot} of {self.trial}"


class ScreeningResult(models.Model):
    """One attempt at a screening test. `secret`: the right answers, which no browser gets."""

    class Kind(models.TextChoices):
        SOUND = "sound", "sound test"
        HUGGINS = "huggins", "headphone check by Huggins pitch"
        WOODS = "woods", "headphone check by phase"
        LANGUAGE = "language", "native language"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="screening_results")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    attempt = models.PositiveSmallIntegerField(default=1)
    secret = models.JSONField(default=dict, blank=True)
    given = models.JSONField(default=list, blank=True)
    score = models.PositiveSmallIntegerField(null=True)
    of = models.PositiveSmallIntegerField(default=0)
    is_passed = models.BooleanField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["session", "kind", "attempt"], name="screening_attempt_once")]

    def __str__(self) -> str:
        return f"{self.kind}, attempt {self.attempt}, of {self.session}"


class SessionEvent(models.Model):
    """Something that happened in a session, told by the server or, with `is_told`, by the browser."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=30)
    is_told = models.BooleanField(default=False)
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.kind} of {self.session}"
