"""Train a recogniser on a corpus of anonymised speech: the one function that the portal and the command call.

It cuts the corpus, computes features, trains epoch by epoch with checkpoints, takes the mean vector for centring, fits
fresh probes, and leaves a folder that `trained.load_trained` reads. A training that was killed goes on from its last
epoch. Conventions: stages are ``reading``, ``features``, ``training``, ``training mean`` and ``probe``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evaluation.attackers.contract import Device
from evaluation.attackers.training.corpus import TrainingUtterance, require_sound
from evaluation.attackers.training.files import CHECKPOINT
from evaluation.attackers.training.networks import build_encoder
from evaluation.attackers.training.probe import Labels, Vectors, fresh_probe, other_sources
from evaluation.attackers.training.recipe import Network, TrainingRecipe
from evaluation.attackers.training.segments import Indices, Segments, cut
from evaluation.attackers.training.telling import Progress, untold
from evaluation.attackers.training.trained import (
    TrainedAttacker,
    is_finished,
    load_trained,
    read_description,
    require_torch,
    save_trained,
)
from evaluation.attackers.training.values import EpochRecord, Estimate, FinalValues, ProbeResult, chance_levels
from evaluation.metrics.errors import MetricInputError

if TYPE_CHECKING:
    from evaluation.attackers.training.features import FeatureStore
    from evaluation.attackers.training.fitting import Fitted, Listener

MOST_PROBED = 20_000  # vectors; more change a probe of a few hundred dimensions little and take long
_BYTES_PER_PARAMETER = 16  # weight, gradient, two moments
# Floats that a frame of a batch leaves behind in the network for a channel of its width, counted over its layers.
_ACTIVATIONS_PER_CHANNEL: dict[Network, int] = {"ecapa-tdnn": 45, "x-vector": 23}


@dataclass(frozen=True)
class Plan:
    """What a training will do, from durations alone.

    Attributes:
        segments, validation_segments: pieces in all, and about how many of them are held out.
        steps_per_epoch, steps: updates of the recogniser.
        parameters: of the recogniser, without its classifiers.
        bytes_needed: roughly, for network, one batch and features.
    """

    segments: int
    validation_segments: int
    steps_per_epoch: int
    steps: int
    parameters: int
    bytes_needed: int


def plan_training(durations_s: Sequence[float], recipe: TrainingRecipe, sources: int) -> Plan:
    """Count what a training will do, before anything is read.

    Args:
        durations_s: of the utterances.
        sources: how many speakers.

    Raises:
        MetricInputError: torch is not installed.
    """
    require_torch("cpu")
    import torch

    def pieces(seconds: float) -> int:
        full, rest = divmod(seconds, recipe.segment_s)
        return int(full) + (rest >= recipe.shortest_s)

    segments = sum(map(pieces, durations_s))
    held_out = sources if recipe.validation == "last segment" else segments // 10
    training = max(0, segments - held_out)
    batch = max(1, min(recipe.batch, training))
    per_epoch = training // batch if recipe.drop_last else math.ceil(training / batch)
    with torch.device("meta"):
        parameters = sum(one.numel() for one in build_encoder(recipe).parameters())
    frames = round(recipe.crop_s * 100)
    activations = batch * frames * recipe.width * _ACTIVATIONS_PER_CHANNEL[recipe.network] * 4
    features = round(sum(durations_s) * 100) * 2 * recipe.mel_bands
    needed = parameters * _BYTES_PER_PARAMETER + activations + features
    return Plan(segments, min(held_out, segments), per_epoch, per_epoch * recipe.epochs, parameters, needed)


def train(
    utterances: Sequence[TrainingUtterance],
    recipe: TrainingRecipe,
    seed: int,
    folder: Path,
    progress: Progress = untold,
    *,
    on_epoch: Callable[[EpochRecord], None] | None = None,
    on_estimate: Callable[[Estimate], None] | None = None,
    device: Device = "cpu",
) -> TrainedAttacker:
    """Train one recogniser, or go on training it, or return it where it is finished.

    Args:
        utterances: anonymised speech, 16 kHz.
        seed: of weights, batches and windows; an interrupted training ends as it would have without.
        folder: of this seed alone; made where it is missing.
        progress: stage, done, total; often; whatever it raises ends the training.
        on_epoch: after each epoch's checkpoint is on disk; epochs of an earlier process are told again.
        on_estimate: once, after the first steps.
        device: ``cuda`` computes features there and trains in mixed precision (bfloat16).

    Raises:
        MetricInputError: libraries are missing; the corpus cannot be learned from, with a sentence for each fault; the
            folder holds another training; memory is full.
    """
    require_torch(device)
    require_sound(utterances, targets=recipe.target_head != "none")
    from evaluation.attackers.training.fitting import Listener
    from evaluation.attackers.training.stepping import is_out_of_memory

    try:
        return _train(
            utterances, recipe, seed, folder, Listener(progress, on_epoch or untold, on_estimate or untold), device
        )
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise MetricInputError(
            f"Memory is full, found while training a recogniser of width {recipe.width} on {len(utterances)} "
            "utterances. Choose a smaller width or batch, or stop what else uses the memory."
        ) from error


def _train(
    utterances: Sequence[TrainingUtterance], recipe: TrainingRecipe, seed: int, folder: Path, listener: Listener,
    device: Device,
) -> TrainedAttacker:  # fmt: skip
    import torch

    from evaluation.attackers.training.features import make_store
    from evaluation.attackers.training.fitting import fit, training_key

    progress = listener.progress
    segments = cut(utterances, recipe, seed, partial(progress, "reading"))
    key = training_key(recipe, seed, segments)
    if is_finished(folder):
        return _finished(folder, key, device, listener)
    store = make_store(
        utterances, segments, torch.device(device), partial(progress, "features"), bands=recipe.mel_bands
    )
    fitted = fit(lambda: build_encoder(recipe), store, segments, recipe, seed, folder, listener)
    final, mean = measure_finished(fitted, store, segments, recipe, seed, progress)
    final = replace(final, unused_utterances=len(utterances) - np.unique(segments.piece_utterance).size)
    save_trained(
        folder, fitted.encoder, fitted.epochs, recipe=recipe, seed=seed, sources=segments.sources,
        targets=segments.targets if recipe.target_head != "none" else (), training_mean=mean, final=final,
        kept_epoch=fitted.kept_epoch, key=key,
    )  # fmt: skip
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return load_trained(folder, device)


def measure_finished(
    fitted: Fitted,
    store: FeatureStore,
    segments: Segments,
    recipe: TrainingRecipe,
    seed: int,
    progress: Progress = untold,
) -> tuple[FinalValues, Vectors]:
    """The last numbers of a training and the mean vector of its training segments, shape (d,).

    Probes are fitted on at most `MOST_PROBED` training segments and tested on those held out; where none are, on a
    fifth of the training segments, which the recogniser knows, so that their errors come out low.
    """
    from evaluation.attackers.training.fitting import embed_rows

    telling = partial(progress, "training mean")
    training, held_out = segments.training_rows, segments.validation_rows
    seen = embed_rows(fitted.encoder, store, segments, training, recipe, telling).numpy()
    unseen = embed_rows(fitted.encoder, store, segments, held_out, recipe).numpy() if held_out.size else seen[:0]
    mean = seen.astype(np.float64).mean(axis=0).astype(np.float32)
    progress("probe", 0, 1)
    probes = _probes(seen, unseen, segments, seed)
    progress("probe", 1, 1)
    kept = fitted.epochs[fitted.kept_epoch - 1].values
    chance = chance_levels(segments)
    with_target = recipe.target_head != "none"
    final = FinalValues(
        source_error=kept["source_error"],
        target_error=kept["target_error"],
        source_chance=chance.source,
        target_chance=chance.target if with_target else None,
        target_chance_known_gender=chance.target_known_gender if with_target else None,
        training_segments=training.size,
        held_out_segments=held_out.size,
        n_sources=len(segments.sources),
        n_targets=len(segments.targets) if with_target else 0,
        seconds=sum(one.seconds for one in fitted.epochs),
        source_probe=probes[0],
        target_probe=probes[1],
        target_probe_other_sources=probes[2],
    )
    return final, mean


def _probes(
    seen: Vectors, unseen: Vectors, segments: Segments, seed: int
) -> tuple[ProbeResult, ProbeResult | None, ProbeResult | None]:
    """Probes on sources, on targets, and on targets with other sources."""
    random = np.random.default_rng([seed, 0, 1])
    order = random.permutation(len(seen))[:MOST_PROBED]
    rows = segments.training_rows[order]
    if len(unseen):
        fitted_on, train, tested_on, test = rows, seen[order], segments.validation_rows, unseen
        split = "segment"
    else:
        split = "training segment"
        apart = max(1, len(order) // 5)
        fitted_on, train, tested_on, test = rows[apart:], seen[order[apart:]], rows[:apart], seen[order[:apart]]

    def probed(labels: Labels, classes: int) -> ProbeResult:
        return fresh_probe(train, labels[fitted_on], test, labels[tested_on], classes=classes, split=split)

    source = probed(segments.source, len(segments.sources))
    if len(segments.targets) < 2:
        return source, None, None
    return source, probed(segments.target, len(segments.targets)), _across_sources(seen[order], rows, segments, seed)


def _across_sources(vectors: Vectors, rows: Indices, segments: Segments, seed: int) -> ProbeResult:
    apart = other_sources(segments.source[rows], seed)
    labels = segments.target[rows]
    return fresh_probe(
        vectors[~apart], labels[~apart], vectors[apart], labels[apart], classes=len(segments.targets), split="source"
    )


def _finished(folder: Path, key: str, device: Device, listener: Listener) -> TrainedAttacker:
    if read_description(folder).key != key:
        raise MetricInputError(
            f"{folder}: expected the result of this training, found one of another recipe, seed or corpus. Choose "
            "another folder."
        )
    attacker = load_trained(folder, device)
    for record in attacker.epochs:
        listener.epoch(record)
    return attacker
