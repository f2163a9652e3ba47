"""Phone recognisers as jobs: one trained on originals, one on anonymised speech of the training set, then counts.

A training keeps frames and state in a folder of the worker, named after its run: where its process is killed, the next
on the same machine goes on from them, and one on another machine begins anew. What originals gave is taken from an
earlier run of the same speech and recipe. The last job lets both recognise the test speech.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.files.storage import default_storage

from common.errors import InputError
from common.problems import Problem, Severity
from evaluation.app.models import EvaluationRun
from evaluation.app.recognizer_training.selectors import PhoneTraining
from evaluation.app.runs.context import EvaluationContext, Recording, list_recordings
from evaluation.app.runs.kinds import PHONE_TRAINING, PHONES_TEXT, RETRAINED
from evaluation.app.runs.services import load_run, store_numbers
from evaluation.attackers.training.corpus import TrainingUtterance
from evaluation.formats.results import Gender, NumberIdentity, Speech
from evaluation.metrics.bootstrap import Interval, Replicates
from evaluation.objective_results.phones import PhoneComparison, compare_phones
from evaluation.objective_results.track_averages import PHONES, add_average
from evaluation.objective_results.values import AVERAGE, Basis, Number
from evaluation.recognizer_training import frames
from portal.challenges.models import DataSet, Utterance
from portal.core.storage import read_recording, read_stored, replace_named
from portal.jobs.kinds import JobFailure, engine_finder, job_kind
from portal.jobs.long_work import own_threads, working_folder
from portal.jobs.models import ACTIVE_STATES, Actor, Job, JobState, Queue
from portal.jobs.runner import JobContext
from speech.model_files.devices import choose_device
from speech.recognizers.phone_recipe import PhoneRecipe

if TYPE_CHECKING:
    from speech.recognizers.phone_network import PhoneNetwork

ESTIMATOR = "whisper-base, CTC"
RATE_HZ = 16_000
AT_ONCE = 32  # utterances whose frames are in memory together while they are recognised
AGAIN = "Fix it and run the job again: what was finished is kept."
Heard = dict[tuple[Speech, Speech], dict[str, str]]


@engine_finder
def find_phone_training() -> list[str]:
    """Return whether this machine can train phone recognisers and recognise by them."""
    return [] if frames.missing() else [PHONES_TEXT.name]


@job_kind(
    PHONE_TRAINING,
    title="Phone recogniser of one form of speech",
    queue=Queue.CPU,
    memory_mb=1300,
    card_memory_mb=1500,
    uses_card=True,
)
def train_phone_recognizer(context: JobContext) -> dict[str, Any]:
    """Train on originals or on anonymised speech, whichever the job says; the weights go into the storage."""
    from evaluation.recognizer_training.training import train_phones
    from speech.recognizers.phone_network import save

    run, speech = load_run(context), Speech(context.parameters["speech"])
    recipe, seed = read_recipe(run), run.parameters["seed"]
    chosen, texts = _list_material(run, speech, recipe, seed)
    key = _digest(run, speech, chosen, texts)
    if speech is Speech.ORIGINAL and (earlier := _find_earlier(run, key)) is not None:
        with default_storage.open(weights_key(earlier.pk, speech)) as stored:
            replace_named(weights_key(run.pk, speech), stored.read())
        context.note(f"The recogniser of originals is that of run {earlier.pk}: same speech, same recipe.")
        return dict(_result_of(earlier, speech))
    device = choose_device(("torch",))
    with working_folder("phones", f"{run.pk}-{speech}", partial(list_held, run)) as folder, own_threads():
        try:
            read = partial(context.progress, "Frames of Whisper")
            refuse = partial(_leave_out, context)
            material = frames.read_spoken_texts(chosen, texts, folder / "frames", recipe, read, device, refuse)
            learn = partial(context.progress, "Training")
            fitted = train_phones(material, recipe, seed, folder / "state.pt", learn, device)
        except InputError as error:
            raise JobFailure(str(error), actor=Actor.ORGANIZER, remedy=AGAIN) from error
        save(fitted.network, folder / "weights.safetensors")
        replace_named(weights_key(run.pk, speech), (folder / "weights.safetensors").read_bytes())
    last = fitted.epochs[-1]
    training = PhoneTraining(
        speech=str(speech),
        utterances=len(material),
        seconds=sum(len(one.frames) for one in material) * 0.02,
        epochs=len(fitted.epochs),
        error_rate=None if last.error_rate is None else 100 * last.error_rate,
    )
    return {"key": key, "training": asdict(training), "losses": [round(one.loss, 4) for one in fitted.epochs]}


@job_kind(RETRAINED.job, title="Recognition by retrained recognisers", queue=Queue.CPU, memory_mb=1000)
def recognize_phones(context: JobContext) -> dict[str, Any]:
    """Return phone errors of all data sets by both recognisers, pooled and averaged as the edition does with words."""
    run = load_run(context)
    evaluation = EvaluationContext(run.submission)
    count = _Count(run, evaluation, context)
    names = [name for name in run.parameters["data_sets"] if name in evaluation.data_sets]
    with own_threads():
        for name in names:
            count.hear_set(evaluation.data_sets[name])
    count.compare()
    if not count.numbers:
        raise JobFailure(
            "No utterance has a transcript and was recognised both ways, so there is nothing to count.",
            actor=Actor.ORGANIZER,
            remedy="The report names each data set with its reason.",
            problems=context.problems,
        )
    count.add_averages()
    store_numbers(run, count.numbers.values())
    trainings = [_result_of(run, speech)["training"] for speech in Speech]
    return {
        "values": len(count.numbers),
        "trainings": trainings,
        "changes": count.changes,
        "regained": count.regained,
    }


# What is learned from ------------------------------------------------------------------------------


def read_recipe(run: EvaluationRun) -> PhoneRecipe:
    """Return the recipe of a run."""
    return PhoneRecipe.from_json(json.dumps(run.parameters["recipe"]))


def _list_material(
    run: EvaluationRun, speech: Speech, recipe: PhoneRecipe, seed: int
) -> tuple[list[TrainingUtterance], dict[str, str]]:
    """Return the utterances to learn from, the same of both forms of speech, and their transcripts."""
    names = run.parameters["training_sets"]
    sets = DataSet.objects.filter(corpus=run.submission.system.corpus_id, name__in=names).order_by("name")
    found: dict[Speech, dict[str, Recording]] = {one: {} for one in Speech}
    texts: dict[str, str] = {}
    for data_set in sets:
        for form in Speech:
            for one in list_recordings(run.submission, data_set, form):
                if one.audio:
                    found[form][f"{data_set.name}/{one.utterance}"] = one
        spoken = data_set.utterances.exclude(transcript="").values_list("name", "transcript")
        texts |= {f"{data_set.name}/{name}": text for name, text in spoken}
    both = [name for name in found[Speech.ORIGINAL] if name in found[Speech.ANONYMISED] and name in texts]
    utterances = [make_utterance(name, found[speech][name]) for name in both]
    durations = {name: found[Speech.ORIGINAL][name].samples / RATE_HZ for name in both}
    return frames.choose_speech(utterances, durations, recipe, seed), texts


def make_utterance(name: str, recording: Recording) -> TrainingUtterance:
    """Return a recording as the library reads it."""
    read = partial(read_recording, f"{recording.speech} recording of {name}", recording.audio)
    return TrainingUtterance(name, recording.speaker, read, gender=recording.gender)


def _digest(run: EvaluationRun, speech: Speech, chosen: Sequence[TrainingUtterance], texts: Mapping[str, str]) -> str:
    """Return what a training follows from: recipe, seed, and of each utterance its name, its audio and its words."""
    known = {name: value for name, value in run.parameters.items() if name in ("recipe", "seed")}
    digest = hashlib.sha256(json.dumps([RETRAINED.version, str(speech), known], sort_keys=True).encode())
    for one in chosen:
        audio = one.read.args[1]  # type: ignore[attr-defined]
        digest.update(f"{one.identifier}|{audio}|{texts[one.identifier]}\n".encode())
    return digest.hexdigest()


def _find_earlier(run: EvaluationRun, key: str) -> EvaluationRun | None:
    """Return a run whose recogniser of originals was trained on the same, and is still there."""
    jobs = Job.objects.filter(kind=PHONE_TRAINING, state=JobState.SUCCEEDED, result__key=key).order_by("-pk")
    for other in jobs.values_list("parameters__run", flat=True):
        earlier = EvaluationRun.objects.filter(pk=other).exclude(pk=run.pk).first()
        if earlier is not None and default_storage.exists(weights_key(earlier.pk, Speech.ORIGINAL)):
            return earlier
    return None


def _result_of(run: EvaluationRun, speech: Speech) -> dict[str, Any]:
    done = Job.objects.filter(kind=PHONE_TRAINING, parameters__run=run.pk, parameters__speech=str(speech))
    found: dict[str, Any] = done.filter(state=JobState.SUCCEEDED).order_by("-pk").values_list("result", flat=True)[0]
    return found


def _leave_out(context: JobContext, sentence: str) -> None:
    remedy = "Submit or import it again; it is left out."
    context.problems.append(
        Problem("unusable-recording", "training speech", "speech", sentence, remedy, Severity.WARNING)
    )


def weights_key(run: int, speech: Speech) -> str:
    """Return where the recogniser of a run that was trained on one form of speech lies."""
    return f"derived/retrained/{run}/{speech}.safetensors"


def list_held(run: EvaluationRun) -> set[str]:
    """Return the runs whose folders are needed still: this one, and those that have not ended."""
    active = EvaluationRun.objects.filter(kind=RETRAINED.kind, job__state__in=ACTIVE_STATES)
    return {str(pk) for pk in active.values_list("pk", flat=True)} | {str(run.pk)}


# What is recognised --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A data set as both recognisers heard it."""

    references: dict[str, str]
    heard: Heard
    speakers: dict[str, str]


