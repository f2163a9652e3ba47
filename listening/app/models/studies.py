"""A study and its design: what is heard in which condition, what a trial presents, and the analyses."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.text import capfirst

from listening.analysis.reading.inputs import ORIGINAL
from listening.questions import (
    FEWEST_POINTS,
    MOST_POINTS,
    AskedQuestion,
    Kind,
    Orders,
    Screen,
    are_crossed,
    find_form,
    find_preset,
    order_questions,
    read_question,
)
from listening.stimuli.making import USUAL, Loudness, StimulusFormat
from portal.challenges.models import DataSet, Edition, Gender, Utterance
from portal.jobs.models import Job
from portal.submissions.models import Submission

LOUDNESS = [
    (Loudness.SPEECH.value, "active speech level of −26 dBov (ITU-T P.56)"),
    (Loudness.PROGRAMME.value, "loudness of −26 LUFS (ITU-R BS.1770)"),
    (Loudness.AS_IT_IS.value, "as it is"),
]


def _link_key() -> str:
    return secrets.token_urlsafe(12)


def _seed() -> int:
    return secrets.randbelow(2**31)


class NumberedRow(models.Model):
    """A row that is known by its number, in the order in which it was made."""

    class Meta:
        abstract = True
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"


class Study(models.Model):
    """One listening test.

    `edition`: whose systems are heard; empty for a test of recordings of its own, which belongs to who made it.
    `data_sets`: the trial and enrolment sets whose recordings are heard. `recordings`: of a test of its own the name of
    the archive, and what to look at before the launch; of systems the file that chose them, if one did.
    `half_width`: of the 95 % intervals of its main numbers, which the test shall reach with at most `most_evaluators`;
    empty: it has the evaluators it has (`listening.app.results.waves`).
    `against`: name of the condition with which alone the others are compared in pairs; empty: each with each other.
    `items_at_most`: of those that every condition has, where conditions are crossed with items; empty: all.
    `link_key`: the secret part of the address that evaluators are given. `certificate`: what the independent checker
    found in the design, as `listening.design.certificate` writes it; empty until there is a design. `screening`,
    `questionnaire` and `platform_settings` are validated by `listening.app.studies.settings`.
    """

    class Form(models.TextChoices):
        RATING = "rating", "rating of single utterances and pairs"
        LINKABILITY = "linkability", "voice map: placing voices by how alike they sound"
        TRANSCRIPTION = "transcription", "writing down what is heard"
        ANSWERS = "answers", "comparisons and choices"

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

    ORDERS = [
        (Orders.AS_LISTED.value, "as listed"),
        (Orders.SWAP_FIRST_TWO.value, "the first two change places for half of the evaluators"),
    ]

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
    edition = models.ForeignKey(Edition, null=True, blank=True, on_delete=models.CASCADE, related_name="studies")
    data_sets = models.ManyToManyField(DataSet, related_name="studies", blank=True)
    state = models.CharField(max_length=9, choices=State.choices, default=State.DRAFT)
    is_simulated = models.BooleanField(default=False, help_text="Its answers are simulated, as every page says.")
    recordings = models.JSONField(default=dict, blank=True)
    rate_hz = models.PositiveIntegerField(default=USUAL.rate_hz)
    channels = models.PositiveSmallIntegerField(default=USUAL.channels)
    loudness = models.CharField(max_length=6, choices=LOUDNESS, default=USUAL.loudness.value)
    link_key = models.CharField(max_length=32, unique=True, default=_link_key)

    pages = models.CharField(max_length=8, choices=Pages.choices, default=Pages.TOGETHER)
    orders = models.CharField(max_length=14, choices=ORDERS, default=Orders.AS_LISTED.value)
    plays_at_most = models.PositiveSmallIntegerField(null=True, blank=True)  # None: as often as wanted
    role_play = models.CharField(max_length=11, choices=RolePlay.choices, default=RolePlay.BROADCASTER)
    languages = models.JSONField(default=list)  # of the texts on offer, the first one is the default: ["en", "fr"]
    questionnaire = models.JSONField(default=list, blank=True)
    screening = models.JSONField(default=dict, blank=True)
    platform = models.CharField(max_length=8, choices=Platform.choices, default=Platform.OWN)
    platform_settings = models.JSONField(default=dict, blank=True)

    evaluators = models.PositiveSmallIntegerField(default=52, validators=[MinValueValidator(1)])
    half_width = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.001)])
    most_evaluators = models.PositiveSmallIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    waves = models.JSONField(default=list, blank=True)  # of each that ended how many evaluators count, and the width
    trials_per_evaluator = models.PositiveSmallIntegerField(default=52, validators=[MinValueValidator(1)])
    items_at_most = models.PositiveSmallIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    against = models.CharField(max_length=40, blank=True, default="")
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
        verbose_name = "listening test"

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("studies:detail", args=[self.name])

    @cached_property
    def asked(self) -> tuple[AskedQuestion, ...]:
        """Return the questions in the order of asking; they are fixed at the launch."""
        return tuple(one.as_asked() for one in self.questions.all()) if self.pk else ()

    @property
    def asked_keys(self) -> list[str]:
        return [one.key for one in self.asked]

    def asked_in(self, block: int) -> tuple[AskedQuestion, ...]:
        """Return the questions in the order in which the block of this number asks them."""
        return order_questions(self.asked, self.orders, block=block, seed=self.seed)

    @property
    def last_asked_key(self) -> str:
        """Return the key of the question that is answered last of a trial; empty where nothing is asked."""
        return self.asked[-1].key if self.asked else ""

    @property
    def form(self) -> Form:
        """Return what evaluators do on the whole, as the kinds of its questions say."""
        return self.Form(find_form(self.asked))

    @property
    def form_title(self) -> str:
        """Return what evaluators do, in a few words: of a crossed test the preset, such as ``MUSHRA``."""
        preset = find_preset(self.asked) if self.is_crossed else None
        return preset.title if preset else capfirst(self.form.label)

    @property
    def screen(self) -> Screen:
        """Return what a trial of a crossed test plays, whichever of its questions is asked."""
        return Screen(self.asked[0].screen) if self.asked else Screen.SINGLE

    @property
    def form_of_results(self) -> Form:
        """Return how it is analysed: scales of a crossed test by condition and item, as comparisons are."""
        return self.Form.ANSWERS if self.is_crossed and self.form == self.Form.RATING else self.form

    @property
    def trials_beside(self) -> int:
        """Return how many trials of a session are not scored: practice, control and bridge trials."""
        has_others = self.is_crossed or self.form == self.Form.RATING
        return self.practice_trials + self.gold_trials + self.bridge_trials if has_others else 0

    @property
    def systems(self) -> models.QuerySet[Condition]:
        """Return the conditions that are compared with the original."""
        return self.compared.exclude(kind=Condition.Kind.ORIGINAL)

    @property
    def compared(self) -> models.QuerySet[Condition]:
        """Return the conditions that are compared, the original among them."""
        return self.conditions.exclude(kind__in=Condition.UNSCORED)

    @property
    def is_crossed(self) -> bool:
        """Return whether every condition is heard in every item, wherever the recordings come from."""
        return self.has_own_recordings or (not self.imported and are_crossed(self.asked))

    @property
    def has_own_recordings(self) -> bool:
        """Return whether it is a test of recordings of one's own, and of no systems of an edition."""
        return self.edition_id is None

    @property
    def original_name(self) -> str:
        """Return what the original is called: of own recordings as its folder."""
        return self.recordings.get("original") or ORIGINAL

    @property
    def waits_for_leaderboard(self) -> bool:
        """Return whether results cannot be public yet, since the leaderboard of their edition is not."""
        return self.edition is not None and self.edition.published_at is None

    @property
    def sound(self) -> StimulusFormat:
        return StimulusFormat(self.rate_hz, self.channels, Loudness(self.loudness))

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
    screen = models.CharField(max_length=9, choices=[(one.value, one.value) for one in Screen])
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

    `submission`: of a system of an edition; a folder of recordings has none. The original, with which the others are
    compared, has an empty code. Recordings for practice, and those with a known answer, are conditions of their own,
    which are compared with nothing. `low_pass_hz`: of an anchor, which the portal makes of the original.
    """

    class Kind(models.TextChoices):
        SYSTEM = "system"
        ORIGINAL = "original"
        FOLDER = "folder"
        REFERENCE = "reference"
        ANCHOR = "anchor"
        PRACTICE = "practice"
        CONTROL = "control"

    UNSCORED = (Kind.PRACTICE, Kind.CONTROL)

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="conditions")
    kind = models.CharField(max_length=9, choices=Kind.choices, default=Kind.SYSTEM)
    submission = models.ForeignKey(
        Submission, null=True, blank=True, on_delete=models.RESTRICT, related_name="heard_as"
    )
    code = models.CharField(max_length=40, blank=True)
    low_pass_hz = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["code"]
        constraints = [models.UniqueConstraint(fields=["study", "code"], name="condition_code_once")]

    def __str__(self) -> str:
        return self.code or self.get_kind_display()


class Item(NumberedRow):
    """What is said: the same recording through all conditions. `utterance`: where it comes from a corpus."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="items")
    name = models.CharField(max_length=120)
    speaker = models.CharField(max_length=120, blank=True)
    sex = models.CharField(max_length=1, choices=Gender.choices, blank=True)
    language = models.CharField(max_length=8, blank=True)
    transcript = models.TextField(blank=True)
    answer = models.CharField(max_length=20, blank=True)  # the right one: a label, or of a control trial 1 or 4-5
    utterance = models.ForeignKey(Utterance, null=True, blank=True, on_delete=models.RESTRICT, related_name="+")

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "name"], name="item_name_once")]

    def __str__(self) -> str:
        return self.name


