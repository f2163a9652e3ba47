"""The epochs of a training: batches, validation, a checkpoint after each, and going on from the last one.

**A training** (`fit`). Everything random is drawn from the seed and the number of the epoch, so a training that was
interrupted draws what it would have drawn.

**One step** (`Trainer.step`): vectors of a batch, losses of both heads, an update; smaller pieces where memory runs
out. The heads always see the whole batch. Where the recogniser cannot, its vectors are computed piece by piece without
gradients first, then again, piece by piece, each with its share of the gradient: the same update, but for the
statistics of the batch normalisation, which are those of a piece.

Conventions: stages are told as (stage, done, total); epochs are counted from 1.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from common.atomic_write import write_atomically
from common.errors import InputError
from common.progress import Count, Progress, ignore_progress
from evaluation.attackers.training import trained_attacker
from evaluation.attackers.training.corpus import Indices, Segments
from evaluation.attackers.training.features import FeatureStore
from evaluation.attackers.training.heads import CosineClassifier, Heads, Losses, build_source_head, losses, target_loss
from evaluation.attackers.training.recipe import TrainingRecipe, learning_rate, target_weights
from speech.features.log_mel import HOP, RATE_HZ
from speech.model_files.training_states import load_state, save_state

FEWEST_AT_ONCE = 2  # batch normalisation needs two
# What torch says where the processor's memory is full; it has no exception of its own for that.
_FULL_MEMORY = ("not enough memory", "can't allocate memory", "out of memory", "alloc_cpu")


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one step, on the device.

    Attributes:
        features: shape (batch, frames, bands).
        valid: frames that count of each; None where all do.
        sources, targets: labels, shape (batch,).
    """

    features: Tensor
    valid: Tensor | None
    sources: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.sources)


