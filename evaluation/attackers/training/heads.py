"""The target classifier's hold on the recogniser: a layer that turns gradients round, and the losses of both heads.

Forward the layer changes nothing; backward it hands on −w times the gradient. The classifier behind it learns targets
at full weight, the recogniser before it learns to hide them. With w = 0 nothing at all comes through, not even a
gradient that is not finite. Source: Y. Ganin, V. Lempitsky, ICML 2015; section 2.1 of Franzreb et al. for its use here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from evaluation.attackers.networks.classifier import CosineClassifier, aam_softmax_loss, cosine_softmax_loss
from evaluation.attackers.networks.xvector import XvectorClassifier
from evaluation.attackers.training.recipe import TrainingRecipe


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
    """The vectors unchanged; going back, their gradient times −`weight`."""
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
        """Both, by name, as a checkpoint keeps them."""
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
    """The losses of both heads for speaker vectors.

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
    """The loss of the source classifier, a scalar: with the margin, or that of the x-vector's plain softmax."""
    if isinstance(head, XvectorClassifier):
        return functional.nll_loss(head(vectors), sources)
    return aam_softmax_loss(head(vectors), sources, recipe.margin, recipe.scale)


def target_loss(head: CosineClassifier, vectors: Tensor, targets: Tensor, recipe: TrainingRecipe) -> Tensor:
    """The loss of the target classifier, a scalar."""
    cosines = head(vectors)
    if recipe.adversary_loss == "aam":
        return aam_softmax_loss(cosines, targets, recipe.margin, recipe.adversary_scale)
    return cosine_softmax_loss(cosines, targets, recipe.adversary_scale)
