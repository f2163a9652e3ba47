"""The portal's own speech recognition of a submission: starts it, and is the body of its jobs.

For each data set what a recogniser understands of the original and of the anonymised recordings, kept by content as the
model wrote it; then word error rates against the transcripts of the corpus, with intervals over speakers, and beside
them those of the original speech. Texts are made comparable when they are counted, so another rule needs no new work.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import transaction

from evaluation import attack_keys
from evaluation.encoders import device_for
from evaluation.extraction import Maker, Pace, extract
from evaluation.formats.claims import ClaimIdentity, Gender, Speech
from evaluation.formats.problems import Problem, Severity
from evaluation.metrics.averages import AverageError, weighted_average
from evaluation.metrics.errors import MetricInputError
from evaluation.models import EvaluationRun, Hypothesis, MetricValue
from evaluation.objective.values import AVERAGE, Basis, Number
from evaluation.recognizers import registry
from evaluation.recognizers.contract import Engine, Recognizer, Samples
from evaluation.selectors_recordings import Ground, Recording, recordings_of, spoken_sets
from evaluation.services_attack import parts_of
from evaluation.services_objective import row_of
from evaluation.services_speech import require_speech, require_standing, start_chain
from portal.core.storage import replace_named
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job
from portal.jobs.runner import JobContext
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission

if TYPE_CHECKING:
    from evaluation.recognizers.report import GroupErrors, RecognitionReport

HYPOTHESES, KIND = "hypotheses", "recognition"
METHOD_VERSION = "1"
RULE = "written-english-1"
_GENDERS = {"all": Gender.ALL, "f": Gender.FEMALE, "m": Gender.MALE}


def start_recognition(
    *, submission: Submission, engine: str = registry.DEFAULT, data_sets: Collection[str] | None = None,
    after: Job | None = None, by: Any = None,
) -> EvaluationRun:  # fmt: skip
    """Recognition of a submission's speech and of the originals as a chain of jobs; its run.

    Args:
        engine: name of a recogniser.
        data_sets: enrolment and trial sets; all of which the submission has speech where none is named.
        after: the job that the chain follows.

    Raises:
        NotPossible: there is nothing to recognise or to compare with, something is missing, or the same is under way.
    """
    try:
        recogniser = registry.find_engine(engine)
    except MetricInputError as error:
        raise NotPossible(str(error)) from error
    if sentence := registry.missing_of(recogniser):
        raise NotPossible(sentence)
    names = _recognisable(submission, data_sets)
    if after is None:
        require_speech(submission, names)
    run = EvaluationRun(
        submission=submission, kind=EvaluationRun.Kind.RECOGNITION, engine=recogniser.name, recipe="recognition",
        recipe_version=METHOD_VERSION,
        parameters={"engine_key": recogniser.key, "rule": RULE, "data_sets": names},
    )  # fmt: skip
    titles = f"Words by {recogniser.title}", f"Recognition by {recogniser.title}"
    return start_chain(run=run, kinds=(HYPOTHESES, KIND), titles=titles, data_sets=names, after=after, by=by)


def _recognisable(submission: Submission, wanted: Collection[str] | None) -> list[str]:
    states = {one.data_set.name: one.refusal for one in spoken_sets(Ground(submission))}
    names = list(states)
    if unknown := sorted(set(wanted or ()) - set(names)):
        raise NotPossible(f"Expected data sets among {', '.join(names) or 'none'}, found {', '.join(unknown)}.")
    chosen = [name for name in names if wanted is None or name in wanted]
    refused = [states[name] for name in chosen if states[name]]
    if not chosen:
        raise NotPossible("The submission holds no speech of an enrolment or trial set.")
    if refused and (wanted is not None or len(refused) == len(chosen)):
        raise NotPossible(refused[0])
    return [name for name in chosen if not states[name]]


# Hypotheses ----------------------------------------------------------------------------------------


def run_hypotheses(context: JobContext) -> dict[str, Any]:
    """Body of the job: what is not recognised yet of one data set, originals first."""
    run = _run_of(context)
    name = context.parameters["data_set"]
    data_set = Ground(run.submission).data_sets.get(name)
    if data_set is None:
        raise JobFailure(
            f"The corpus has no data set {name} any more.",
            actor=Actor.ORGANIZER,
            remedy="Import it again, then run the job again: what was finished is kept.",
        )
    maker = word_maker(_engine(run))
    pace = Pace(run.parameters["engine_key"])
    for speech in Speech:
        recordings = recordings_of(run.submission, data_set, speech)
        context.problems += extract(context, maker, recordings, f"Words of {speech} {name}"[:80], pace)
    return pace.as_result()


def word_maker(engine: Engine) -> Maker[str]:
    """How a recogniser's hypotheses are made and kept; the model is loaded with the first of them."""
    loaded: list[Recognizer] = []

    def make(samples: Sequence[Samples], rate_hz: int) -> list[str]:
        if not loaded:
            try:
                loaded.append(registry.load(engine.name, device_for(engine.packages)))
            except MetricInputError as error:
                raise _no_engine(str(error)) from error
        return loaded[0].transcribe(samples, rate_hz)

    def keep(found: Sequence[tuple[str, str]]) -> None:
        rows = (Hypothesis(engine=engine.key, audio=key, text=text.replace("\0", "")) for key, text in found)
        Hypothesis.objects.bulk_create(rows, ignore_conflicts=True)

    # Silence is an input: a recogniser that hears words in it shows it.
    return Maker(engine.title, "words", make, lambda keys: set(_texts(engine.key, keys)), keep, refuses_silence=False)


