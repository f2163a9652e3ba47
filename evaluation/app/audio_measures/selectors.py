"""Reads what was measured on audio: the newest finished run of each data set, its numbers, and single utterances.

Word errors of utterances are those of the hypotheses that a submission holds, against the corpus' transcripts as the
challenge prepares them; of several recognisers, the one whose rates the edition averages.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

from django.core.files.storage import default_storage
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from common.problems import ProblemGroup, Severity
from evaluation.app.models import EvaluationRun, MetricValue, UtteranceMeasure
from evaluation.app.runs.context import list_recordings
from evaluation.app.runs.feature_cache import hypothesis_cache
from evaluation.app.runs.kinds import MEASURES, RECOGNITION
from evaluation.app.runs.selectors import list_newest_finished, pick_newest_finished
from evaluation.formats.kaldi import read_text
from evaluation.formats.results import NumberIdentity, Speech
from evaluation.metrics import catalogue
from evaluation.metrics.audio_checks import MAX_CLIPPED_SHARE, MAX_DURATION_DIFFERENCE_MS, MAX_LEVEL_CHANGE_DB
from evaluation.metrics.averages import Summary, pool
from evaluation.metrics.pitch import MINIMUM_OF_2022
from evaluation.metrics.word_errors import normalise_transcript, split_words
from evaluation.metrics.word_normalization import find_rule
from evaluation.objective_results.values import with_speech
from evaluation.objective_results.word_errors import hypothesis_identity
from evaluation.protocols.recipes import Recipe
from portal.challenges.models import DataSet, Gender, Role
from portal.core.labels import decimals
from portal.jobs.models import JobState
from portal.submissions.models import Submission, SubmittedDocument, SubmittedFile
from speech.recognizers.contract import ENGLISH


def list_finished_runs(submission: Submission) -> list[EvaluationRun]:
    """Return the newest finished run of each data set, by name of the data set."""
    return select_finished_runs(list_newest_finished(MEASURES, [submission]))


def select_finished_runs(runs: Iterable[EvaluationRun]) -> list[EvaluationRun]:
    """The same among all runs of a submission, the newest first."""
    return sorted(pick_newest_finished(MEASURES, runs), key=lambda run: run.measured_set.name)


def select_trial_runs(runs: Iterable[EvaluationRun]) -> list[EvaluationRun]:
    """Return the runs that the protocol judges: those of trial sets."""
    return [run for run in runs if run.measured_set.role == Role.TRIAL]


@dataclass(frozen=True)
class RunValues:
    """All values of some runs, read in one query."""

    by_row: dict[tuple[int, str], dict[str, MetricValue]]

    def of(self, run: EvaluationRun, gender: str) -> dict[str, MetricValue]:
        return self.by_row.get((run.pk, gender), {})

    def genders_of(self, run: EvaluationRun) -> list[str]:
        return [gender for gender in Gender.values if (run.pk, gender) in self.by_row]

    def pitch(self, run: EvaluationRun, gender: str) -> Summary | None:
        value = self.of(run, gender).get(catalogue.PITCH_CORRELATION.key)
        return Summary(value.value, value.spread or 0.0, value.n) if value else None

    @cached_property
    def metrics(self) -> list[catalogue.Metric]:
        """Return what was measured, in the order of the catalogue."""
        measured = {key for found in self.by_row.values() for key in found}
        return [metric for metric in catalogue.METRICS.values() if metric.key in measured]

    @property
    def estimators(self) -> list[tuple[catalogue.Metric, str]]:
        """Return each metric with the estimators of its numbers."""
        rows = self.by_row.values()
        found = [sorted({row[one.key].estimator for row in rows if one.key in row}) for one in self.metrics]
        return [(metric, "; ".join(names)) for metric, names in zip(self.metrics, found, strict=True)]


def read_values(runs: Iterable[EvaluationRun]) -> RunValues:
    by_row: dict[tuple[int, str], dict[str, MetricValue]] = {}
    for value in MetricValue.objects.filter(run__in=list(runs)):
        by_row.setdefault((value.run_id, value.gender), {})[value.metric] = value
    return RunValues(by_row)


@dataclass(frozen=True)
class SetCounts:
    """Files and speakers of a submission by data set and gender."""

    by_row: dict[tuple[int, str], tuple[int, int]]

    @property
    def files(self) -> int:
        return sum(files for files, _ in self.by_row.values())

    def speakers(self, data_set: int, gender: str = "") -> int:
        """Of one gender, or of all; 0 where nothing is known."""
        genders = [gender] if gender else Gender.values
        return sum(self.by_row.get((data_set, each), (0, 0))[1] for each in genders)


def count_files(submission_id: int) -> SetCounts:
    """Return how many files and speakers each data set of a submission has, in one query."""
    rows = SubmittedFile.objects.filter(submission=submission_id).order_by()
    counted = rows.values_list("data_set", "utterance__speaker__gender").annotate(
        Count("pk"), Count("utterance__speaker", distinct=True)
    )
    return SetCounts({(data_set, gender): (files, speakers) for data_set, gender, files, speakers in counted})


def format_number(number: float | None, metric: catalogue.Metric) -> str:
    """Return a number with the metric's decimals, a sign where zero is best, and a true minus."""
    if number is None:
        return ""
    text = decimals(number, metric.decimals)
    return (
        f"+{text}" if metric.direction == catalogue.Direction.NEAR_ZERO and float(text.replace("−", "-")) > 0 else text
    )


