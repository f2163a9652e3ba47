"""A study and its design, the people who listen, what they answered, and the analyses of that.

Study ─ Question, StudyText, Condition, Item (what is said) ─ Stimulus (an item in a condition) · Presentation (what one
trial presents) · Block (the trials of one evaluator) ─ Trial (a presentation at its place) · Participant ─ Session ─
Answer, Play, Serve, ScreeningResult, SessionEvent · Flag, ExclusionRule ─ Exclusion · Analysis.
"""

from __future__ import annotations

import secrets
import textwrap

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils.functional import cached_property

from listening.questions import FEWEST_POINTS, MOST_POINTS, AskedQuestion, Kind, Screen, find_form, read_question
from portal.challenges.models import DataSet, Edition, Gender, Utterance
from portal.jobs.models import Job
from portal.submissions.models import Submission


def _link_key() -> str:
    return secrets.token_urlsafe(12)


def _seed() -> int:
    return secrets.randbelow(2**31)


def _token() -> str:
    return secrets.token_urlsafe(24)


def _withdrawal_code() -> str:
    alphabet = "abcdefghjkmnpqrstuvwxyz23456789"
    return read_withdrawal_code("".join(secrets.choice(alphabet) for _ in range(16)))


def read_withdrawal_code(typed: str) -> str:
    """A withdrawal code as it is stored: in lower case, by fours, whatever somebody typed between its letters."""
    return "-".join(textwrap.wrap("".join(one for one in typed.lower() if one.isalnum()), 4))


class _Row(models.Model):
    """A row that is known by its number, in the order in which it was made."""

    class Meta:
        abstract = True
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"


class Study(models.Model):
    """One listening test.

    `data_sets`: the trial and enrolment sets whose recordings are heard.
    `link_key`: the secret part of the address that evaluators are given. `certificate`: what the independent checker
    found in the design, as `listening.design.certificate` writes it; empty until there is a design. `screening`,
    `questionnaire` and `platform_settings` are validated by `listening.app.studies.settings`.
    """

    class Form(models.TextChoices):
        RATING = "rating", "rating of single utterances and pairs"
        LINKABILITY = "linkability", "voice map: placing voices by how alike they sound"
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
        NONE = "none", "none: instructions alone"

    class Platform(models.TextChoices):
        OWN = "own", "own link"
        PROLIFIC = "prolific"
        MTURK = "mturk", "Mechanical Turk"

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    edition = models.ForeignKey(Edition, on_delete=models.PROTECT, related_name="studies")
    data_sets = models.ManyToManyField(DataSet, related_name="studies", blank=True)
    state = models.CharField(max_length=9, choices=State.choices, default=State.DRAFT)
    is_simulated = models.BooleanField(default=False, help_text="Its answers are simulated, as every page says.")
    link_key = models.CharField(max_length=32, unique=True, default=_link_key)

    pages = models.CharField(max_length=8, choices=Pages.choices, default=Pages.TOGETHER)
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
    pay_per_hour = models.DecimalField(max_digits=6, decimal_places=2, default=0)
    currency = models.CharField(max_length=3, default="EUR")
    # What evaluators are told before they consent
    responsible = models.CharField(max_length=200, blank=True, default="")
    contact = models.CharField(max_length=200, blank=True, default="")
    keep_months = models.PositiveSmallIntegerField(null=True, blank=True)
    lease_minutes = models.PositiveSmallIntegerField(default=45)
    # Places that one network address may take; None: a quarter of them
    places_per_network = models.PositiveSmallIntegerField(null=True, blank=True)
    refusals = models.JSONField(default=dict, blank=True)  # by kind how many were turned away, and the last time

    certificate = models.JSONField(default=dict, blank=True)
    stimuli = models.JSONField(default=dict, blank=True)  # what every stimulus file has in common, once they are made
    job = models.OneToOneField(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="prepared_study")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    launched_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True, help_text="Since then in no list and no choice.")
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

    @cached_property
    def asked(self) -> tuple[AskedQuestion, ...]:
        """The questions in the order of asking; they are fixed at the launch."""
        return tuple(one.as_asked() for one in self.questions.all()) if self.pk else ()

    @property
    def asked_keys(self) -> list[str]:
        return [one.key for one in self.asked]

    @property
    def last_asked_key(self) -> str:
        """Of the question that is answered last of a trial; empty where nothing is asked."""
        return self.asked[-1].key if self.asked else ""

    @property
    def form(self) -> Form:
        """What evaluators do on the whole, as the kinds of its questions say."""
        return self.Form(find_form(self.asked))

    @property
    def systems(self) -> models.QuerySet[Condition]:
        """Return the conditions that are compared: all but the original."""
        return self.conditions.exclude(kind=Condition.Kind.ORIGINAL)

    @property
    def is_designed(self) -> bool:
        return bool(self.certificate)

    @property
    def is_launched(self) -> bool:
        return self.launched_at is not None


