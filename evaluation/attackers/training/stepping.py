"""One step of training: vectors of a batch, losses of both heads, an update; smaller pieces where memory runs out.

The heads always see the whole batch. Where the recogniser cannot, its vectors are computed piece by piece without
gradients first, then again, piece by piece, each with its share of the gradient: the same update, but for the
statistics of the batch normalisation, which are those of a piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evaluation.attackers.training.adversary import Heads, losses, target_loss
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.metrics.errors import MetricInputError

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


@dataclass(frozen=True)
class StepLosses:
    """Losses of one step, scalars without a graph."""

    total: Tensor
    source: Tensor
    target: Tensor | None


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

    def step(self, read: Callable[[], Batch], weight: float) -> StepLosses:
        """One update.

        Args:
            read: makes the batch, and makes it again after memory ran out.
            weight: w_T.

        Raises:
            MetricInputError: memory runs out even with two rows at a time.
        """
        while True:
            try:
                return self._update(read(), weight)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            self._take_fewer()

    def embed(self, features: Tensor, valid: Tensor | None) -> Tensor:
        """Vectors, shape (batch, d), with or without gradients as the caller has set them."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            vectors: Tensor = self.encoder(features, valid)
        return vectors.float()

    def _take_fewer(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        if self.at_once // 2 < FEWEST_AT_ONCE:
            raise MetricInputError(
                f"Memory is full even with {self.at_once} segments at a time, found while training a recogniser of "
                f"width {self._recipe.width}. Choose a smaller width or a shorter crop, or stop what "
                "else uses the memory."
            )
        self.at_once //= 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _update(self, batch: Batch, weight: float) -> StepLosses:
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
        target = None if found.target is None else found.target.detach()
        return StepLosses(found.total.detach(), found.source.detach(), target)

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
        """Where the pieces of a batch start and end; a single last row goes with the piece before it."""
        starts = list(range(0, rows, self.at_once))
        if len(starts) > 1 and rows - starts[-1] < FEWEST_AT_ONCE:
            starts.pop()
        return list(zip(starts, [*starts[1:], rows], strict=True))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is full, of a graphics card or of the machine."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error).lower() for words in _FULL_MEMORY)