@dataclass(frozen=True)
class PitchComparison:
    """Pitch correlation of one trial set by gender, beside the minimum of 2022; speakers where they were counted."""

    subset: str
    female: Summary | None
    male: Summary | None
    speakers: tuple[int, int] = (0, 0)

    @property
    def genders(self) -> tuple[tuple[str, Summary | None, int], ...]:
        women, men = self.speakers
        return ("female", self.female, women), ("male", self.male, men)

    @property
    def average(self) -> float:
        """Return mean of the genders' means, as the plan of 2022 averages; of the only one where there is one."""
        means = [summary.mean for summary in (self.female, self.male) if summary]
        return sum(means) / len(means)

    @property
    def margin(self) -> float:
        return self.average - MINIMUM_OF_2022

    @property
    def distance(self) -> float:
        return abs(self.margin)

    @property
    def is_above(self) -> bool:
        return self.margin > 0


@dataclass(frozen=True)
class PitchTable:
    """`rows`: each trial set, its female and male parts as one; `total`: all of them, where there are several."""

    rows: list[PitchComparison]
    total: PitchComparison | None

    @property
    def overall(self) -> PitchComparison | None:
        """Return all trial sets together, or the only one; None where none was measured."""
        return self.total or (self.rows[0] if self.rows else None)

    @property
    def n_above(self) -> int:
        return sum(row.is_above for row in self.rows)

    @property
    def n_not_above(self) -> int:
        return len(self.rows) - self.n_above

    @property
    def is_above(self) -> bool:
        """Return whether every trial set is above the minimum, as VoicePrivacy 2022 asks."""
        return bool(self.rows) and not self.n_not_above


def compare_pitch(runs: list[EvaluationRun], values: RunValues, counts: SetCounts | None = None) -> PitchTable:
    """Return the trial sets beside the minimum of 2022; the total takes the utterances of all sets together."""
    parts: dict[str, dict[str, list[Summary]]] = {}
    speakers: Counter[tuple[str, str]] = Counter()
    for run in select_trial_runs(runs):
        genders = values.genders_of(run)
        for gender in genders:
            summary = values.pitch(run, gender)
            if summary is not None:
                subset = _subset_name(run.measured_set.name, genders)
                parts.setdefault(subset, {}).setdefault(gender, []).append(summary)
                speakers[subset, gender] += counts.speakers(run.measured_set.pk, gender) if counts else 0
    rows = [
        PitchComparison(subset, *_pooled([found]), (speakers[subset, Gender.FEMALE], speakers[subset, Gender.MALE]))
        for subset, found in parts.items()
    ]
    total = PitchComparison("All trial sets", *_pooled(parts.values())) if len(rows) > 1 else None
    return PitchTable(rows, total)