class Question(models.Model):
    """What evaluators are asked about each trial; `listening.questions.AskedQuestion` says what its fields hold."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="questions")
    position = models.PositiveSmallIntegerField()
    key = models.SlugField(max_length=40)
    kind = models.CharField(max_length=9, choices=[(one.value, one.value) for one in Kind])
    screen = models.CharField(max_length=6, choices=[(one.value, one.value) for one in Screen])
    points = models.PositiveSmallIntegerField(
        default=10, validators=[MinValueValidator(FEWEST_POINTS), MaxValueValidator(MOST_POINTS)]
    )
    listen_again = models.BooleanField(default=False)
    wording = models.JSONField(default=dict)
    results = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["position", "pk"]
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="question_key_once")]

    def __str__(self) -> str:
        return self.key

    def as_asked(self) -> AskedQuestion:
        names = ("key", "kind", "screen", "points", "listen_again", "wording", "results")
        return read_question({name: getattr(self, name) for name in names})


class Condition(models.Model):
    """Whose version of a recording it is. `code` names it in the design, never to an evaluator.

    `submission`: of a system of an edition. The original, with which the others are compared, has an empty code.
    """

    class Kind(models.TextChoices):
        SYSTEM = "system"
        ORIGINAL = "original"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="conditions")
    kind = models.CharField(max_length=9, choices=Kind.choices, default=Kind.SYSTEM)
    submission = models.ForeignKey(Submission, null=True, blank=True, on_delete=models.PROTECT, related_name="heard_as")
    code = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ["code"]
        constraints = [models.UniqueConstraint(fields=["study", "code"], name="condition_code_once")]

    def __str__(self) -> str:
        return self.code or self.get_kind_display()


class Item(_Row):
    """What is said: the same recording through all conditions. `utterance`: where it comes from a corpus."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="items")
    name = models.CharField(max_length=120)
    speaker = models.CharField(max_length=120, blank=True)
    sex = models.CharField(max_length=1, choices=Gender.choices, blank=True)
    language = models.CharField(max_length=8, blank=True)
    transcript = models.TextField(blank=True)
    utterance = models.ForeignKey(Utterance, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "name"], name="item_name_once")]

    def __str__(self) -> str:
        return self.name


class StudyText(_Row):
    """A text that evaluators read, in one language; a change makes a new version, and sessions keep what they saw."""

    class Kind(models.TextChoices):
        CONSENT = "consent"
        ROLE_PLAY = "role-play"
        INSTRUCTIONS = "instructions"
        THANKS = "thanks"
        WORDS = "words"  # of buttons and hints, as CSV: `listening.app.studies.interface_words`

    READ = (Kind.CONSENT, Kind.ROLE_PLAY, Kind.INSTRUCTIONS, Kind.THANKS)  # in Markdown; no study can do without

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


