"""The x-vector network of the 2022 challenge (Kaldi) and of SpeechBrain: the same layers over other features.

Both have frame layers of contexts -2..2, (-2, 0, 2), (-3, 0, 3), 0, 0, pool mean and deviation, and take the affine
output of the first segment layer as the vector. Kaldi's sees only whole contexts (frames at the ends are lost),
SpeechBrain's mirrors. Sources: D. Snyder et al., ICASSP 2018; VoicePrivacy 2022 recipe; SpeechBrain.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from evaluation.attackers.networks.extent import SHORTEST, Extent

KERNELS = (5, 3, 3, 1, 1)
DILATIONS = (1, 2, 3, 1, 1)
REACHES = (2, 2, 3, 0, 0)  # frames to each side that a layer sees


@dataclass(frozen=True)
class XvectorShape:
    """What differs between the two networks.

    Attributes:
        bands: of the features: 30 mel-frequency cepstral coefficients or 24 log-mel bands.
        channels: of the five frame layers.
        embedding: dimension of the vector.
        leaky: leaky instead of plain rectifiers.
        mirrored: frames at the ends are kept by mirroring instead of lost.
        sampled: the deviation that is pooled divides by one frame less.
    """

    bands: int
    channels: tuple[int, int, int, int, int]
    embedding: int
    leaky: bool
    mirrored: bool
    sampled: bool


KALDI_2022 = XvectorShape(30, (512, 512, 512, 512, 1500), 512, leaky=False, mirrored=False, sampled=False)
SPEECHBRAIN = XvectorShape(24, (512, 512, 512, 512, 1500), 512, leaky=True, mirrored=True, sampled=True)

# Patterns of names in SpeechBrain's state dict (layer, activation and norm are numbered on), and how ours are called.
SPEECHBRAIN_NAMES: tuple[tuple[str, str], ...] = (
    *((rf"^blocks\.{3 * layer}\.conv\.", f"convolutions.{layer}.") for layer in range(len(KERNELS))),
    *((rf"^blocks\.{3 * layer + 2}\.norm\.", f"norms.{layer}.") for layer in range(len(KERNELS))),
    (r"^blocks\.16\.w\.", "embedding."),
)


class XvectorTdnn(nn.Module):
    """The network from features to vectors.

    Attributes:
        dimension: of a vector.
        mel_bands: of the features that it wants.
        shape: what it was built from.
    """

    def __init__(self, shape: XvectorShape) -> None:
        super().__init__()
        self.shape, self.dimension, self.mel_bands = shape, shape.embedding, shape.bands
        widths = (shape.bands, *shape.channels)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(widths[layer], widths[layer + 1], KERNELS[layer], dilation=DILATIONS[layer])
            for layer in range(len(KERNELS))
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in shape.channels)
        self.rectifier = _rectifier(shape.leaky)
        self.embedding = nn.Linear(2 * shape.channels[-1], shape.embedding)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Speaker vectors, shape (batch, embedding).

        Args:
            features: shape (batch, frames, bands).
            frames: that count of each utterance, shape (batch,); None where all do.

        Raises:
            MetricInputError: an utterance of fewer than 5 frames, 15 for Kaldi's.
        """
        lost = 0 if self.shape.mirrored else 2 * sum(REACHES)
        extent = Extent(frames, features.shape[1], max(SHORTEST, lost + 1))
        values = features.transpose(1, 2)
        for convolution, norm, reach in zip(self.convolutions, self.norms, REACHES, strict=True):
            if self.shape.mirrored:
                values = extent.mirrored(values, reach)
            values = norm(self.rectifier(convolution(values)))
        if lost:
            # The layers have eaten the ends: as many frames fewer count of every utterance.
            extent = Extent(None if frames is None else frames - lost, values.shape[2], 1)
        mean, deviation = extent.moments(values)
        if self.shape.sampled:
            count = torch.as_tensor(extent.count(), device=values.device)
            deviation = deviation * (count / (count - 1)).sqrt()
        vectors: Tensor = self.embedding(torch.cat([mean, deviation], dim=1).squeeze(2).to(values.dtype))
        return vectors


class XvectorClassifier(nn.Module):
    """The layers behind the vector that only training needs: speakers as log probabilities, shape (batch, speakers)."""

    def __init__(self, shape: XvectorShape, speakers: int, hidden: int = 512) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            _rectifier(shape.leaky),
            nn.BatchNorm1d(shape.embedding),
            nn.Linear(shape.embedding, hidden),
            _rectifier(shape.leaky),
            nn.BatchNorm1d(hidden),
            nn.Linear(hidden, speakers),
            nn.LogSoftmax(dim=1),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        logs: Tensor = self.layers(vectors)
        return logs


def _rectifier(leaky: bool) -> nn.Module:
    return nn.LeakyReLU() if leaky else nn.ReLU()


def xvector_tdnn(shape: XvectorShape = KALDI_2022) -> XvectorTdnn:
    """An untrained x-vector network, of the 2022 challenge where no other shape is given."""
    return XvectorTdnn(shape)
