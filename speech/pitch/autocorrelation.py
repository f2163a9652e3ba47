"""F0 of speech for marking its periods: windowed autocorrelation, then the cheapest path through its peaks.

Source: Boersma (1993), "Accurate short-term analysis of the fundamental frequency and the harmonics-to-noise ratio of
a sampled sound", IFA Proceedings 17, with a spectrum that is rolled off above the first formants, so that peaks of the
autocorrelation are smooth enough for a parabola.

Conventions: signals are float32, mono, at `RATE_HZ`; frame i is centred on i · `STEP_S`; 0 Hz is unvoiced.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from common.arrays import Floats32, Samples
from speech.pitch import autocorrelation_kernel as kernel

RATE_HZ = 8_000
STEP_S = 0.01
FLOOR_HZ, CEILING_HZ = 70.0, 500.0


_STEP = round(STEP_S * RATE_HZ)
# Three periods of the floor, so that the window holds one period at every lag.
_WINDOW = 2 * round(1.5 * RATE_HZ / FLOOR_HZ)
_FFT = 512
_ROLL_OFF_HZ = (2400.0, 3800.0)
_FRAMES_PER_BLOCK = 1024
_SAMPLES_PER_BLOCK = 1 << 20
_CANDIDATES = 6

# Costs as in the paper, table 1 and section 3.4; those of a change are for frames 10 ms apart.
_VOICING_THRESHOLD = 0.45
_SILENCE_THRESHOLD = 0.03
_OCTAVE_COST = 0.01
_OCTAVE_JUMP_COST = 0.35
_VOICING_CHANGE_COST = 0.14


@dataclass(frozen=True)
class PitchTrack:
    """An F0 contour. hz: float32, shape (frames,), 0 where unvoiced; frame i at i · `STEP_S` seconds."""

    hz: Floats32

    def voiced_runs(self) -> npt.NDArray[np.int64]:
        """Return first and one past the last frame of every voiced stretch, shape (stretches, 2)."""
        edges = np.flatnonzero(np.diff(self.hz > 0, prepend=False, append=False))
        return edges.reshape(-1, 2).astype(np.int64)


def signal_for_tracking(samples: Samples, rate: int) -> Floats32:
    """Return the samples at `RATE_HZ`, in their own units; resampled block by block, at most 4 MB at a time."""
    if rate == RATE_HZ:
        return samples.astype(np.float32)
    import soxr

    stream = soxr.ResampleStream(rate, RATE_HZ, 1, dtype="float32")
    starts = range(0, samples.size, _SAMPLES_PER_BLOCK)
    parts = [
        stream.resample_chunk(
            samples[start : start + _SAMPLES_PER_BLOCK].astype(np.float32),
            last=start + _SAMPLES_PER_BLOCK >= samples.size,
        )
        for start in starts
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def track_pitch(signal: Floats32) -> PitchTrack:
    """Return F0 of a signal at `RATE_HZ`, one frame for every `STEP_S` from its first sample on."""
    frames = 1 + signal.size // _STEP if signal.size else 0
    hz = np.zeros((frames, _CANDIDATES + 1), np.float32)
    strength = np.full((frames, _CANDIDATES + 1), -np.inf, np.float32)
    power = np.zeros(frames, np.float32)
    padded = np.pad(signal, _WINDOW)
    for start in range(0, frames, _FRAMES_PER_BLOCK):
        stop = min(start + _FRAMES_PER_BLOCK, frames)
        correlation, power[start:stop] = _autocorrelate(padded, start, stop)
        kernel.find_candidates(
            correlation, RATE_HZ, FLOOR_HZ, CEILING_HZ, _OCTAVE_COST, hz[start:stop], strength[start:stop]
        )
    if not power.any():
        return PitchTrack(np.zeros(frames, np.float32))
    loudness = np.sqrt(power / power.max())
    quietness = np.maximum(0, 2 - loudness * (1 + _VOICING_THRESHOLD) / _SILENCE_THRESHOLD)
    strength[:, 0] = _VOICING_THRESHOLD + quietness
    per_step = 0.01 / STEP_S
    path = kernel.cheapest_path(hz, strength, _OCTAVE_JUMP_COST * per_step, _VOICING_CHANGE_COST * per_step)
    return PitchTrack(np.take_along_axis(hz, path[:, np.newaxis], axis=1)[:, 0])


def _autocorrelate(padded: Floats32, start: int, stop: int) -> tuple[Floats32, Floats32]:
    """Return normalised autocorrelation, shape (frames, lags), and power of frames start to stop of a padded signal."""
    window, roll_off, of_window = _analysis()
    first = start * _STEP + _WINDOW // 2
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[first::_STEP][: stop - start]
    frames = (frames - frames.mean(axis=1, keepdims=True)) * window
    spectrum: npt.NDArray[np.complex64] = np.fft.rfft(frames, _FFT)  # type: ignore[assignment] # single stays single
    power_spectrum = (spectrum.real**2 + spectrum.imag**2) * roll_off
    correlation: Floats32 = np.fft.irfft(power_spectrum, _FFT)[:, : of_window.size]  # type: ignore[assignment]
    power = correlation[:, 0].copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        normalised = correlation / power[:, np.newaxis] / of_window
    return np.nan_to_num(normalised, copy=False, posinf=0, neginf=0), power


@cache
def _analysis() -> tuple[Floats32, Floats32, Floats32]:
    """Window; what each bin of the power spectrum counts; autocorrelation of the window, 1 at lag 0."""
    window = np.hanning(_WINDOW + 2)[1:-1]
    bins_hz = np.fft.rfftfreq(_FFT, 1 / RATE_HZ)
    low, high = _ROLL_OFF_HZ
    roll_off = np.cos(np.pi / 2 * np.clip((bins_hz - low) / (high - low), 0, 1)) ** 2
    of_window = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * _WINDOW)) ** 2)[: int(RATE_HZ / FLOOR_HZ) + 2]
    return window.astype(np.float32), roll_off.astype(np.float32), (of_window / of_window[0]).astype(np.float32)
