"""Speech recognition of the portal evaluation as jobs: the words of each data set, then word errors of all of them.

What a recogniser understands of original and anonymised recordings is kept by content as the model wrote it; word error
rates are against the transcripts of the corpus, with intervals over speakers. Texts are made comparable when they are
counted, so another rule needs no new work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from common.errors import InputError
from common.problems import Problem, Severity
from evaluation.app.models import EvaluationRun
from evaluation.app.recognition.selectors import SpokenRow, WordDifference, WordRow, words_key
from evaluation.app.runs.context import EvaluationContext, list_recordings
from evaluation.app.runs.feature_cache import Extractor, extract_data_set, hypothesis_cache, load_engine
from evaluation.app.runs.kinds import RECOGNITION
from evaluation.app.runs.services import load_run, store_numbers
from evaluation.formats.results import Gender, NumberIdentity, Speech
from evaluation.metrics.bootstrap import Replicates
from evaluation.metrics.word_errors import WordErrorCounts
from evaluation.metrics.word_normalization import find_rule
from evaluation.objective_results.recognition import GroupErrors, RecognitionReport, recognition_report
from evaluation.objective_results.track_averages import add_average
from evaluation.objective_results.values import AVERAGE, Basis, Number
from portal.core.storage import replace_named
from portal.jobs.kinds import JobFailure, engine_finder, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from speech.model_files.devices import load_where_it_can
from speech.recognizers.contract import ENGLISH, check_language

GENDERS = {"all": Gender.ALL, "f": Gender.FEMALE, "m": Gender.MALE}


@engine_finder
def find_recognizers() -> list[str]:
    """Return the recognisers that this machine has."""
    registry = RECOGNITION.engines
    return [name for name, one in registry.engines().items() if not registry.explain_missing(one)]


@job_kind(
    "hypotheses",
    title="Recognised words of a data set",
    queue=Queue.CPU,
    memory_mb=1000,
    card_memory_mb=3000,
    uses_card=True,
)
def extract_words(context: JobContext) -> dict[str, Any]:
    """Return what is not recognised yet of one data set, originals first."""
    run = load_run(context)
    language = EvaluationContext(run.submission).language_of(context.parameters["data_set"])
    return extract_data_set(context, run, make_extractor(run, language))


def make_extractor(run: EvaluationRun, language: str = ENGLISH) -> Extractor[str]:
    """Return how the words of a run are recognised in a language and kept.

    Raises:
        JobFailure: this portal has no such engine, or another version of it, or something it needs is missing.
    """
    engine = load_engine(RECOGNITION, run)

    def load() -> Any:
        check_language(language, engine)
        return load_where_it_can(partial(RECOGNITION.engines.load, engine.name), engine.packages, engine.title)

    return Extractor(
        title=engine.title,
        what="words",
        cache=hypothesis_cache(engine.key, language),
        load=load,
        apply=lambda recogniser, samples, rate_hz: recogniser.transcribe(samples, rate_hz, language),
        stage="Words",
        refuses_silence=False,  # a recogniser that hears words in it shows it
    )


@job_kind("recognition", title="The portal's own speech recognition", queue=Queue.CPU)
def recognition(context: JobContext) -> dict[str, Any]:
    """Return word errors of every data set, their numbers, and the utterances for the page."""
    run = load_run(context)
    evaluation = EvaluationContext(run.submission)
    count = _Count(run, evaluation)
    names = [name for name in run.parameters["data_sets"] if name in evaluation.data_sets]
    for done, name in enumerate(names):
        context.progress("Counting word errors", done, len(names))
        count.count_set(name)
    context.progress("Counting word errors", len(names), len(names))
    if not count.numbers:
        raise JobFailure(
            "No data set has both transcripts and recognised words, so there is nothing to count.",
            actor=Actor.ORGANIZER,
            remedy="The report names each data set with its reason.",
            problems=count.problems,
        )
    count.count_pooled()
    count.add_averages()
    store_numbers(run, count.numbers.values())
    context.problems += count.problems
    return {
        "values": len(count.numbers),
        "rows": count.rows,
        "differences": count.differences,
        "notes": count.notes,
        "rule": run.parameters["rule"],
    }


@dataclass(frozen=True)
class _Part:
    """A counted data set: references, hypotheses by speech, the speaker of each utterance, the gender of each."""

    references: Mapping[str, str]
    found: Mapping[Speech, Mapping[str, str]]
    speakers: Mapping[str, str]
    genders: Mapping[str, str]


class _Count:
    """Word errors of the data sets of one run, as they are counted one by one."""

    def __init__(self, run: EvaluationRun, evaluation: EvaluationContext) -> None:
        self.run, self.evaluation = run, evaluation
        self.estimator = f"{run.engine}, {run.parameters['rule']}"
        self.numbers: dict[NumberIdentity, Number] = {}
        self.rows: list[dict[str, Any]] = []
        self.differences: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.problems: list[Problem] = []
        self.parts: dict[str, _Part] = {}
        self.replicates: dict[NumberIdentity, Replicates] = {}

    def count_set(self, name: str) -> None:
        data_set = self.evaluation.data_sets[name]
        texts = dict(data_set.utterances.order_by("name").values_list("name", "transcript"))
        references = {utterance: text for utterance, text in texts.items() if text.strip()}
        recordings = {speech: list_recordings(self.run.submission, data_set, speech) for speech in Speech}
        cache = hypothesis_cache(self.run.parameters["engine_key"], self.evaluation.language_of(name))
        found = {speech: cache.read(rows) for speech, rows in recordings.items()}
        speakers = {one.utterance: one.speaker for one in recordings[Speech.ORIGINAL]}
        genders = {one.speaker: one.gender for one in recordings[Speech.ORIGINAL]}
        part = self.parts[name] = _Part(references, found, speakers, genders)
        self._tell_missing(name, texts, part)
        report = self._count(name, part)
        if report is not None:
            files = {one.utterance: one.file for one in recordings[Speech.ANONYMISED]}
            rows = [asdict(row) for row in _utterance_rows(name, report, part, files)]
            replace_named(words_key(self.run.pk, name), json.dumps(rows, ensure_ascii=False).encode())

    def count_pooled(self) -> None:
        """The recognition sets of the recipe, each of its trial sets; only where all of these were recognised."""
        for one in self.evaluation.recipe.sets("recognition"):
            names = [part.name for part in self.evaluation.find_parts(one)] if self.evaluation.corpus else []
            if names in ([], [one.name]) or not set(names) <= set(self.parts):
                continue
            members = [self.parts[name] for name in names]
            found = {speech: _merge(member.found[speech] for member in members) for speech in Speech}
            references = _merge(member.references for member in members)
            speakers, genders = (_merge(getattr(one, key) for one in members) for key in ("speakers", "genders"))
            self._count(one.name, _Part(references, found, speakers, genders))

    def _count(self, name: str, part: _Part) -> RecognitionReport | None:
        try:
            report = recognition_report(
                part.references,
                part.found[Speech.ANONYMISED],
                speakers=part.speakers,
                genders=part.genders,
                originals=part.found[Speech.ORIGINAL] or None,
                rule=find_rule(self.run.parameters["rule"]),
            )
        except InputError as error:
            expected, remedy = (
                "transcripts and recognised words",
                "Its word error rate is left out; all other numbers are kept.",
            )
            self.problems.append(Problem("not-counted", name, expected, str(error), remedy, Severity.WARNING))
            return None
        # Women and men apart only where both are there.
        groups = [group for group in report.groups if group.group == "all" or len(report.groups) > 2]
        genders, known = {one.gender for one in report.utterances}, self.evaluation.recipe.data_sets.get(name)
        is_of_one = known is not None and known.role == "trial" and len(genders) == 1 and genders != {""}
        for group in groups:
            self._add(name, Gender(*genders) if is_of_one else GENDERS[group.group], group)
        self.notes += [f"{name}: {note}" for note in report.notes]
        return report

    def _add(self, name: str, gender: Gender, group: GroupErrors) -> None:
        pairs = {
            Speech.ANONYMISED: (group.counts, group.interval, group.replicates),
            Speech.ORIGINAL: (group.original, group.original_interval, group.original_replicates),
        }
        for speech, (counts, interval, replicates) in pairs.items():
            if counts is None or counts.error_rate is None:
                continue
            # The recogniser never heard anonymised speech in training, whatever the edition does with its own.
            identity = NumberIdentity(name, gender, "wer", self.estimator, Speech.ORIGINAL, None, speech)
            low, high = (100 * interval.lower, 100 * interval.upper) if interval else (None, None)
            if replicates is not None:
                self.replicates[identity] = replicates
            self.numbers[identity] = Number(
                identity, 100 * counts.error_rate, Basis.TRANSCRIPTS, counts.reference_words, low=low, high=high
            )
            is_anonymised = speech is Speech.ANONYMISED
            row = WordRow(
                data_set=name,
                gender=str(gender),
                speech=str(speech),
                utterances=group.utterances,
                speakers=group.speakers,
                **_edits(counts),
                error_rate=100 * counts.error_rate,
                low=low,
                high=high,
                honest=_percent(group.honest_error_rate) if is_anonymised else None,
                clipped=_percent(group.clipped_error_rate) if is_anonymised else None,
            )
            self.rows.append(asdict(row))
        if group.difference is not None:
            found = group.difference
            difference = WordDifference(name, str(gender), 100 * found.estimate, 100 * found.lower, 100 * found.upper)
            self.differences.append(asdict(difference))

    def add_averages(self) -> None:
        """The word error rates as the edition weighs them, for each form of speech whose sets are all there."""
        for average in self.evaluation.track.averages:
            if average.metric != "wer":
                continue
            for split, weights in average.weights.items():
                for speech in Speech:
                    whole = NumberIdentity("", Gender.ALL, "wer", self.estimator, Speech.ORIGINAL, None, speech)
                    add_average(self.numbers, self.replicates, f"{AVERAGE}{split}", weights, whole)

    def _tell_missing(self, name: str, texts: Mapping[str, str], part: _Part) -> None:
        import_again = "Import the corpus again with its texts; these utterances are left out."
        read_report = "The report of its words says why; they are left out, and counted as deleted in the rate of all."
        for what, wanted, held, remedy in (
            ("transcript", texts, part.references, import_again),
            ("hypothesis", part.references, part.found[Speech.ANONYMISED], read_report),
        ):
            if without := [utterance for utterance in wanted if utterance not in held]:
                expected, found = f"a {what} of every utterance", f"{len(without)} without, such as {without[0]}"
                self.problems.append(Problem(f"no-{what}", name, expected, found, remedy, Severity.WARNING))


def _utterance_rows(
    name: str, report: RecognitionReport, part: _Part, files: Mapping[str, int | None]
) -> list[SpokenRow]:
    """Return each recognised utterance with its errors and texts, the highest error rate first."""
    rows = []
    for one in report.utterances:
        counts = one.errors.counts
        row = SpokenRow(
            utterance=one.utterance,
            data_set=name,
            speaker=one.speaker,
            gender=one.gender,
            file=files.get(one.utterance),
            errors=counts.errors,
            **_edits(counts),
            original_errors=one.original.counts.errors if one.original else None,
            is_runaway=one.is_runaway,
            reference=part.references[one.utterance],
            hypothesis=part.found[Speech.ANONYMISED].get(one.utterance, ""),
            original=part.found[Speech.ORIGINAL].get(one.utterance),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (-row.errors / max(1, row.words), row.utterance))


def _edits(counts: WordErrorCounts) -> dict[str, int]:
    """As the rows name them."""
    edits = {name: getattr(counts, name) for name in ("insertions", "deletions", "substitutions")}
    return {"words": counts.reference_words} | edits


def _merge(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {key: value for part in parts for key, value in part.items()}


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction
