"""What an evaluation of a submission's speech rests on: the recipe, the corpus with its lists, and the recordings.

A baseline without an edition has the trial lists of its corpus as its recipe.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Count, Q

from evaluation.figures.histogram import MINIMUM_PITCH_CORRELATION, Threshold
from evaluation.formats.results import Speech
from evaluation.formats.scores import TrialTable, read_trial_table
from evaluation.metrics.catalogue import PITCH_CORRELATION
from evaluation.metrics.word_errors import normalise_transcript
from evaluation.metrics.word_normalization import TextRule, rule_for
from evaluation.objective_results.sources import Sources
from evaluation.protocols.recipes import DataSet as RecipeSet
from evaluation.protocols.recipes import Recipe, Track
from portal.challenges.models import Corpus, DataSet, Edition, Role, TrialList, Utterance
from portal.challenges.selectors import find_trials
from portal.submissions.models import Submission
from speech.recognizers.contract import ENGLISH

BOTH_GENDERS = "mixed"


def pitch_minimum(edition: Edition | None) -> Threshold | None:
    """Return what an edition asks of the pitch correlation now, as a figure names it; of no edition that of 2022."""
    if edition is None:
        return MINIMUM_PITCH_CORRELATION
    gate = next((one for one in edition.policy.gates if one.metric == PITCH_CORRELATION.key), None)
    if gate is None:
        return None
    is_own = bool(edition.recipe_text) or "gates" in edition.leaderboard_policy
    return Threshold(gate.minimum, "minimum" if is_own else f"{edition.recipe.edition} minimum")


@dataclass(frozen=True, slots=True)
class Recording:
    """One utterance as it was spoken or as it was anonymised; `audio` is the key of its file, `file` the row of it."""

    utterance: str
    speaker: str
    gender: str
    speech: Speech
    audio: str
    samples: int
    file: int | None = None


def list_recordings(submission: Submission, data_set: DataSet, speech: Speech) -> list[Recording]:
    """Return the recordings of a data set, by name of the utterance; originals without audio have an empty key."""
    names = ("name", "speaker__name", "speaker__gender")
    if speech is Speech.ORIGINAL:
        rows = data_set.utterances.order_by("name").values_list(*names, "audio", "samples")
        return [Recording(name, who, gender, speech, audio, samples or 0) for name, who, gender, audio, samples in rows]
    files = submission.files.filter(data_set=data_set).order_by("utterance__name")
    found = files.values_list(*(f"utterance__{name}" for name in names), "audio", "samples", "pk")
    return [Recording(name, who, gender, speech, *file) for name, who, gender, *file in found]


@dataclass(frozen=True)
class SetState:
    """A data set that an engine may go over, and why it cannot; `problem` is empty where it can.

    Attributes:
        name: as recipe or corpus call it.
        data_set: the same in the corpus, where it has it.
        enrolled, enrolment: the set that the speakers of a trial set are enrolled with, likewise.
    """

    name: str
    problem: str
    data_set: DataSet | None
    enrolled: str = ""
    enrolment: DataSet | None = None


class EvaluationContext:
    """What an evaluation of one submission's speech stands on: recipe, corpus and data sets.

    A baseline without an edition has the trial lists of its corpus as its recipe, and no averages.
    """

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        system = submission.system
        self.edition = system.edition
        self.corpus: Corpus | None = system.corpus
        if self.edition is not None and self.edition.corpus_id not in {None, system.corpus_id}:
            self.corpus = self.edition.corpus

    @cached_property
    def recipe(self) -> Recipe:
        return self.edition.recipe if self.edition else make_recipe(self.lists.values())

    @cached_property
    def track(self) -> Track:
        return self.edition.ranked_track if self.edition else self.recipe.track

    @cached_property
    def data_sets(self) -> Mapping[str, DataSet]:
        return {one.name: one for one in self.corpus.data_sets.all()} if self.corpus else {}

    def language_of(self, data_set: str) -> str:
        """Return what is spoken in a data set, as the recipe says; English in those that it does not name."""
        known = self.recipe.data_sets.get(data_set)
        return known.language if known else ENGLISH

    @property
    def text_rule(self) -> TextRule:
        """Return how texts of a recogniser are made comparable: one rule for all languages of the recipe."""
        return rule_for(one.language for one in self.recipe.data_sets.values())

    @cached_property
    def lists(self) -> Mapping[str, TrialList]:
        """Return the trial list of each trial set that has one."""
        found = TrialList.objects.filter(trial_set__corpus=self.corpus).select_related("trial_set", "enrolment_set")
        return {one.trial_set.name: one for one in found.order_by("-pk")}

    @cached_property
    def sources(self) -> Sources:
        """Return the organizer's lists, without what was measured on the audio."""
        if self.corpus is None:
            return Sources(self.recipe, self.track)
        return Sources(self.recipe, self.track, self.read_trials, self.find_speakers, self.find_references)

    @cached_property
    def _counts(self) -> Mapping[str, tuple[int, int, int]]:
        """Of each data set its utterances, those with original audio, and the submission's files."""
        originals = DataSet.objects.filter(corpus=self.corpus).annotate(
            every=Count("utterances"), heard=Count("utterances", filter=~Q(utterances__audio=""))
        )
        files = dict(self.submission.files.order_by().values_list("data_set__name").annotate(Count("pk")))
        return {one.name: (one.every, one.heard, files.get(one.name, 0)) for one in originals}

    def read_trials(self, data_set: RecipeSet) -> TrialTable | None:
        """Return the organizer's trials of a trial set with its enrolment set; None where the corpus has no such
        list."""
        text = find_trials(self.corpus, data_set.name, data_set.enrolment)
        if text is None:
            return None
        return read_trial_table(io.StringIO(text), f"the organizer's trials of {data_set.name}")

    def find_speakers(self, data_set: RecipeSet) -> Mapping[str, str]:
        """Return utterance → speaker of a trial or recognition set."""
        rows = Utterance.objects.filter(data_sets__in=self.find_parts(data_set)).order_by()
        return dict(rows.values_list("name", "speaker__name"))

    def find_references(self, data_set: RecipeSet) -> Mapping[str, str]:
        """Return utterance → transcript of a recognition set, as the challenge prepares its texts; none is left out."""
        rows = Utterance.objects.filter(data_sets__in=self.find_parts(data_set)).distinct().order_by("name")
        texts = dict(rows.values_list("name", "transcript"))
        complete = all(texts.values()) and data_set.utterances in (None, len(texts))
        return {name: normalise_transcript(text) for name, text in texts.items()} if complete else {}

    def find_parts(self, data_set: RecipeSet) -> list[DataSet]:
        """Return the data set of the recipe itself, or the trial sets that a recognition set puts together.

        Such as ``libri_dev_asr`` of both genders.
        """
        return [self.data_sets[name] for name in self.recipe.list_parts(data_set, self.data_sets)]

    def trial_sets(self, *, with_originals: bool = True) -> list[SetState]:
        """Return every trial set of the recipe, with the reason why it cannot be attacked.

        Args:
            with_originals: whether the attacker needs original speech, too.
        """
        if self.corpus is None:
            return []
        return [
            SetState(
                one.name,
                self._find_problem(one, with_originals=with_originals),
                self.data_sets.get(one.name),
                one.enrolment,
                self.data_sets.get(one.enrolment),
            )
            for one in self.recipe.sets("trial")
        ]

    def _find_problem(self, one: RecipeSet, *, with_originals: bool) -> str:
        for name in (one.name, one.enrolment):
            if name not in self.data_sets:
                return f"The corpus {self.corpus} has no data set {name}; import it."
        found = self.lists.get(one.name)
        if found is None or found.enrolment_set.name != one.enrolment:
            return f"The corpus {self.corpus} has no trial list of {one.name} with {one.enrolment}; import it."
        if not found.target_count or not found.nontarget_count:
            return (
                f"The trial list of {one.name} needs target and nontarget trials, which takes two speakers; found "
                f"{found.target_count} and {found.nontarget_count}."
            )
        for name in (one.enrolment, one.name):
            every, heard, files = self._counts[name]
            if with_originals and not heard:
                return f"None of the {every} utterances of {name} has audio in the corpus {self.corpus}; import it."
            if not files:
                return f"The submission holds no anonymised speech of {name}."
        return ""

    def spoken_sets(self) -> list[SetState]:
        """Return the enrolment and trial sets of which the submission has speech, and why words cannot be
        recognised."""
        held = set(self.submission.files.order_by().values_list("data_set__name", flat=True).distinct())
        roles = (Role.ENROLMENT, Role.TRIAL)
        sets = [one for name, one in sorted(self.data_sets.items()) if one.role in roles and name in held]
        spoken = Utterance.objects.exclude(transcript="")
        texts = DataSet.objects.filter(pk__in=[one.pk for one in sets], utterances__in=spoken).distinct()
        with_text = set(texts.values_list("pk", flat=True))
        reason = "so there is nothing to compare words with; import it with its texts."
        missing = {one: f"The corpus {self.corpus} has no transcript of {one}, {reason}" for one in sets}
        return [SetState(one.name, "" if one.pk in with_text else missing[one], one) for one in sets]


