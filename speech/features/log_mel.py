"""Log-mel features of ECAPA-TDNN as SpeechBrain computes them, in torch and on whatever device the samples are.

Hamming windows of 25 ms every 10 ms, centred, zeros around the utterance; power spectrum of 400 points; triangles of
equal slopes from 0 to 8 kHz; decibels, at most 80 below the utterance's maximum; the mean of each band over the
utterance taken off. Conventions: samples float32 in [-1, 1] at 16 kHz; samples behind an utterance's length have no
effect.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from common.errors import InputError

RATE_HZ = 16_000
WINDOW, HOP = 400, 160  # samples
FLOOR_POWER, RANGE_DB = 1e-10, 80.0


def frame_counts(lengths: Tensor) -> Tensor:
    """Return frames of utterances of some samples, both shape (batch,)."""
    return lengths // HOP + 1


def log_mel(waveforms: Tensor, lengths: Tensor | None = None, bands: int = 80) -> Tensor:
    """Return features with the mean of each utterance removed, shape (batch, frames, bands); 0 behind an utterance's
    end.

    Args:
        waveforms: float32, shape (batch, samples), -1 to 1.
        lengths: samples of each utterance, shape (batch,), integers; None where all are as long as the batch.

    Raises:
        InputError: not a batch of waveforms, an empty utterance or one longer than the batch.
    """
    if waveforms.ndim != 2 or waveforms.shape[1] == 0:
        raise InputError(f"Expected waveforms of shape (batch, samples), found {tuple(waveforms.shape)}.")
    if lengths is None:
        return _decibels(waveforms.float(), None, bands)
    if int(lengths.min()) < 1 or int(lengths.max()) > waveforms.shape[1]:
        raise InputError(
            f"Expected utterances of 1 to {waveforms.shape[1]} samples, "
            f"found {int(lengths.min())} to {int(lengths.max())}."
        )
    lengths = lengths.to(waveforms.device)
    heard = torch.arange(waveforms.shape[1], device=waveforms.device) < lengths[:, None]
    return _decibels(waveforms.float() * heard, frame_counts(lengths), bands)


def _decibels(waveforms: Tensor, frames: Tensor | None, bands: int) -> Tensor:
    device = waveforms.device
    spectrum = torch.stft(
        waveforms, WINDOW, HOP, window=_window(device), center=True, pad_mode="constant", return_complex=True
    )
    power = (spectrum.real.square() + spectrum.imag.square()).transpose(1, 2)
    levels = 10.0 * torch.log10((power @ _triangles(bands, device)).clamp_min(FLOOR_POWER))
    if frames is None:
        levels = torch.maximum(levels, levels.amax(dim=(1, 2), keepdim=True) - RANGE_DB)
        return levels - levels.mean(dim=1, keepdim=True)
    counts = (torch.arange(levels.shape[1], device=device) < frames[:, None])[:, :, None]
    loudest = levels.masked_fill(~counts, -torch.inf).amax(dim=(1, 2), keepdim=True)
    levels = torch.maximum(levels, loudest - RANGE_DB) * counts
    return (levels - levels.sum(dim=1, keepdim=True) / frames[:, None, None]) * counts


@lru_cache(maxsize=8)
def _window(device: torch.device) -> Tensor:
    return torch.hamming_window(WINDOW, device=device)


@lru_cache(maxsize=8)
def _triangles(bands: int, device: torch.device) -> Tensor:
    """Return weights of the spectral lines in each band, shape (201, bands).

    Both slopes of a triangle are as wide as its lower one, as in SpeechBrain's ``Filterbank``.
    """
    highest = 2595.0 * torch.log10(torch.tensor(1.0 + RATE_HZ / 2 / 700.0)).item()
    edges = 700.0 * (10.0 ** (torch.linspace(0.0, highest, bands + 2) / 2595.0) - 1.0)
    widths = (edges[1:] - edges[:-1])[:-1]
    lines = torch.linspace(0.0, RATE_HZ / 2, WINDOW // 2 + 1)
    slopes = (lines[:, None] - edges[1:-1]) / widths
    return torch.minimum(slopes + 1.0, 1.0 - slopes).clamp_min(0.0).to(device)
