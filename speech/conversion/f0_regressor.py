"""F0 and voicing that are to be expected of what is said, in the voice of a speaker.

A network of convolutions over time reads content (sums of residual codes, which hardly hold the F0 of the speaker who
was recorded) and the GE2E vector of the wanted voice; at each frame it tells the logarithm of F0 and whether the frame
is voiced. Both are smoothed by a median over five frames. So the melody follows from words and voice alone.

Conventions: content and contours are at frames of the spectrum as in `content_decoder`; F0 is in Hz, 0 where unvoiced,
its logarithm is the natural one.

Sources: system T40 of the VoicePrivacy challenge 2022 (F0 by a frame-wise network from bottleneck and speaker vector);
E. Perez et al., "FiLM", AAAI 2018 (the vector's way into each layer).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from common.arrays import Floats, Floats32
from speech.conversion.content_decoder import cut_with_context
from speech.conversion.shape import RegressorShape
from speech.model_files.checkpoints import load_state
from speech.model_files.devices import Device, require_torch_device

SMOOTHED_FRAMES = 5
_KERNEL = 5


class F0Regressor(nn.Module):
    """The network: standardised logarithm of F0 and logit of voicing at each frame."""

    def __init__(self, shape: RegressorShape) -> None:
        super().__init__()
        self.shape = shape
        # Of the logarithm of F0 over the voiced frames of the training.
        self.register_buffer("mean", torch.tensor(math.log(150.0)))
        self.register_buffer("spread", torch.tensor(1.0))
        self.enter = nn.Linear(shape.content, shape.width)
        # Each layer sees twice as far as the one before it: 30 frames to each side in all.
        self.layers = nn.ModuleList(_Layer(shape, 2**number) for number in range(shape.layers))
        self.leave = nn.Sequential(nn.LayerNorm(shape.width), nn.Linear(shape.width, 2))

    def forward(self, content: Tensor, speakers: Tensor) -> Tensor:
        """Return both numbers of each frame, shape (batch, frames, 2).

        Args:
            content: shape (batch, frames, content). speakers: shape (batch, speaker).
        """
        values = self.enter(content)
        for layer in self.layers:
            values = layer(values, speakers)
        found: Tensor = self.leave(values)
        return found


class _Layer(nn.Module):
    """A convolution over time, scaled and moved by the vector of the speaker, beside what came in."""

    def __init__(self, shape: RegressorShape, spread: int) -> None:
        super().__init__()
        self.along = nn.Conv1d(shape.width, shape.width, _KERNEL, padding=_KERNEL // 2 * spread, dilation=spread)
        self.norm = nn.LayerNorm(shape.width)
        self.voice = nn.Linear(shape.speaker, 2 * shape.width)
        self.across = nn.Linear(shape.width, shape.width)

    def forward(self, values: Tensor, speakers: Tensor) -> Tensor:
        scale, shift = self.voice(speakers)[:, None].chunk(2, dim=2)
        hidden = self.norm(self.along(values.transpose(1, 2)).transpose(1, 2)) * (1 + scale) + shift
        result: Tensor = values + self.across(functional.gelu(hidden))
        return result


class Regressor:
    """The network with its weights, on a device."""

    def __init__(self, network: F0Regressor, device: Device = "cpu") -> None:
        require_torch_device(device)
        self._network = network.to(device).eval()
        self._device = device

    def estimate(self, content: Tensor, speaker: Floats32) -> Floats:
        """Return the logarithm of F0 at every frame and the logit of voicing, smoothed, shape (frames, 2).

        Args:
            content: of codes, as `Converter.find_content` gives it, shape (frames, content), one frame or more.
            speaker: unit vector, shape (256,).
        """
        vector = torch.from_numpy(speaker.astype(np.float32))[None].to(self._device)
        with torch.inference_mode():
            parts = [
                self._network(content[None, seen].to(self._device), vector)[0, kept].cpu().numpy()
                for seen, kept in cut_with_context(len(content))
            ]
            mean, spread = (float(self._network.get_buffer(name)) for name in ("mean", "spread"))
        found = smooth(np.concatenate(parts).astype(np.float64))
        found[:, 0] = mean + spread * found[:, 0]
        return found

    def predict(self, content: Tensor, speaker: Floats32) -> Floats:
        """Return F0 at the frames of the spectrum, 0 where unvoiced, shape (frames,). Arguments as of `estimate`."""
        logs, voicing = self.estimate(content, speaker).T
        return np.where(voicing > 0, np.exp(logs), 0.0)


def smooth(values: Floats) -> Floats:
    """Return the median over five frames about each one, the ends going on, shape (frames, numbers) as it came."""
    reach = SMOOTHED_FRAMES // 2
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
    found: Floats = np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED_FRAMES, axis=0), axis=-1)
    return found


def load(path: Path, device: Device = "cpu", shape: RegressorShape | None = None) -> Regressor:
    """Return a network of the declared sizes with the weights of a file, in 16 or 32 bits.

    Raises:
        InputError: not such a file, or other names or shapes than declared.
    """
    network = F0Regressor(shape or RegressorShape())
    load_state(path, network)
    return Regressor(network, device)