def make_recipe(lists: Iterable[TrialList]) -> Recipe:
    """Return the trial lists of a corpus as a recipe without averages or limits, for speech outside of any edition."""
    chosen = sorted(lists, key=lambda one: one.trial_set.name)
    genders = _load_genders([one.trial_set for one in chosen])
    sets: dict[str, RecipeSet] = {}
    for one in chosen:
        trials, enrolment = one.trial_set, one.enrolment_set
        gender = genders.get(trials.pk, BOTH_GENDERS)
        sets[enrolment.name] = RecipeSet(enrolment.name, "enrolment", enrolment.split, "all")
        sets[trials.name] = RecipeSet(trials.name, "trial", trials.split, gender, enrolment=enrolment.name)
    attacks = ("unprotected", "ignorant", "lazy-informed", "semi-informed")
    track = Track("main", ())
    return Recipe("corpus", "Trials of the corpus", "_anon", (), attacks, (), sets, (), {"main": track})


def _load_genders(data_sets: Iterable[DataSet]) -> dict[int, str]:
    """By key of the data set the gender of its speakers, of those that have one in common: one query."""
    found: dict[int, str] = {}
    rows = DataSet.objects.filter(pk__in=[one.pk for one in data_sets], utterances__isnull=False).order_by()
    for key, gender in rows.values_list("pk", "utterances__speaker__gender").distinct():
        found[key] = BOTH_GENDERS if key in found else gender
    return found
