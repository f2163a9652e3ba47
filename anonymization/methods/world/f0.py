"""F0 as the WORLD methods see it: the contour of any length, its statistics, and the contour of another voice.

Conventions: samples are int16, mono, 16 kHz; a frame is 5 ms, 80 samples, and frame i stands at sample 80·i; F0 in
hertz, 0 where a frame is unvoiced; statistics over voiced frames, in semitones (12·log2 of a ratio).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Literal

import numpy as np

from anonymization.methods.contract import MethodError
from common.arrays import Floats, Samples
from common.errors import InputError
from speech.pitch.autocorrelation import signal_for_tracking, track_pitch
from speech.vocoders import world_library

Estimator = Literal["autocorrelation", "dio", "harvest"]

RATE_HZ = 16_000
FRAME_MS = 5.0
FRAME_SAMPLES = 80
FULL_SCALE = 32768
FLOOR_HZ, CEILING_HZ = 60.0, 600.0

# Below 100 ms of voice its spread says nothing, and a single wrong frame moves its mean.
MIN_VOICED_FRAMES = 20
# An estimate more than an octave off the median is a mistake of the estimator, not intonation.
_OCTAVE = 12.0
# A monotone utterance is not blown up, a lively one (or one full of mistakes) is not flattened.
_SPREAD_RATIOS = (0.5, 2.0)
_LOWEST_HZ, _HIGHEST_HZ = 50.0, 800.0
# Both at once fill one transform of 2^18 samples, the largest that DIO then makes.
_BLOCK_FRAMES, _MARGIN_FRAMES = 2800, 200


@dataclass(frozen=True)
class F0Statistics:
    """Of the voiced frames of an utterance; mean_hz is the geometric mean, and both are None without voiced frames."""

    n_voiced: int
    mean_hz: float | None
    spread_semitones: float | None


def load_world() -> ModuleType:
    """Return the compiled part of pyworld. Raises MethodError where it is absent or cannot be loaded."""
    try:
        return world_library.load_world()
    except InputError as error:
        raise MethodError(str(error)) from error


def n_frames(n_samples: int) -> int:
    """Return how many frames WORLD makes of so many samples."""
    return n_samples // FRAME_SAMPLES + 1


def track_f0(samples: Samples, estimator: Estimator) -> Floats:
    """Return the contour, shape (frames,): by autocorrelation (70 to 500 Hz) or DIO, both refined by StoneMask, or by
    Harvest.

    Longer than 14 s, it is found in blocks of that length with a second of context on both sides, so that memory stays
    bounded.

    Args:
        samples: int16, shape (n,), at least 0.1 s.

    Sources: autocorrelation as in `track_pitch`; DIO: Morise, Kawahara, Katayose: Fast and reliable F0 estimation
    method based on the period extraction of vocal fold vibration of singing voice and speech, AES 35, 2009;
    Harvest: Morise: Harvest: a high-performance fundamental frequency estimator from speech signals, Interspeech 2017.
    """
    frames = n_frames(samples.size)
    contour = np.zeros(frames)
    for first in range(0, frames, _BLOCK_FRAMES):
        last = min(first + _BLOCK_FRAMES, frames)
        start = max(0, first - _MARGIN_FRAMES)
        block = samples[start * FRAME_SAMPLES : (last + _MARGIN_FRAMES) * FRAME_SAMPLES]
        contour[first:last] = _track_block(block, estimator)[first - start : last - start]
    return contour


def measure_f0(contour: Floats) -> F0Statistics:
    """Return statistics of a contour, shape (frames,), without the frames that are over an octave off its median."""
    semitones = _semitones(contour[contour > 0])
    if semitones.size == 0:
        return F0Statistics(0, None, None)
    kept = semitones[np.abs(semitones - np.median(semitones)) <= _OCTAVE]
    return F0Statistics(kept.size, float(2 ** (kept.mean() / 12)), float(kept.std()))


def move_f0(contour: Floats, mean_hz: float | None, spread_semitones: float | None) -> Floats:
    """Return the contour with this mean and spread of log F0, unvoiced frames unvoiced; None keeps its own.

    The spread changes by a factor of 0.5 to 2 at most. With fewer than 20 voiced frames (100 ms) it stays, and their
    median stands for the mean. The result lies from 50 to 800 Hz.

    The linear map of log F0 is the usual one of voice conversion: Chappell, Hansen: Speaker-specific pitch contour
    modelling and modification, ICASSP 1998.
    """
    voiced = contour > 0
    statistics = measure_f0(contour)
    if statistics.mean_hz is None or statistics.spread_semitones is None:
        return contour.copy()
    own_mean, ratio = float(_semitones(np.array(statistics.mean_hz))), 1.0
    if statistics.n_voiced < MIN_VOICED_FRAMES:
        own_mean = float(np.median(_semitones(contour[voiced])))
    elif spread_semitones is not None and statistics.spread_semitones > 0:
        ratio = float(np.clip(spread_semitones / statistics.spread_semitones, *_SPREAD_RATIOS))
    mean = own_mean if mean_hz is None else float(_semitones(np.array(mean_hz)))
    moved = np.zeros_like(contour)
    semitones = mean + ratio * (_semitones(contour[voiced]) - own_mean)
    moved[voiced] = np.clip(2 ** (semitones / 12), _LOWEST_HZ, _HIGHEST_HZ)
    return moved


def _semitones(hz: Floats) -> Floats:
    """Above 1 Hz."""
    semitones: Floats = 12 * np.log2(hz)
    return semitones


def _track_block(block: Samples, estimator: Estimator) -> Floats:
    if not block.any():
        return np.zeros(n_frames(block.size))
    world, signal = load_world(), block / FULL_SCALE
    settings = {"f0_floor": FLOOR_HZ, "f0_ceil": CEILING_HZ, "frame_period": FRAME_MS}
    contour: Floats
    if estimator == "harvest":
        contour, _ = world.harvest(signal, RATE_HZ, **settings)
    else:
        coarse = _autocorrelate(block) if estimator == "autocorrelation" else world.dio(signal, RATE_HZ, **settings)[0]
        contour = world.stonemask(signal, coarse, np.arange(coarse.size) * FRAME_MS / 1000, RATE_HZ)
    return np.where(np.isfinite(contour), contour, 0.0)


def _autocorrelate(block: Samples) -> Floats:
    """Return the contour of `track_pitch`, whose frames are two of ours apart; between voiced frames the geometric
    mean."""
    found = track_pitch(signal_for_tracking(block, RATE_HZ)).hz.astype(np.float64)
    contour = np.zeros(n_frames(block.size))
    coarse = np.zeros(contour.size // 2 + 1)
    coarse[: found.size] = found[: coarse.size]
    contour[::2] = coarse[: contour[::2].size]
    contour[1::2] = np.sqrt(coarse[:-1] * coarse[1:])[: contour[1::2].size]
    return contour
