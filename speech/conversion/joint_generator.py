"""Speech made of content, F0 and a speaker vector by one network that learns from samples.

Blocks over time read content, F0 and voicing, scaled and moved by the vector, and the generator of HiFi-GAN makes
samples of what they give: of no spectrum, and of a source of harmonics, F0 as a signal (`JointGenerator`); or of the
spectrum of a decoder, whose last layers learn together with the first ones of the generator (`JointHifiGan`).
Conventions: content and F0 are at the frames of the spectrum as in `content_decoder`, 256 samples at 22,050 Hz each;
samples are float32, full scale 1.0, of speech at the one loudness.

Sources: baseline B1.b of the VoicePrivacy challenge 2022 (joint training of acoustic model and neural source-filter
generator with the discriminators of HiFi-GAN), and its form with a plain HiFi-GAN (`joint_hifigan`); J. Kong et al.,
"HiFi-GAN", NeurIPS 2020; X. Wang et al., TASLP 2020 (source).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from common.arrays import Floats, Floats32
from speech.conversion.content_decoder import ContentDecoder, Converter, SpeakerBlock, cut_with_context, intonation
from speech.conversion.shape import GeneratorShape, JointHifiGanShape
from speech.model_files.checkpoints import load_state, put_state, read_state
from speech.model_files.devices import Device, require_torch_device
from speech.model_files.store import find
from speech.vocoders.harmonic_source import HarmonicSource
from speech.vocoders.hifigan import HOP_SAMPLES, RATE_HZ, WEIGHTS, Generator, HifiGan, load_generator

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
        """Return samples, shape (batch, 256 frames).

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
        """Return the samples of speech, 256 of each frame.

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


class JointHifiGan(nn.Module):
    """A decoder and the generator of HiFi-GAN, of which the layers next to the spectrum learn, and no others."""

    def __init__(self, decoder: ContentDecoder, generator: Generator, shape: JointHifiGanShape) -> None:
        super().__init__()
        self.shape = shape
        self.decoder, self.generator = decoder, generator
        self.requires_grad_(requires_grad=False)
        blocks = list(decoder.blocks)
        learning = [*blocks[max(0, len(blocks) - shape.blocks) :], decoder.leave]
        learning += [decoder.enter] if shape.blocks >= len(blocks) else []
        for group in generator.groups()[: shape.groups]:
            learning += group
        for module in learning:
            module.requires_grad_(requires_grad=True)

    def forward(self, content: Tensor, tune: Tensor, speakers: Tensor) -> Tensor:
        """Return samples, shape (batch, 256 frames); content, tune and speakers as in `ContentDecoder.decode`."""
        samples: Tensor = self.generator(self.decoder.decode(content, tune, speakers).transpose(1, 2))
        return samples

    def learnt(self) -> dict[str, Tensor]:
        """Return the tensors that learn, by name."""
        return {name: tensor for name, tensor in self.named_parameters() if tensor.requires_grad}


def load_hifigan(
    path: Path, decoder: ContentDecoder, shape: JointHifiGanShape | None = None, generator: Generator | None = None
) -> tuple[Converter, HifiGan]:
    """Decoder and generator with what they learnt together, by the tensors of a file, in 16 or 32 bits.

    Args:
        decoder, generator: that the training began from, by default the universal one; they are changed.

    Raises:
        InputError: not such a file, or other names or shapes than declared.
        InputError: the universal weights are not here.
    """
    network = JointHifiGan(decoder, generator or load_generator(find(WEIGHTS)), shape or JointHifiGanShape())
    put_state(read_state(path), network, path, only=network.learnt())
    return Converter(network.decoder), HifiGan(network.generator)


def load(path: Path, device: Device = "cpu", shape: GeneratorShape | None = None) -> JointSynthesizer:
    """Return a network of the declared sizes with the weights of a file, in 16 or 32 bits.

    Raises:
        InputError: not such a file, or other names or shapes than declared.
    """
    network = JointGenerator(shape or GeneratorShape())
    load_state(path, network)
    return JointSynthesizer(network, device)
