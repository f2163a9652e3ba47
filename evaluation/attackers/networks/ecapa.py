"""ECAPA-TDNN: speaker vectors from log-mel features, at any width.

Widths of the published recipes: 1024 channels (SpAnE, SpeechBrain's VoxCeleb model) and 512 (2024 challenge); small
ones train on a processor. ReLU stands before the batch normalisation in every unit, convolutions mirror at the ends of
an utterance, both as in SpeechBrain, whose state dict `SPEECHBRAIN_NAMES` translates. Source: B. Desplanques,
J. Thienpondt, K. Demuynck, Interspeech 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from evaluation.attackers.networks.extent import Extent

SCALE = 8  # parts of a Res2 block
DILATIONS = (2, 3, 4)
BOTTLENECK = 128  # of squeeze and excitation, and of the attention, at most

# Patterns of names in a published state dict, and how ours are called; the first that matches is taken.
SPEECHBRAIN_NAMES: tuple[tuple[str, str], ...] = (
    (r"^blocks\.0\.conv\.conv\.", r"entry.convolution."),
    (r"^blocks\.0\.norm\.norm\.", r"entry.norm."),
    (r"^blocks\.(\d)\.tdnn1\.conv\.conv\.", r"blocks.\1.before.convolution."),
    (r"^blocks\.(\d)\.tdnn1\.norm\.norm\.", r"blocks.\1.before.norm."),
    (r"^blocks\.(\d)\.res2net_block\.blocks\.(\d)\.conv\.conv\.", r"blocks.\1.parts.\2.convolution."),
    (r"^blocks\.(\d)\.res2net_block\.blocks\.(\d)\.norm\.norm\.", r"blocks.\1.parts.\2.norm."),
    (r"^blocks\.(\d)\.tdnn2\.conv\.conv\.", r"blocks.\1.after.convolution."),
    (r"^blocks\.(\d)\.tdnn2\.norm\.norm\.", r"blocks.\1.after.norm."),
    (r"^blocks\.(\d)\.se_block\.conv1\.conv\.", r"blocks.\1.squeeze."),
    (r"^blocks\.(\d)\.se_block\.conv2\.conv\.", r"blocks.\1.excite."),
    (r"^mfa\.conv\.conv\.", r"aggregation.convolution."),
    (r"^mfa\.norm\.norm\.", r"aggregation.norm."),
    (r"^asp\.tdnn\.conv\.conv\.", r"attention.convolution."),
    (r"^asp\.tdnn\.norm\.norm\.", r"attention.norm."),
    (r"^asp\.conv\.conv\.", r"attention_weights."),
    (r"^asp_bn\.norm\.", r"pooled_norm."),
    (r"^fc\.conv\.", r"embedding."),
)


class Unit(nn.Module):
    """Convolution over frames, ReLU, batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(inputs, outputs, kernel, dilation=dilation)
        self.norm = nn.BatchNorm1d(outputs)
        self.reach = dilation * (kernel - 1) // 2

    def forward(self, values: Tensor, extent: Extent) -> Tensor:
        raised: Tensor = self.norm(functional.relu(self.convolution(extent.mirrored(values, self.reach))))
        return raised


class SqueezedRes2Block(nn.Module):
    """A Res2 block between two 1x1 units, channel weights by squeeze and excitation, and a way around."""

    def __init__(self, channels: int, dilation: int, bottleneck: int) -> None:
        super().__init__()
        part = channels // SCALE
        self.before = Unit(channels, channels)
        self.parts = nn.ModuleList(Unit(part, part, 3, dilation) for _ in range(SCALE - 1))
        self.after = Unit(channels, channels)
        self.squeeze = nn.Conv1d(channels, bottleneck, 1)
        self.excite = nn.Conv1d(bottleneck, channels, 1)

    def forward(self, values: Tensor, extent: Extent) -> Tensor:
        first, *others = self.before(values, extent).chunk(SCALE, dim=1)
        outputs = [first]
        for number, (part, unit) in enumerate(zip(others, self.parts, strict=True)):
            outputs.append(unit(part if number == 0 else part + outputs[-1], extent))
        result: Tensor = self.after(torch.cat(outputs, dim=1), extent)
        weights = torch.sigmoid(self.excite(functional.relu(self.squeeze(extent.mean(result).to(result.dtype)))))
        return result * weights + values


