"""What the organizer of an edition holds for its numbers: trials, transcripts and speakers, and the measured audio."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cached_property

from django.core.files.storage import default_storage

from evaluation.formats.scores import TrialTable, read_trial_table
from evaluation.formats.transcripts import normalise_transcript
from evaluation.models import EvaluationRun, UtteranceMeasure
from evaluation.objective.sources import PitchOfSet, Sources
from evaluation.protocols import recipes
from evaluation.selectors import finished_runs
from evaluation.selectors_objective import track_of
from portal.challenges.models import Corpus, DataSet, Edition, TrialList, Utterance
from portal.submissions.models import Submission


def sources_of(submission: Submission, edition: Edition) -> Sources:
    """Everything that the numbers of a submission may rest on besides its own files."""
    if edition.corpus is None:
        return Sources(edition.recipe, track_of(edition))
    corpus = CorpusSources(edition.corpus, edition.recipe)
    return Sources(
        recipe=edition.recipe,
        track=track_of(edition),
        trials=corpus.trials,
        speakers=corpus.speakers,
        references=corpus.references,
        pitch={run.measured_set.name: _pitch(run) for run in finished_runs(submission)},
        scores_required=edition.scores_required,
        audio_required=edition.audio_required,
    )


class CorpusSources:
    """The lists of a corpus as the recipe names its data sets."""

    def __init__(self, corpus: Corpus, recipe: recipes.Recipe) -> None:
        self.corpus = corpus
        self.recipe = recipe

    @cached_property
    def data_sets(self) -> Mapping[str, DataSet]:
        return {one.name: one for one in self.corpus.data_sets.all()}

    def trials(self, data_set: recipes.DataSet) -> TrialTable | None:
        """The organizer's trials of a trial set with its enrolment set; None where the corpus has no such list."""
        found = TrialList.objects.filter(
            trial_set__corpus=self.corpus, trial_set__name=data_set.name, enrolment_set__name=data_set.enrolment
        ).first()
        if found is None:
            return None
        name = f"the organizer's trials of {data_set.name}"
        if found.origin == TrialList.Origin.GIVEN:
            with default_storage.open(found.file) as file:
                return read_trial_table(io.StringIO(file.read().decode()), name)
        return read_trial_table(io.StringIO("".join(_product(found))), name)

    def speakers(self, data_set: recipes.DataSet) -> Mapping[str, str]:
        """Utterance → speaker of a trial or recognition set."""
        rows = Utterance.objects.filter(data_sets__in=self.parts(data_set)).order_by()
        return dict(rows.values_list("name", "speaker__name"))

    def references(self, data_set: recipes.DataSet) -> Mapping[str, str]:
        """Utterance → transcript of a recognition set, as the challenge prepares its texts; none is left out."""
        rows = Utterance.objects.filter(data_sets__in=self.parts(data_set)).distinct().order_by("name")
        texts = dict(rows.values_list("name", "transcript"))
        complete = all(texts.values()) and data_set.utterances in (None, len(texts))
        return {name: normalise_transcript(text) for name, text in texts.items()} if complete else {}

    def parts(self, data_set: recipes.DataSet) -> list[DataSet]:
        """The set itself, or the trial sets that a recognition set puts together (``libri_dev_asr``: both genders)."""
        if data_set.name in self.data_sets:
            return [self.data_sets[data_set.name]]
        if data_set.role != "recognition":
            return []
        start = f"{data_set.name.removesuffix('_asr')}_trials"
        parts = [one.name for one in self.recipe.sets("trial", data_set.split) if one.name.startswith(start)]
        return [self.data_sets[name] for name in parts if name in self.data_sets]


def _product(trials: TrialList) -> Iterator[str]:
    """Every enrolled speaker against every trial utterance of the same gender, as lines of a trial list."""
    enrolled = trials.enrolment_set.utterances.values_list("speaker__name", "speaker__gender").distinct()
    models = sorted(set(enrolled.order_by()))
    tested = trials.trial_set.utterances.order_by("name").values_list("name", "speaker__name", "speaker__gender")
    for utterance, speaker, gender in tested:
        for model, model_gender in models:
            if model_gender == gender:
                yield f"{model} {utterance} {'target' if model == speaker else 'nontarget'}\n"


def _pitch(run: EvaluationRun) -> PitchOfSet:
    rows = list(
        UtteranceMeasure.objects.filter(run=run, pitch_correlation__isnull=False)
        .order_by("file__utterance__name")
        .values_list("pitch_correlation", "file__utterance__speaker__name")
    )
    expected = run.measured_set.utterances.count()
    return PitchOfSet([value for value, _ in rows if value is not None], [speaker for _, speaker in rows], expected)
