"""Speech made anew from what is said, how it is intoned, and the vector of a speaker.

What is said comes from middle layers of Whisper's encoder through a narrow bottleneck, as it is or by a few codes a
frame; how it is intoned is F0, moved to the mean and spread of the wanted voice; who speaks is a GE2E vector. A network
makes a mel spectrum of these three, and HiFi-GAN the samples. The codes are residual: each stage names the rest that
the stages before it left, so one network serves every number of stages. Another network has soft units in their place.

Conventions: samples are int16, mono, 16 kHz, shape (n,); frames of content last 20 ms, spectra and their frames are as
in `hifigan` (22,050 Hz, 256 samples a frame, natural logarithm), of speech at one loudness; F0 is in Hz, 0 where
unvoiced.

Sources: X. Miao et al. and P. Champion on bottlenecks and pools (baselines B1 and B5 of the VoicePrivacy challenges);
N. Zeghidour et al., "SoundStream", 2021 (residual codes, their number drawn in training); B. van Niekerk et al., ICASSP
2022, equation 1 (soft units); Z. Liu et al., "A ConvNet for the 2020s", CVPR 2022 (blocks); E. Perez et al., "FiLM",
AAAI 2018 (the vector's way into each block).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from common.arrays import Floats, Floats32, Samples
from common.errors import InputError
from speech.audio.files import resample
from speech.conversion.shape import DecoderShape, SoftUnitsShape
from speech.features.whisper_layers import WhisperLayers, cut_evenly
from speech.model_files.checkpoints import load_state
from speech.model_files.devices import Device, require_torch_device
from speech.pitch.estimators import F0Track
from speech.vocoders.hifigan import BANDS, HOP_SAMPLES, log_mel
from speech.vocoders.hifigan import RATE_HZ as VOCODER_HZ

RATE_HZ = 16_000
LAYERS = (3, 4, 5)
FRAMES_PER_S = 50  # of content
FRAME_S = HOP_SAMPLES / VOCODER_HZ  # of a spectrum
# Spectra are of speech whose loudest half has this RMS, of full scale 1.
LOUDNESS = 0.06
_MIDDLE_HZ, _RANGE_NEPER = 150.0, 0.5
_SHARPNESS = 10.0
_SHARPER = 0.3  # a value moves away from its two neighbours by this part of its distances to both
_SPECTRA_AT_ONCE, _CONTEXT = 2048, 64  # frames of a piece of a long spectrum, and what it sees to each side


class ContentDecoder(nn.Module):
    """The network: `encode` makes content of layers, `quantize` codes of it, `decode` spectra."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", torch.zeros(shape.inputs))
        self.register_buffer("spread", torch.ones(shape.inputs))
        self.narrow = nn.Sequential(
            nn.Linear(shape.inputs, shape.width), nn.GELU(), nn.Linear(shape.width, shape.bottleneck)
        )
        self.register_buffer("codebooks", torch.zeros(shape.stages, shape.codes, shape.bottleneck))
        self.enter = nn.Conv1d(shape.bottleneck + 2, shape.width, 7, padding=3)
        self.blocks = nn.ModuleList(
            SpeakerBlock(shape.width, shape.speaker, 2 ** (number % 3)) for number in range(shape.blocks)
        )
        self.leave = nn.Sequential(nn.LayerNorm(shape.width), nn.Linear(shape.width, BANDS))

    def encode(self, layers: Tensor) -> Tensor:
        """Return content, shape (batch, frames, bottleneck), of layers, shape (batch, frames, inputs)."""
        found: Tensor = self.narrow(self.normalize(layers))
        return found

    def normalize(self, layers: Tensor) -> Tensor:
        """Return layers with mean 0 and spread 1 of each number over the speech that was learnt from."""
        return (layers - self.get_buffer("mean")) / self.get_buffer("spread")

    def quantize(self, content: Tensor, stages: int) -> tuple[Tensor, Tensor]:
        """Return content by the codes nearest to it, and which they are.

        Args:
            content: shape (…, bottleneck). stages: from 1 to those of the shape.

        Returns:
            What the codes sum to after each stage, shape (stages, …, bottleneck), and their numbers, (stages, …).
        """
        books = self.get_buffer("codebooks")
        rest, sums, numbers = content, [], []
        for book in books[:stages]:
            distance = (book.square().sum(dim=1) - 2 * rest @ book.T).argmin(dim=-1)
            rest = rest - book[distance]
            sums.append(content - rest)
            numbers.append(distance)
        return torch.stack(sums), torch.stack(numbers)

    def decode(self, content: Tensor, intonation: Tensor, speakers: Tensor) -> Tensor:
        """Return spectra, shape (batch, frames, 80).

        Args:
            content: at the frames of the spectrum, shape (batch, frames, bottleneck).
            intonation: as `intonation` makes it, shape (batch, frames, 2).
            speakers: shape (batch, speaker).
        """
        values = self.enter(torch.cat([content, intonation], dim=2).transpose(1, 2))
        for block in self.blocks:
            values = block(values, speakers)
        found: Tensor = self.leave(values.transpose(1, 2))
        return found