def _texts(engine: str, keys: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in parts_of(keys):
        found.update(Hypothesis.objects.filter(engine=engine, audio__in=part).values_list("audio", "text"))
    return found


def hypotheses_of(engine: str, recordings: Sequence[Recording]) -> dict[str, str]:
    """What was understood, by name of the utterance; of recordings without a hypothesis none."""
    by_name = {one.utterance: one.audio for one in recordings if one.audio}
    texts = _texts(engine, list(dict.fromkeys(by_name.values())))
    return {name: texts[key] for name, key in by_name.items() if key in texts}


# Numbers -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A counted data set: references, hypotheses by speech, the speaker of each utterance, the gender of each."""

    references: Mapping[str, str]
    found: Mapping[Speech, Mapping[str, str]]
    speakers: Mapping[str, str]
    genders: Mapping[str, str]


class _Count:
    """Word errors of the data sets of one run, as they are counted one by one."""

    def __init__(self, run: EvaluationRun, ground: Ground) -> None:
        self.run, self.ground = run, ground
        self.key, self.estimator = run.parameters["engine_key"], f"{run.engine}, {run.parameters['rule']}"
        self.numbers: dict[ClaimIdentity, Number] = {}
        self.rows: list[dict[str, Any]] = []
        self.differences: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.problems: list[Problem] = []
        self.parts: dict[str, _Part] = {}

    def count_set(self, name: str) -> None:
        data_set = self.ground.data_sets[name]
        texts = dict(data_set.utterances.order_by("name").values_list("name", "transcript"))
        references = {utterance: text for utterance, text in texts.items() if text.strip()}
        recordings = {speech: recordings_of(self.run.submission, data_set, speech) for speech in Speech}
        found = {speech: hypotheses_of(self.key, rows) for speech, rows in recordings.items()}
        speakers = {one.utterance: one.speaker for one in recordings[Speech.ORIGINAL]}
        genders = {one.speaker: one.gender for one in recordings[Speech.ORIGINAL]}
        self.parts[name] = _Part(references, found, speakers, genders)
        self._tell_missing(name, texts, references, found[Speech.ANONYMISED])
        report = self._count(name, references, found, speakers, genders)
        if report is not None:
            files = {one.utterance: one.file for one in recordings[Speech.ANONYMISED]}
            rows = utterance_rows(name, report, references, found, files)
            replace_named(attack_keys.words_key(self.run.pk, name), json.dumps(rows, ensure_ascii=False).encode())

    def count_pooled(self) -> None:
        """The recognition sets of the recipe, each of several trial sets; only where all of these were recognised."""
        for one in self.ground.recipe.sets("recognition"):
            names = self.ground.parts_of(one)
            if len(names) < 2 or not set(names) <= set(self.parts):
                continue
            members = [self.parts[name] for name in names]
            merged = {speech: _merged([member.found[speech] for member in members]) for speech in Speech}
            references = _merged([member.references for member in members])
            speakers = _merged([member.speakers for member in members])
            self._count(one.name, references, merged, speakers, _merged([member.genders for member in members]))

    def _count(
        self, name: str, references: Mapping[str, str], found: Mapping[Speech, Mapping[str, str]],
        speakers: Mapping[str, str], genders: Mapping[str, str],
    ) -> RecognitionReport | None:  # fmt: skip
        from evaluation.recognizers.report import recognition_report
        from evaluation.recognizers.texts import find_rule

        try:
            report = recognition_report(
                references, found[Speech.ANONYMISED], random=_random(name), speakers=speakers, genders=genders,
                originals=found[Speech.ORIGINAL] or None, rule=find_rule(self.run.parameters["rule"]),
            )  # fmt: skip
        except MetricInputError as error:
            self.problems.append(_not_counted(name, str(error)))
            return None
        # Women and men apart only where both are there.
        groups = [group for group in report.groups if group.group == "all" or len(report.groups) > 2]
        own_gender = {one.gender for one in report.utterances}
        for group in groups:
            gender = Gender(own_gender.copy().pop()) if len(own_gender) == 1 and own_gender != {""} else None
            self._add(name, gender if gender and self._is_trial_set(name) else _GENDERS[group.group], group)
        self.notes += [f"{name}: {note}" for note in report.notes]
        return report

    def _is_trial_set(self, name: str) -> bool:
        known = self.ground.recipe.data_sets.get(name)
        return known is not None and known.role == "trial"

    def _add(self, name: str, gender: Gender, group: GroupErrors) -> None:
        pairs = {
            Speech.ANONYMISED: (group.counts, group.interval),
            Speech.ORIGINAL: (group.original, group.original_interval),
        }
        for speech, (counts, interval) in pairs.items():
            if counts is None or counts.error_rate is None:
                continue
            # The recogniser never heard anonymised speech in training, whatever the edition does with its own.
            identity = ClaimIdentity(name, gender, "wer", self.estimator, Speech.ORIGINAL, None, speech)
            low, high = (100 * interval.lower, 100 * interval.upper) if interval else (None, None)
            self.numbers[identity] = Number(
                identity, 100 * counts.error_rate, Basis.TRANSCRIPTS, counts.reference_words, low=low, high=high
            )
            is_own = speech is Speech.ANONYMISED
            self.rows.append(
                {
                    "data_set": name, "gender": str(gender), "speech": str(speech), "utterances": group.utterances,
                    "speakers": group.speakers, "words": counts.reference_words, "insertions": counts.insertions,
                    "deletions": counts.deletions, "substitutions": counts.substitutions,
                    "error_rate": 100 * counts.error_rate, "low": low, "high": high,
                    "honest": _percent(group.honest_error_rate) if is_own else None,
                    "clipped": _percent(group.clipped_error_rate) if is_own else None,
                }
            )  # fmt: skip
        if group.difference is not None:
            found = group.difference
            self.differences.append(
                {"data_set": name, "gender": str(gender), "value": 100 * found.estimate, "low": 100 * found.lower,
                 "high": 100 * found.upper}
            )  # fmt: skip

    def add_averages(self) -> None:
        """The word error rates as the edition weighs them, for each form of speech whose sets are all there."""
        for average in self.ground.track.averages:
            if average.metric != "wer":
                continue
            for split, weights in average.weights.items():
                for speech in Speech:
                    self._add_average(split, weights, speech)

    def _add_average(self, split: str, weights: Mapping[str, float], speech: Speech) -> None:
        whole = ClaimIdentity("", Gender.ALL, "wer", self.estimator, Speech.ORIGINAL, None, speech)
        members = [self.numbers.get(replace(whole, data_set=name)) for name in weights]
        present = [(one.identity.data_set, one.value) for one in members if one is not None]
        try:
            value = weighted_average(present, dict(weights)).value
        except AverageError:
            return  # not all of its data sets were recognised, which the table shows
        identity = replace(whole, data_set=f"{AVERAGE}{split}")
        self.numbers[identity] = Number(identity, value, Basis.VALUES, len(present))

    def _tell_missing(
        self, name: str, texts: Mapping[str, str], references: Mapping[str, str], found: Mapping[str, str]
    ) -> None:
        if without := [utterance for utterance in texts if utterance not in references]:
            remedy = "Import the corpus again with its texts; these utterances are left out."
            shown = f"{len(without)} without, such as {without[0]}"
            self.problems.append(
                Problem("no-transcript", name, "a transcript of every utterance", shown, remedy, Severity.WARNING)
            )
        if unheard := [utterance for utterance in references if utterance not in found]:
            remedy = "The report of its words says why; they are left out, and counted as deleted in the honest rate."
            shown = f"{len(unheard)} without, such as {unheard[0]}"
            self.problems.append(
                Problem("no-hypothesis", name, "a hypothesis of every utterance", shown, remedy, Severity.WARNING)
            )


def run_recognition(context: JobContext) -> dict[str, Any]:
    """Body of the job: word errors of every data set, their numbers, and the utterances for the page."""
    run = _run_of(context)
    ground = Ground(run.submission)
    count = _Count(run, ground)
    names = [name for name in run.parameters["data_sets"] if name in ground.data_sets]
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
    write_numbers(run, list(count.numbers.values()))
    context.problems += count.problems
    return {
        "values": len(count.numbers), "rows": count.rows, "differences": count.differences, "notes": count.notes,
        "rule": run.parameters["rule"],
    }  # fmt: skip


@transaction.atomic
def write_numbers(run: EvaluationRun, numbers: Sequence[Number]) -> None:
    """Store the numbers of a run; what an interrupted attempt left is replaced."""
    run.values.all().delete()
    MetricValue.objects.bulk_create(row_of(run, one) for one in numbers if np.isfinite(one.value))


def utterance_rows(
    name: str, report: RecognitionReport, references: Mapping[str, str], found: Mapping[Speech, Mapping[str, str]],
    files: Mapping[str, int | None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Each recognised utterance with its errors and texts, the highest error rate first."""
    rows = []
    for one in report.utterances:
        counts = one.errors.counts
        rows.append(
            {
                "utterance": one.utterance, "data_set": name, "speaker": one.speaker, "gender": one.gender,
                "file": files.get(one.utterance), "words": counts.reference_words, "errors": counts.errors,
                "insertions": counts.insertions, "deletions": counts.deletions,
                "substitutions": counts.substitutions,
                "original_errors": one.original.counts.errors if one.original else None,
                "is_runaway": one.is_runaway, "reference": references[one.utterance],
                "hypothesis": found[Speech.ANONYMISED].get(one.utterance, ""),
                "original": found[Speech.ORIGINAL].get(one.utterance),
            }
        )  # fmt: skip
    return sorted(rows, key=lambda row: (-row["errors"] / max(1, row["words"]), row["utterance"]))


def _merged(parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {key: value for part in parts for key, value in part.items()}


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction


def _random(name: str) -> np.random.Generator:
    """The resamples of a data set, the same for every system, so that their rates are paired."""
    return np.random.default_rng([ord(letter) for letter in name])


def _run_of(context: JobContext) -> EvaluationRun:
    runs = EvaluationRun.objects.select_related("submission__system__edition__corpus", "submission__system__corpus")
    run = runs.get(pk=context.parameters["run"])
    require_standing(run.submission)
    return run


def _engine(run: EvaluationRun) -> Engine:
    try:
        engine = registry.find_engine(run.engine)
    except MetricInputError as error:
        raise _no_engine(str(error)) from error
    if sentence := registry.missing_of(engine):
        raise _no_engine(sentence)
    if engine.key != run.parameters["engine_key"]:
        raise _no_engine(
            f"This run was started with {run.parameters['engine_key']}; this portal has {engine.key}. Start it anew."
        )
    return engine


def _no_engine(sentence: str) -> JobFailure:
    return JobFailure(sentence, actor=Actor.OPERATOR, remedy="What was finished is kept: run the job again then.")


def _not_counted(name: str, found: str) -> Problem:
    remedy = "Its word error rate is left out; every other number stands."
    return Problem("not-counted", name, "transcripts and recognised words", found, remedy, Severity.WARNING)
