"""Formants and F0 of a voice moved on the WORLD vocoder: F0 statistics become the pseudo-speaker's, and the spectral
envelope is stretched or squeezed along frequency, as a longer or shorter vocal tract would.

Sources: Morise, Yokomori, Ozawa: WORLD: a vocoder-based high-quality speech synthesis system for real-time
applications, IEICE Transactions E99-D (7), 2016; the idea of the anonymiser: Yao, Wang, Lei, Guo, Xie, Wang, Liu:
Distinguishable speaker anonymization based on formant and fundamental frequency scaling, ICASSP 2023.

Conventions: samples are int16, mono, 16 kHz; frames of 5 ms as in `f0`; spectra have 513 bins from 0 to 8 kHz.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import (
    Method,
    MethodError,
    Options,
    validate_samples,
)
from anonymization.methods.method_files import read_methods
from anonymization.methods.world.f0 import (
    FRAME_MS,
    FRAME_SAMPLES,
    FULL_SCALE,
    RATE_HZ,
    Estimator,
    load_world,
    move_f0,
    track_f0,
)
from common.arrays import Floats, Samples
from speech.vocoders.world_library import missing_world

Level = Literal["kept", "peak"]

_PEAK = 32766
_MIN_FACTOR, _MAX_FACTOR = 0.5, 2.0
_MIN_MEAN_HZ, _MAX_MEAN_HZ = 50.0, 500.0
# Formants lie below; above, the map bends so that 8 kHz stays 8 kHz and no band is left empty.
_KNEE_HZ = 6000.0
# WORLD gives the level back to within 3 dB on speech: more is asked for only where there is no speech, such as a
# constant, and would bring up rounding errors.
_MAX_GAIN = 4.0
# Digital silence shorter than this is a coincidence within speech.
_SILENCE_SAMPLES = 160
# Shorter input is lengthened by zeros for the analysis: its widest window is 75 ms.
MIN_SAMPLES = 1600
# Pieces of 8 to 16 s are cut at the longest pause; WORLD then needs the memory of one piece whatever the length.
_MIN_PIECE, _MAX_PIECE = 1600, 3200
# Frames around a piece that are made too, so that a pulse before its edge rings into it.
_PAD_FRAMES = 8
_FADE_SAMPLES = 160
# Half of the widest analysis window, that of F0 at 40 Hz.
_CONTEXT_SAMPLES = 800
FFT_SIZE = 1024
_BINS = FFT_SIZE // 2 + 1
_BLOCK_SAMPLES = 1 << 20


@dataclass(frozen=True)
class WorldParameters:
    """What `world_voice` does. The defaults change nothing but what the vocoder itself loses.

    f0_mean_hz: geometric mean of F0 over the voiced frames, 50 to 500; None keeps the utterance's own.
    f0_spread_semitones: standard deviation of F0 in semitones, 0 to 12; None keeps the utterance's own.
    formant_factor: what formant frequencies are multiplied by, 0.5 to 2.
    f0: how F0 is found. Beside Praat on 43 real utterances, "autocorrelation" missed 1 % of the voiced
        frames and was over a quarter octave off in 0.5 % of the others; "dio" 9 and 3 %; "harvest" 1 and 3 %, but it
        finds half as many voiced frames more, and with it the whole method takes 5 times as long.
    level: "kept" gives back the RMS of the original, less where that would clip; "peak" scales the largest sample to
        32766.

    Raises MethodError where a value is out of range.
    """

    f0_mean_hz: float | None = None
    f0_spread_semitones: float | None = None
    formant_factor: float = 1.0
    f0: Estimator = "autocorrelation"
    level: Level = "kept"

    def __post_init__(self) -> None:
        if not _MIN_FACTOR <= self.formant_factor <= _MAX_FACTOR:
            raise MethodError(
                f"The formant factor must be from {_MIN_FACTOR:g} to {_MAX_FACTOR:g}; found {self.formant_factor}."
            )
        if self.f0_mean_hz is not None and not _MIN_MEAN_HZ <= self.f0_mean_hz <= _MAX_MEAN_HZ:
            raise MethodError(
                f"The mean F0 must be from {_MIN_MEAN_HZ:g} to {_MAX_MEAN_HZ:g} Hz; found {self.f0_mean_hz}."
            )
        if self.f0_spread_semitones is not None and not 0 <= self.f0_spread_semitones <= 12:
            raise MethodError(f"The spread of F0 must be from 0 to 12 semitones; found {self.f0_spread_semitones}.")
        if self.f0 not in get_args(Estimator):
            raise MethodError(f'F0 is found by {", ".join(get_args(Estimator))}; found "{self.f0}".')
        if self.level not in get_args(Level):
            raise MethodError(f'The level must be "kept" or "peak"; found "{self.level}".')


def world_voice(samples: Samples, rate: int, parameters: WorldParameters) -> Samples:
    """Anonymise one utterance.

    Unvoiced frames stay unvoiced and 10 ms or more of digital silence stay silent. The output is a function of samples
    and parameters alone: WORLD's noise starts from one seed in every call. Memory beyond input and output is 4 bytes a
    sample and some 200 MB, most of it for compiled code and one piece.

    Args:
        samples: int16, shape (n,), n ≥ 0, 16 kHz mono; not changed.

    Returns:
        int16, shape (n,).

    Raises:
        MethodError: samples or rate are not as above, or pyworld is absent.
    """
    validate_samples("Formant and F0 scaling", samples, rate, low_hz=RATE_HZ, high_hz=RATE_HZ)
    if not samples.any():
        return np.zeros_like(samples)
    padded = pad_for_analysis(samples)
    contour = track_f0(padded, parameters.f0)
    moved = move_f0(contour, parameters.f0_mean_hz, parameters.f0_spread_semitones)
    warp = FrequencyWarp(parameters.formant_factor)

    def synthesize(begin: int, end: int) -> Floats:
        return _synthesize(padded, contour[begin:end], moved[begin:end], warp, begin)

    output = join_pieces(contour > 0, synthesize)[: samples.size]
    mute_silence(output, samples)
    return set_level(output, samples, parameters.level)


class FrequencyWarp:
    """The envelope of a voice whose formants are `factor` times as high: output at f is the input at f / factor.

    Up to a knee at 6 kHz (of the input or the output, whichever is higher), then straight to 8 kHz ↔ 8 kHz: the band
    that would be missing when formants go down, or pushed out when they go up, is squeezed or stretched instead. The
    map is that of vocal tract length normalisation: Lee, Rose: Speaker normalization using efficient frequency warping
    procedures, ICASSP 1996.
    """

    def __init__(self, factor: float) -> None:
        self.factor = factor
        places = self.source_hz(np.linspace(0, RATE_HZ / 2, _BINS)) / (RATE_HZ / 2) * (_BINS - 1)
        self._below = np.minimum(places.astype(np.intp), _BINS - 2)
        self._part = places - self._below

    def source_hz(self, hz: Floats) -> Floats:
        """Where in the original the envelope at these frequencies, 0 to 8000 Hz, comes from."""
        knee_out = _KNEE_HZ * min(1.0, self.factor)
        return np.interp(hz, [0, knee_out, RATE_HZ / 2], [0, knee_out / self.factor, RATE_HZ / 2])

    def __call__(self, envelopes: Floats) -> Floats:
        """Return the warped envelopes, shape (frames, 513) as given."""
        if self.factor == 1.0:
            return envelopes
        warped: Floats = np.take(envelopes, self._below, axis=1)
        warped += self._part * (np.take(envelopes, self._below + 1, axis=1) - warped)
        return warped


def cut_at_pauses(voiced: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First frame and end of each piece of 8 to 16 s (the last is shorter), cut in the middle of its longest pause."""
    first = 0
    while voiced.size - first > _MAX_PIECE:
        window = voiced[first + _MIN_PIECE : first + _MAX_PIECE]
        edges = np.flatnonzero(np.diff(window, prepend=True, append=True))
        starts, ends = edges[::2], edges[1::2]
        cut = _MAX_PIECE
        if starts.size:
            longest = int(np.argmax(ends - starts))
            cut = _MIN_PIECE + int(starts[longest] + ends[longest]) // 2
        yield first, first + cut
        first += cut
    yield first, voiced.size


