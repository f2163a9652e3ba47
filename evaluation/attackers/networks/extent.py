"""Which frames of a padded batch belong to the utterances, so that padding has no effect on a vector.

Convolutions see each utterance mirrored at its own end, not at the end of the batch; means, deviations and attention
leave the padding out. Without frame counts all frames count, which is the faster way for batches of equal length.
Conventions: tensors are (batch, channels, frames).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from evaluation.metrics.errors import MetricInputError

SHORTEST = 5  # frames: a reflection needs one more than the widest reach, 4


class Extent:
    """The frames that count in a batch.

    Attributes:
        mask: shape (batch, 1, frames), true where a frame counts; None where all of them do.
    """

    def __init__(self, frames: Tensor | None, longest: int, shortest: int = SHORTEST) -> None:
        """Note which frames count.

        Args:
            frames: of each utterance, shape (batch,), integers; None where all are as long as the batch.
            longest: frames of the batch.
            shortest: what the network needs.

        Raises:
            MetricInputError: an utterance is too short for the network, or longer than the batch.
        """
        few = longest if frames is None else int(frames.min())
        many = longest if frames is None else int(frames.max())
        if few < shortest or many > longest:
            raise MetricInputError(
                f"Expected utterances of {shortest} to {longest} frames, found {few} to {many}. Leave shorter ones out."
            )
        self.mask: Tensor | None = None
        self._longest = longest
        if frames is None or few == longest:
            return
        self._frames = frames.to(torch.int64)
        self.mask = (torch.arange(longest, device=frames.device) < self._frames[:, None])[:, None, :]

    def mirrored(self, values: Tensor, reach: int) -> Tensor:
        """The values with `reach` frames more at both sides, mirrored at the ends of each utterance.

        Source: ``padding_mode="reflect"`` of the published SpeechBrain models.
        """
        if reach == 0:
            return values
        if self.mask is None:
            return functional.pad(values, (reach, reach), mode="reflect")
        places = torch.arange(-reach, values.shape[2] + reach, device=values.device).abs()[None, :]
        last = self._frames[:, None] - 1
        places = torch.where(places > last, 2 * last - places, places).clamp_min(0)
        return values.gather(2, places[:, None, :].expand(-1, values.shape[1], -1))

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the frames that count, shape (batch, channels, 1), float32."""
        values = values.float()
        if self.mask is None:
            return values.mean(dim=2, keepdim=True)
        return (values * self.mask).sum(dim=2, keepdim=True) / self.count()

    def count(self) -> Tensor | int:
        """Frames that count of each utterance, shape (batch, 1, 1), or of all."""
        return self._longest if self.mask is None else self.mask.sum(dim=2, keepdim=True)

    def moments(self, values: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (of the population) over the frames, each (batch, channels, 1), float32.

        Args:
            weights: of each frame and channel, summing to 1 over the frames, 0 on padding; None for equal ones.
        """
        values = values.float()
        if weights is None:
            mean = self.mean(values)
            variance = self.mean((values - mean).square())
        else:
            mean = (weights * values).sum(dim=2, keepdim=True)
            variance = (weights * (values - mean).square()).sum(dim=2, keepdim=True)
        return mean, variance.clamp_min(1e-12).sqrt()

    def softmax(self, logits: Tensor) -> Tensor:
        """Softmax over the frames that count, 0 elsewhere, float32."""
        logits = logits.float()
        if self.mask is not None:
            logits = logits.masked_fill(~self.mask, -torch.inf)
        return logits.softmax(dim=2)
