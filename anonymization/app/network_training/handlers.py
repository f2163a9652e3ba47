"""The body of the training of a network by one seed.

What is read of the speech, and the state, lie in folders of the worker named after the training: where its process is
killed, the next on the same machine goes on from them to the same weights, and one on another machine begins anew. What
is read is the same for all seeds. A training that would run longer than a job may gives its turn back after a state.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.urls import reverse

from anonymization.app.models import NetworkSeed
from anonymization.app.network_training.selectors import (
    START_ANOTHER,
    TRAINING,
    find_change,
    hash_material,
    list_spoken,
    list_unfinished,
    read_recipe,
)
from anonymization.app.network_training.services import ENGINES, find_missing, needs_card
from anonymization.app.networks import fetch_network
from anonymization.methods.content_decoder.network_files import SHIPPED
from anonymization.methods.contract import MethodError
from anonymization.network_training.recipe import NetworkRecipe, Recipe
from common.errors import InputError, MachineError
from evaluation.attackers.training.corpus import TrainingUtterance, require_sound
from portal.challenges.models import Utterance
from portal.core.storage import read_recording, store_bytes
from portal.jobs.kinds import JobFailure, Obstacle, engine_finder, job_kind
from portal.jobs.long_work import (
    choose_card,
    give_way,
    measure_work,
    own_threads,
    remove_folders,
    require_memory,
    working_folder,
)
from portal.jobs.models import Actor, Job, Queue
from portal.jobs.runner import JobContext
from speech.model_files.devices import Device

FOLDER = "networks"
AGAIN = "Then continue the training; what was finished is kept."
# Of a second of speech: frames of content, each of 1536 numbers of 16 bits, and of the spectra.
_CONTENT_BYTES, _SPECTRA_BYTES, _WAVE_BYTES = 50 * 1536 * 2, 86 * 90 * 2, 22_050 * 4


@engine_finder
def find_network_training() -> list[str]:
    """Return whether this machine can train networks of methods."""
    return [name for with_texts, name in ENGINES.items() if not find_missing(with_texts=with_texts)]


def _find_obstacle(job: Job) -> Obstacle | None:
    """That its training has changed; with the form for another with the same choices."""
    seed = NetworkSeed.objects.select_related("training__corpus").filter(job=job, card={}).first()
    change = find_change(seed.training) if seed else ""
    if seed is None or not change:
        return None
    address = reverse("network-trainings:new", args=[seed.training.corpus.name])
    return Obstacle(change, START_ANOTHER, f"{address}?like={seed.training_id}")


@job_kind(
    TRAINING,
    title="Training of a network of anonymisers",
    queue=Queue.CPU,
    memory_mb=1200,
    card_memory_mb=2500,
    uses_card=True,
    find_obstacle=_find_obstacle,
)
def train_network(context: JobContext) -> dict[str, Any]:
    """Train by one seed, or go on; weights, losses and card go into the storage."""
    rows = NetworkSeed.objects.select_related("training__corpus", "training__decoder__training")
    seed = rows.get(training=context.parameters["training"], seed=context.parameters["seed"])
    if not seed.card:  # else it was killed between the card and its end
        _train(seed, context)
    remove_folders(FOLDER, list_unfinished)
    return {"utterances": seed.card["data"]["utterances"]}


def _train(seed: NetworkSeed, context: JobContext) -> None:
    training = seed.training
    if sentence := find_change(training):
        raise JobFailure(sentence, actor=Actor.ORGANIZER, remedy=f"{START_ANOTHER}.")
    recipe = read_recipe(training)
    if sentence := find_missing(with_texts=recipe.needs_texts):
        raise JobFailure(sentence, actor=Actor.OPERATOR, remedy=AGAIN)
    spoken = list(list_spoken(training))
    utterances = [_make_utterance(one) for one in spoken]
    try:
        require_sound(utterances, targets=False)
    except InputError as error:
        raise _refused(error) from error
    if not training.begun_with:
        training.begun_with = hash_material(recipe, spoken)
        training.save(update_fields=["begun_with"])
    _require_memory(recipe, sum(one.duration_s or 0.0 for one in spoken))
    device = choose_card(needs_card(recipe), f"The recipe {recipe.name} needs", "then continue the training.")
    name = f"{training.pk}-{seed.seed}"
    with working_folder(FOLDER, name, list_unfinished) as folder, own_threads():
        shared = folder.with_name(f"{training.pk}-features")
        shared.mkdir(exist_ok=True)
        if not (folder / "features").is_symlink():
            (folder / "features").symlink_to(shared, target_is_directory=True)
        texts = {one.name: one.transcript for one in spoken} if recipe.needs_texts else None
        progress = _SeedWatch(context, seed, recipe, folder)
        seed.card = _learn(seed, recipe, utterances, texts, folder, device, progress)
        from anonymization.network_training.loop import CURVE
        from anonymization.network_training.train import CARD

        names = [*seed.card["sha256"], CURVE, CARD]
        seed.files = {
            one: store_bytes((folder / one).read_bytes(), Path(one).suffix) for one in names if (folder / one).is_file()
        }
        seed.losses = _read_losses(folder / CURVE)
        seed.save(update_fields=["card", "files", "losses"])


def _learn(
    seed: NetworkSeed,
    recipe: Recipe,
    utterances: Sequence[TrainingUtterance],
    texts: Mapping[str, str] | None,
    folder: Path,
    device: Device,
    progress: _SeedWatch,
) -> dict[str, Any]:
    from anonymization.network_training.train import train

    own, licence = seed.training.decoder, seed.training.licence
    try:
        decoder = fetch_network(own, folder / "decoder").files["decoder"] if own else SHIPPED.decoder
        return dict(train(utterances, recipe, seed.seed, folder, licence, progress, device, texts, decoder=decoder))
    except (MachineError, MethodError) as error:
        raise JobFailure(str(error), actor=Actor.OPERATOR, remedy=AGAIN) from error
    except InputError as error:
        raise _refused(error) from error
    except MemoryError as error:
        raise JobFailure(
            "The memory of this machine was full.",
            actor=Actor.OPERATOR,
            remedy=f"Let it learn from less speech, or on a machine with more memory. {AGAIN}",
        ) from error
    finally:  # weights and voices tell of the people whom the decoder heard: none stay where a training stopped
        shutil.rmtree(folder / "decoder", ignore_errors=True)


def _refused(error: InputError) -> JobFailure:
    return JobFailure(
        str(error), actor=Actor.ORGANIZER, remedy="Fix the training sets of the corpus, then start another training."
    )


# Before the first step -----------------------------------------------------------------------------


def _make_utterance(one: Utterance) -> TrainingUtterance:
    read = partial(read_recording, f"recording {one.name}", one.audio)
    return TrainingUtterance(one.name, one.speaker.name, read, gender=one.speaker.gender)


def _require_memory(recipe: Recipe, seconds: float) -> None:
    """Refuse at once what cannot fit: a training in steps holds all that it read of the speech."""
    if not isinstance(recipe, NetworkRecipe):
        return
    waves = _WAVE_BYTES if recipe.reads_waves else 0
    needed = seconds * ((1 + recipe.variants) * _CONTENT_BYTES + _SPECTRA_BYTES + waves)
    remedy = f"Let it learn from less speech, or on a machine with more memory. {AGAIN}"
    require_memory(needed, "What this training reads of the speech", remedy)


# While it learns -----------------------------------------------------------------------------------


class _SeedWatch:
    """Tells how far a seed is, keeps the losses of each state, and gives way before the job has to end."""

    def __init__(self, context: JobContext, seed: NetworkSeed, recipe: Recipe, folder: Path) -> None:
        self.context, self.seed, self.folder = context, seed, folder
        self.every = recipe.checkpoint_every if isinstance(recipe, NetworkRecipe) else 0
        self.begun: int | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.context.progress(stage.capitalize(), done, total)
        if stage != "training" or not self.every:
            return
        if self.begun is None:
            self.begun = done
            if done:
                self.context.note(f"Continues after step {done} of {total}.")
        elif done % self.every == 0 and done < total:
            self._keep_losses()
            state_s = measure_work(self.context.job) * self.every / (done - self.begun)
            give_way(self.context.job, state_s, f"the training continues after step {done} of {total}")

    def _keep_losses(self) -> None:
        from anonymization.network_training.loop import CURVE

        self.seed.losses = _read_losses(self.folder / CURVE)
        NetworkSeed.objects.filter(pk=self.seed.pk).update(losses=self.seed.losses)


def _read_losses(path: Path) -> list[list[Any]]:
    """Return the rows of a curve, numbers as such, the names of the columns first; none of a recipe without steps."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return [head, *([int(step), *(float(one) if one else None for one in losses)] for step, *losses in rows)]