def join_pieces(voiced: npt.NDArray[np.bool_], synthesize: Callable[[int, int], Floats]) -> npt.NDArray[np.float32]:
    """Return the sound of all frames, made piece by piece and faded from one to the next, shape (80 · frames,).

    synthesize: gives the sound of the frames from one to before another.
    """
    output = np.zeros(voiced.size * FRAME_SAMPLES, np.float32)
    # Noise of two pieces is independent: it keeps its power where the squares of the weights add up to one.
    fade = np.sin(np.pi / 2 * (np.arange(2 * _FADE_SAMPLES) + 0.5) / (2 * _FADE_SAMPLES))
    for first, last in cut_at_pauses(voiced):
        begin, end = max(0, first - _PAD_FRAMES), min(voiced.size, last + _PAD_FRAMES)
        sound = synthesize(begin, end)
        low, high = begin * FRAME_SAMPLES, end * FRAME_SAMPLES
        if first > 0:
            low = first * FRAME_SAMPLES - _FADE_SAMPLES
        if last < voiced.size:
            high = last * FRAME_SAMPLES + _FADE_SAMPLES
        sound = sound[low - begin * FRAME_SAMPLES : high - begin * FRAME_SAMPLES]
        if first > 0:
            sound[: fade.size] *= fade
        if last < voiced.size:
            sound[-fade.size :] *= fade[::-1]
        output[low:high] += sound
    return output


