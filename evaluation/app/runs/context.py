"""Which recordings an evaluation of a submission's speech rests on, and what of it can be attacked at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Count, Q

from evaluation.formats.claims import Speech
from evaluation.objective.sources import Sources
from evaluation.organizer_sources import CorpusSources
from evaluation.protocols.recipes import DataSet as RecipeSet
from evaluation.protocols.recipes import Recipe, Track
from evaluation.selectors_objective import track_of
from portal.challenges.models import Corpus, DataSet, Role, TrialList, Utterance
from portal.submissions.models import Submission

BOTH_GENDERS = "mixed"


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


def recordings_of(submission: Submission, data_set: DataSet, speech: Speech) -> list[Recording]:
    """The recordings of a data set, by name of the utterance; originals without audio have an empty key."""
    if speech is Speech.ORIGINAL:
        rows = data_set.utterances.order_by("name").values_list(
            "name", "speaker__name", "speaker__gender", "audio", "samples"
        )
        return [Recording(name, who, gender, speech, audio, samples or 0) for name, who, gender, audio, samples in rows]
    files = submission.files.filter(data_set=data_set).order_by("utterance__name")
    fields = ("utterance__name", "utterance__speaker__name", "utterance__speaker__gender", "audio", "samples", "pk")
    return [
        Recording(name, who, gender, speech, audio, samples, file)
        for name, who, gender, audio, samples, file in files.values_list(*fields)
    ]


@dataclass(frozen=True)
class TrialSetState:
    """A trial set of an edition or corpus, and why it cannot be attacked; `refusal` is empty where it can.

    Attributes:
        name, enrolled: as the recipe names the set and the one that its speakers are enrolled with.
        data_set, enrolment: the same in the corpus, where it has them.
    """

    name: str
    enrolled: str
    refusal: str
    data_set: DataSet | None
    enrolment: DataSet | None


class Ground:
    """What an evaluation of one submission's speech stands on: recipe, corpus and data sets.

    A baseline without an edition has the trial lists of its corpus as its recipe, and no averages.
    """

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        system = submission.system
        self.edition = system.edition
        corpus = system.edition.corpus if system.edition else system.corpus
        self.corpus: Corpus | None = corpus or system.corpus

    @cached_property
    def recipe(self) -> Recipe:
        return self.edition.recipe if self.edition else recipe_of_lists(self.lists.values())

    @cached_property
    def track(self) -> Track:
        return track_of(self.edition) if self.edition else self.recipe.track

    @cached_property
    def data_sets(self) -> Mapping[str, DataSet]:
        return {one.name: one for one in self.corpus.data_sets.all()} if self.corpus else {}

    @cached_property
    def lists(self) -> Mapping[str, TrialList]:
        """The trial list of each trial set that has one."""
        found = TrialList.objects.filter(trial_set__corpus=self.corpus).select_related("trial_set", "enrolment_set")
        return {one.trial_set.name: one for one in found.order_by("-pk")}

    @cached_property
    def sources(self) -> Sources:
        """The organizer's lists, without what was measured on the audio."""
        if self.corpus is None:
            return Sources(self.recipe, self.track)
        held = CorpusSources(self.corpus, self.recipe)
        return Sources(self.recipe, self.track, held.trials, held.speakers, held.references)

    @cached_property
    def _counts(self) -> Mapping[str, tuple[int, int, int]]:
        """Of each data set its utterances, those with original audio, and the submission's files."""
        originals = DataSet.objects.filter(corpus=self.corpus).annotate(
            every=Count("utterances"), heard=Count("utterances", filter=~Q(utterances__audio=""))
        )
        files = dict(self.submission.files.order_by().values_list("data_set__name").annotate(Count("pk")))
        return {one.name: (one.every, one.heard, files.get(one.name, 0)) for one in originals}

    def parts_of(self, data_set: RecipeSet) -> list[str]:
        """The data sets of the corpus that a data set of the recipe is made of: itself, or several trial sets."""
        if self.corpus is None:
            return []
        return [one.name for one in CorpusSources(self.corpus, self.recipe).parts(data_set)]

    def trial_sets(self, *, with_originals: bool = True) -> list[TrialSetState]:
        """Every trial set of the recipe, with the reason why it cannot be attacked."""
        if self.corpus is None:
            return []
        return [
            TrialSetState(
                one.name,
                one.enrolment,
                self._refusal(one, with_originals=with_originals),
                self.data_sets.get(one.name),
                self.data_sets.get(one.enrolment),
            )
            for one in self.recipe.sets("trial")
        ]

    def _refusal(self, one: RecipeSet, *, with_originals: bool) -> str:
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


def recipe_of_lists(lists: Iterable[TrialList]) -> Recipe:
    """The trial lists of a corpus as a recipe without averages or limits, for speech outside of any edition."""
    chosen = sorted(lists, key=lambda one: one.trial_set.name)
    genders = _genders_of([one.trial_set for one in chosen])
    sets: dict[str, RecipeSet] = {}
    for one in chosen:
        trials, enrolment = one.trial_set, one.enrolment_set
        gender = genders.get(trials.pk, BOTH_GENDERS)
        sets[enrolment.name] = RecipeSet(enrolment.name, "enrolment", enrolment.split, "all")
        sets[trials.name] = RecipeSet(trials.name, "trial", trials.split, gender, enrolment=enrolment.name)
    attacks = ("unprotected", "ignorant", "lazy-informed", "semi-informed")
    track = Track("main", ())
    return Recipe("corpus", "Trials of the corpus", "_anon", (), attacks, (), sets, (), {"main": track})


def _genders_of(data_sets: Iterable[DataSet]) -> dict[int, str]:
    """By key of the data set the gender of its speakers, of those that have one in common: one query."""
    found: dict[int, str] = {}
    rows = DataSet.objects.filter(pk__in=[one.pk for one in data_sets], utterances__isnull=False).order_by()
    for key, gender in rows.values_list("pk", "utterances__speaker__gender").distinct():
        found[key] = BOTH_GENDERS if key in found else gender
    return found


def speech_sets(ground: Ground) -> list[DataSet]:
    """The enrolment and trial sets of a corpus of which the submission has speech, by name."""
    held = set(ground.submission.files.order_by().values_list("data_set__name", flat=True).distinct())
    roles = (Role.ENROLMENT, Role.TRIAL)
    return [one for name, one in sorted(ground.data_sets.items()) if one.role in roles and name in held]


@dataclass(frozen=True)
class SpokenSetState:
    """A data set, and why its words cannot be recognised; `refusal` is empty where they can."""

    data_set: DataSet
    refusal: str


def spoken_sets(ground: Ground) -> list[SpokenSetState]:
    """The enrolment and trial sets of which a submission has speech, in two queries more than the sets take."""
    held = speech_sets(ground)
    spoken = Utterance.objects.exclude(transcript="")
    texts = DataSet.objects.filter(pk__in=[one.pk for one in held], utterances__in=spoken).distinct()
    with_text = set(texts.values_list("pk", flat=True))
    return [SpokenSetState(one, "" if one.pk in with_text else _no_texts(one, ground)) for one in held]


def _no_texts(data_set: DataSet, ground: Ground) -> str:
    return (
        f"The corpus {ground.corpus} has no transcript of {data_set}, so there is nothing to compare words with; "
        "import it with its texts."
    )