class Stimulus(_Row):
    """An item in a condition, as evaluators hear it. Equal container for all of a study.

    `source`: key of the stored recording it was made from. `duration_s`: of the speech, without what pads the file.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="stimulus_files")
    condition = models.ForeignKey(Condition, on_delete=models.PROTECT, related_name="stimuli")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="stimuli")
    source = models.CharField(max_length=120)
    file = models.CharField(max_length=120, blank=True)
    bytes = models.PositiveIntegerField(default=0)
    duration_s = models.FloatField(default=0)
    facts = models.JSONField(default=dict, blank=True)  # gain_db, peak, level before and after

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["condition", "item"], name="stimulus_once")]


class Presentation(_Row):
    """What one trial presents: sample A, and where it is compared sample B; or the samples of a board.

    `condition`: of sample A, or of the board. `is_target` is empty where no voices are compared. `expected`: of a gold
    trial by question the lowest and highest right rating, such as ``{"verifiability": [9, 10]}``.
    """

    class Purpose(models.TextChoices):
        SCORED = "scored"
        PRACTICE = "practice"
        GOLD = "gold"
        BRIDGE = "bridge"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="presentations")
    purpose = models.CharField(max_length=8, choices=Purpose.choices, default=Purpose.SCORED)
    key = models.CharField(max_length=200)  # its name in the design
    condition = models.ForeignKey(Condition, on_delete=models.PROTECT, related_name="presentations")
    is_target = models.BooleanField(null=True)
    expected = models.JSONField(default=dict, blank=True)

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="presentation_key_once")]


class PresentationSample(_Row):
    """A stimulus of a presentation: slot ``a`` (trial utterance), ``b`` (enrolment), or ``1``, ``2``, … of a board."""

    presentation = models.ForeignKey(Presentation, on_delete=models.CASCADE, related_name="samples")
    slot = models.CharField(max_length=2)
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="+")

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["presentation", "slot"], name="presentation_slot_once")]


class Trial(_Row):
    """A presentation at its place in a block; practice comes first, gold and bridge trials stand among the others."""

    block = models.ForeignKey("listening.Block", on_delete=models.CASCADE, related_name="trials")
    position = models.PositiveSmallIntegerField()  # from 1
    presentation = models.ForeignKey(Presentation, on_delete=models.PROTECT, related_name="trials")

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["block", "position"], name="trial_position_once")]


class Analysis(_Row):
    """What the listeners of a study said, computed once.

    `chosen`: its settings. `basis`: digests that change with the inputs, computed without reading the ratings; they
    say what has changed in the study since. `fingerprint`: SHA-256 of the inputs, the settings and the
    version of the analysis; equal ones are not computed again. Keys of stored files: `inputs`, a zip; `results`, of
    `Results.as_json`; `figures` by their names, such as ``raw/det-naturalness-light.svg``. They fill up while the job
    runs; the analysis is there once it has `finished_at`. The one with the latest counts: one that is taken again gets
    a new one.
    `erased_at`: since when it holds no answer of single people any more, because one of them withdrew: its inputs and
    the tables and figures about listeners and utterances are gone; `leftovers`: keys of files still to be deleted.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="analyses")
    basis = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64, blank=True)
    chosen = models.JSONField("settings", default=dict, blank=True)
    inputs = models.CharField(max_length=120, blank=True)
    results = models.CharField(max_length=120, blank=True)
    figures = models.JSONField(default=dict, blank=True)
    job = models.OneToOneField(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="analysis")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    erased_at = models.DateTimeField(null=True, blank=True)
    leftovers = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        verbose_name_plural = "analyses"

    @property
    def is_ready(self) -> bool:
        return self.finished_at is not None


# Who takes part, what they did, and what is thought of it ---------------------------------------------


class Block(_Row):
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


class Participant(_Row):
    """A person as their platform names them. `person_key`: keyed hash of that name, which exports show instead.

    `platform_id` is the name itself, kept for paying, shown to the study's organizers alone; empty on a bare own link.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="participants")
    person_key = models.CharField(max_length=64)
    platform_id = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "person_key"], name="participant_once_in_study")]


class Session(_Row):
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

    class Meta(_Row.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["participant"],
                condition=models.Q(state="active", is_preview=False),
                name="one_active_session_of_a_participant",
            )
        ]

    def get_absolute_url(self) -> str:
        return reverse("listen:session", args=[self.token])


class Flag(_Row):
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
        NOT_HEARD = "not-heard", "recordings not played"
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


class Exclusion(_Row):
    """A session that a rule leaves out, while the rule stands."""

    rule = models.ForeignKey(ExclusionRule, on_delete=models.CASCADE, related_name="exclusions")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="exclusions")
    at = models.DateTimeField(auto_now_add=True)

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["rule", "session"], name="exclusion_once")]


class Answer(_Row):
    """What one session said about one question of one trial; never changed once it is there.

    `task`: key of the question. `rating` of a scale, `text` of a transcription, `data` of a board. `client_ms`: between
    the trial's appearance and the answer by the browser's clock. `is_late`: it waited in the browser for a connection.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="answers")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="answers")
    task = models.CharField(max_length=40)
    rating = models.PositiveSmallIntegerField(null=True)
    text = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    received_at = models.DateTimeField()
    client_ms = models.PositiveIntegerField(null=True)
    is_late = models.BooleanField(default=False)

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["session", "trial", "task"], name="answer_once")]


class Serve(_Row):
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

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["session", "trial", "slot"], name="serve_once")]


class Play(_Row):
    """A playback as the browser tells it; times in ms since the trial appeared. A claim, never a proof."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="plays")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="plays")
    slot = models.CharField(max_length=2)
    started_ms = models.PositiveIntegerField()
    heard_ms = models.PositiveIntegerField()
    is_whole = models.BooleanField()
    remarks = models.JSONField(default=list, blank=True)  # such as "muted", "rate", "seek", "hidden"


class ScreeningResult(_Row):
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

    class Meta(_Row.Meta):
        constraints = [models.UniqueConstraint(fields=["session", "kind", "attempt"], name="screening_attempt_once")]


class SessionEvent(_Row):
    """Something that happened in a session, told by the server or, with `is_told`, by the browser."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=30)
    is_told = models.BooleanField(default=False)
    data = models.JSONField(default=dict, blank=True)

    @property
    def label(self) -> str:
        """Its kind in words."""
        return str(dict(Flag.Kind.choices).get(self.kind, self.kind.replace("-", " "))).capitalize()
