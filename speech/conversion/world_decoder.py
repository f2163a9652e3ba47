"""Parameters of the vocoder WORLD made of content, F0 and a speaker vector: a decoder that needs no neural vocoder.

Blocks over time read content, F0 and voicing, scaled and moved by the vector, and give envelope and aperiodicity of
each frame; WORLD makes samples of them and of F0.
Conventions: content and F0 are at the frames of the spectrum as in `content_decoder`, 256 samples at 22,050 Hz each;
parameters are those of `world_parameters`, of speech at the one loudness.

Sources: M. Morise et al., IEICE Transactions E99-D (7), 2016 (WORLD); F. Fang et al., SSW 2019 (an acoustic model from
phonetic features, F0 and a vector to the parameters of a vocoder); Z. Liu et al., "A ConvNet for the 2020s", CVPR 2022
(blocks).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from common.arrays import Floats, Floats32, Samples
from speech.conversion.content_decoder import (
    FRAME_S,
    LOUDNESS,
    SpeakerBlock,
    contour_at_spectra,
    count_spectra,
    cut_with_context,
    intonation,
    loudness,
    sharpen,
)
from speech.conversion.shape import WorldDecoderShape
from speech.model_files.checkpoints import load_state
from speech.model_files.devices import Device, require_torch_device
from speech.pitch.estimators import F0Track
from speech.vocoders.world_parameters import PARAMETERS, POINTS, analyse

# By how much envelopes are spread.
_SPREAD = 1.3


class WorldDecoder(nn.Module):
    """The network."""

    def __init__(self, shape: WorldDecoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.enter = nn.Conv1d(shape.content + 2, shape.width, 7, padding=3)
        self.blocks = nn.ModuleList(
            SpeakerBlock(shape.width, shape.speaker, 2 ** (number % 3)) for number in range(shape.blocks)
        )
        self.leave = nn.Sequential(nn.LayerNorm(shape.width), nn.Linear(shape.width, PARAMETERS))

    def forward(self, content: Tensor, tune: Tensor, speakers: Tensor) -> Tensor:
        """Parameters, shape (batch, frames, 81).

        Args:
            content: shape (batch, frames, content). tune: as `intonation` makes it, shape (batch, frames, 2).
            speakers: shape (batch, speaker).
        """
        values = self.enter(torch.cat([content, tune], dim=2).transpose(1, 2))
        for block in self.blocks:
            values = block(values, speakers)
        found: Tensor = self.leave(values.transpose(1, 2))
        return found


def parameters_at_loudness(samples: Samples, track: F0Track) -> Floats32:
    """Return the parameters that the network learns, of the samples at the one loudness, shape (frames, 81).

    Args:
        samples: 16 kHz. track: their F0.

    Raises:
        InputError: pyworld is absent.
    """
    level = loudness(samples)
    sound = samples.astype(np.float64) / 32768 * (LOUDNESS / level if level else 1.0)
    return analyse(sound, contour_at_spectra(track, count_spectra(samples.size)), FRAME_S)


class WorldConverter:
    """The network with its weights, on a device."""

    def __init__(self, network: WorldDecoder, device: Device = "cpu") -> None:
        require_torch_device(device)
        self._network = network.to(device).eval()
        self._device = device

    def speak(self, content: Tensor, hz: Floats, speaker: Floats32) -> Floats32:
        """Return the parameters of what is said in a voice, their envelopes sharpened, shape (frames, 81).

        Args:
            content: shape (frames, content). hz: F0 there, as it shall be, shape (frames,).
            speaker: unit vector, shape (256,).
        """
        with torch.inference_mode():
            given = torch.from_numpy(intonation(hz)).to(self._device)
            vector = torch.from_numpy(speaker.astype(np.float32))[None].to(self._device)
            parts = [
                self._network(content[None, seen].to(self._device), given[None, seen], vector)[0, kept].cpu().numpy()
                for seen, kept in cut_with_context(hz.size)
            ]
        found: Floats32 = np.concatenate(parts)
        found[:, :POINTS] = sharpen(found[:, :POINTS], _SPREAD)
        return found


def load(path: Path, device: Device = "cpu", shape: WorldDecoderShape | None = None) -> WorldConverter:
    """Return a network of the declared sizes with the weights of a file, in 16 or 32 bits.

    Raises:
        InputError: not such a file, or other names or shapes than declared.
    """
    network = WorldDecoder(shape or WorldDecoderShape())
    load_state(path, network)
    return WorldConverter(network, device)
