"""B2, the McAdams anonymiser of the VoicePrivacy Challenge 2022: resonances of the voice are moved.

Source: Patino, Tomashenko, Todisco, Nautsch, Evans, "Speaker anonymisation using the McAdams
coefficient", Interspeech 2021, as the challenge's own program computes it, edges included: the
first frame and the tail after the last whole frame stay empty, and every utterance gets one peak.

Conventions: samples are int16, mono, 16 kHz; pole angles are in radians, so 1 rad is 2546 Hz; an
alpha below 1 raises the resonances under that frequency and lowers those above it.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from anonymization.methods.errors import MethodError

RATE_HZ = 16_000

Samples = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]
Level = Literal["peak", "kept"]

_FULL_SCALE = 32768
_PEAK = 32766
_MAX_ALPHA = 2.0
# Added to every sample, and to the windowed frame where the prediction is fitted.
_OFFSET = float(np.finfo(np.float32).eps)
# Two seconds of speech, so that the cost of a block in Python does not count.
_FRAMES_PER_BLOCK = 200


@dataclass(frozen=True)
class McAdamsParameters:
    """What `mcadams` does; everything but alpha defaults to the recipe of 2022.

    alpha: exponent on the pole angles, above 0, at most 2; 1 changes nothing.
    window_s, hop_s: frame length and distance in seconds.
    order: poles per frame.
    level: "peak" scales the largest sample to 32766, as the official program does; "kept" gives
        back the RMS of the original, less where that would clip.
    keep_digital_silence: a frame of zeros stays zeros. The official program (False) filters the
        tiny constant that it adds to the signal: a second of zeros becomes sound at full scale.

    Raises MethodError where a value is out of range.
    """

    alpha: float
    window_s: float = 0.02
    hop_s: float = 0.01
    order: int = 20
    level: Level = "peak"
    keep_digital_silence: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= _MAX_ALPHA:
            raise MethodError(
                f"The McAdams coefficient alpha must be above 0 and at most {_MAX_ALPHA:g}; found {self.alpha}."
            )
        if self.level not in get_args(Level):
            raise MethodError(f'The level must be "peak" or "kept"; found "{self.level}".')
        if self.order < 1:
            raise MethodError(f"The prediction order must be at least 1; found {self.order}.")
        if not 0 < self.hop_s <= self.window_s < math.inf or self.hop_samples < 1:
            raise MethodError(
                "The hop must be at least one sample and at most the window; "
                f"found hop_s={self.hop_s}, window_s={self.window_s}."
            )
        if self.window_samples < self.order + 2:
            raise MethodError(
                f"A window of {self.window_s} s has {self.window_samples} samples; "
                f"order {self.order} needs at least {self.order + 2}."
            )

    @property
    def window_samples(self) -> int:
        return round(self.window_s * RATE_HZ)

    @property
    def hop_samples(self) -> int:
        return round(self.hop_s * RATE_HZ)


def mcadams(samples: Samples, rate: int, parameters: McAdamsParameters, *, threads: int = 1) -> Samples:
    """Anonymise one utterance.

    samples: int16, shape (n,), n ≥ 0, 16 kHz mono; not changed.
    threads: how many share the work, at least 1; the output is the same for any number. It needs no
        threading layer, so it may be called in a forked worker and from several threads at once.

    Returns int16, shape (n,). Too short for two frames, less than 480 samples, gives zeros.
    Raises MethodError where samples, rate or threads are not as above.

    >>> second = np.random.default_rng(1).normal(0, 1000, 16_000).astype(np.int16)
    >>> anonymised = mcadams(second, 16_000, McAdamsParameters(alpha=0.8))
    >>> anonymised.shape, int(abs(anonymised).max())
    ((16000,), 32766)
    """
    validate_samples(samples, rate)
    if threads < 1:
        raise MethodError(f"At least one thread is needed; found threads={threads}.")
    bent = _bend_poles(samples, parameters, threads)
    return _set_level(bent, samples, parameters.level)


def validate_samples(samples: Samples, rate: int) -> None:
    """Raise MethodError unless samples are int16 of shape (n,) and the rate is 16 kHz."""
    if rate != RATE_HZ:
        raise MethodError(f"B2 is defined at {RATE_HZ} Hz; found {rate} Hz. Resample the audio first.")
    if not isinstance(samples, np.ndarray) or samples.dtype != np.int16:
        found = getattr(samples, "dtype", type(samples).__name__)
        raise MethodError(f"B2 takes a numpy array of int16 samples; found {found}.")
    if samples.ndim != 1:
        raise MethodError(f"B2 takes mono audio, an array of shape (samples,); found shape {samples.shape}.")


def _analysis_window(length: int, hop: int) -> Floats:
    """Root of the symmetric Hann window, scaled so that its squares overlap to about 1."""
    hann: Floats = np.hanning(length)
    window: Floats = np.sqrt(hann / (hann.sum() / hop))
    return window


def _blocks(n_samples: int, length: int, hop: int) -> Iterator[tuple[int, int]]:
    """Start and end sample of runs of whole frames, frame 0 left out as officially."""
    frames = 1 + (n_samples - length) // hop
    # Never shorter than a window: then no sample lies in three blocks.
    per_block = max(_FRAMES_PER_BLOCK, math.ceil(length / hop))
    for first in range(1, frames, per_block):
        last = min(first + per_block, frames) - 1
        yield first * hop, last * hop + length


def _bend_poles(samples: Samples, parameters: McAdamsParameters, threads: int) -> Floats:
    """The overlap-added output of all frames but the first, before any change of level."""
    length, hop = parameters.window_samples, parameters.hop_samples
    window = _analysis_window(length, hop)

    blocks = list(_blocks(samples.size, length, hop))
    queue = iter(blocks)
    output = np.zeros(samples.size)
    turn = Lock()

    def work() -> None:
        for block in queue:
            part = _bend_block(samples[slice(*block)], window, parameters)
            # A sample lies in two blocks at most, so the order in which they are added is free.
            with turn:
                output[slice(*block)] += part

    with ThreadPoolExecutor(threads) as pool:
        helpers = [pool.submit(work) for _ in range(min(threads, len(blocks)) - 1)]
        work()
    for helper in helpers:
        helper.result()
    return output


def _bend_block(samples: Samples, window: Floats, parameters: McAdamsParameters) -> Floats:
    from anonymization.methods import _mcadams_kernel as kernel

    signal = samples / _FULL_SCALE + _OFFSET
    hop = parameters.hop_samples
    coefficients, poles, found = kernel.find_poles(signal, window, hop, parameters.order, _OFFSET)
    if not found.all():
        poles[~found] = _companion_eigenvalues(coefficients[~found])
    mute = _OFFSET if parameters.keep_digital_silence else math.nan
    return kernel.resynthesize(signal, window, hop, coefficients, poles, parameters.alpha, mute)


def _companion_eigenvalues(coefficients: Floats) -> npt.NDArray[np.complex128]:
    """Roots, shape (frames, order), of any polynomials, shape (frames, order + 1)."""
    frames, order = coefficients.shape[0], coefficients.shape[1] - 1
    companions = np.zeros((frames, order, order))
    companions[:, 1:, :-1] = np.eye(order - 1)
    companions[:, 0] = -coefficients[:, 1:]
    return np.linalg.eigvals(companions).astype(np.complex128)


def _set_level(output: Floats, original: Samples, level: Level) -> Samples:
    """Scaled and truncated toward zero to int16; an output of zeros stays zeros."""
    peak = np.abs(output).max(initial=0.0)
    if peak == 0:
        return np.zeros(output.size, np.int16)
    scaled = output / peak * _PEAK
    if level == "kept":
        loudness = math.sqrt(np.square(original, dtype=np.float64).mean())
        scaled *= min(1.0, loudness / math.sqrt(np.square(scaled).mean()))
    quantised: Samples = scaled.astype(np.int16)
    return quantised
