"""Networks that tell recorded from synthetic speech, for the training of generators.

Some look at every second, third, fifth, seventh and eleventh sample, some at the samples of three rates. Conventions:
samples are float32, shape (batch, 1, n).

Source: J. Kong, J. Kim, J. Bae, "HiFi-GAN", NeurIPS 2020, sections 2.3 and 2.4, and its program; here weight
normalisation stands for spectral normalisation in the first one of a rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

_SLOPE = 0.1
_PERIODS = (2, 3, 5, 7, 11)
_PERIOD_WIDTHS = (32, 128, 512, 1024, 1024)
# Of a rate: channels, kernel, step and groups of each layer.
_SCALE_LAYERS = (
    (128, 15, 1, 1),
    (128, 41, 2, 4),
    (256, 41, 2, 16),
    (512, 41, 4, 16),
    (1024, 41, 4, 16),
    (1024, 41, 1, 16),
    (1024, 5, 1, 1),
)
_SCALES = 3

Judgement = tuple[Tensor, list[Tensor]]


class Discriminators(nn.Module):
    """All of them; each gives a judgement at many places and what its layers make of the samples.

    narrower: by how much their layers have fewer channels than the published ones.
    """

    def __init__(self, narrower: int = 1) -> None:
        super().__init__()
        self.periods = nn.ModuleList(_Period(period, narrower) for period in _PERIODS)
        self.scales = nn.ModuleList(_Scale(narrower) for _ in range(_SCALES))

    def forward(self, samples: Tensor) -> list[Judgement]:
        """Of each discriminator: its judgement, near 1 for recorded and near 0 for synthetic speech, and layers."""
        found = [network(samples) for network in self.periods]
        for number, network in enumerate(self.scales):
            if number:
                samples = functional.avg_pool1d(samples, 4, 2, padding=2)
            found.append(network(samples))
        return found


class _Period(nn.Module):
    """Two-dimensional convolutions over samples that are a period apart."""

    def __init__(self, period: int, narrower: int) -> None:
        super().__init__()
        self.period = period
        widths = [1, *(width // narrower for width in _PERIOD_WIDTHS)]
        steps = (3, 3, 3, 3, 1)
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(before, after, (5, 1), (step, 1), padding=(2, 0)))
            for before, after, step in zip(widths[:-1], widths[1:], steps, strict=True)
        )
        self.judge = weight_norm(nn.Conv2d(widths[-1], 1, (3, 1), padding=(1, 0)))

    def forward(self, samples: Tensor) -> Judgement:
        missing = -samples.shape[2] % self.period
        folded = functional.pad(samples, (0, missing), mode="reflect").unflatten(2, (-1, self.period))
        return _judge(self.layers, self.judge, folded)


class _Scale(nn.Module):
    """Convolutions over the samples of a rate."""

    def __init__(self, narrower: int) -> None:
        super().__init__()
        before, layers = 1, []
        for width, kernel, step, groups in _SCALE_LAYERS:
            after = width // narrower
            shared = math.gcd(groups, before, after)
            layers.append(weight_norm(nn.Conv1d(before, after, kernel, step, padding=kernel // 2, groups=shared)))
            before = after
        self.layers = nn.ModuleList(layers)
        self.judge = weight_norm(nn.Conv1d(before, 1, 3, padding=1))

    def forward(self, samples: Tensor) -> Judgement:
        return _judge(self.layers, self.judge, samples)


def _judge(layers: nn.ModuleList, last: nn.Module, values: Tensor) -> Judgement:
    seen = []
    for layer in layers:
        values = functional.leaky_relu(layer(values), _SLOPE)
        seen.append(values)
    judgement = last(values)
    return judgement, [*seen, judgement]


def loss_of_discriminators(recorded: Sequence[Judgement], synthetic: Sequence[Judgement]) -> Tensor:
    """Return squared distance of judgements from 1 and from 0 (equation 1 of the paper)."""
    return torch.stack(
        [
            (1 - real.float()).square().mean() + made.float().square().mean()
            for (real, _), (made, _) in zip(recorded, synthetic, strict=True)
        ]
    ).sum()


def losses_of_generator(recorded: Sequence[Judgement], synthetic: Sequence[Judgement]) -> tuple[Tensor, Tensor]:
    """Return squared distance of the judgement of synthetic speech from 1, and difference of layers (equations 2 and
    4)."""
    adversarial = torch.stack([(1 - made.float()).square().mean() for made, _ in synthetic]).sum()
    differences = [
        functional.l1_loss(there.float(), here.float())
        for (_, real), (_, made) in zip(recorded, synthetic, strict=True)
        for here, there in zip(real, made, strict=True)
    ]
    return adversarial, torch.stack(differences).sum()