def compare_systems(shown: Mapping[int, Submission]) -> dict[int, PitchTable]:
    """`compare_pitch` of the shown submission of each system, by its key, in one query whatever their number."""
    run = EvaluationRun.objects.filter(submission=OuterRef("run__submission"), data_set=OuterRef("run__data_set"))
    newer_run = run.filter(job__state=JobState.SUCCEEDED, pk__gt=OuterRef("run"))
    values = MetricValue.objects.filter(
        ~Exists(newer_run),
        run__submission__in=shown.values(),
        metric=catalogue.PITCH_CORRELATION.key,
        run__data_set__role=Role.TRIAL,
        run__job__state=JobState.SUCCEEDED,
    ).select_related("run__data_set", "run__submission")
    found: dict[int, list[MetricValue]] = {}
    for value in values.order_by("run__data_set__name"):
        found.setdefault(value.run.submission.system_id, []).append(value)
    return {system: _compare_values(of_system) for system, of_system in found.items()}


def _compare_values(values: list[MetricValue]) -> PitchTable:
    runs = {value.run_id: value.run for value in values}
    by_row = {(value.run_id, value.gender): {value.metric: value} for value in values}
    return compare_pitch(list(runs.values()), RunValues(by_row))


def _pooled(parts: Iterable[dict[str, list[Summary]]]) -> tuple[Summary | None, Summary | None]:
    """Female and male utterances of these sets together."""
    sets = list(parts)
    found = [[summary for each in sets for summary in each.get(gender, [])] for gender in Gender.values]
    female, male = (pool(summaries) if summaries else None for summaries in found)
    return female, male


def _subset_name(data_set: str, genders: list[str]) -> str:
    """``libri_dev_trials_f`` and ``libri_dev_trials_m`` are the two halves of ``libri_dev_trials``."""
    return data_set.replace(f"trials_{genders[0]}", "trials", 1) if len(genders) == 1 else data_set


def select_measures(*runs: EvaluationRun) -> QuerySet[UtteranceMeasure]:
    return UtteranceMeasure.objects.filter(run__in=runs).select_related(
        "file__utterance__speaker", "file__submission__system", "file__data_set"
    )


def find_extremes(runs: list[EvaluationRun], count: int = 6) -> tuple[list[UtteranceMeasure], list[UtteranceMeasure]]:
    """Return the utterances of lowest and of highest pitch correlation, the most extreme first; none of them in
    both."""
    measured = UtteranceMeasure.objects.filter(run__in=runs, pitch_correlation__isnull=False)
    # Chosen before anything is joined to them.
    ends = (measured.order_by(f"{sign}pitch_correlation", f"{sign}pk")[:count].values("pk") for sign in ("", "-"))
    lowest, highest = (Q(pk__in=chosen) for chosen in ends)
    rising = list(select_measures(*runs).filter(lowest | highest).order_by("pitch_correlation", "pk"))
    half = (len(rising) + 1) // 2
    return rising[:half], rising[half:][::-1]


def group_correlations_by_set(runs: list[EvaluationRun]) -> dict[str, list[float]]:
    """Return pitch correlations of the utterances by data set and gender."""
    names = {(run.pk, gender.value): f"{run.measured_set.name}, {gender.label}" for run in runs for gender in Gender}
    groups: dict[str, list[float]] = {name: [] for name in names.values()}
    rows = UtteranceMeasure.objects.filter(run__in=runs, pitch_correlation__isnull=False)
    for run, gender, rho in rows.values_list("run_id", "file__utterance__speaker__gender", "pitch_correlation"):
        groups[names[run, gender]].append(cast("float", rho))
    return {name: values for name, values in groups.items() if values}


def find_measure(file: SubmittedFile) -> UtteranceMeasure | None:
    """Return the newest finished measure of a file."""
    finished = file.measures.filter(run__job__state=JobState.SUCCEEDED).select_related("run__data_set")
    return finished.order_by("-run_id").first()


# Figures and contours -------------------------------------------------------------------------------


def group_correlations_by_gender(run: EvaluationRun) -> dict[str, list[float]]:
    """Return pitch correlations of the run's utterances by the name of the gender."""
    rows = run.measures.filter(pitch_correlation__isnull=False).values_list(
        "file__utterance__speaker__gender", "pitch_correlation"
    )
    groups: dict[str, list[float]] = {str(gender.label): [] for gender in Gender}
    for gender, rho in rows:
        groups[str(Gender(gender).label)].append(cast("float", rho))
    return {label: values for label, values in groups.items() if values}


def figure_key(run: EvaluationRun, theme: str, image_format: str = "svg") -> str:
    return f"derived/figures/{run.pk}/pitch-{theme}.{image_format}"


