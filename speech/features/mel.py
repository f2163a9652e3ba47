"""Log mel filterbank energies as Kaldi computes them, and the triangles of Slaney's mel scale that librosa uses.

Many published speaker encoders were trained on Kaldi's. Per frame: the mean is taken off, pre-emphasis, window, power
spectrum of the next power of two, triangles on the mel scale, natural logarithm. Conventions: samples at the scale of
int16, shape (n,); only whole frames ("snip edges"), no dither, no energy column; result float32, shape (frames, bands).

Sources: D. Povey et al., "The Kaldi speech recognition toolkit", ASRU 2011: `feature-window.cc`,
`mel-computations.cc`; M. Slaney, Auditory Toolbox, 1998.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from common.arrays import Floats32, Samples
from common.errors import InputError

Window = Literal["hamming", "povey"]

_FRAMES_AT_ONCE = 4096  # bounds the memory of long recordings: 4096 frames of 400 float32 are 6.6 MB
_POVEY_EXPONENT = 0.85


@dataclass(frozen=True)
class FilterbankOptions:
    """How to compute it; the defaults are Kaldi's for 16 kHz but for 80 bands instead of 23."""

    rate_hz: int = 16_000
    bands: int = 80
    window: Window = "povey"
    frame_s: float = 0.025
    hop_s: float = 0.010
    preemphasis: float = 0.97
    lowest_hz: float = 20.0
    highest_hz: float | None = None  # half the rate

    @property
    def frame_samples(self) -> int:
        """Return samples of a frame."""
        return round(self.frame_s * self.rate_hz)

    @property
    def hop_samples(self) -> int:
        """Return samples from frame to frame."""
        return round(self.hop_s * self.rate_hz)


def log_mel_filterbank(samples: Samples | Floats32, options: FilterbankOptions) -> Floats32:
    """Return the log energies of each band in each frame, shape (1 + (n − frame) // hop, bands).

    Args:
        samples: shape (n,), at the scale of int16 (−32768 to 32767), whatever their type.

    Raises:
        InputError: fewer samples than one frame.
    """
    frame = options.frame_samples
    if samples.size < frame:
        raise InputError(f"Expected at least {frame} samples for one frame, found {samples.size}.")
    triangles = _mel_triangles(options)
    floor = np.float32(np.finfo(np.float32).eps)
    return np.concatenate([np.log(np.maximum(power @ triangles, floor)) for power in _power_spectra(samples, options)])


def _power_spectra(samples: Samples | Floats32, options: FilterbankOptions) -> Iterator[Floats32]:
    """Yield power spectra of some frames at a time, shape (frames, points / 2): without the line at half the rate."""
    frame, points = options.frame_samples, _points(options)
    window = _window(options.window, frame)
    every = np.lib.stride_tricks.sliding_window_view(samples, frame)[:: options.hop_samples]
    for start in range(0, len(every), _FRAMES_AT_ONCE):
        frames = every[start : start + _FRAMES_AT_ONCE].astype(np.float32)
        frames -= frames.mean(axis=1, keepdims=True)
        # Before the first sample of a frame stands itself, as in Kaldi.
        before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        frames -= np.float32(options.preemphasis) * before
        spectra = np.fft.rfft(frames * window, points, axis=1)[:, :-1]
        yield (spectra.real**2 + spectra.imag**2).astype(np.float32, copy=False)


def _points(options: FilterbankOptions) -> int:
    return 1 << (options.frame_samples - 1).bit_length()


@cache
def _window(name: Window, samples: int) -> Floats32:
    cosine = np.cos(2 * np.pi * np.arange(samples) / (samples - 1))
    values = 0.54 - 0.46 * cosine if name == "hamming" else (0.5 - 0.5 * cosine) ** _POVEY_EXPONENT
    return values.astype(np.float32)


@cache
def _mel_triangles(options: FilterbankOptions) -> Floats32:
    """Return triangles that are straight on the mel scale, shape (points / 2, bands)."""
    points = _points(options)
    lines = _mel(np.arange(points // 2) * options.rate_hz / points)
    lowest, highest = _mel(np.array([options.lowest_hz, options.highest_hz or options.rate_hz / 2]))
    edges = np.linspace(lowest, highest, options.bands + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising = (lines[:, None] - low) / (middle - low)
    falling = (high - lines[:, None]) / (high - middle)
    return np.asarray(np.maximum(0.0, np.minimum(rising, falling)), np.float32)


def _mel(hertz: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 1127.0 * np.log1p(hertz / 700.0)


@cache
def slaney_triangles(
    points: int, bands: int, rate_hz: int = 16_000, highest_hz: float | None = None
) -> npt.NDArray[np.float64]:
    """Return triangles of area 2 / width on Slaney's mel scale from 0 Hz on, as librosa's, shape (bands, bins).

    The scale is straight up to 1 kHz (15 mel), then 27 mel stand for each factor of 6.4.

    Args:
        points: of the Fourier transform; it has points // 2 + 1 bins.
        highest_hz: where the last triangle ends, 1 kHz or more; half the rate where it is not given.
    """
    highest = 15 + 27 * np.log((highest_hz or rate_hz / 2) / 1000) / np.log(6.4)
    mels = np.linspace(0.0, float(highest), bands + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))
    hertz = np.fft.rfftfreq(points, 1 / rate_hz)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    triangles = np.maximum(0.0, np.minimum((hertz - low) / (middle - low), (high - hertz) / (high - middle)))
    return np.asarray(triangles * 2 / (high - low))
