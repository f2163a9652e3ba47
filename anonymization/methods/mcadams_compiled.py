"""The McAdams filter on the processor's cores: blocks of frames, shared among threads, through `_mcadams_kernel`.

Conventions: signals are float64 at full scale ±1, shape (n,).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Samples
from anonymization.methods.mcadams_parameters import FULL_SCALE, OFFSET, Floats, McAdamsParameters

# At least two and a half seconds of speech, so that neither Python nor lanes that run empty count.
_FRAMES_PER_BLOCK = 250


def bend_poles(samples: Samples, parameters: McAdamsParameters, threads: int) -> Floats:
    """The overlap-added output of all frames to be filtered, shape (n,), before any change of level."""
    output = np.zeros(samples.size)
    blocks = list(_blocks(samples.size, parameters))
    queue = iter(blocks)
    window = parameters.analysis_window()
    turn = Lock()

    def work() -> None:
        for start, end in queue:
            part = _bend_block(samples[start:end], end - start, window, parameters)
            # A sample lies in two blocks at most, so the order in which they are added is free.
            with turn:
                output[start:end] += part[: samples.size - start]

    with ThreadPoolExecutor(threads) as pool:
        helpers = [pool.submit(work) for _ in range(min(threads, len(blocks)) - 1)]
        work()
    for helper in helpers:
        helper.result()
    return output


def _blocks(n_samples: int, parameters: McAdamsParameters) -> Iterator[tuple[int, int]]:
    """Start and end sample of runs of frames; the end may lie past that of the samples."""
    length, hop = parameters.window_samples, parameters.hop_samples
    frames = parameters.frames(n_samples)
    # Never shorter than a window: then no sample lies in three blocks.
    blocks = len(frames) // max(_FRAMES_PER_BLOCK, math.ceil(length / hop))
    per_block = math.ceil(len(frames) / max(1, blocks)) or 1
    for first in frames[::per_block]:
        last = min(first + per_block, frames.stop) - 1
        yield first * hop, last * hop + length


def _bend_block(samples: Samples, n_samples: int, window: Floats, parameters: McAdamsParameters) -> Floats:
    """Output of the frames of a block of `n_samples`; zeros follow where it has fewer samples."""
    from anonymization.methods import _mcadams_kernel as kernel

    signal = np.full(n_samples, OFFSET)
    signal[: samples.size] += samples / FULL_SCALE
    hop = parameters.hop_samples
    coefficients, poles, found = kernel.find_poles(signal, window, hop, parameters.order, OFFSET)
    if not found.all():
        poles[~found] = companion_eigenvalues(coefficients[~found])
    mute = OFFSET if parameters.keep_digital_silence else math.nan
    return kernel.resynthesize(signal, window, hop, coefficients, poles, parameters.alpha, mute)


def companion_eigenvalues(coefficients: Floats) -> npt.NDArray[np.complex128]:
    """Roots, shape (frames, order), of any polynomials, shape (frames, order + 1), leading coefficient 1."""
    frames, order = coefficients.shape[0], coefficients.shape[1] - 1
    companions = np.zeros((frames, order, order))
    companions[:, 1:, :-1] = np.eye(order - 1)
    companions[:, 0] = -coefficients[:, 1:]
    return np.linalg.eigvals(companions).astype(np.complex128)
