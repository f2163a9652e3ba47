"""Networks that make speaker vectors, in torch: to load with published weights or to train.

Importing this imports torch: import it inside functions, never where a page or a command starts.

**ECAPA-TDNN** (`EcapaTdnn`): widths of the published recipes are 1024 channels (SpAnE, SpeechBrain's VoxCeleb model)
and 512 (2024 challenge); small ones train on a processor. ReLU stands before the batch normalisation in every unit, as
in SpeechBrain, whose state dict `ECAPA_SPEECHBRAIN_NAMES` translates.

**X-vectors** (`XvectorTdnn`): the networks of the 2022 challenge (Kaldi) and of SpeechBrain are the same layers over
other features: frame layers of contexts -2..2, (-2, 0, 2), (-3, 0, 3), 0, 0, pooled mean and deviation; the vector is
the affine output of the first segment layer. Kaldi's sees only whole contexts (frames at the ends are lost),
SpeechBrain's mirrors.

Conventions: features are float32, shape (batch, frames, bands), inside of the networks (batch, channels, frames);
`frames` counts the frames of each utterance of a padded batch, shape (batch,); what lies behind them has no effect:
convolutions see each utterance mirrored at its own end, and means, deviations and attention leave the padding out.
Without frame counts all frames count, which is the faster way for batches of equal length.

Sources: B. Desplanques, J. Thienpondt, K. Demuynck, Interspeech 2020 (ECAPA-TDNN); D. Snyder et al., ICASSP 2018,
VoicePrivacy 2022 recipe and SpeechBrain (x-vectors).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.errors import InputError

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
            InputError: an utterance is too short for the network, or longer than the batch.
        """
        few = longest if frames is None else int(frames.min())
        many = longest if frames is None else int(frames.max())
        if few < shortest or many > longest:
            raise InputError(
                f"Expected utterances of {shortest} to {longest} frames, found {few} to {many}. Leave shorter ones out."
            )
        self.mask: Tensor | None = None
        self._longest = longest
        if frames is None or few == longest:
            return
        self._frames = frames.to(torch.int64)
        self.mask = (torch.arange(longest, device=frames.device) < self._frames[:, None])[:, None, :]

    def mirrored(self, values: Tensor, reach: int) -> Tensor:
        """Return the values with `reach` frames more at both sides, mirrored at the ends of each utterance.

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
        """Return mean over the frames that count, shape (batch, channels, 1), float32."""
        values = values.float()
        if self.mask is None:
            return values.mean(dim=2, keepdim=True)
        return (values * self.mask).sum(dim=2, keepdim=True) / self.count()

    def count(self) -> Tensor | int:
        """Return frames that count of each utterance, shape (batch, 1, 1), or of all."""
        return self._longest if self.mask is None else self.mask.sum(dim=2, keepdim=True)

    def moments(self, values: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation (of the population) over the frames, each (batch, channels, 1), float32.

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


SCALE = 8  # parts of a Res2 block
ECAPA_DILATIONS = (2, 3, 4)
BOTTLENECK = 128  # of squeeze and excitation, and of the attention, at most

_NAMES_FILE = Path(__file__).with_name("ecapa_speechbrain.toml")
ECAPA_SPEECHBRAIN_NAMES: tuple[tuple[str, str], ...] = tuple(tomllib.loads(_NAMES_FILE.read_text("utf-8")).items())


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
    """The whole network.

    Attributes:
        dimension: of a vector.
        mel_bands: of the features it takes.
    """

    def __init__(
        self,
        channels: int = 1024,
        aggregated: int | None = None,
        embedding: int = 192,
        attention: int | None = None,
        mel_bands: int = 80,
    ) -> None:
        """An untrained one; the defaults are the published large one.

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
        super().__init__()
        bottleneck = min(BOTTLENECK, channels)
        aggregated, attention = aggregated or 3 * channels, attention or bottleneck
        self.dimension, self.mel_bands = embedding, mel_bands
        self.entry = Unit(mel_bands, channels, 5)
        # Numbered from 1, as published: block 0 is the entry.
        self.blocks = nn.ModuleDict()
        for number, dilation in enumerate(ECAPA_DILATIONS, 1):
            self.blocks[str(number)] = SqueezedRes2Block(channels, dilation, bottleneck)
        self.aggregation = Unit(len(ECAPA_DILATIONS) * channels, aggregated)
        self.attention = Unit(3 * aggregated, attention)
        self.attention_weights = nn.Conv1d(attention, aggregated, 1)
        self.pooled_norm = nn.BatchNorm1d(2 * aggregated)
        self.embedding = nn.Conv1d(2 * aggregated, embedding, 1)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Return speaker vectors, not normalised, shape (batch, embedding).

        Args:
            features: log-mel with its mean removed, shape (batch, frames, bands).
            frames: that count of each utterance, shape (batch,); None where all do.

        Raises:
            InputError: an utterance of fewer than 5 frames.
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
        """Return mean and deviation weighted by attention that knows the whole utterance, shape (batch, 2 aggregated,
        1)."""
        context = torch.cat(extent.moments(values), dim=1).to(values.dtype)
        # The context is the same for every frame, so its share of the convolution is computed once.
        weight, width = self.attention.convolution.weight, values.shape[1]
        hidden = functional.conv1d(values, weight[:, :width], self.attention.convolution.bias)
        hidden = hidden + functional.conv1d(context, weight[:, width:])
        hidden = torch.tanh(self.attention.norm(functional.relu(hidden)))
        weights = extent.softmax(self.attention_weights(hidden))
        return torch.cat(extent.moments(values, weights), dim=1).to(values.dtype)


