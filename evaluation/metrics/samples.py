"""Samples of one utterance on one scale, whatever the file stored.

Conventions: mono; full scale is 1.0; int16 is divided by 32768, as the official scripts do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.errors import MetricInputError

INT16_FULL_SCALE = 32768
SILENCE_PEAK = 10  # of int16, −70 dB of full scale, as `evaluation.formats.audio` calls a file silent


def to_unit_scale(samples: NDArray[np.generic]) -> NDArray[np.float64]:
    """The samples as float64 where full scale is 1.0.

    Args:
        samples: shape (samples,), int16 or floating point; the latter is taken as it is, with NaN.

    Raises:
        MetricInputError: more than one channel, or a type that is neither int16 nor floating point.
    """
    if samples.ndim != 1:
        raise MetricInputError(
            f"Expected the samples of one channel, shape (samples,), found shape {samples.shape}. Mix down to mono."
        )
    if samples.dtype == np.int16:
        return samples.astype(np.float64) / INT16_FULL_SCALE
    if np.issubdtype(samples.dtype, np.floating):
        return samples.astype(np.float64)
    raise MetricInputError(
        f"Expected int16 or floating point samples, found {samples.dtype}. Convert them to 16 bit first."
    )


def is_silent(samples: NDArray[np.int16]) -> bool:
    """Whether no sample is louder than `SILENCE_PEAK`: no speech, whatever a model would hear in it.

    Args:
        samples: shape (samples,), one or more.
    """
    return max(int(samples.max()), -int(samples.min())) <= SILENCE_PEAK