def contours_key(run: EvaluationRun, theme: str, image_format: str = "svg") -> str:
    return f"derived/figures/{run.pk}/contours-{theme}.{image_format}"


def find_realigned_example(run: EvaluationRun) -> UtteranceMeasure | None:
    """Return the utterance of median gain in pitch correlation by realignment; None where none was realigned."""
    gain = F("realigned_pitch_correlation") - F("pitch_correlation")
    realigned = run.measures.filter(realigned_pitch_correlation__isnull=False, pitch_correlation__isnull=False)
    found = realigned.select_related("file__utterance").annotate(gain=gain).order_by("gain", "pk")
    middle = realigned.count() // 2
    return next(iter(found[middle : middle + 1]), None)


# Problem codes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProblemCode:
    """What a code of `UtteranceMeasure.faults` means to a reader."""

    title: str
    meaning: str
    severity: Severity


PROBLEM_CODES = {
    "not-finite": ProblemCode("Samples that are not numbers", "Some samples are NaN or infinite.", Severity.ERROR),
    "silent": ProblemCode("Silent", "The anonymised utterance is empty or digital silence.", Severity.ERROR),
    "identical-to-original": ProblemCode(
        "Not anonymised", "Every sample equals the original: this speech is not protected at all.", Severity.ERROR
    ),
    "duration-differs": ProblemCode(
        "Another duration",
        f"The duration differs by more than {MAX_DURATION_DIFFERENCE_MS:g} ms, the limit of the 2022 recipe.",
        Severity.WARNING,
    ),
    "clipped": ProblemCode(
        "Clipped", f"More than {MAX_CLIPPED_SHARE:.1%} of the samples are at full scale.", Severity.WARNING
    ),
    "pitch-not-measured": ProblemCode(
        "Without pitch correlation",
        "Too short for an F0 contour; left out of the pitch correlation and not counted in its n.",
        Severity.WARNING,
    ),
    "level-changed": ProblemCode(
        f"Level changed by more than {MAX_LEVEL_CHANGE_DB:g} dB",
        "Fine where the anonymiser normalises levels on purpose, as B2 does with the peak of each utterance.",
        Severity.NOTE,
    ),
}
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def describe_audio(measure: UtteranceMeasure) -> str:
    """Return level, duration and peak of an utterance in words."""
    level = format_number(measure.level_change_db, catalogue.LEVEL_CHANGE)
    parts = [f"level {level} dB" if level else "level not comparable"]
    parts.append(f"duration {format_number(measure.duration_difference_ms, catalogue.DURATION_DIFFERENCE)} ms")
    if measure.peak_dbfs is not None:
        parts.append(f"peak {decimals(measure.peak_dbfs, 1)} dBFS")
    return ", ".join(parts)


def group_faults(runs: list[EvaluationRun], count: int = 10) -> list[ProblemGroup[tuple[UtteranceMeasure, str]]]:
    """Return utterances with anything out of order by cause, the gravest first, in two queries whatever their
    number."""
    faulty = UtteranceMeasure.objects.filter(~Q(faults=[]), run__in=runs)
    counts: Counter[str] = Counter()
    for codes, n in faulty.order_by().values_list("faults").annotate(Count("pk")):
        counts.update(dict.fromkeys(codes, n))
    rank = Window(RowNumber(), partition_by=F("faults"), order_by=F("pk").asc())
    first = faulty.annotate(rank=rank).filter(rank__lte=count).values("pk")
    shown = list(select_measures(*runs).filter(pk__in=first).order_by("file__data_set__name", "file__utterance__name"))
    groups = []
    for fault, n in counts.items():
        code, examples = find_problem_code(fault), [(m, describe_audio(m)) for m in shown if fault in m.faults]
        groups.append(ProblemGroup(code.severity, code.title, code.meaning, examples[:count], n))
    return sorted(groups, key=lambda group: (_SEVERITIES.index(group.severity), -group.count))


def find_problem_code(code: str) -> ProblemCode:
    """Return what a code means; a code of another version of the portal stands for itself."""
    return PROBLEM_CODES.get(code, ProblemCode(code, "", Severity.WARNING))


# Single utterances of many submissions -------------------------------------------------------------


