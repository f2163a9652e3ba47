"""Hours of speech measured in blocks, so that its checks take no more memory than a few minutes do.

Conventions: samples are int16, shape (n,).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Samples
from evaluation.metrics.audio_checks import AudioCheck, check_audio

# A quarter of a minute at 16 kHz.
_BLOCK = 1 << 18


def check_long_audio(original: Samples, output: Samples, rate: int) -> AudioCheck:
    """As `check_audio`, which takes 45 bytes a sample; the levels are joined in double precision.

    Raises:
        MetricInputError: as `check_audio`.
    """
    if max(original.size, output.size) <= _BLOCK or original.ndim != 1 or output.ndim != 1:
        return check_audio(original, output, rate)
    starts = range(0, max(original.size, output.size), _BLOCK)
    parts = [check_audio(original[start : start + _BLOCK], output[start : start + _BLOCK], rate) for start in starts]
    clipped = sum(part.clipped_share * part.n_samples_anonymised for part in parts)
    return AudioCheck(
        n_samples_original=original.size,
        n_samples_anonymised=output.size,
        rate=rate,
        level_original_dbfs=_joint_level((part.n_samples_original, part.level_original_dbfs) for part in parts),
        level_anonymised_dbfs=_joint_level((part.n_samples_anonymised, part.level_anonymised_dbfs) for part in parts),
        peak_dbfs=max((part.peak_dbfs for part in parts if part.peak_dbfs is not None), default=None),
        clipped_share=clipped / output.size if output.size else 0.0,
        n_not_finite=sum(part.n_not_finite for part in parts),
        identical=np.array_equal(original, output),
    )


def frame_power(samples: Samples, frame: int) -> npt.NDArray[np.float64]:
    """Mean square of each whole frame, shape (n // frame,); a frame has at least one sample."""
    frames = samples[: samples.size // frame * frame].reshape(-1, frame)
    power = np.empty(len(frames))
    per_block = max(1, _BLOCK // frame)
    for rows in _slices(len(frames), per_block):
        power[rows] = np.mean(np.square(frames[rows], dtype=np.float64), axis=1)
    return power


def _slices(n: int, per_block: int) -> Iterator[slice]:
    for start in range(0, n, per_block):
        yield slice(start, start + per_block)


def _joint_level(parts: Iterable[tuple[int, float | None]]) -> float | None:
    """Root mean square in dB of blocks of so many samples at such levels; None where all are silent."""
    total, energy = 0, 0.0
    for n_samples, level in parts:
        total += n_samples
        energy += n_samples * 10 ** (level / 10) if level is not None else 0.0
    return 10 * math.log10(energy / total) if energy else None
