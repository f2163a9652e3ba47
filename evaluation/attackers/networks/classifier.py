"""The heads that training hangs on a speaker vector: a cosine classifier and the additive angular margin.

The classifier compares directions only: normalised vector with normalised weights, no bias; its outputs are cosines.
Source: J. Deng et al., "ArcFace", CVPR 2019; margin 0.2 and scale 30 as in the 2024 challenge and SpAnE.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

MARGIN = 0.2  # radians
SCALE = 30.0


class CosineClassifier(nn.Module):
    """Cosines between vectors and one direction per class."""

    def __init__(self, dimension: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dimension))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, vectors: Tensor) -> Tensor:
        """Cosines, shape (batch, classes), float32; `vectors` has shape (batch, dimension)."""
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
    """Mean cross-entropy in nats with the additive angular margin, a scalar; arguments as in `margin_logits`."""
    return functional.cross_entropy(margin_logits(cosines, labels, margin, scale), labels)


def cosine_softmax_loss(cosines: Tensor, labels: Tensor, scale: float = SCALE) -> Tensor:
    """Mean cross-entropy of the scaled cosines in nats without a margin, a scalar."""
    return functional.cross_entropy(scale * cosines, labels)