KERNELS = (5, 3, 3, 1, 1)
XVECTOR_DILATIONS = (1, 2, 3, 1, 1)
REACHES = (2, 2, 3, 0, 0)  # frames to each side that a layer sees


@dataclass(frozen=True)
class XvectorShape:
    """The sizes of an x-vector network; the defaults are those of SpeechBrain's.

    Attributes:
        bands: of the features: 24 log-mel bands, or 30 mel-frequency cepstral coefficients for Kaldi's.
        channels: of the five frame layers.
        embedding: dimension of the vector.
        is_kaldi: as in the challenge of 2022: plain instead of leaky rectifiers, frames at the ends lost instead of
            mirrored, and the pooled deviation divided by all frames instead of one fewer.
    """

    bands: int = 24
    channels: tuple[int, int, int, int, int] = (512, 512, 512, 512, 1500)
    embedding: int = 512
    is_kaldi: bool = False


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
            nn.Conv1d(widths[layer], widths[layer + 1], KERNELS[layer], dilation=XVECTOR_DILATIONS[layer])
            for layer in range(len(KERNELS))
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in shape.channels)
        self.rectifier = _rectifier(shape)
        self.embedding = nn.Linear(2 * shape.channels[-1], shape.embedding)

    def forward(self, features: Tensor, frames: Tensor | None = None) -> Tensor:
        """Return speaker vectors, shape (batch, embedding).

        Args:
            features: shape (batch, frames, bands).
            frames: that count of each utterance, shape (batch,); None where all do.

        Raises:
            InputError: an utterance of fewer than 5 frames, 15 for Kaldi's.
        """
        is_kaldi = self.shape.is_kaldi
        lost = 2 * sum(REACHES) if is_kaldi else 0
        extent = Extent(frames, features.shape[1], max(SHORTEST, lost + 1))
        values = features.transpose(1, 2)
        for convolution, norm, reach in zip(self.convolutions, self.norms, REACHES, strict=True):
            seen = values if is_kaldi else extent.mirrored(values, reach)
            values = norm(self.rectifier(convolution(seen)))
        if is_kaldi:
            # The layers have eaten the ends: as many frames fewer count of every utterance.
            extent = Extent(None if frames is None else frames - lost, values.shape[2], 1)
        mean, deviation = extent.moments(values)
        if not is_kaldi:
            count = torch.as_tensor(extent.count(), device=values.device)
            deviation = deviation * (count / (count - 1)).sqrt()
        vectors: Tensor = self.embedding(torch.cat([mean, deviation], dim=1).squeeze(2).to(values.dtype))
        return vectors


class XvectorClassifier(nn.Module):
    """The layers behind the vector that only training needs: speakers as log probabilities, shape (batch, speakers)."""

    def __init__(self, shape: XvectorShape, speakers: int, hidden: int = 512) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            _rectifier(shape),
            nn.BatchNorm1d(shape.embedding),
            nn.Linear(shape.embedding, hidden),
            _rectifier(shape),
            nn.BatchNorm1d(hidden),
            nn.Linear(hidden, speakers),
            nn.LogSoftmax(dim=1),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        logs: Tensor = self.layers(vectors)
        return logs


def _rectifier(shape: XvectorShape) -> nn.Module:
    return nn.ReLU() if shape.is_kaldi else nn.LeakyReLU()