class StudyText(NumberedRow):
    """A text that evaluators read, in one language; a change makes a new version, and sessions keep what they saw."""

    class Kind(models.TextChoices):
        CONSENT = "consent"
        ROLE_PLAY = "role-play"
        INSTRUCTIONS = "instructions"
        THANKS = "thanks"
        WORDS = "words"  # of buttons and hints, as JSON: `listening.app.studies.interface_words`

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


class Stimulus(NumberedRow):
    """An item in a condition, as evaluators hear it. Equal container for all of a study.

    `source`: key of the stored recording it was made from; `upload` the same where this study alone has it.
    `duration_s`: of the speech, without what pads the file.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="stimulus_files")
    condition = models.ForeignKey(Condition, on_delete=models.RESTRICT, related_name="stimuli")
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="stimuli")
    source = models.CharField(max_length=120)
    upload = models.CharField(max_length=120, blank=True)
    file = models.CharField(max_length=120, blank=True)
    bytes = models.PositiveIntegerField(default=0)
    duration_s = models.FloatField(default=0)
    facts = models.JSONField(default=dict, blank=True)  # gain_db, peak, level before and after

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["condition", "item"], name="stimulus_once")]


class Presentation(NumberedRow):
    """What one trial presents: the samples of its screen (`listening.questions.Screen`).

    `condition`: of sample A, or of the board; of many at once the original. `is_target` is empty where no voices are
    compared. `expected`: of a gold trial by question the lowest and highest right rating, such as
    ``{"verifiability": [9, 10]}``.
    """

    class Purpose(models.TextChoices):
        SCORED = "scored"
        PRACTICE = "practice"
        GOLD = "gold"
        BRIDGE = "bridge"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="presentations")
    purpose = models.CharField(max_length=8, choices=Purpose.choices, default=Purpose.SCORED)
    key = models.CharField(max_length=255)  # its name in the design
    condition = models.ForeignKey(Condition, on_delete=models.RESTRICT, related_name="presentations")
    is_target = models.BooleanField(null=True)
    expected = models.JSONField(default=dict, blank=True)

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "key"], name="presentation_key_once")]


class PresentationSample(NumberedRow):
    """A stimulus of a presentation: slot ``a``, ``b``, ``x``, ``r`` (reference), or ``1``, ``2``, … of several."""

    presentation = models.ForeignKey(Presentation, on_delete=models.CASCADE, related_name="samples")
    slot = models.CharField(max_length=2)
    stimulus = models.ForeignKey(Stimulus, on_delete=models.RESTRICT, related_name="+")

    class Meta(NumberedRow.Meta):
        constraints = [models.UniqueConstraint(fields=["presentation", "slot"], name="presentation_slot_once")]


class Trial(NumberedRow):
    """A presentation at its place in a block; practice comes first, gold and bridge trials stand among the others."""

    block = models.ForeignKey("listening.Block", on_delete=models.CASCADE, related_name="trials")
    position = models.PositiveSmallIntegerField()  # from 1
    presentation = models.ForeignKey(Presentation, on_delete=models.RESTRICT, related_name="trials")

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["block", "position"], name="trial_position_once")]


class Analysis(NumberedRow):
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
