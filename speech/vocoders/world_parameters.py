"""Speech as few numbers a frame for the vocoder WORLD, and back: what a network can make of content and a voice.

A frame has the logarithm of the envelope's amplitude at 80 frequencies, evenly spaced on the mel scale from 0 Hz to
8 kHz, and the logarithm of its aperiodicity, of which WORLD knows one band at this rate. F0 stands beside them.
Conventions: samples are mono, 16 kHz, full scale 1.0, shape (n,); frames of parameters and of F0 have any length, and
stand for their middles; logarithms are natural; F0 is in Hz, 0 where unvoiced.

Source: M. Morise, F. Yokomori, K. Ozawa, "WORLD: a vocoder-based high-quality speech synthesis system for real-time
applications", IEICE Transactions E99-D (7), 2016, and its coding of parameters.
"""

from __future__ import annotations

import math

import numpy as np

from common.arrays import Floats, Floats32
from speech.vocoders.world_library import load_world

RATE_HZ = 16_000
POINTS, BANDS = 80, 1
PARAMETERS = POINTS + BANDS
# Frames of the synthesis are shorter, so that the envelope goes over evenly.
STEP_MS, STEP_SAMPLES = 5.0, 80
_FFT_SIZE = 1024
_FLOOR = math.exp(-20)  # of power, below the noise of a quiet recording
_DB_PER_NEPER = 20 / math.log(10)
# The widest window of the analysis is 75 ms; shorter sounds are lengthened by zeros.
_SHORTEST_SAMPLES = 1600


# Places on the mel scale of the bins of an envelope, and of the frequencies of a frame.
_BINS_MEL: Floats = np.log1p(np.fft.rfftfreq(_FFT_SIZE, 1 / RATE_HZ) / 700).astype(np.float64)
_POINTS_MEL: Floats = np.linspace(0, _BINS_MEL[-1], POINTS)


def analyse(sound: Floats, hz: Floats, frame_s: float) -> Floats32:
    """Return the parameters of the frames, shape (frames, 81).

    Args:
        sound: shape (n,). hz: F0 of its frames, shape (frames,). frame_s: length of a frame in seconds.

    Raises:
        InputError: pyworld is absent.
    """
    world = load_world()
    padded = np.pad(sound, (0, max(0, _SHORTEST_SAMPLES - sound.size)))
    middles = (np.arange(hz.size) + 0.5) * frame_s
    envelopes = world.cheaptrick(padded, hz, middles, RATE_HZ, fft_size=_FFT_SIZE)
    logs = 0.5 * np.log(np.maximum(envelopes, _FLOOR))
    aperiodicity = world.d4c(padded, hz, middles, RATE_HZ, fft_size=_FFT_SIZE)
    decibels = world.code_aperiodicity(aperiodicity, RATE_HZ)
    found = np.hstack([_interpolate(logs, _BINS_MEL, _POINTS_MEL), decibels / _DB_PER_NEPER])
    return found.astype(np.float32)


def contour_at_steps(hz: Floats, frame_s: float, count: int) -> Floats:
    """Return F0 at so many frames of the synthesis, shape (count,); between voiced frames its logarithm is
    interpolated."""
    places = _places(0, count, frame_s)
    voiced = hz > 0
    if not voiced.any():
        return np.zeros(count)
    nearest = np.clip(np.round(places).astype(np.intp), 0, hz.size - 1)
    where = np.flatnonzero(voiced)
    return np.where(voiced[nearest], np.exp(np.interp(places, where, np.log(hz[where]))), 0.0)


def synthesize(parameters: Floats32, frame_s: float, contour: Floats, begin: int = 0) -> Floats:
    """Return the sound of frames of the synthesis, shape (80 frames,).

    Args:
        parameters: of the whole speech, shape (frames, 81), one frame or more. frame_s: length of one in seconds.
        contour: F0 of the frames that are made, as `contour_at_steps` gives it, shape (steps,).
        begin: the first of them.

    Raises:
        InputError: pyworld is absent.
    """
    world = load_world()
    places = np.clip(_places(begin, begin + contour.size, frame_s), 0, len(parameters) - 1)
    first = places.astype(np.intp)
    after = np.minimum(first + 1, len(parameters) - 1)
    share = (places - first)[:, None]
    given = (1 - share) * parameters[first] + share * parameters[after]
    envelopes = np.exp(2 * _interpolate(given[:, :POINTS], _POINTS_MEL, _BINS_MEL))
    decibels = np.minimum(given[:, POINTS:] * _DB_PER_NEPER, 0.0)
    aperiodicity = world.decode_aperiodicity(np.ascontiguousarray(decibels), RATE_HZ, _FFT_SIZE)
    sound: Floats = world.synthesize(contour, np.ascontiguousarray(envelopes), aperiodicity, RATE_HZ, STEP_MS)
    return sound[: contour.size * STEP_SAMPLES]


def _places(begin: int, end: int, frame_s: float) -> Floats:
    """Where frames of the synthesis lie, in frames of the parameters."""
    return np.arange(begin, end, dtype=np.float64) * (STEP_MS / 1000 / frame_s) - 0.5


def _interpolate(values: Floats | Floats32, places: Floats, wanted: Floats) -> Floats:
    """Return rows of values at places, at others, shape (rows, wanted); both rise, and what is wanted lies within."""
    after = np.clip(np.searchsorted(places, wanted), 1, places.size - 1)
    share = (wanted - places[after - 1]) / (places[after] - places[after - 1])
    return np.asarray((1 - share) * values[:, after - 1] + share * values[:, after], np.float64)
