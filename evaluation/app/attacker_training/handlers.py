"""The body of a training job: one seed after another, one epoch after another, each kept as soon as it has ended.

After an epoch its checkpoint goes into the storage and its row into the database, in this order; only then the
checkpoint before is deleted. So a worker that is killed at any time loses only the epoch that was under way, and
another worker, on another machine, can go on. A training that would run longer than a job may gives its turn back
between two epochs.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction

from anonymization.app.voice_assignment import find_targets
from anonymization.methods.contract import MethodError
from common.errors import InputError
from evaluation.app.attacker_training.selectors import STEPS_OF, list_epochs, make_report, read_recipe_of_run
from evaluation.app.attacker_training.services import ANY_DEVICE
from evaluation.app.attacks.stored_attackers import (
    REPORT,
    checkpoint_key,
    encoder_key,
    list_files,
    list_seeds,
    list_trained_seeds,
    seed_folder,
    speech_of_training,
)
from evaluation.app.models import EvaluationRun, MetricValue, TrainingEpoch
from evaluation.app.runs.kinds import TRAINING
from evaluation.app.runs.services import load_run
from evaluation.attackers.training.corpus import TrainingUtterance
from evaluation.attackers.training.recipe import TRAINING_ENGINE, TrainingRecipe, find_missing_libraries
from evaluation.attackers.training.train import TrainingPlan, plan_training, train
from evaluation.attackers.training.trained_attacker import CHECKPOINT, EpochRecord, TrainedAttacker, TrainingEstimate
from evaluation.formats.results import Speech
from portal.challenges.models import DataSet, Utterance
from portal.core.labels import roughly
from portal.core.storage import read_recording, replace_named
from portal.jobs.kinds import JobFailure, engine_finder, job_kind
from portal.jobs.long_work import choose_card, give_way, own_threads, require_memory
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from portal.submissions.models import SubmittedFile
from speech.encoders.contract import Device

STAGE = "Training"
# The stage of `train` whose items are steps of the optimiser.
STEPS = "training"
CHANNELS_OF_A_THREAD = 64
METRIC_OF = {
    "source_error": "source_validation_error",
    "target_error": "target_validation_error",
    "target_probe": "target_probe_error",
}
AGAIN = "What was finished is kept: run the job again to continue."


@engine_finder
def find_training() -> list[str]:
    """Return whether this machine can train attackers."""
    return [] if find_missing_libraries() else [TRAINING_ENGINE]


@job_kind(
    TRAINING.job,
    title="Training of an attacker",
    queue=Queue.CPU,
    memory_mb=1200,
    card_memory_mb=2000,  # with more it takes more segments at a time
    uses_card=True,
)
def train_attackers(context: JobContext) -> dict[str, Any]:
    """Train what is missing of a run, seed by seed."""
    run = load_run(context)
    device = _choose_device(run)
    recipe = read_recipe_of_run(run)
    utterances = _utterances(run, recipe)
    _require_same_speech(run)
    durations_s = [one.duration_s for one in _recordings(run)]
    plan = plan_training(durations_s, recipe, len({one.source for one in utterances}))
    if device == "cpu":
        remedy = "Choose a smaller recipe, or run it on a machine with more memory."
        require_memory(plan.bytes_needed, f"Training by the recipe {recipe.name}", remedy)
    with own_threads(max(1, recipe.width // CHANNELS_OF_A_THREAD)):
        for position, seed in enumerate(list_seeds(run)):
            if seed not in list_trained_seeds(run):
                _Turn(context, run, plan, seed, position).go(utterances, device)
    _store_values(run)
    report = make_report(list_epochs([run])[run.pk])
    return {"seeds": len(report.seeds), "utterances": len(utterances)}


# Before the first step -----------------------------------------------------------------------------


def _choose_device(run: EvaluationRun) -> Device:
    """Return where this worker trains.

    Raises:
        JobFailure: the version at hand would give another attacker than the run began with, or this machine lacks
            something.
    """
    if run.recipe_version != TRAINING.version and run.epochs.exists():
        raise JobFailure(
            f"This training began with version {run.recipe_version} of the method; this portal has version "
            f"{TRAINING.version}, whose attackers differ.",
            actor=Actor.ORGANIZER,
            remedy="Start another training.",
        )
    if missing := find_missing_libraries():
        raise JobFailure(missing, actor=Actor.OPERATOR, remedy=AGAIN)
    wish = {"cpu": False, "cuda": True, ANY_DEVICE: None}[run.parameters["device"]]
    return choose_card(wish, "This training was started for", "or start the training without one.")


class _Recording(NamedTuple):
    data_set: str
    name: str
    speaker: str
    gender: str
    audio: str
    duration_s: float


def _recordings(run: EvaluationRun) -> list[_Recording]:
    """Return what the run is trained on, by data set and name."""
    corpus, names = run.submission.system.corpus_id, run.parameters["data_sets"]
    if speech_of_training(run.parameters) is Speech.ORIGINAL:
        utterances = Utterance.objects.filter(data_sets__corpus=corpus, data_sets__name__in=names)
        rows = utterances.order_by("data_sets__name", "name").values_list(
            "data_sets__name", "name", "speaker__name", "speaker__gender", "audio", "duration_s"
        )
        return [_Recording(one, name, who, sex, audio, length or 0.0) for one, name, who, sex, audio, length in rows]
    files = SubmittedFile.objects.filter(submission=run.submission_id, data_set__corpus=corpus)
    columns = ("data_set__name", "utterance__name", "utterance__speaker__name", "utterance__speaker__gender", "audio")
    made = files.filter(data_set__name__in=names).order_by("data_set__name", "utterance__name")
    return [
        _Recording(one, name, who, sex, audio, samples / rate if rate else 0.0)
        for one, name, who, sex, audio, samples, rate in made.values_list(*columns, "samples", "rate_hz")
    ]


def _utterances(run: EvaluationRun, recipe: TrainingRecipe) -> list[TrainingUtterance]:
    """Return the same as utterances; samples are read when they are needed."""
    sets = DataSet.objects.filter(corpus=run.submission.system.corpus, name__in=run.parameters["data_sets"])
    targets = {one.name: _read_targets(run, one) for one in sets} if recipe.target_head != "none" else {}
    found, speech = [], speech_of_training(run.parameters)
    for one in _recordings(run):
        read = partial(read_recording, f"{speech} recording of {one.name}", one.audio)
        target = targets.get(one.data_set, {}).get(one.name)
        identifier = f"{one.data_set}/{one.name}"
        found.append(TrainingUtterance(identifier, one.speaker, read, target, one.gender, original=one.name))
    if not found:
        raise JobFailure(
            f"The submission has no {speech} file of {', '.join(run.parameters['data_sets'])}.",
            actor=Actor.ORGANIZER,
            remedy="Anonymise the training data, or submit or import it, and run the job again.",
        )
    return found


def _read_targets(run: EvaluationRun, data_set: DataSet) -> dict[str, str]:
    try:
        return find_targets(run.submission, data_set)
    except MethodError as error:
        raise JobFailure(
            str(error), actor=Actor.ORGANIZER, remedy="Start a training without a target classifier, or fix the file."
        ) from error


def _require_same_speech(run: EvaluationRun) -> None:
    """That a training goes on with what it began with, as its job sees it.

    Raises:
        JobFailure: utterances were erased, added or replaced since its first epoch.
    """
    rows = [(one.data_set, one.name, one.speaker, one.audio) for one in _recordings(run)]
    speech = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    if not run.epochs.exists():
        run.parameters["speech"] = speech
        run.save(update_fields=["parameters"])
    elif run.parameters.get("speech", speech) != speech:
        raise JobFailure(
            "The training data has changed since this training began: utterances were deleted, added or replaced. One "
            "attacker cannot be trained on both versions.",
            actor=Actor.ORGANIZER,
            remedy="Start another training.",
        )


# A seed --------------------------------------------------------------------------------------------


class _Turn:
    """Trains one seed for as long as this job may; keeps each epoch."""

    def __init__(self, context: JobContext, run: EvaluationRun, plan: TrainingPlan, seed: int, position: int) -> None:
        self.context, self.run, self.plan = context, run, plan
        self.seed, self.position, self.n_seeds = seed, position, len(list_seeds(run))
        self.recipe = read_recipe_of_run(run)
        self.kept = 0

    def go(self, utterances: list[TrainingUtterance], device: Device) -> None:
        try:
            with working_folder(self.run, self.seed) as self.folder:
                self.kept = _restore(self.run, self.seed, self.folder)
                if self.kept:
                    self.context.note(f"Seed {self.seed} continues after epoch {self.kept} of {self.recipe.epochs}.")
                trained = train(
                    utterances,
                    self.recipe,
                    self.seed,
                    self.folder,
                    self.progress,
                    on_epoch=self.keep,
                    on_estimate=self.report,
                    device=device,
                    system=str(self.run.submission.system),
                )
                self.finish(trained)
        except InputError as error:
            raise JobFailure(str(error), actor=Actor.ORGANIZER, remedy=AGAIN) from error
        except MemoryError as error:
            raise JobFailure(
                f"The memory of this machine was full while seed {self.seed} was trained.",
                actor=Actor.OPERATOR,
                remedy=f"Choose a smaller recipe, or a machine with more memory. {AGAIN}",
            ) from error

    def progress(self, stage: str, done: int, total: int) -> None:
        """Steps count over all seeds, so that the estimate is that of the whole job."""
        if stage == STEPS:
            self.context.progress(STAGE, self.position * total + done, self.n_seeds * total)
        else:
            self.context.progress(f"Seed {self.seed}: {stage}", done, total)

    def report(self, estimate: TrainingEstimate) -> None:
        """Say early how long it takes; an epoch that no job may take is refused before it has begun in earnest."""
        further = (self.n_seeds - self.position - 1) * self.plan.steps
        left_s = estimate.seconds_left + further * estimate.seconds_per_step
        self.context.note(
            f"Seed {self.seed}: {estimate.seconds_per_step:.2f} s a step, {estimate.steps_left} steps left; "
            f"the rest of this training takes {roughly(left_s)}."
        )
        epoch_s = estimate.seconds_per_step * self.plan.steps_per_epoch
        if epoch_s > settings.JOB_SOFT_LIMIT_S:
            raise JobFailure(
                f"One epoch takes {roughly(epoch_s)} here, and a job may take {roughly(settings.JOB_SOFT_LIMIT_S)}.",
                actor=Actor.OPERATOR,
                remedy="Choose a smaller preset or a graphics card, or raise PORTAL_JOB_SOFT_LIMIT_S.",
            )

    def keep(self, record: EpochRecord) -> None:
        """Store an epoch that has ended; those of before this turn are told again and are there already."""
        is_new = record.epoch > self.kept
        if is_new:
            _store(checkpoint_key(self.run, self.seed, record.epoch), self.folder / CHECKPOINT)
        values = finite(record.values) | {STEPS_OF: self.plan.steps_per_epoch}
        TrainingEpoch.objects.update_or_create(
            run=self.run, seed=self.seed, epoch=record.epoch, defaults={"values": values, "seconds": record.seconds}
        )
        if not is_new:
            return
        forget_checkpoints(self.run, self.seed, before=record.epoch)
        self.kept = record.epoch
        self.context.check()
        if record.epoch < self.recipe.epochs:
            place = f"epoch {self.kept} of {self.recipe.epochs}"
            give_way(self.context.job, record.seconds, f"seed {self.seed} continues after {place}")

    def finish(self, trained: TrainedAttacker) -> None:
        """Keep the attacker and what it reached; then its checkpoints have served."""
        for name in list_files(self.run):
            _store(encoder_key(self.run, self.seed, name), self.folder / name)
        with transaction.atomic():
            last = TrainingEpoch.objects.filter(run=self.run, seed=self.seed).order_by("epoch").last()
            assert last is not None  # noqa: S101 - `train` tells every epoch
            last.values = last.values | {REPORT: finite(asdict(trained.summary))}
            last.save(update_fields=["values"])
        forget_checkpoints(self.run, self.seed)


def finite(values: Any) -> Any:
    """Return the same with None for what is no number, which JSON does not know."""
    if isinstance(values, dict):
        return {str(key): finite(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


@contextmanager
def working_folder(run: EvaluationRun, seed: int) -> Iterator[Path]:
    """Yield an empty folder for a seed; always the same, so that what a killed process left is cleared by the next."""
    folder = Path(settings.DATA_DIR) / "training" / f"{run.pk}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _restore(run: EvaluationRun, seed: int, folder: Path) -> int:
    """Lay the newest checkpoint that has a row into the folder; the number of its epoch, 0 where there is none."""
    rows = TrainingEpoch.objects.filter(run=run, seed=seed).order_by("-epoch")
    for epoch in rows.values_list("epoch", flat=True):
        key = checkpoint_key(run, seed, epoch)
        with suppress(FileNotFoundError):
            _fetch(key, folder / CHECKPOINT)
            return int(epoch)
    return 0


def _fetch(key: str, path: Path) -> None:
    with default_storage.open(key) as stored, path.open("wb") as file:
        shutil.copyfileobj(stored, file)


def _store(key: str, path: Path) -> None:
    replace_named(key, path.read_bytes())


def forget_checkpoints(run: EvaluationRun, seed: int, *, before: int | None = None) -> None:
    """Delete the checkpoints of a seed, or those of earlier epochs alone."""
    folder = seed_folder(run, seed)
    _, names = default_storage.listdir(folder)
    for name in names:
        number = name.removeprefix("epoch-").removesuffix(".pt")
        if name == f"epoch-{number}.pt" and number.isdecimal() and (before is None or int(number) < before):
            default_storage.delete(f"{folder}/{name}")


# What it comes to ----------------------------------------------------------------------------------


@transaction.atomic
def _store_values(run: EvaluationRun) -> None:
    """The numbers of a finished training, means over its seeds; what an attempt before left is replaced."""
    report = make_report(list_epochs([run])[run.pk])
    run.values.all().delete()
    for name, metric in METRIC_OF.items():
        found = report.spread(name)
        if found is not None:
            MetricValue.objects.create(
                run=run,
                metric=metric,
                estimator=f"mean of {len(found.values)} seed{'' if len(found.values) == 1 else 's'}",
                training=str(speech_of_training(run.parameters)),
                value=100 * found.mean,
                spread=None if found.deviation is None else 100 * found.deviation,
                n=sum(one.held_out for one in report.seeds),
            )
