"""Speech made of content, F0 and a speaker vector by one network, with no spectrum in between.

Blocks over time read content, F0 and voicing, scaled and moved by the vector, and the generator of HiFi-GAN makes
samples of what they give and of a source of harmonics, F0 as a signal. Conventions: content and F0 are at the frames of
the spectrum as in `content_decoder`, 256 samples at 22,050 Hz each; samples are float32, full scale 1.0, of speech at
the one loudness.

Sources: baseline B1.b of the VoicePrivacy challenge 2022 (joint training of acoustic model and neural source-filter
generator with the discriminators of HiFi-GAN); J. Kong et al., "HiFi-GAN", NeurIPS 2020; X. Wang et al., TASLP 2020
(source).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from speech.conversion.content_decoder import SpeakerBlock, cut_with_context, intonation
from speech.conversion.shape import GeneratorShape
from speech.model_files.checkpoints import load_state
from speech.model_files.devices import Device, require_torch_device
from speech.vocoders.harmonic_source import HarmonicSource
from speech.vocoders.hifigan import HOP_SAMPLES, RATE_HZ, Generator

Floats32 = NDArray[np.float32]
Floats = NDArray[np.float64]

# Frames of a piece of long speech, and what it sees to each side: 27 by the blocks, 16 by the generator.
_FRAMES_AT_ONCE, _CONTEXT = 512, 48


class JointGenerator(nn.Module):
    """The network."""

    def __init__(self, shape: GeneratorShape) -> None:
        super().__init__()
        self.shape = shape
        self.enter = nn.Conv1d(shape.content + 2, shape.width, 7, padding=3)
        self.blocks = nn.ModuleList(
            SpeakerBlock(shape.width, shape.speaker, 2 ** (number % 3)) for number in range(shape.blocks)
        )
        self.norm = nn.LayerNorm(shape.width)
        self.source = HarmonicSource(shape.harmonics, RATE_HZ, HOP_SAMPLES)
        self.generator = Generator(shape.channels, shape.width, source=True)

    def forward(self, content: Tensor, tune: Tensor, speakers: Tensor, source: Tensor) -> Tensor:
        """Samples, shape (batch, 256 frames).

        Args:
            content: shape (batch, frames, content). tune: as `intonation` makes it, shape (batch, frames, 2).
            speakers: shape (batch, speaker). source: shape (batch, 1, 256 frames).
        """
        values = self.enter(torch.cat([content, tune], dim=2).transpose(1, 2))
        for block in self.blocks:
            values = block(values, speakers)
        values = self.norm(values.transpose(1, 2)).transpose(1, 2)
        samples: Tensor = self.generator(values, source)
        return samples


class JointSynthesizer:
    """The network with its weights, on a device."""

    def __init__(self, network: JointGenerator, device: Device = "cpu") -> None:
        require_torch_device(device)
        self._network = network.to(device).eval()
        self._device = device

    def synthesize(self, content: Tensor, hz: Floats, speaker: Floats32) -> Floats32:
        """The samples of speech, 256 of each frame.

        Args:
            content: as `Converter.find_content` gives it, shape (frames, content), one frame or more.
            hz: F0 as it shall be, 0 where unvoiced, shape (frames,).
            speaker: unit vector, shape (256,).
        """
        network = self._network
        with torch.inference_mode():
            given = torch.from_numpy(intonation(hz)).to(self._device)
            vector = torch.from_numpy(speaker.astype(np.float32))[None].to(self._device)
            content = content.to(self._device)
            source = network.source.of_recording(hz)
            parts = []
            for seen, kept in cut_with_context(len(content), _FRAMES_AT_ONCE, _CONTEXT):
                heard, whole = (slice(each.start * HOP_SAMPLES, each.stop * HOP_SAMPLES) for each in (seen, kept))
                sound = network(content[None, seen], given[None, seen], vector, source[:, :, heard])[0]
                parts.append(sound[whole].cpu().numpy())
        found: Floats32 = np.concatenate(parts)
        return found


def load(path: Path, device: Device = "cpu", shape: GeneratorShape | None = None) -> JointSynthesizer:
    """A network of the declared sizes with the weights of a file, in 16 or 32 bits.

    Raises:
        CheckpointError: not such a file, or other names or shapes than declared.
    """
    network = JointGenerator(shape or GeneratorShape())
    load_state(path, network)
    return JointSynthesizer(network, device)