class SoftUnitsDecoder(ContentDecoder):
    """The network with soft units: content of length √bottleneck, which was learnt to name one of the units."""

    def __init__(self, shape: SoftUnitsShape) -> None:
        super().__init__(shape)
        self.units = nn.Parameter(torch.randn(shape.units, shape.bottleneck))

    def encode(self, layers: Tensor) -> Tensor:
        return functional.normalize(super().encode(layers), dim=-1) * math.sqrt(self.shape.bottleneck)

    def name_units(self, content: Tensor) -> Tensor:
        """Return scores of the units, shape (…, units): ten times the cosines of content and units."""
        units = functional.normalize(self.units, dim=1)
        return _SHARPNESS / math.sqrt(self.shape.bottleneck) * content @ units.T


class SpeakerBlock(nn.Module):
    """A ConvNeXt block over time, scaled and moved by the vector of the speaker.

    width: numbers of a frame. speaker: of the vector. spread: dilation of the convolution.
    """

    def __init__(self, width: int, speaker: int, spread: int) -> None:
        super().__init__()
        self.along = nn.Conv1d(width, width, 7, padding=3 * spread, dilation=spread, groups=width)
        self.norm = nn.LayerNorm(width)
        self.voice = nn.Linear(speaker, 2 * width)
        self.across = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, values: Tensor, speakers: Tensor) -> Tensor:
        scale, shift = self.voice(speakers)[:, None].chunk(2, dim=2)
        hidden = self.norm(self.along(values).transpose(1, 2)) * (1 + scale) + shift
        result: Tensor = values + self.across(hidden).transpose(1, 2)
        return result


# What goes in -------------------------------------------------------------------------------------


def content_layers(samples: Samples, encoder: WhisperLayers) -> Floats32:
    """Return the layers that content is made of, less their mean over each piece of 30 s at most, shape (frames, 1536).

    Args:
        samples: n ≥ 1; frames = n / 320, rounded up.
    """
    pieces = (encoder.encode([piece], RATE_HZ, LAYERS)[0] for piece in cut_evenly(samples))
    return np.concatenate([center_layers(piece) for piece in pieces])


def center_layers(layers: Floats32) -> Floats32:
    """Return layers of a piece less their mean over it, shape (frames, 1536).

    Args:
        layers: shape (3, frames, 512).
    """
    joined = np.concatenate(list(layers), axis=1)
    centred: Floats32 = joined - joined.mean(axis=0)
    return centred


