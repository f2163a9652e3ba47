"""The epochs of a training: batches, validation, a checkpoint after each, and going on from the last one.

Everything random is drawn from the seed and the number of the epoch, so a training that was interrupted draws what it
would have drawn. Conventions: stages are told as (stage, done, total); epochs are counted from 1.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evaluation.attackers.networks.classifier import CosineClassifier
from evaluation.attackers.networks.features import HOP, RATE_HZ
from evaluation.attackers.training.adversary import Heads
from evaluation.attackers.training.features import FeatureStore
from evaluation.attackers.training.files import CHECKPOINT, VALUES
from evaluation.attackers.training.networks import build_source_head
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.attackers.training.schedules import learning_rate, target_weights
from evaluation.attackers.training.segments import Indices, Segments
from evaluation.attackers.training.stepping import Batch, Trainer
from evaluation.attackers.training.telling import Count, Progress, untold
from evaluation.attackers.training.values import (
    EpochRecord,
    Estimate,
    Value,
    chance_levels,
    epochs_csv,
    records_to_plain,
)
from evaluation.formats.whole_files import write_whole
from evaluation.metrics.errors import MetricInputError

FORMAT = 1
STEPS_TO_JUDGE_BY = 10
_WARM_STEPS = 2  # the first ones are slower and judge nothing
_VALIDATION_COST = 0.3  # of a row that is only looked at, in rows that are learned from


@dataclass(frozen=True)
class Listener:
    """Who is told how a training goes; whatever they raise ends it.

    Attributes:
        progress: stage, done, total; after each step.
        epoch: after the checkpoint of an epoch is on disk; epochs of an earlier process are told again.
        estimate: once, after the first steps.
    """

    progress: Progress = untold
    epoch: Callable[[EpochRecord], None] = untold
    estimate: Callable[[Estimate], None] = untold


@dataclass(frozen=True, eq=False)
class Fitted:
    """A recogniser that has gone through all epochs, with the weights that the recipe keeps.

    Attributes:
        encoder, heads: in evaluation mode.
        epochs: what each measured.
        kept_epoch: whose weights these are.
    """

    encoder: nn.Module
    heads: Heads
    epochs: tuple[EpochRecord, ...]
    kept_epoch: int


def training_key(recipe: TrainingRecipe, seed: int, segments: Segments) -> str:
    """What makes a training the same as another: recipe, seed and corpus."""
    return hashlib.sha256(f"{recipe.to_json()}\n{seed}\n{segments.fingerprint}".encode()).hexdigest()


def fit(
    make_encoder: Callable[[], nn.Module],
    store: FeatureStore,
    segments: Segments,
    recipe: TrainingRecipe,
    seed: int,
    folder: Path | None,
    listener: Listener | None = None,
) -> Fitted:
    """Train, or go on training from the checkpoint in a folder.

    Args:
        make_encoder: an untrained network: features (batch, frames, bands) and counts of frames to vectors, with the
            attribute `dimension`; called with torch's random numbers set by the seed.
        store: features, on the device to train on.
        folder: for checkpoints; None for none.

    Raises:
        MetricInputError: the checkpoint is of another training or damaged; memory is full; no segment is held out
            though the recipe keeps the best epoch; the loss is no number any more.
    """
    if recipe.checkpoint == "best" and not segments.held_out.any():
        raise MetricInputError(
            f"Expected held-out segments to choose the best epoch by, found none with the rule “{recipe.validation}”. "
            "Add utterances, or keep the last epoch."
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return _Fitting(make_encoder(), store, segments, recipe, seed, folder, listener or Listener()).run()


class _Fitting:
    """The state of one training."""

    def __init__(
        self, encoder: nn.Module, store: FeatureStore, segments: Segments, recipe: TrainingRecipe, seed: int,
        folder: Path | None, listener: Listener,
    ) -> None:  # fmt: skip
        device = store.device
        dimension = int(getattr(encoder, "dimension"))  # noqa: B009 (an attribute of the networks, not of nn.Module)
        wants_targets = recipe.target_head != "none"
        target = CosineClassifier(dimension, len(segments.targets)).to(device) if wants_targets else None
        self.heads = Heads(build_source_head(recipe, dimension, len(segments.sources)).to(device), target)
        self.trainer = Trainer(encoder.to(device), self.heads, recipe, device)
        self.store, self.segments, self.recipe, self.listener = store, segments, recipe, listener
        self.seed, self.folder = seed, folder
        self.key = training_key(recipe, seed, segments)
        self.records: list[EpochRecord] = []
        self.best: tuple[int, dict[str, dict[str, Tensor]]] | None = None
        rows = segments.training_rows.size
        self.batch = min(recipe.batch, rows)
        full, rest = divmod(rows, self.batch)
        self.steps = full + (rest >= 2 and not recipe.drop_last)
        self._judged = False

    def run(self) -> Fitted:
        self._resume()
        for record in self.records:
            self.listener.epoch(record)
        for epoch in range(len(self.records), self.recipe.epochs):
            self._epoch(epoch)
        kept = self.recipe.epochs
        if self.recipe.checkpoint == "best" and self.best:
            kept, states = self.best
            self._networks().load_state_dict(states)
        encoder = self.trainer.encoder.eval()
        self.heads.source.eval()
        return Fitted(encoder, self.heads, tuple(self.records), kept)

    def _epoch(self, epoch: int) -> None:
        began = time.perf_counter()
        random = np.random.default_rng([self.seed, epoch + 1])
        weight = target_weights(self.recipe)[epoch]
        values = self._train_epoch(epoch, weight, random)
        errors = self._validation_errors(random)
        chance = chance_levels(self.segments)
        values |= errors | {
            "source_chance": chance.source,
            "target_chance": chance.target if self.heads.target else None,
            "target_chance_known_gender": chance.target_known_gender if self.heads.target else None,
            "target_weight": weight if self.heads.target else None,
        }
        record = EpochRecord(epoch + 1, time.perf_counter() - began, values)
        self.records.append(record)
        self._keep_best(record)
        self._save()
        self.listener.epoch(record)

    def _train_epoch(self, epoch: int, weight: float, random: np.random.Generator) -> dict[str, Value]:
        rows = random.permutation(self.segments.training_rows)
        sums = torch.zeros(3, dtype=torch.float64, device=self.store.device)
        rate, began = 0.0, time.perf_counter()
        total = self.steps * self.recipe.epochs
        for step in range(self.steps):
            if step == _WARM_STEPS:
                began = time.perf_counter()
            overall = epoch * self.steps + step
            self.listener.progress("training", overall, total)
            rate = learning_rate(self.recipe, overall, total)
            self.trainer.set_learning_rate(rate)
            chosen = rows[step * self.batch : (step + 1) * self.batch]
            starts, frames = self._windows(chosen, random)
            found = self.trainer.step(lambda c=chosen, s=starts, f=frames: self._read(c, s, f), weight)  # type: ignore[misc]
            parts = (found.total, found.source, found.target if found.target is not None else found.source * 0)
            sums += torch.stack([part.double() for part in parts])
            if step + 1 in (self.steps, STEPS_TO_JUDGE_BY + _WARM_STEPS) and not self._judged:
                self._judge(time.perf_counter() - began, step + 1, total - overall - 1)
        self.listener.progress("training", (epoch + 1) * self.steps, total)
        mean = (sums / self.steps).tolist()
        if not np.isfinite(mean).all():
            raise MetricInputError(
                f"Expected a loss that is a number, found {mean[0]} in epoch {epoch + 1} at a learning rate of "
                f"{rate:g}. Choose a lower one."
            )
        has_target = self.heads.target is not None
        return {
            "loss": mean[0], "source_loss": mean[1], "target_loss": mean[2] if has_target else None,
            "learning_rate": rate,
        }  # fmt: skip

    def _judge(self, seconds: float, steps: int, left: int) -> None:
        """Tell how long the rest will take."""
        self._judged = True
        per_step = seconds / max(1, steps - _WARM_STEPS if steps > _WARM_STEPS else steps)
        looked_at = _VALIDATION_COST * self.segments.held_out.mean() / (1 - self.segments.held_out.mean())
        self.listener.estimate(Estimate(per_step, left, per_step * left * (1 + float(looked_at))))

    def _windows(self, rows: Indices, random: np.random.Generator) -> tuple[Indices, int]:
        """Where the window of each row begins in its piece, and how many frames it has."""
        frames = frames_of(self.recipe.crop_s)
        if self.recipe.crop == "grid":
            return np.zeros(rows.size, dtype=np.int64), frames
        room = np.maximum(0, self.store.frame_counts()[self.segments.row_piece[rows]] - frames)
        return random.integers(0, room + 1), frames

    def _read(self, rows: Indices, starts: Indices, frames: int) -> Batch:
        features, valid = self.store.batch(self.segments.row_piece[rows], starts, frames)
        device = self.store.device
        labels = [torch.from_numpy(one[rows]).to(device) for one in (self.segments.source, self.segments.target)]
        return Batch(features, valid, *labels)

    @torch.no_grad()
    def _validation_errors(self, random: np.random.Generator) -> dict[str, Value]:
        rows = self.segments.validation_rows
        if not rows.size:
            return {"source_error": None, "target_error": None}
        self.trainer.encoder.eval()
        self.heads.source.eval()
        wrong = np.zeros(2)
        for start in range(0, rows.size, self.recipe.batch):
            chosen = rows[start : start + self.recipe.batch]
            if self.recipe.crop == "utterance":
                starts, frames = self._windows(chosen, random)
            else:
                starts, frames = np.zeros(chosen.size, dtype=np.int64), frames_of(self.recipe.segment_s)
            batch = self._read(chosen, starts, frames)
            vectors = self.trainer.embed(batch.features, batch.valid)
            wrong[0] += int((self.heads.source(vectors).argmax(dim=1) != batch.sources).sum())
            if self.heads.target is not None:
                wrong[1] += int((self.heads.target(vectors).argmax(dim=1) != batch.targets).sum())
        errors = (wrong / rows.size).tolist()
        return {"source_error": errors[0], "target_error": errors[1] if self.heads.target else None}

    def _networks(self) -> _Networks:
        return _Networks(self.trainer.encoder, self.heads)

    def _keep_best(self, record: EpochRecord) -> None:
        error = record.values["source_error"]
        if self.recipe.checkpoint != "best" or error is None:
            return
        known = [one.values["source_error"] for one in self.records[:-1]]
        if all(other is not None and error < other for other in known):
            self.best = record.epoch, self._networks().state_dict(copied=True)

    def _save(self) -> None:
        if self.folder is None:
            return
        adversary = self.trainer.adversary
        content: dict[str, Any] = {
            "format": FORMAT,
            "key": self.key,
            "records": records_to_plain(self.records),
            "networks": self._networks().state_dict(),
            "optimiser": self.trainer.optimiser.state_dict(),
            "adversary": adversary.state_dict() if adversary else None,
            "at_once": self.trainer.at_once,
            "random": torch.get_rng_state(),
            "best": self.best,
        }
        buffer = io.BytesIO()
        torch.save(content, buffer)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / CHECKPOINT, buffer.getvalue())
        write_whole(self.folder / VALUES, epochs_csv(self.records).encode())

    def _resume(self) -> None:
        path = None if self.folder is None else self.folder / CHECKPOINT
        if path is None or not path.is_file():
            return
        content = read_checkpoint(path)
        if content["key"] != self.key:
            raise MetricInputError(
                f"{path}: expected a checkpoint of this training, found one of another recipe, seed or corpus. Choose "
                "another folder, or delete the file to begin anew."
            )
        self.records = [EpochRecord(**one) for one in content["records"]]
        self._networks().load_state_dict(content["networks"])
        self.trainer.optimiser.load_state_dict(content["optimiser"])
        if self.trainer.adversary is not None:
            self.trainer.adversary.load_state_dict(content["adversary"])
        self.trainer.at_once = content["at_once"]
        torch.set_rng_state(content["random"])
        self.best = None if content["best"] is None else tuple(content["best"])


class _Networks:
    """Recogniser and heads as one thing that is saved and loaded."""

    def __init__(self, encoder: nn.Module, heads: Heads) -> None:
        self._parts = {"encoder": encoder, "heads": heads.modules()}

    def state_dict(self, *, copied: bool = False) -> dict[str, dict[str, Tensor]]:
        states = {name: dict(part.state_dict()) for name, part in self._parts.items()}
        if copied:
            return {name: {key: one.clone() for key, one in state.items()} for name, state in states.items()}
        return states

    def load_state_dict(self, states: dict[str, dict[str, Tensor]]) -> None:
        for name, part in self._parts.items():
            part.load_state_dict(states[name])


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What a training left behind.

    Raises:
        MetricInputError: the file is cut, damaged or of another version.
    """
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if content["format"] == FORMAT:
            return content
    except Exception as error:  # torch raises a dozen kinds for a damaged file
        raise MetricInputError(
            f"{path}: expected the checkpoint of a training, found a damaged file. Delete it to begin anew."
        ) from error
    raise MetricInputError(
        f"{path}: expected a checkpoint of format {FORMAT}, found {content['format']}. Delete it to begin anew."
    )


def frames_of(seconds: float) -> int:
    """Frames of a window of so many seconds; the last one is centred on its end."""
    return round(seconds * RATE_HZ) // HOP + 1


@torch.no_grad()
def embed_rows(
    encoder: nn.Module,
    store: FeatureStore,
    segments: Segments,
    rows: Indices,
    recipe: TrainingRecipe,
    progress: Count = untold,
) -> Tensor:
    """Vectors of rows as they stand on the grid, without windows drawn by chance, float32, shape (rows, d), on the CPU.

    Args:
        progress: done and total rows, after each batch.
    """
    encoder.eval()
    found = []
    cuda = store.device.type == "cuda"
    for start in range(0, rows.size, recipe.batch):
        progress(start, rows.size)
        chosen = rows[start : start + recipe.batch]
        places = segments.row_start[chosen] // HOP
        features, valid = store.batch(segments.row_piece[chosen], places, frames_of(recipe.segment_s))
        with torch.autocast(store.device.type, dtype=torch.bfloat16, enabled=cuda):
            found.append(encoder(features, valid).float().cpu())
    progress(rows.size, rows.size)
    return torch.cat(found)
