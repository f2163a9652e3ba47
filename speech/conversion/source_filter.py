"""Samples from a spectrum, F0 and a speaker vector by filters of a source: the harmonic-plus-noise model hn-sinc-NSF.

All harmonics of F0 and noise are filtered, each by a response of each frame, which is the spectrum with a correction by
the network, and then by blocks of dilated convolutions. Both meet at a cut-off frequency that the network chooses for
each frame around one for voiced and one for unvoiced speech: of the harmonics, to which the network adds noise, what is
below it stays, of the noise what is above, by windowed sincs.
Conventions: spectra, frames and samples are those of `hifigan`, of speech at one loudness; F0 is in Hz, 0 where
unvoiced.

Differs from the published network: the responses and the noise among harmonics, which it does not have, and all
harmonics in place of eight, so that the blocks have less to learn; convolutions see both sides; ConvNeXt blocks that
the vector scales and moves stand for the recurrent layer of the condition; sizes are smaller.

Source: X. Wang, J. Yamagishi, "Neural harmonic-plus-noise waveform model with trainable maximum voice frequency for
text-to-speech synthesis", SSW 2019, sections 2 and 3; its place in baseline B1.a of the VoicePrivacy challenge 2022.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from common.arrays import Floats, Floats32
from speech.conversion.content_decoder import SpeakerBlock, cut_with_context, intonation, sharpen
from speech.conversion.shape import SourceFilterShape
from speech.features.mel import slaney_triangles
from speech.model_files.checkpoints import load_state
from speech.model_files.devices import Device, require_torch_device
from speech.vocoders.harmonic_source import AMPLITUDE, PulseSource
from speech.vocoders.hifigan import BANDS, HIGHEST_HZ, HOP_SAMPLES, RATE_HZ, SPECTRUM_POINTS

# The cut-off, as a part of half the rate, moves so far around its middle.
_VOICED_CUT, _UNVOICED_CUT, _CUT_RANGE = 0.7, 0.3, 0.2
_NARROW, _QUIETER = 16, 0.1  # of the last layers of a block
# Of the responses: frequencies, and points of the transforms that apply them to two frames at once.
_RESPONSES, _POINTS = 129, 1024
# What the logarithm of a response adds to a spectrum, to be as loud: of harmonics, of noise, and of the noise among
# harmonics, which before anything is learnt has e^-2.4 of the power of both.
_LEVELS = (3.1 + 0.5 * math.log1p(-math.exp(-2.4)), 3.67, 3.67 - 1.2)
# By how much the spectra of a decoder are spread.
_SPREAD = 1.5
# Frames of a piece of long speech, and what it sees to each side: 12 by the condition, 4 by responses and filters.
_FRAMES_AT_ONCE, _CONTEXT = 512, 32


def _interpolate_bands() -> Floats32:
    """Return weights that interpolate the bands of a spectrum at the frequencies of a response, shape (80, 129)."""
    triangles = slaney_triangles(SPECTRUM_POINTS, BANDS, RATE_HZ, HIGHEST_HZ)
    middles = triangles @ np.linspace(0, 1, triangles.shape[1]) / triangles.sum(axis=1)
    at = np.linspace(0, 1, _RESPONSES)
    return np.stack([np.interp(at, middles, band) for band in np.eye(BANDS)]).astype(np.float32)


class FilterBlock(nn.Module):
    """Dilated convolutions over samples, each told the condition; what they find is added to the signal."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.widen = nn.Conv1d(1, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=2**number, dilation=2**number) for number in range(layers)
        )
        self.narrow, self.leave = nn.Conv1d(width, _NARROW, 1), nn.Conv1d(_NARROW, 1, 1)
        # The signal passes unchanged until something is learnt.
        for each in self.leave.parameters():
            nn.init.zeros_(each)

    def forward(self, signal: Tensor, condition: Tensor) -> Tensor:
        """Signal, shape (batch, 1, n), filtered; condition of shape (batch, width, n)."""
        values = torch.tanh(self.widen(signal))
        for layer in self.layers:
            values = values + torch.tanh(layer(values)) + condition
        filtered: Tensor = signal + self.leave(torch.tanh(self.narrow(_QUIETER * values)))
        return filtered