def count_spectra(n_samples: int) -> int:
    """Return how many frames a spectrum of so many samples at 16 kHz has."""
    return -(-n_samples * VOCODER_HZ // (RATE_HZ * HOP_SAMPLES))


def places_of_content(count: int) -> Floats:
    """Where the middles of so many frames of a spectrum lie, in frames of content, shape (count,)."""
    places: Floats = (np.arange(count, dtype=np.float64) + 0.5) * (FRAME_S * FRAMES_PER_S) - 0.5
    return places


def contour_at_spectra(track: F0Track, count: int) -> Floats:
    """Return F0 at the frames of a spectrum, of the nearest frame of the track; 0 where unvoiced; shape (count,)."""
    found = np.zeros(count)
    times = (np.arange(count) + 0.5) * FRAME_S
    nearest = np.round((times - track.start_s) / track.step_s).astype(np.intp)
    inside = (nearest >= 0) & (nearest < track.hz.size)
    found[inside] = track.hz[nearest[inside]]
    return found


def intonation(hz: Floats) -> Floats32:
    """Return what the network takes of F0, shape (frames, 2): its logarithm, 0 where unvoiced, and whether it is
    voiced."""
    voiced = hz > 0
    logs = np.log(np.where(voiced, hz, _MIDDLE_HZ) / _MIDDLE_HZ) / _RANGE_NEPER
    return np.stack([logs, voiced], axis=1).astype(np.float32)


def log_f0(given: Tensor) -> Tensor:
    """Return the natural logarithm of F0 in Hz of what `intonation` made, shape (…, frames); of unvoiced frames no
    F0."""
    return math.log(_MIDDLE_HZ) + _RANGE_NEPER * given[..., 0]


def loudness(samples: Samples) -> float:
    """RMS of the louder half of pieces of 20 ms, of full scale 1; 0 of silence."""
    step = RATE_HZ // FRAMES_PER_S
    padded = np.pad(samples.astype(np.float64) / 32768, (0, -samples.size % step))
    power = np.sort(np.square(padded.reshape(-1, step)).mean(axis=1))
    return float(np.sqrt(power[power.size // 2 :].mean()))


def spectrum_at_loudness(samples: Samples) -> Floats32:
    """Return the spectrum that the network learns, of the samples at the one loudness, shape (frames, 80)."""
    return log_mel(wave_at_loudness(samples))[: count_spectra(samples.size)]


def wave_at_loudness(samples: Samples) -> Floats32:
    """Return the samples at 22,050 Hz and at the one loudness, of full scale 1, shape (n,)."""
    sound = resample(samples, RATE_HZ, VOCODER_HZ).astype(np.float32) / np.float32(32768)
    level = loudness(samples)
    return sound * np.float32(LOUDNESS / level if level else 1.0)


# Conversion ---------------------------------------------------------------------------------------


class Converter:
    """The network with its weights, on a device."""

    def __init__(self, network: ContentDecoder, device: Device = "cpu") -> None:
        require_torch_device(device)
        self._network = network.to(device).eval()
        self._device = device

    def find_content(self, layers: Floats32, count: int, stages: int) -> Tensor:
        """Return what is said at so many frames of a spectrum, shape (count, bottleneck).

        Args:
            layers: as `content_layers` makes them, shape (frames of content, 1536), one frame or more.
            stages: how many codes describe a frame; 0 takes the content as it is.

        Raises:
            InputError: more stages than there are.
        """
        if not 0 <= stages <= self._network.shape.stages:
            raise InputError(f"Expected 0 to {self._network.shape.stages} stages of codes, found {stages}.")
        with torch.inference_mode():
            content = self._network.encode(torch.from_numpy(layers).to(self._device))
            if stages:
                content = self._network.quantize(content, stages)[0][-1]
            return at_places(content, places_of_content(count))

    def encode(self, layers: Floats32) -> Floats32:
        """Return content at its own frames, shape (frames of content, bottleneck)."""
        with torch.inference_mode():
            found: Floats32 = self._network.encode(torch.from_numpy(layers).to(self._device)).cpu().numpy()
        return found

    def convert(self, layers: Floats32, hz: Floats, speaker: Floats32, stages: int) -> Floats32:
        """Return the spectrum of the speech in a voice, shape (frames, 80).

        Args:
            layers, stages: as `find_content` takes them.
            hz, speaker: as `speak` takes them.

        Raises:
            InputError: more stages than there are.
        """
        return self.speak(self.find_content(layers, hz.size, stages), hz, speaker)

    def speak(self, content: Tensor, hz: Floats, speaker: Floats32) -> Floats32:
        """Return the spectrum of what is said in a voice, shape (frames, 80).

        Args:
            content: at the frames of the spectrum, shape (frames, bottleneck).
            hz: F0 there, as it shall be, shape (frames,).
            speaker: unit vector, shape (256,).
        """
        content = content.to(self._device)
        with torch.inference_mode():
            given = torch.from_numpy(intonation(hz)).to(self._device)
            vector = torch.from_numpy(speaker.astype(np.float32))[None].to(self._device)
            parts = []
            for seen, kept in cut_with_context(hz.size):
                bands = self._network.decode(content[None, seen], given[None, seen], vector)[0]
                parts.append(bands[kept].cpu().numpy())
        found: Floats32 = np.concatenate(parts)
        return found


def cut_with_context(
    count: int, at_once: int = _SPECTRA_AT_ONCE, context: int = _CONTEXT
) -> Iterator[tuple[slice, slice]]:
    """Yield pieces of a long spectrum: the frames that a network sees, and which of these are kept.

    Args:
        at_once: frames that are kept of a piece. context: that it sees to each side.
    """
    for start in range(0, count, at_once):
        first, end = max(0, start - context), min(count, start + at_once)
        yield slice(first, min(count, end + context)), slice(start - first, end - first)


def at_places(content: Tensor, places: Floats) -> Tensor:
    """Return content between its frames, interpolated; the ends go on. Shape (places, bottleneck)."""
    where = np.clip(places, 0, len(content) - 1)
    before = where.astype(np.intp)
    share = torch.from_numpy((where - before).astype(np.float32)).to(content.device)[:, None]
    after = np.minimum(before + 1, len(content) - 1)
    return (1 - share) * content[torch.from_numpy(before)] + share * content[torch.from_numpy(after)]


def sharpen(spectra: Floats32, spread: float) -> Floats32:
    """Return spectra of a decoder, which are smoother than those of recordings, with larger differences.

    Each value moves away from the mean of its two neighbours in time and then in bands, after it moved away from the
    mean of its band.

    Args:
        spectra: natural logarithms, shape (frames, bands).
        spread: a value is moved so many times as far from the mean of its band as it was.

    Sources: T. Toda, K. Tokuda, "A speech parameter generation algorithm considering global variance for HMM-based
    speech synthesis", IEICE 2007; S. Takamichi et al., "Postfilters to modify the modulation spectrum for statistical
    parametric speech synthesis", TASLP 2016 (both fit their factors to recordings; here they are fixed).
    """
    mean = spectra.mean(axis=0)
    found = mean + spread * (spectra - mean)
    for axis in (0, 1):
        before, after = (
            np.take(found, np.clip(np.arange(found.shape[axis]) + step, 0, found.shape[axis] - 1), axis)
            for step in (-1, 1)
        )
        found = found + _SHARPER * (2 * found - before - after)
    sharpened: Floats32 = found.astype(np.float32)
    return sharpened


def load_network(path: Path, shape: DecoderShape | None = None) -> ContentDecoder:
    """Return a network of the declared sizes with the weights of a file, in 16 or 32 bits.

    Raises:
        InputError: not such a file, or other names or shapes than declared.
    """
    shape = shape or DecoderShape()
    network = SoftUnitsDecoder(shape) if isinstance(shape, SoftUnitsShape) else ContentDecoder(shape)
    load_state(path, network)
    return network.eval()


def load(path: Path, device: Device = "cpu", shape: DecoderShape | None = None) -> Converter:
    """As `load_network`, on a device. Raises InputError likewise."""
    return Converter(load_network(path, shape), device)