class WordCount(NamedTuple):
    """Word errors of one utterance, and the words of its reference."""

    errors: int
    words: int


def count_utterance_errors(
    submissions: Iterable[Submission], transcripts: Mapping[str, str], recipe: Recipe
) -> dict[tuple[int, Speech], dict[str, WordCount]]:
    """By submission and speech the word errors of each utterance that has a transcript and a hypothesis.

    Args:
        transcripts: by utterance, as the corpus has them; an empty one is no reference.
        recipe: of the edition, which names its recognition sets and says whose rates count.
    """
    given = list(submissions)
    if recipe.evaluation.by_portal:
        return _count_portal_errors(given, transcripts, recipe)
    references = {name: split_words(normalise_transcript(text)) for name, text in transcripts.items() if text.strip()}
    found: dict[tuple[int, Speech], dict[str, WordCount]] = {}
    if not references:
        return found
    for (submission, identity), key in _hypotheses(given, recipe).items():
        with default_storage.open(key) as stored:
            hypotheses = read_text(io.StringIO(stored.read().decode("utf-8", "replace"))).content
        counts = found.setdefault((submission, identity.speech), {})
        for utterance in references.keys() & hypotheses.keys():
            counts[utterance] = _count_errors(references[utterance], split_words(hypotheses[utterance]))
    return found


def _count_errors(said: list[str], heard: list[str]) -> WordCount:
    """Without an alignment: only the number of errors is asked for."""
    from rapidfuzz.distance import Levenshtein

    return WordCount(Levenshtein.distance(said, heard), len(said))


def _count_portal_errors(
    submissions: list[Submission], transcripts: Mapping[str, str], recipe: Recipe
) -> dict[tuple[int, Speech], dict[str, WordCount]]:
    """Return the same of what the portal's own recogniser of the edition understood, by its own rule for texts."""
    found: dict[tuple[int, Speech], dict[str, WordCount]] = {}
    for run in list_newest_finished(RECOGNITION, submissions):
        if run.engine != recipe.evaluation.recognizer:
            continue
        rule = find_rule(run.parameters["rule"])
        references = {name: split_words(rule.normalise(text)) for name, text in transcripts.items() if text.strip()}
        names = run.parameters["data_sets"]
        for data_set in DataSet.objects.filter(corpus=run.submission.system.corpus_id, name__in=names):
            known = recipe.data_sets.get(data_set.name)
            cache = hypothesis_cache(run.parameters["engine_key"], known.language if known else ENGLISH)
            for speech in Speech:
                heard = cache.read(list_recordings(run.submission, data_set, speech))
                counts = found.setdefault((run.submission_id, speech), {})
                for name in references.keys() & heard.keys():
                    counts[name] = _count_errors(references[name], split_words(rule.normalise(heard[name])))
    return found


def read_pitch_correlations(
    submissions: Iterable[Submission], utterances: Collection[str]
) -> dict[tuple[int, str], float]:
    """By submission and utterance the pitch correlation of the newest finished run on a trial set that measured it."""
    measures = UtteranceMeasure.objects.filter(
        run__submission__in=[one.pk for one in submissions],
        run__job__state=JobState.SUCCEEDED,
        run__data_set__role=Role.TRIAL,
        pitch_correlation__isnull=False,
    )
    rows = measures.order_by("run_id").values_list("run__submission", "file__utterance__name", "pitch_correlation")
    wanted = set(utterances)
    return {(submission, name): float(value or 0) for submission, name, value in rows.iterator() if name in wanted}


def _hypotheses(submissions: Iterable[Submission], recipe: Recipe) -> dict[tuple[int, NumberIdentity], str]:
    """Return the stored document of each recognition test: of the usual recogniser, else of the one there is."""
    documents = SubmittedDocument.objects.filter(
        submission__in=[one.pk for one in submissions], kind=SubmittedDocument.Kind.HYPOTHESES
    )
    usual: dict[tuple[int, NumberIdentity], str] = {}
    others: dict[tuple[int, NumberIdentity], str] = {}
    for submission, path, key in documents.order_by("path").values_list("submission", "path", "key"):
        identity = hypothesis_identity(path, recipe)
        if identity is not None:
            wanted = with_speech(recipe, identity, speech=identity.speech)
            (usual if identity == wanted else others)[submission, wanted] = key
    return others | usual