class _Count:
    """Phone errors of the data sets of one run."""

    def __init__(self, run: EvaluationRun, evaluation: EvaluationContext, context: JobContext) -> None:
        self.run, self.evaluation, self.context = run, evaluation, context
        self.recipe, self.device = read_recipe(run), choose_device(("torch",))
        self.networks = {speech: _load(run, speech) for speech in Speech}
        self.numbers: dict[NumberIdentity, Number] = {}
        self.replicates: dict[NumberIdentity, Replicates] = {}
        self.changes: dict[str, dict[str, list[float] | None]] = {}
        self.regained: dict[str, float | None] = {}
        self.parts: dict[str, _Part] = {}

    def hear_set(self, data_set: DataSet) -> None:
        """Let both recognisers hear both forms of a data set."""
        rows = Utterance.objects.filter(data_sets=data_set).exclude(transcript="")
        texts = dict(rows.values_list("name", "transcript"))
        part = _Part({}, {(training, speech): {} for training in Speech for speech in Speech}, {})
        for speech in Speech:
            found = [one for one in list_recordings(self.run.submission, data_set, speech) if one.audio]
            spoken = [one for one in found if one.utterance in texts]
            part.speakers.update({one.utterance: one.speaker for one in spoken})
            self._hear(part, data_set.name, speech, [make_utterance(one.utterance, one) for one in spoken], texts)
        self.parts[data_set.name] = part

    def _hear(
        self, part: _Part, name: str, speech: Speech, utterances: list[TrainingUtterance], texts: Mapping[str, str]
    ) -> None:
        waiting, stage = iter(utterances), f"{name}, {speech} speech"[:80]
        done = 0
        self.context.progress(stage, done, len(utterances))
        while batch := list(islice(waiting, AT_ONCE)):
            with tempfile.TemporaryDirectory(prefix="phones-") as folder:
                refuse = partial(_leave_out, self.context)
                read = frames.read_spoken_texts(
                    batch, texts, Path(folder), self.recipe, device=self.device, refuse=refuse
                )
            for training in Speech if speech is Speech.ANONYMISED else (Speech.ORIGINAL,):
                phones = self.networks[training].recognise([one.frames for one in read])
                part.heard[training, speech].update(zip((one.name for one in read), phones, strict=True))
            part.references.update({one.name: one.phones for one in read})
            done += len(batch)
            self.context.progress(stage, done, len(utterances))

    def compare(self) -> None:
        """Of each data set, and of each recognition set whose trial sets were all heard."""
        for name, part in self.parts.items():
            self._compare(name, part)
        for one in self.evaluation.recipe.sets("recognition"):
            names = [part.name for part in self.evaluation.find_parts(one)]
            if names and names != [one.name] and set(names) <= set(self.parts):
                self._compare(one.name, _merge([self.parts[name] for name in names]))

    def _compare(self, name: str, part: _Part) -> None:
        try:
            found = compare_phones(part.references, part.heard, part.speakers)
        except InputError as error:
            expected, remedy = "transcripts and speech of both forms", "It is left out; all other numbers are kept."
            self.context.problems.append(Problem("not-counted", name, expected, str(error), remedy, Severity.WARNING))
            return
        self._keep(name, found)

    def _keep(self, name: str, found: PhoneComparison) -> None:
        replicates = (found.frozen.original_replicates, found.retrained.replicates, found.frozen.replicates)
        for row, resampled in zip(found.rows, replicates, strict=True):
            identity = NumberIdentity(name, Gender.ALL, PHONES, ESTIMATOR, row.training, None, row.speech)
            low, high = (100 * row.interval.lower, 100 * row.interval.upper) if row.interval else (None, None)
            value = 100 * row.error_rate
            self.numbers[identity] = Number(
                identity, value, Basis.TRANSCRIPTS, row.counts.reference_words, low=low, high=high
            )
            if resampled is not None:
                self.replicates[identity] = resampled
        self.changes[name] = {"damage": _points(found.damage), "retraining": _points(found.retraining)}
        self.regained[name] = None if found.regained is None else 100 * found.regained

    def add_averages(self) -> None:
        """By the weights that the edition gives to word error rates, where all of its sets were heard."""
        identities = {(one.training, one.speech) for one in self.numbers}
        for average in self.evaluation.track.averages:
            if average.metric != "wer":
                continue
            for split, weights in average.weights.items():
                for training, speech in sorted(identities, key=str):
                    whole = NumberIdentity("", Gender.ALL, PHONES, ESTIMATOR, training, None, speech)
                    add_average(self.numbers, self.replicates, f"{AVERAGE}{split}", weights, whole)


def _merge(parts: Sequence[_Part]) -> _Part:
    whole = _Part({}, {(training, speech): {} for training in Speech for speech in Speech}, {})
    for part in parts:
        whole.references.update(part.references)
        whole.speakers.update(part.speakers)
        for key, texts in part.heard.items():
            whole.heard[key].update(texts)
    return whole


def _points(change: Interval | None) -> list[float] | None:
    return None if change is None else [100 * one for one in (change.estimate, change.lower, change.upper)]


def _load(run: EvaluationRun, speech: Speech) -> PhoneNetwork:
    from speech.recognizers.phone_network import load

    key = weights_key(run.pk, speech)
    if (stored := read_stored(key)) is None:
        raise JobFailure(
            f"The recogniser of {speech} speech is not in the portal’s storage any more.",
            actor=Actor.ORGANIZER,
            remedy="Start another run.",
        )
    with tempfile.TemporaryDirectory(prefix="phones-") as folder:
        path = Path(folder) / "weights.safetensors"
        path.write_bytes(stored)
        return load(path)