class EcapaTdnn(nn.Module):
    """The whole network; `ecapa_tdnn` builds it.

    Attributes:
        dimension: of a vector.
        mel_bands: of the features it takes.
    """

    def __init__(self, channels: int, aggregated: int, embedding: int, attention: int, mel_bands: int) -> None:
        super().__init__()
        bottleneck = min(BOTTLENECK, channels)
        self.dimension, self.mel_bands = embedding, mel_bands
        self.entry = Unit(mel_bands, channels, 5)
        # Numbered from 1, as published: block 0 is the entry.
        self.blocks = nn.ModuleDict(
            {
                str(number): SqueezedRes2Block(channels, dilation, bottleneck)
                for number, dilation in enumerate(DILATIONS, 1)
            }
        )
        self.aggregation = Unit(len(DILATIONS) * channels, aggregated)
        self.attention = Unit(3 * aggregated, attention)
        self.attention_weights = nn.Conv1d(attention, aggregated, 1)
        self.pooled_norm = nn.BatchNorm1d(2 * aggregated)
        self.embedding = nn.Conv1d(2 * aggregated, embedding, 1)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Speaker vectors, not normalised, shape (batch, embedding).

        Args:
            features: log-mel with its mean removed, shape (batch, frames, bands).
            frames: that count of each utterance, shape (batch,); None where all do.

        Raises:
            MetricInputError: an utterance of fewer than 5 frames.
        """
        extent = Extent(frames, features.shape[1])
        values = self.entry(features.transpose(1, 2), extent)
        outputs = []
        for block in self.blocks.values():
            values = block(values, extent)
            outputs.append(values)
        pooled = self._pool(self.aggregation(torch.cat(outputs, dim=1), extent), extent)
        vectors: Tensor = self.embedding(self.pooled_norm(pooled)).squeeze(2)
        return vectors

    def _pool(self, values: Tensor, extent: Extent) -> Tensor:
        """Mean and deviation weighted by attention that knows the whole utterance, shape (batch, 2 aggregated, 1)."""
        context = torch.cat(extent.moments(values), dim=1).to(values.dtype)
        # The context is the same for every frame, so its share of the convolution is computed once.
        weight, width = self.attention.convolution.weight, values.shape[1]
        hidden = functional.conv1d(values, weight[:, :width], self.attention.convolution.bias)
        hidden = hidden + functional.conv1d(context, weight[:, width:])
        hidden = torch.tanh(self.attention.norm(functional.relu(hidden)))
        weights = extent.softmax(self.attention_weights(hidden))
        return torch.cat(extent.moments(values, weights), dim=1).to(values.dtype)


def ecapa_tdnn(
    channels: int = 1024,
    aggregated: int | None = None,
    embedding: int = 192,
    attention: int | None = None,
    mel_bands: int = 80,
) -> EcapaTdnn:
    """An untrained ECAPA-TDNN; the defaults are the published large one.

    Args:
        channels: a multiple of 8.
        aggregated: channels after the three blocks are joined; three times `channels` where not given.
        embedding: dimension of the vectors.
        attention: width of the attention; 128, or `channels` if that is fewer, where not given.

    Raises:
        ValueError: a width that the Res2 blocks cannot divide.
    """
    if channels < SCALE or channels % SCALE:
        raise ValueError(f"Expected a width that is a multiple of {SCALE}, found {channels}.")
    return EcapaTdnn(channels, aggregated or 3 * channels, embedding, attention or min(BOTTLENECK, channels), mel_bands)
