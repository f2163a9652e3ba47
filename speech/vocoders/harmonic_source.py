"""The sources of neural source-filter vocoders: harmonics of F0 with a little noise where voiced, noise elsewhere.

Where voiced, sines of F0 and its multiples below half the rate have amplitude 0.1, and noise a standard deviation of
0.003; elsewhere there is noise of a third of that amplitude. Some harmonics are joined to one signal by a layer of the
network; or all of them are, equally loud, which is a train of pulses with the power of one such sine. Conventions: a
frame of F0 stands for `hop` samples; F0 is in Hz, 0 where unvoiced.

Source: X. Wang, S. Takaki, J. Yamagishi, "Neural source-filter waveform models for statistical parametric speech
synthesis", TASLP 2020, section III-B, and its published recipe.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

_FRAMES_AT_ONCE = 512
AMPLITUDE, NOISE = 0.1, 0.003
_NEAR_PULSE = 1e-6


class Source(nn.Module, ABC):
    """One signal of F0."""

    def __init__(self, rate_hz: int, hop: int) -> None:
        super().__init__()
        self._rate_hz, self._hop = rate_hz, hop

    def forward(self, hz: Tensor, draw: torch.Generator, start: Tensor | None = None) -> Tensor:
        """Return the signal, shape (batch, 1, frames × hop), within −1 and 1.

        Args:
            hz: shape (batch, frames).
            draw: of the noise; on the processor every device gets the same.
            start: phases at the first sample in periods of F0, shape (batch,); 0 where not given.
        """
        phases = self.phases(hz, start)
        return self.signal(hz, phases, draw)

    def phases(self, hz: Tensor, start: Tensor | None = None) -> Tensor:
        """Periods of F0 since the first sample, float64, shape (batch, frames × hop)."""
        steps = hz.double().repeat_interleave(self._hop, dim=1) / self._rate_hz
        begun = torch.zeros_like(steps[:, 0]) if start is None else start.double()
        return begun[:, None] + steps.cumsum(dim=1)

    @abstractmethod
    def signal(self, hz: Tensor, phases: Tensor, draw: torch.Generator) -> Tensor:
        """As `forward`, of phases that are known."""

    def of_recording(self, hz: NDArray[np.float64]) -> Tensor:
        """Return the signal of a whole recording, made some frames at a time; its noise is always the same.

        Args:
            hz: shape (frames,).

        Returns:
            Shape (1, 1, frames × hop).
        """
        given, draw = torch.from_numpy(hz.astype(np.float32))[None], torch.Generator().manual_seed(0)
        phases = self.phases(given)
        with torch.inference_mode():
            parts = [
                self.signal(
                    given[:, start : start + _FRAMES_AT_ONCE],
                    phases[:, start * self._hop : (start + _FRAMES_AT_ONCE) * self._hop],
                    draw,
                )
                for start in range(0, hz.size, _FRAMES_AT_ONCE)
            ]
        return torch.cat(parts, dim=2)


class HarmonicSource(Source):
    """The network that it belongs to learns how loud each of some harmonics is."""

    def __init__(self, harmonics: int, rate_hz: int, hop: int) -> None:
        super().__init__(rate_hz, hop)
        self.harmonics = harmonics
        self.join = nn.Linear(harmonics, 1)

    def signal(self, hz: Tensor, phases: Tensor, draw: torch.Generator) -> Tensor:
        numbers = torch.arange(1, self.harmonics + 1, device=hz.device)
        within = (phases[:, :, None] * numbers).remainder(1).float()
        audible = (hz[:, :, None] * numbers < self._rate_hz / 2).repeat_interleave(self._hop, dim=1)
        voiced = (hz > 0).repeat_interleave(self._hop, dim=1)[:, :, None]
        noise = torch.randn(within.shape, generator=draw, device=draw.device).to(hz.device)
        sines = AMPLITUDE * torch.sin(2 * math.pi * within) * audible
        signal = torch.where(voiced, sines + NOISE * noise, AMPLITUDE / 3 * noise)
        return torch.tanh(self.join(signal.to(self.join.weight.device))).transpose(1, 2)


class PulseSource(Source):
    """All harmonics below half the rate, equally loud: a train of pulses."""

    def signal(self, hz: Tensor, phases: Tensor, draw: torch.Generator) -> Tensor:
        count = torch.where(hz > 0, self._rate_hz / 2 / hz.clamp_min(1.0), 0.0).floor()
        harmonics = count.repeat_interleave(self._hop, dim=1)
        angles = 2 * math.pi * phases.remainder(1)
        # The sum of so many cosines, which at the pulse itself are all 1.
        half = torch.sin(angles / 2)
        at_pulse = half.abs() < _NEAR_PULSE
        ratio = torch.sin((harmonics + 0.5) * angles) / torch.where(at_pulse, 1.0, 2 * half)
        pulses = torch.where(at_pulse, harmonics, ratio - 0.5) / harmonics.clamp_min(1.0).sqrt()
        noise = torch.randn(phases.shape, generator=draw, device=draw.device).to(hz.device)
        voiced = AMPLITUDE * pulses.float() + NOISE * noise
        return torch.where(harmonics > 0, voiced, AMPLITUDE / 3 * noise)[:, None]
