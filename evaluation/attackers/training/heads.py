"""The networks that a recipe names and the heads that training hangs on them; importing this imports torch.

**Classifiers of sources.** Over ECAPA-TDNN stands a classifier by cosines, over the x-vector its own two layers with a
plain softmax, as in SpeechBrain's recipes. The cosine classifier compares directions only: normalised vector with
normalised weights, no bias; margin 0.2 and scale 30 as in the 2024 challenge and SpAnE.

**The target classifier** acts on the recogniser through a layer that turns gradients round. Forward the layer changes
nothing; backward it hands on −w times the gradient. The classifier behind it learns targets at full weight, the
recogniser before it learns to hide them. With w = 0 nothing at all comes through, not even a gradient that is not
finite.

Sources: J. Deng et al., "ArcFace", CVPR 2019 (classifier by cosines); Y. Ganin, V. Lempitsky, ICML 2015, and for its
use here section 2.1 of Franzreb et al. (gradients turned round).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from evaluation.attackers.training.recipe import TrainingRecipe
from speech.encoders.networks import (
    EcapaTdnn,
    XvectorClassifier,
    XvectorShape,
    XvectorTdnn,
)

MARGIN = 0.2  # radians
SCALE = 30.0


class CosineClassifier(nn.Module):
    """Cosines between vectors and one direction per class."""

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dimension))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return cosines, shape (batch, classes), float32; `vectors` has shape (batch, dimension)."""
        return functional.linear(functional.normalize(vectors.float()), functional.normalize(self.weight.float()))


def margin_logits(cosines: Tensor, labels: Tensor, margin: float = MARGIN, scale: float = SCALE) -> Tensor:
    """Scaled cosines, those of the true classes with the margin added to their angle, shape (batch, classes).

    Where the angle and the margin together exceed π, the cosine is lowered by margin·sin(margin) instead, so that the
    loss keeps growing with the angle.

    Args:
        cosines: shape (batch, classes), -1 to 1.
        labels: shape (batch,), integers.
    """
    own = cosines.gather(1, labels[:, None])
    sines = (1.0 - own.square()).clamp(min=1e-9, max=1.0).sqrt()
    moved = own * math.cos(margin) - sines * math.sin(margin)
    moved = torch.where(own > -math.cos(margin), moved, own - math.sin(margin) * margin)
    return scale * cosines.scatter(1, labels[:, None], moved.to(cosines.dtype))


def aam_softmax_loss(cosines: Tensor, labels: Tensor, margin: float = MARGIN, scale: float = SCALE) -> Tensor:
    """Return mean cross-entropy in nats with the additive angular margin, a scalar; arguments as in `margin_logits`."""
    return functional.cross_entropy(margin_logits(cosines, labels, margin, scale), labels)


def cosine_softmax_loss(cosines: Tensor, labels: Tensor, scale: float = SCALE) -> Tensor:
    """Return mean cross-entropy of the scaled cosines in nats without a margin, a scalar."""
    return functional.cross_entropy(scale * cosines, labels)


def build_encoder(recipe: TrainingRecipe) -> EcapaTdnn | XvectorTdnn:
    """Return the untrained network of a recipe."""
    if recipe.network == "x-vector":
        return XvectorTdnn(_shape(recipe))
    return EcapaTdnn(recipe.width, recipe.aggregated, recipe.embedding, recipe.attention, recipe.mel_bands)


def build_source_head(recipe: TrainingRecipe, dimension: int, sources: int) -> CosineClassifier | XvectorClassifier:
    """Return the untrained classifier of so many sources behind vectors of a dimension."""
    if recipe.network == "x-vector":
        return XvectorClassifier(_shape(recipe), sources, hidden=recipe.embedding)
    return CosineClassifier(dimension, sources)


def _shape(recipe: TrainingRecipe) -> XvectorShape:
    """Return SpeechBrain's network with the sizes of a recipe."""
    channels = (recipe.width, recipe.width, recipe.width, recipe.width, recipe.aggregated)
    return XvectorShape(recipe.mel_bands, channels, recipe.embedding)


class _Reversal(torch.autograd.Function):  # type: ignore[misc, unused-ignore]  # torch's base class is untyped
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: float) -> Tensor:
        ctx.weight = weight
        return vectors.view_as(vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None]:
        (gradient,) = gradients
        return (None if ctx.weight == 0 else gradient.neg() * ctx.weight), None


def reverse_gradient(vectors: Tensor, weight: float) -> Tensor:
    """Return the vectors unchanged; going back, their gradient times −`weight`."""
    reversed_: Tensor = _Reversal.apply(vectors, weight)  # type: ignore[no-untyped-call, unused-ignore]
    return reversed_


@dataclass(frozen=True, eq=False)
class Heads:
    """The classifiers behind the recogniser.

    Attributes:
        source: of source speakers; of cosines, or the layers that belong to the x-vector.
        target: of target speakers; None where there is none.
    """

    source: CosineClassifier | XvectorClassifier
    target: CosineClassifier | None

    def modules(self) -> nn.ModuleDict:
        """Return both, by name, as a checkpoint keeps them."""
        named: dict[str, nn.Module] = {"source": self.source}
        return nn.ModuleDict(named if self.target is None else named | {"target": self.target})


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of one step, scalars.

    `total` is half the sum of both, as published. A training without a target classifier takes half of the source loss
    too, so that a classifier which only measures changes not one bit of the recogniser's gradient.
    """

    source: Tensor
    target: Tensor | None

    @property
    def total(self) -> Tensor:
        return self.source / 2 if self.target is None else (self.source + self.target) / 2


def losses(
    heads: Heads, vectors: Tensor, sources: Tensor, targets: Tensor, weight: float, recipe: TrainingRecipe
) -> Losses:
    """Return the losses of both heads for speaker vectors.

    Args:
        vectors: shape (batch, d).
        sources, targets: labels, shape (batch,).
        weight: w_T of the epoch.
    """
    source = source_loss(heads.source, vectors, sources, recipe)
    if heads.target is None:
        return Losses(source, None)
    return Losses(source, target_loss(heads.target, reverse_gradient(vectors, weight), targets, recipe))


def source_loss(
    head: CosineClassifier | XvectorClassifier, vectors: Tensor, sources: Tensor, recipe: TrainingRecipe
) -> Tensor:
    """Return the loss of the source classifier, a scalar: with the margin, or that of the x-vector's plain softmax."""
    if isinstance(head, XvectorClassifier):
        return functional.nll_loss(head(vectors), sources)
    return aam_softmax_loss(head(vectors), sources, recipe.margin, recipe.scale)


def target_loss(head: CosineClassifier, vectors: Tensor, targets: Tensor, recipe: TrainingRecipe) -> Tensor:
    """Return the loss of the target classifier, a scalar."""
    cosines = head(vectors)
    if recipe.adversary_loss == "aam":
        return aam_softmax_loss(cosines, targets, recipe.margin, recipe.adversary_scale)
    return cosine_softmax_loss(cosines, targets, recipe.adversary_scale)