def _synthesize(samples: Samples, own: Floats, moved: Floats, warp: FrequencyWarp, begin: int) -> Floats:
    """Sound of the frames from `begin`, whose F0 is `own` in the samples."""
    envelopes, aperiodicity = analyse_frames(samples, own, begin)
    sound: Floats = load_world().synthesize(moved, warp(envelopes), aperiodicity, RATE_HZ, FRAME_MS)
    return sound


def pad_for_analysis(samples: Samples) -> Samples:
    """Return the samples, lengthened by zeros to the 0.1 s that WORLD's widest window needs."""
    return samples if samples.size >= MIN_SAMPLES else np.pad(samples, (0, MIN_SAMPLES - samples.size))


def analyse_frames(samples: Samples, own: Floats, begin: int) -> tuple[Floats, Floats]:
    """Envelopes and aperiodicity of the frames from `begin`, whose F0 is `own`, both of shape (frames, 513)."""
    world = load_world()
    end = begin + own.size
    start = max(0, begin * FRAME_SAMPLES - _CONTEXT_SAMPLES)
    signal = samples[start : end * FRAME_SAMPLES + _CONTEXT_SAMPLES] / FULL_SCALE
    times_s = (np.arange(begin, end) * FRAME_SAMPLES - start) / RATE_HZ
    envelopes = world.cheaptrick(signal, own, times_s, RATE_HZ, fft_size=FFT_SIZE)
    return envelopes, world.d4c(signal, own, times_s, RATE_HZ, fft_size=FFT_SIZE)


def mute_silence(output: npt.NDArray[np.float32], samples: Samples) -> None:
    """Zeros where the original has 10 ms of them or more."""
    edges = np.flatnonzero(np.diff(samples == 0, prepend=False, append=False))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end - start >= _SILENCE_SAMPLES:
            output[start:end] = 0


def set_level(output: npt.NDArray[np.float32], original: Samples, level: Level) -> Samples:
    """Scaled and rounded to int16; an output that is silent at its own level stays zeros."""
    peak = float(max(output.max(initial=0.0), -output.min(initial=0.0))) * FULL_SCALE
    if peak < 0.5:
        return np.zeros(output.size, np.int16)
    gain = _PEAK / peak
    if level == "kept":
        loudness = _loudness(output) * FULL_SCALE  # that of a constant is none
        gain = min(gain, _loudness(original) / loudness if loudness else 0.0, _MAX_GAIN)
    output *= gain * FULL_SCALE
    return np.rint(output, out=output).astype(np.int16)


def _loudness(sound: npt.NDArray[np.float32] | Samples) -> float:
    """Return standard deviation, block by block: two hours at once in double precision would take a gigabyte."""
    total = squares = 0.0
    for start in range(0, sound.size, _BLOCK_SAMPLES):
        block = sound[start : start + _BLOCK_SAMPLES].astype(np.float64)
        total += float(block.sum())
        squares += float(np.square(block).sum())
    mean = total / sound.size
    return math.sqrt(max(0.0, squares / sound.size - mean * mean))


def _process(
    samples: Samples,
    rate: int,
    parameters: Mapping[str, float],
    options: Options,
    threads: int,  # noqa: ARG001 - of the protocol
) -> Samples:
    """pyworld holds the interpreter while it works, so threads would gain nothing: two cores need two processes."""
    settings = WorldParameters(
        f0_mean_hz=parameters["f0_mean"],
        f0_spread_semitones=parameters["f0_spread"],
        formant_factor=parameters["formant_factor"],
        f0=cast("Estimator", options["f0"]),
        level=cast("Level", options["level"]),
    )
    return world_voice(samples, rate, settings)


METHODS = tuple(Method(**about, process=_process, check=missing_world) for about in read_methods(__file__))
