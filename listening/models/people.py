"""Who listens: blocks and who holds them, participants, their sessions, and what is thought of those."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.urls import reverse

from listening.models.studies import Study


def _token() -> str:
    return secrets.token_urlsafe(24)


def _withdrawal_code() -> str:
    alphabet = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(alphabet) for _ in range(4)) for _ in range(4))


class Block(models.Model):
    """The trials of one evaluator. Leased whole to one session at a time, and offered again whole when it is lost.

    `holder`: whose lease it is until `lease_expires_at`, and for good once `is_finished`. `offers`: how often it was
    leased. `wave`: 0 for the blocks of the launch, then one more for each extension.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="blocks")
    number = models.PositiveSmallIntegerField()
    wave = models.PositiveSmallIntegerField(default=0)
    holder = models.OneToOneField(
        "listening.Session", null=True, blank=True, on_delete=models.SET_NULL, related_name="held_block"
    )
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    is_finished = models.BooleanField(default=False)
    offers = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="block_number_once")]

    def __str__(self) -> str:
        return f"block {self.number}"


class Participant(models.Model):
    """A person as their platform names them. `person_key`: keyed hash of that name, which exports show instead.

    `platform_id` is the name itself, kept for paying, shown to the study's organizers alone; empty on a bare own link.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="participants")
    person_key = models.CharField(max_length=64)
    platform_id = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["study", "person_key"], name="participant_once_in_study")]

    def __str__(self) -> str:
        return f"participant {self.pk}"


class Session(models.Model):
    """One visit of an evaluator from consent to code. `token` is the secret of its address and its only credential.

    `heard_until`: the earliest moment by which somebody listening in real time can have heard everything answered so
    far; the time gate. `tab`: the browser tab that may write; another one takes over by putting its own key here.
    `flagged_at`: when the rules of `listening.monitor.flags` last looked at it.
    `skips`: positions whose sound failed, in the order of the reports. Once: the trial moved to the end; twice: it was
    given up.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        FINISHED = "finished"
        SCREENED_OUT = "screened-out", "screened out"
        FAILED_ATTENTION = "failed-attention", "failed the attention checks"
        TECHNICAL = "technical", "ended by a technical fault"
        EXPIRED = "expired", "lost its block"
        WITHDRAWN = "withdrawn"

    class Step(models.TextChoices):
        CONSENT = "consent"
        QUESTIONS = "questions"
        SOUND = "sound", "sound test"
        HEADPHONES = "headphones", "headphone check"
        ROLE_PLAY = "role-play", "role play"
        TRIALS = "trials"
        END = "end"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="sessions")
    participant = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="sessions")
    block = models.ForeignKey(Block, null=True, blank=True, on_delete=models.SET_NULL, related_name="sessions")
    token = models.CharField(max_length=48, unique=True, default=_token)
    state = models.CharField(max_length=16, choices=State.choices, default=State.ACTIVE)
    step = models.CharField(max_length=10, choices=Step.choices, default=Step.CONSENT)
    language = models.CharField(max_length=8, default="en")
    texts = models.JSONField(default=dict, blank=True)  # by kind the version and language that was shown
    questionnaire = models.JSONField(default=dict, blank=True)
    platform_data = models.JSONField(default=dict, blank=True)
    device = models.JSONField(default=dict, blank=True)
    tab = models.CharField(max_length=40, blank=True)
    heard_until = models.DateTimeField(null=True, blank=True)
    skips = models.JSONField(default=list, blank=True)
    is_preview = models.BooleanField(default=False)
    is_simulated = models.BooleanField(default=False)
    completion_code = models.CharField(max_length=64, blank=True)  # empty until the server has released it
    withdrawal_code = models.CharField(max_length=24, unique=True, default=_withdrawal_code)
    started_at = models.DateTimeField(auto_now_add=True)
    consented_at = models.DateTimeField(null=True, blank=True)
    trials_started_at = models.DateTimeField(null=True, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    flagged_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["participant"],
                condition=models.Q(state="active", is_preview=False),
                name="one_active_session_of_a_participant",
            )
        ]

    def __str__(self) -> str:
        return f"session {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("listen:session", args=[self.token])


class Flag(models.Model):
    """Something about a session that an organizer should look at; never a consequence by itself.

    `data`: the numbers it rests on, and `holds`: whether a rule still finds it; once ended, a session keeps its flags.
    """

    class Kind(models.TextChoices):
        STRAIGHT_LINING = "straight-lining", "straight-lining"
        LOW_VARIANCE = "low-variance", "nearly equal ratings"
        ALTERNATING = "alternating", "alternating ratings"
        TOO_FAST = "too-fast", "faster than the speech"
        GOLD_MISSED = "gold-missed", "control trials missed"
        HEADPHONES = "headphones", "headphone check failed"
        PLAYBACK = "playback", "muted, sped up or skipped ahead"
        DISAGREES = "disagrees", "agrees with nobody"  # this and the next ones are found by an analysis
        BRIDGE_OUTLIER = "bridge-outlier", "far from the others on the bridge set"
        VOTE_OUTLIERS = "vote-outliers", "single ratings far off"
        EVEN_RATINGS = "even-ratings", "nearly equal ratings, as the analysis finds"
        CONTROLS_MISSED = "controls-missed", "control trials missed, as the analysis finds"

    FOUND_BY_ANALYSIS = (
        Kind.DISAGREES,
        Kind.BRIDGE_OUTLIER,
        Kind.VOTE_OUTLIERS,
        Kind.EVEN_RATINGS,
        Kind.CONTROLS_MISSED,
    )

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="flags")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    data = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["at", "pk"]
        constraints = [models.UniqueConstraint(fields=["session", "kind"], name="flag_kind_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.session}"


class ExclusionRule(models.Model):
    """Why sessions are left out of the analysis: a flag, or one named session. Revoking it brings them back."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="exclusion_rules")
    flag = models.CharField(max_length=16, choices=Flag.Kind.choices, blank=True)
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="own_rules")
    reason = models.CharField(max_length=400)
    offers_block_again = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="exclusion_rules"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return self.reason


class Exclusion(models.Model):
    """A session that a rule leaves out, while the rule stands."""

    rule = models.ForeignKey(ExclusionRule, on_delete=models.CASCADE, related_name="exclusions")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="exclusions")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["rule", "session"], name="exclusion_once")]

    def __str__(self) -> str:
        return f"{self.session} by {self.rule}"