class SourceFilter(nn.Module):
    """The network."""

    def __init__(self, shape: SourceFilterShape) -> None:
        super().__init__()
        self.shape = shape
        self.enter = nn.Conv1d(BANDS + 2, shape.width, 7, padding=3)
        self.blocks = nn.ModuleList(
            SpeakerBlock(shape.width, shape.speaker, 2**number) for number in range(shape.blocks)
        )
        self.norm = nn.LayerNorm(shape.width)
        self.condition, self.cut = nn.Linear(shape.width, shape.hidden), nn.Linear(shape.width, 1)
        self.correction = nn.Linear(shape.width, 3 * _RESPONSES)
        for each in self.correction.parameters():
            nn.init.zeros_(each)
        self.register_buffer("bands", torch.from_numpy(_interpolate_bands()), persistent=False)
        self.source = PulseSource(RATE_HZ, HOP_SAMPLES)
        self.harmonic = nn.ModuleList(FilterBlock(shape.hidden, shape.layers) for _ in range(shape.filters))
        self.noise = FilterBlock(shape.hidden, shape.layers)

    def forward(self, spectra: Tensor, tune: Tensor, speakers: Tensor, source: Tensor, noise: Tensor) -> Tensor:
        """Return samples, shape (batch, 256 frames).

        Args:
            spectra: shape (batch, frames, 80). tune: as `intonation` makes it, shape (batch, frames, 2).
            speakers: shape (batch, speaker). source, noise: shape (batch, 1, 256 frames).
        """
        values = self.enter(torch.cat([spectra, tune], dim=2).transpose(1, 2))
        for block in self.blocks:
            values = block(values, speakers)
        values = self.norm(values.transpose(1, 2))
        condition = functional.interpolate(
            self.condition(values).transpose(1, 2), scale_factor=HOP_SAMPLES, mode="linear"
        )
        envelope = spectra.float() @ self.get_buffer("bands")
        for_source, for_noise, for_rest = (
            (envelope + each + level).exp()
            for each, level in zip(self.correction(values).float().chunk(3, dim=2), _LEVELS, strict=True)
        )
        source = (respond(source[:, 0], for_source) + respond(noise[:, 0], for_rest))[:, None]
        for block in self.harmonic:
            source = block(source, condition)
        noise = self.noise(respond(noise[:, 0], for_noise)[:, None], condition)
        middle = _UNVOICED_CUT + (_VOICED_CUT - _UNVOICED_CUT) * tune[:, :, 1]
        low = low_pass(middle + _CUT_RANGE * torch.tanh(self.cut(values).float()[:, :, 0]), self.shape.taps)
        high = functional.one_hot(torch.tensor(self.shape.taps // 2), self.shape.taps).to(low) - low
        return filter_frames(source.float()[:, 0], low) + filter_frames(noise.float()[:, 0], high)


def respond(signal: Tensor, responses: Tensor) -> Tensor:
    """Return a signal, each frame by its own response without delay; from one to the next it goes over evenly.

    Args:
        signal: shape (batch, 256 frames).
        responses: magnitudes from 0 Hz to half the rate, shape (batch, frames, 129).
    """
    count, middle = signal.shape[1], responses.shape[2] - 1
    impulses = torch.fft.irfft(responses).roll(middle, dims=2) * torch.hann_window(2 * middle, device=signal.device)
    # Frames of twice their length in the middle of a window, the first and the last one once more.
    shifted = torch.cat([impulses[:, :1], impulses, impulses[:, -1:]], dim=1)
    half = HOP_SAMPLES // 2
    frames = functional.pad(signal, (HOP_SAMPLES + half, HOP_SAMPLES + half)).unfold(1, 2 * HOP_SAMPLES, HOP_SAMPLES)
    frames = frames * torch.hann_window(2 * HOP_SAMPLES, device=signal.device)
    made = torch.fft.irfft(torch.fft.rfft(frames, _POINTS) * torch.fft.rfft(shifted, _POINTS), _POINTS)
    whole = (made.shape[1] - 1) * HOP_SAMPLES + _POINTS
    joined = functional.fold(made.transpose(1, 2), (1, whole), (1, _POINTS), stride=(1, HOP_SAMPLES))[:, 0, 0]
    start = HOP_SAMPLES + half + middle
    return joined[:, start : start + count]


def low_pass(cut: Tensor, taps: int) -> Tensor:
    """Windowed sincs that let pass what is below a frequency, of sum 1, shape (…, taps).

    Args:
        cut: the frequency as a part of half the rate, shape (…). taps: odd.
    """
    places = torch.arange(taps, device=cut.device) - taps // 2
    shaped = torch.sinc(cut[..., None] * places) * torch.hamming_window(taps, periodic=False, device=cut.device)
    return shaped / shaped.sum(dim=-1, keepdim=True)


def filter_frames(signal: Tensor, filters: Tensor) -> Tensor:
    """Return a signal, each frame of 256 samples by a filter of its own; nothing comes before and after it.

    Args:
        signal: shape (batch, 256 frames). filters: shape (batch, frames, taps), taps odd and symmetric.
    """
    taps = filters.shape[2]
    around = functional.pad(signal, (taps // 2, taps // 2)).unfold(1, taps, 1)
    by_frame = around.reshape(len(signal), -1, HOP_SAMPLES, taps)
    return torch.einsum("bfnt,bft->bfn", by_frame, filters).flatten(1)


class SourceFilterVocoder:
    """The network with its weights, on a device."""

    def __init__(self, network: SourceFilter, device: Device = "cpu") -> None:
        require_torch_device(device)
        self._network = network.to(device).eval()
        self._device = device

    def synthesize(self, spectrum: Floats32, hz: Floats, speaker: Floats32) -> Floats32:
        """Return the samples of speech, 256 of each frame.

        Args:
            spectrum: of a decoder, which is sharpened; shape (frames, 80), one frame or more.
            hz: F0, 0 where unvoiced, shape (frames,).
            speaker: unit vector, shape (256,).
        """
        network = self._network
        with torch.inference_mode():
            bands = torch.from_numpy(sharpen(spectrum, _SPREAD)).to(self._device)
            given = torch.from_numpy(intonation(hz)).to(self._device)
            vector = torch.from_numpy(speaker.astype(np.float32))[None].to(self._device)
            source = network.source.of_recording(hz).to(self._device)
            noise = make_noise((1, 1, source.shape[2]), torch.Generator().manual_seed(1)).to(self._device)
            parts = []
            for seen, kept in cut_with_context(len(bands), _FRAMES_AT_ONCE, _CONTEXT):
                heard, whole = (slice(each.start * HOP_SAMPLES, each.stop * HOP_SAMPLES) for each in (seen, kept))
                inputs = bands[None, seen], given[None, seen], vector, source[:, :, heard], noise[:, :, heard]
                parts.append(network(*inputs)[0, whole].cpu().numpy())
        found: Floats32 = np.concatenate(parts)
        return found


def make_noise(shape: tuple[int, ...], draw: torch.Generator) -> Tensor:
    """Return what the noise block filters, as loud as the source where it is unvoiced."""
    return AMPLITUDE / 3 * torch.randn(shape, generator=draw, device=draw.device)


def load(path: Path, device: Device = "cpu", shape: SourceFilterShape | None = None) -> SourceFilterVocoder:
    """Return a network of the declared sizes with the weights of a file, in 16 or 32 bits.

    Raises:
        InputError: not such a file, or other names or shapes than declared.
    """
    network = SourceFilter(shape or SourceFilterShape())
    load_state(path, network)
    return SourceFilterVocoder(network, device)
