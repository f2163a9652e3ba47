"""Who takes part in a study, what they did, and what is thought of it."""

from __future__ import annotations

import secrets
import textwrap

from django.conf import settings
from django.db import models
from django.urls import reverse

from listening.app.models.studies import NumberedRow, Study, Trial


def _token() -> str:
    return secrets.token_urlsafe(24)


def _withdrawal_code() -> str:
    alphabet = "abcdefghjkmnpqrstuvwxyz23456789"
    return read_withdrawal_code("".join(secrets.choice(alphabet) for _ in range(16)))


def read_withdrawal_code(typed: str) -> str:
    """Return a withdrawal code as it is stored: in lower case, by fours, whatever was typed between."""
    return "-".join(textwrap.wrap("".join(one for one in typed.lower() if one.isalnum()), 4))


class Block(NumberedRow):
    """The trials of one evaluator. Leased whole to one session at a time, and offered again whole when it is lost.

    `holder`: whose lease it is until `lease_expires_at`, and permanently once `is_finished`. `offers`: how often it was
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


class Participant(NumberedRow):
    """A person as their platform names them. `person_key`: keyed hash of that name, which exports show instead.

    `platform_id` is the name itself, kept for paying, shown to the study's organizers alone; empty on a bare own link.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="participants")
    person_key = models.CharField(max_length=64)
    platform_id = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "person_key"], name="participant_once_in_study")]


class Session(NumberedRow):
    """One visit of an evaluator from consent to code. `token` is the secret of its address and its only credential.

    `heard_until`: the earliest moment by which somebody listening in real time can have heard everything answered so
    far; the time gate. `tab`: the browser tab that may write; another one takes over by putting its own key here.
    `flagged_at`: when the rules of `listening.app.monitor.rules` last looked at it.
    `skips`: positions whose sound failed, in the order of the reports. Once: the trial moved to the end; twice: it was
    given up. `network`: keyed hash of the address that it was begun from, for a day; no export has it.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        FINISHED = "finished"
        SCREENED_OUT = "screened-out", "screened out"
        FAILED_ATTENTION = "failed-attention", "missed control trials"
        TECHNICAL = "technical", "ended by a technical error"
        EXPIRED = "expired", "timed out"
        WITHDRAWN = "withdrawn"

    class Step(models.TextChoices):
        CONSENT = "consent"
        QUESTIONS = "questions"
        SOUND = "sound", "sound test"
        HEADPHONES = "headphones", "listening checks"
        ROLE_PLAY = "role-play", "instructions"
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
    network = models.CharField(max_length=64, blank=True, default="")
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

    class Meta(NumberedRow.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["participant"],
                condition=models.Q(state="active", is_preview=False),
                name="one_active_session_of_a_participant",
            )
        ]

    def get_absolute_url(self) -> str:
        return reverse("listen:session", args=[self.token])


class Flag(NumberedRow):
    """Something about a session that an organizer should look at; never a consequence by itself.

    `data`: the numbers it rests on, and `holds`: whether a rule still finds it; once ended, a session keeps its flags.
    """

    class Kind(models.TextChoices):
        STRAIGHT_LINING = "straight-lining", "straight-lining"
        LOW_VARIANCE = "low-variance", "nearly equal ratings"
        ALTERNATING = "alternating", "alternating ratings"
        TOO_FAST = "too-fast", "faster than the speech"
        GOLD_MISSED = "gold-missed", "control trials missed"
        HEADPHONES = "headphones", "listening check failed"
        PLAYBACK = "playback", "muted, sped up or skipped ahead"
        NOT_HEARD = "not-heard", "recordings not played"
        DISAGREES = "disagrees", "agrees with nobody"  # this and the next ones are found by an analysis
        BRIDGE_OUTLIER = "bridge-outlier", "far from the others on the bridge set"
        VOTE_OUTLIERS = "vote-outliers", "single ratings far off"
        EVEN_RATINGS = "even-ratings", "nearly equal ratings, as the analysis finds"
        CONTROLS_MISSED = "controls-missed", "control trials missed, as the analysis finds"
        REFERENCE_LOW = "reference-low", "hidden reference rated low"
        ANCHOR_HIGH = "anchor-high", "7 kHz anchor rated high"

    FOUND_BY_ANALYSIS = (
        Kind.DISAGREES,
        Kind.BRIDGE_OUTLIER,
        Kind.VOTE_OUTLIERS,
        Kind.EVEN_RATINGS,
        Kind.CONTROLS_MISSED,
        Kind.REFERENCE_LOW,
        Kind.ANCHOR_HIGH,
    )

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="flags")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    data = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["at", "pk"]
        constraints = [models.UniqueConstraint(fields=["session", "kind"], name="flag_kind_once")]


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


class Exclusion(NumberedRow):
    """A session that a rule leaves out, while the rule stands."""

    rule = models.ForeignKey(ExclusionRule, on_delete=models.CASCADE, related_name="exclusions")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="exclusions")
    at = models.DateTimeField(auto_now_add=True)

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["rule", "session"], name="exclusion_once")]


class Answer(NumberedRow):
    """What one session said about one question of one trial; never changed once it is there.

    `task`: key of the question. `rating` of a scale, or the number of a choice from 1; `text` of a transcription;
    `data` of a board, or of sliders by slot, such as ``{"ratings": {"1": 80, "2": 35}}``. `client_ms`: between
    the trial's appearance and the answer by the browser's clock. `is_late`: it waited in the browser for a connection.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="answers")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="answers")
    task = models.CharField(max_length=40)
    rating = models.SmallIntegerField(null=True)
    text = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    received_at = models.DateTimeField()
    client_ms = models.PositiveIntegerField(null=True)
    is_late = models.BooleanField(default=False)

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["session", "trial", "task"], name="answer_once")]


class Serve(NumberedRow):
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

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["session", "trial", "slot"], name="serve_once")]


class Play(NumberedRow):
    """A playback as the browser tells it; times in ms since the trial appeared. A claim, never a proof."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="plays")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="plays")
    slot = models.CharField(max_length=2)
    started_ms = models.PositiveIntegerField()
    heard_ms = models.PositiveIntegerField()
    is_whole = models.BooleanField()
    remarks = models.JSONField(default=list, blank=True)  # such as "muted", "rate", "seek", "hidden"


class ScreeningResult(NumberedRow):
    """One attempt at a screening test. `secret`: the right answers, which no browser gets."""

    class Kind(models.TextChoices):
        SOUND = "sound", "sound test"
        HUGGINS = "huggins", "headphone check by Huggins pitch"
        WOODS = "woods", "headphone check by phase"
        BANDWIDTH = "bandwidth", "bandwidth check"
        ENVIRONMENT = "environment", "environment check"
        LANGUAGE = "language", "native language"
        HEARING = "hearing"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="screening_results")
    kind = models.CharField(max_length=11, choices=Kind.choices)
    attempt = models.PositiveSmallIntegerField(default=1)
    secret = models.JSONField(default=dict, blank=True)
    given = models.JSONField(default=list, blank=True)
    score = models.PositiveSmallIntegerField(null=True)
    of = models.PositiveSmallIntegerField(default=0)
    is_passed = models.BooleanField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["session", "kind", "attempt"], name="screening_attempt_once")]


class SessionEvent(NumberedRow):
    """Something that happened in a session, told by the server or, with `is_told`, by the browser."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=30)
    is_told = models.BooleanField(default=False)
    data = models.JSONField(default=dict, blank=True)

    @property
    def label(self) -> str:
        """Return its kind in words."""
        return str(dict(Flag.Kind.choices).get(self.kind, self.kind.replace("-", " "))).capitalize()
