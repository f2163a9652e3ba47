"""The body of a training job: one seed after another, one epoch after another, each kept as soon as it has ended.

After an epoch its checkpoint goes into the storage and its row into the database, in this order; only then the
checkpoint before is deleted. So whoever is killed at any time loses the epoch that was under way and nothing else, and
another worker, on another machine, can go on. A training that would run longer than a job may gives its turn back
between two epochs.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from anonymization.methods.errors import MethodError
from anonymization.running import threads
from anonymization.targets import targets_of
from evaluation.attackers.contract import Device
from evaluation.attackers.training.corpus import TrainingUtterance
from evaluation.attackers.training.files import CHECKPOINT
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.formats.audio import AudioError
from evaluation.formats.claims import Speech
from evaluation.machine import available_bytes
from evaluation.metrics.errors import MetricInputError
from evaluation.models import EvaluationRun, MetricValue, TrainingEpoch
from evaluation.selectors_training import REPORT, STEPS_OF, epochs_of, recipe_of, report_of, seeds_of, trained_seeds
from evaluation.services_speech import require_standing
from evaluation.services_training import (
    ENCODER_FILES,
    METHOD_VERSION,
    checkpoint_key,
    encoder_key,
    missing_here,
    require_same_speech,
    seed_folder,
)
from portal.challenges.models import DataSet
from portal.core.audio import load_audio
from portal.core.storage import replace_named
from portal.core.wording import roughly
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor
from portal.jobs.runner import JobContext, JobReleased
from portal.submissions.models import SubmittedFile

if TYPE_CHECKING:
    from evaluation.attackers.training.loop import Plan
    from evaluation.attackers.training.trained import TrainedAttacker
    from evaluation.attackers.training.values import EpochRecord, Estimate

TRAINING = "Training"
# The stage of `train` whose items are steps of the optimiser.
STEPS = "training"
# Of the time that a job may take so much is used; what an epoch takes is known from those before, but not exactly.
USED_SHARE = 0.9
CHANNELS_OF_A_THREAD = 64
AGAIN = "What was finished is kept: run the job again to continue."


def run_training(context: JobContext) -> dict[str, Any]:
    """Train what is missing of a run, seed by seed."""
    run = EvaluationRun.objects.select_related("submission__system__corpus").get(pk=context.parameters["run"])
    require_standing(run.submission)
    device = _device_of(run)
    recipe = recipe_of(run)
    utterances = _utterances(run, recipe)
    require_same_speech(run)
    plan = _planned(run, recipe, len({one.source for one in utterances}))
    if device == "cpu":
        _require_memory(plan, recipe)
    with _own_threads(recipe):
        for position, seed in enumerate(seeds_of(run)):
            if seed not in trained_seeds(run):
                _Turn(context, run, plan, seed, position).go(utterances, device)
    write_values(run)
    report = report_of(epochs_of([run])[run.pk])
    return {"seeds": len(report.seeds), "utterances": len(utterances)}


# Before the first step -----------------------------------------------------------------------------


def _device_of(run: EvaluationRun) -> Device:
    """Where this worker trains.

    Raises:
        JobFailure: the version at hand would give another attacker than the run began with, or this machine lacks
            something.
    """
    if run.recipe_version != METHOD_VERSION and run.epochs.exists():
        raise JobFailure(
            f"This training began with version {run.recipe_version} of the method; this portal has version "
            f"{METHOD_VERSION}, whose attackers differ.",
            actor=Actor.ORGANIZER,
            remedy="Start another training.",
        )
    if missing := missing_here():
        raise JobFailure(missing, actor=Actor.OPERATOR, remedy=AGAIN)
    if run.parameters["device"] != "cuda":
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        raise JobFailure(
            "This training was started for a graphics card, and this worker's torch finds none.",
            actor=Actor.OPERATOR,
            remedy="Let only workers with a graphics card serve the queue gpu, or start the training without one.",
        )
    return "cuda"


def _utterances(run: EvaluationRun, recipe: TrainingRecipe) -> list[TrainingUtterance]:
    """What the run is trained on, by data set and name; samples are read when they are needed."""
    found: list[TrainingUtterance] = []
    for data_set in DataSet.objects.filter(
        corpus=run.submission.system.corpus, name__in=run.parameters["data_sets"]
    ).order_by("name"):
        targets = _targets_of(run, data_set) if recipe.target_head != "none" else {}
        files = SubmittedFile.objects.filter(submission=run.submission, data_set=data_set).order_by("utterance__name")
        rows = files.values_list("utterance__name", "utterance__speaker__name", "utterance__speaker__gender", "audio")
        found += [
            TrainingUtterance(
                identifier=f"{data_set.name}/{name}",
                source=speaker,
                read=_Reading(name, audio),
                target=targets.get(name),
                gender=gender,
                original=name,
            )
            for name, speaker, gender, audio in rows
        ]
    if not found:
        raise JobFailure(
            f"The submission has no anonymised file of {', '.join(run.parameters['data_sets'])}.",
            actor=Actor.ORGANIZER,
            remedy="Anonymise the training data, or hand it in, and run the job again.",
        )
    return found


class _Reading:
    """Reads one stored file when it is called; its error names the utterance."""

    def __init__(self, name: str, audio: str) -> None:
        self.name, self.audio = name, audio

    def __call__(self) -> tuple[Any, int]:
        try:
            return load_audio(self.audio)
        except AudioError as error:
            raise MetricInputError(f"The anonymised recording of {self.name} cannot be read: {error}") from error


def _targets_of(run: EvaluationRun, data_set: DataSet) -> dict[str, str]:
    try:
        return targets_of(run.submission, data_set)
    except MethodError as error:
        raise JobFailure(
            str(error), actor=Actor.ORGANIZER, remedy="Start a training without a target classifier, or mend the file."
        ) from error


def _planned(run: EvaluationRun, recipe: TrainingRecipe, sources: int) -> Plan:
    """How many steps it takes and how much memory, from the durations alone."""
    from evaluation.attackers.training.loop import plan_training

    files = SubmittedFile.objects.filter(
        submission=run.submission,
        data_set__corpus=run.submission.system.corpus,
        data_set__name__in=run.parameters["data_sets"],
    )
    durations_s = [samples / rate for samples, rate in files.values_list("samples", "rate_hz") if rate]
    return plan_training(durations_s, recipe, sources)


@contextmanager
def _own_threads(recipe: TrainingRecipe) -> Iterator[None]:
    """Let torch use as many threads as the portal gives a job, fewer where the network is too narrow to keep them busy.

    Threads that wait for each other at every layer cost more than they bring, above all beside other work.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(threads(), recipe.width // CHANNELS_OF_A_THREAD)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _require_memory(plan: Plan, recipe: TrainingRecipe) -> None:
    """Refuse at once what cannot fit; on a graphics card the card decides, which training tells by itself."""
    there = available_bytes()
    if there is not None and plan.bytes_needed > there:
        raise JobFailure(
            f"Training by the recipe {recipe.name} needs about {plan.bytes_needed / 2**30:.1f} GiB of memory; this "
            f"machine has {there / 2**30:.1f} GiB left.",
            actor=Actor.OPERATOR,
            remedy="Choose a smaller recipe, or run it on a machine with more memory.",
        )


# A seed --------------------------------------------------------------------------------------------


class _Turn:
    """Trains one seed for as long as this job may; keeps each epoch."""

    def __init__(self, context: JobContext, run: EvaluationRun, plan: Plan, seed: int, position: int) -> None:
        self.context, self.run, self.plan = context, run, plan
        self.seed, self.position, self.n_seeds = seed, position, len(seeds_of(run))
        self.recipe = recipe_of(run)
        self.kept = 0

    def go(self, utterances: list[TrainingUtterance], device: Device) -> None:
        from evaluation.attackers.training.loop import train

        try:
            with working_folder(self.run, self.seed) as self.folder:
                self.kept = _restore(self.run, self.seed, self.folder)
                if self.kept:
                    self.context.note(f"Seed {self.seed} goes on after epoch {self.kept} of {self.recipe.epochs}.")
                trained = train(
                    utterances, self.recipe, self.seed, self.folder, self.progress,
                    on_epoch=self.keep, on_estimate=self.tell, device=device,
                )  # fmt: skip
                self.finish(trained)
        except MetricInputError as error:
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
            self.context.progress(TRAINING, self.position * total + done, self.n_seeds * total)
        else:
            self.context.progress(f"Seed {self.seed}: {stage}", done, total)

    def tell(self, estimate: Estimate) -> None:
        """Say early how long it takes; an epoch that no job may take is refused before it has begun in earnest."""
        further = (self.n_seeds - self.position - 1) * self.plan.steps
        left_s = estimate.seconds_left + further * estimate.seconds_per_step
        self.context.note(
            f"Seed {self.seed}: {estimate.seconds_per_step:.2f} s a step, {estimate.steps_left} steps left; "
            f"all that is left of this training takes {roughly(left_s)}."
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
            run=self.run, seed=self.seed, epoch=record.epoch,
            defaults={"values": values, "seconds": record.seconds},
        )  # fmt: skip
        if not is_new:
            return
        forget_checkpoints(self.run, self.seed, before=record.epoch)
        self.kept = record.epoch
        self.context.check()
        if record.epoch < self.recipe.epochs:
            self.give_way(record.seconds)

    def give_way(self, epoch_s: float) -> None:
        """Go back to the queue where another epoch would take longer than the job may.

        Raises:
            JobReleased
        """
        assert self.context.job.started_at is not None  # noqa: S101 - it runs
        spent_s = (timezone.now() - self.context.job.started_at).total_seconds()
        if spent_s + epoch_s > USED_SHARE * settings.JOB_SOFT_LIMIT_S and spent_s > epoch_s:
            raise JobReleased(
                f"A job may take {roughly(settings.JOB_SOFT_LIMIT_S)}: seed {self.seed} goes on after epoch "
                f"{self.kept} of {self.recipe.epochs} in another turn."
            )

    def finish(self, trained: TrainedAttacker) -> None:
        """Keep the attacker and what it reached; then its checkpoints have served."""
        for name in ENCODER_FILES:
            _store(encoder_key(self.run, self.seed, name), self.folder / name)
        with transaction.atomic():
            last = TrainingEpoch.objects.filter(run=self.run, seed=self.seed).order_by("epoch").last()
            assert last is not None  # noqa: S101 - `train` tells every epoch
            last.values = last.values | {REPORT: finite(asdict(trained.summary))}
            last.save(update_fields=["values"])
        forget_checkpoints(self.run, self.seed)


def finite(values: Any) -> Any:
    """The same with None for what is no number, which JSON does not know."""
    if isinstance(values, dict):
        return {str(key): finite(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


@contextmanager
def working_folder(run: EvaluationRun, seed: int) -> Iterator[Path]:
    """An empty folder for a seed; always the same, so that what a killed process left is cleared by the next."""
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
        if default_storage.exists(key):
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
def write_values(run: EvaluationRun) -> None:
    """The numbers of a finished training, means over its seeds; what an attempt before left is replaced."""
    report = report_of(epochs_of([run])[run.pk])
    run.values.all().delete()
    for name in ("source_error", "target_error", "target_probe"):
        found = report.spread(name)
        if found is not None:
            MetricValue.objects.create(
                run=run,
                metric=METRIC_OF[name],
                estimator=f"mean of {len(found.values)} seed{'' if len(found.values) == 1 else 's'}",
                training=str(Speech.ANONYMISED),
                value=100 * found.mean,
                spread=None if found.deviation is None else 100 * found.deviation,
                n=sum(one.held_out for one in report.seeds),
            )


METRIC_OF = {
    "source_error": "source_validation_error",
    "target_error": "target_validation_error",
    "target_probe": "target_probe_error",
}