class Trainer:
    """A recogniser, its heads and their optimisers.

    Attributes:
        at_once: rows that the recogniser takes at a time; fewer after memory ran out.
    """

    def __init__(self, encoder: nn.Module, heads: Heads, recipe: TrainingRecipe, device: torch.device) -> None:
        self.encoder, self.heads, self.device = encoder, heads, device
        self.at_once = recipe.batch
        self._recipe = recipe
        joint = [*encoder.parameters(), *heads.source.parameters()]
        apart = [] if heads.target is None else list(heads.target.parameters())
        alone = recipe.target_head == "stabilised"
        self.optimiser = torch.optim.Adam(joint if alone else joint + apart, weight_decay=recipe.weight_decay)
        self.adversary = torch.optim.Adam(apart, weight_decay=recipe.weight_decay) if alone and apart else None

    def set_learning_rate(self, rate: float) -> None:
        """For the next step; the target classifier's own optimiser has its multiple of it."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        for group in self.adversary.param_groups if self.adversary else ():
            group["lr"] = rate * self._recipe.adversary_lr_multiplier

    def step(self, read: Callable[[], Batch], weight: float) -> Losses:
        """Return one update.

        Args:
            read: makes the batch, and makes it again after memory ran out.
            weight: w_T.

        Raises:
            InputError: memory runs out even with two rows at a time.
        """
        while True:
            try:
                return self._update(read(), weight)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            self._take_fewer()

    def embed(self, features: Tensor, valid: Tensor | None) -> Tensor:
        """Return vectors, shape (batch, d), with or without gradients as the caller has set them."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            vectors: Tensor = self.encoder(features, valid)
        return vectors.float()

    def _take_fewer(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        if self.at_once // 2 < FEWEST_AT_ONCE:
            raise InputError(
                f"Memory ran out even with {self.at_once} segments at a time, while a recogniser of width "
                f"{self._recipe.width} was trained. Choose a smaller width or a shorter crop, or stop other programs "
                "that use memory."
            )
        self.at_once //= 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _update(self, batch: Batch, weight: float) -> Losses:
        self.encoder.train()
        self.heads.source.train()
        self.optimiser.zero_grad(set_to_none=True)
        whole = len(batch) <= self.at_once
        if whole:
            vectors = self.embed(batch.features, batch.valid)
        else:
            with torch.no_grad():
                vectors = torch.cat([self.embed(*part) for part in self._parts(batch)])
        own = vectors.detach().requires_grad_()
        self._teach_adversary(own.detach(), batch.targets)
        found = losses(self.heads, own, batch.sources, batch.targets, weight, self._recipe)
        found.total.backward()  # type: ignore[no-untyped-call, unused-ignore]
        gradient = own.grad
        if whole:
            vectors.backward(gradient)  # type: ignore[no-untyped-call, unused-ignore]
        elif gradient is not None:
            shares = self._spans(len(batch))
            for part, (start, end) in zip(self._parts(batch), shares, strict=True):
                self.embed(*part).backward(gradient[start:end])  # type: ignore[no-untyped-call, unused-ignore]
        self.optimiser.step()
        return Losses(found.source.detach(), None if found.target is None else found.target.detach())

    def _teach_adversary(self, vectors: Tensor, targets: Tensor) -> None:
        if self.adversary is None or self.heads.target is None:
            return
        for _ in range(self._recipe.adversary_steps):
            self.adversary.zero_grad(set_to_none=True)
            target_loss(self.heads.target, vectors, targets, self._recipe).backward()  # type: ignore[no-untyped-call, unused-ignore]
            self.adversary.step()

    def _parts(self, batch: Batch) -> list[tuple[Tensor, Tensor | None]]:
        return [
            (batch.features[start:end], None if batch.valid is None else batch.valid[start:end])
            for start, end in self._spans(len(batch))
        ]

    def _spans(self, rows: int) -> list[tuple[int, int]]:
        """Return where the pieces of a batch start and end; a single last row goes with the piece before it."""
        starts = list(range(0, rows, self.at_once))
        if len(starts) > 1 and rows - starts[-1] < FEWEST_AT_ONCE:
            starts.pop()
        return list(zip(starts, [*starts[1:], rows], strict=True))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory is full, of a graphics card or of the machine."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error).lower() for words in _FULL_MEMORY)


STEPS_TO_JUDGE_BY = 10
_WARM_STEPS = 2  # the first ones are slower and judge nothing
_VALIDATION_COST = 0.3  # of a row that is only looked at, in rows that are learned from


@dataclass(frozen=True)
class TrainingCallbacks:
    """What is called while a training goes on; whatever they raise ends it.

    Attributes:
        progress: stage, done, total; after each step.
        epoch: after the checkpoint of an epoch is on disk; epochs of an earlier process are told again.
        estimate: once, after the first steps.
    """

    progress: Progress = ignore_progress
    epoch: Callable[[trained_attacker.EpochRecord], None] = ignore_progress
    estimate: Callable[[trained_attacker.TrainingEstimate], None] = ignore_progress


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
    epochs: tuple[trained_attacker.EpochRecord, ...]
    kept_epoch: int


def training_key(recipe: TrainingRecipe, seed: int, segments: Segments) -> str:
    """Return what makes a training the same as another: recipe, seed and corpus."""
    return hashlib.sha256(f"{recipe.to_json()}\n{seed}\n{segments.fingerprint}".encode()).hexdigest()


def fit(
    make_encoder: Callable[[], nn.Module],
    store: FeatureStore,
    segments: Segments,
    recipe: TrainingRecipe,
    seed: int,
    folder: Path | None,
    callbacks: TrainingCallbacks | None = None,
) -> Fitted:
    """Train, or go on training from the checkpoint in a folder.

    Args:
        make_encoder: an untrained network: features (batch, frames, bands) and counts of frames to vectors, with the
            attribute `dimension`; called with torch's random numbers set by the seed.
        store: features, on the device to train on.
        folder: for checkpoints; None for none.

    Raises:
        InputError: the checkpoint is of another training or damaged; memory is full; no segment is held out
            though the recipe keeps the best epoch; the loss is no number any more.
    """
    if recipe.checkpoint == "best" and not segments.held_out.any():
        raise InputError(
            f"Expected held-out segments to choose the best epoch by, found none with the rule “{recipe.validation}”. "
            "Add utterances, or keep the last epoch."
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return _Fitting(make_encoder(), store, segments, recipe, seed, folder, callbacks or TrainingCallbacks()).run()


class _Fitting:
    """The state of one training."""

    def __init__(
        self,
        encoder: nn.Module,
        store: FeatureStore,
        segments: Segments,
        recipe: TrainingRecipe,
        seed: int,
        folder: Path | None,
        callbacks: TrainingCallbacks,
    ) -> None:
        device = store.device
        dimension = int(getattr(encoder, "dimension"))  # noqa: B009 (an attribute of the networks, not of nn.Module)
        wants_targets = recipe.target_head != "none"
        target = CosineClassifier(dimension, len(segments.targets)).to(device) if wants_targets else None
        self.heads = Heads(build_source_head(recipe, dimension, len(segments.sources)).to(device), target)
        self.trainer = Trainer(encoder.to(device), self.heads, recipe, device)
        self.store, self.segments, self.recipe, self.callbacks = store, segments, recipe, callbacks
        self.seed, self.folder = seed, folder
        self.key = training_key(recipe, seed, segments)
        self.records: list[trained_attacker.EpochRecord] = []
        self.best: tuple[int, dict[str, dict[str, Tensor]]] | None = None
        rows = segments.training_rows.size
        self.batch = min(recipe.batch, rows)
        full, rest = divmod(rows, self.batch)
        self.steps = full + (rest >= 2 and not recipe.drop_last)
        self._judged = False

    def run(self) -> Fitted:
        self._resume()
        for record in self.records:
            self.callbacks.epoch(record)
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
        has_targets = self.heads.target is not None
        values |= errors | trained_attacker.chance_levels(self.segments, with_targets=has_targets)
        values["target_weight"] = weight if has_targets else None
        record = trained_attacker.EpochRecord(epoch + 1, time.perf_counter() - began, values)
        self.records.append(record)
        self._keep_best(record)
        self._save()
        self.callbacks.epoch(record)

    def _train_epoch(self, epoch: int, weight: float, random: np.random.Generator) -> dict[str, trained_attacker.Value]:
        rows = random.permutation(self.segments.training_rows)
        sums = torch.zeros(3, dtype=torch.float64, device=self.store.device)
        rate, began = 0.0, time.perf_counter()
        total = self.steps * self.recipe.epochs
        for step in range(self.steps):
            if step == _WARM_STEPS:
                began = time.perf_counter()
            overall = epoch * self.steps + step
            self.callbacks.progress("training", overall, total)
            rate = learning_rate(self.recipe, overall, total)
            self.trainer.set_learning_rate(rate)
            chosen = rows[step * self.batch : (step + 1) * self.batch]
            starts, frames = self._windows(chosen, random)
            found = self.trainer.step(lambda c=chosen, s=starts, f=frames: self._read(c, s, f), weight)  # type: ignore[misc]
            parts = (found.total, found.source, found.target if found.target is not None else found.source * 0)
            sums += torch.stack([part.double() for part in parts])
            if step + 1 in (self.steps, STEPS_TO_JUDGE_BY + _WARM_STEPS) and not self._judged:
                self._judge(time.perf_counter() - began, step + 1, total - overall - 1)
        self.callbacks.progress("training", (epoch + 1) * self.steps, total)
        mean = (sums / self.steps).tolist()
        if not np.isfinite(mean).all():
            raise InputError(
                f"Expected a loss that is a number, found {mean[0]} in epoch {epoch + 1} at a learning rate of "
                f"{rate:g}. Choose a lower one."
            )
        has_target = self.heads.target is not None
        return {
            "loss": mean[0],
            "source_loss": mean[1],
            "target_loss": mean[2] if has_target else None,
            "learning_rate": rate,
        }

    def _judge(self, seconds: float, steps: int, left: int) -> None:
        """Tell how long the rest will take."""
        self._judged = True
        per_step = seconds / max(1, steps - _WARM_STEPS if steps > _WARM_STEPS else steps)
        looked_at = _VALIDATION_COST * self.segments.held_out.mean() / (1 - self.segments.held_out.mean())
        self.callbacks.estimate(
            trained_attacker.TrainingEstimate(per_step, left, per_step * left * (1 + float(looked_at)))
        )

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
    def _validation_errors(self, random: np.random.Generator) -> dict[str, trained_attacker.Value]:
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

    def _keep_best(self, record: trained_attacker.EpochRecord) -> None:
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
            "key": self.key,
            "records": [asdict(one) for one in self.records],
            "networks": self._networks().state_dict(),
            "optimiser": self.trainer.optimiser.state_dict(),
            "adversary": adversary.state_dict() if adversary else None,
            "at_once": self.trainer.at_once,
            "random": torch.get_rng_state(),
            "best": self.best,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        save_state(self.folder / trained_attacker.CHECKPOINT, content)
        write_atomically(self.folder / trained_attacker.VALUES, trained_attacker.epochs_csv(self.records).encode())

    def _resume(self) -> None:
        content = load_state(self.folder / trained_attacker.CHECKPOINT, self.key) if self.folder else None
        if content is None:
            return
        self.records = [trained_attacker.EpochRecord(**one) for one in content["records"]]
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


def frames_of(seconds: float) -> int:
    """Return frames of a window of so many seconds; the last one is centred on its end."""
    return round(seconds * RATE_HZ) // HOP + 1


@torch.no_grad()
def embed_rows(
    encoder: nn.Module,
    store: FeatureStore,
    segments: Segments,
    rows: Indices,
    recipe: TrainingRecipe,
    progress: Count = ignore_progress,
) -> Tensor:
    """Return vectors of rows as they stand on the grid, without windows drawn by chance, float32, shape (rows, d), on
    the CPU.

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
