"""An utterance, part by part and resampled: what both techniques of pitch shifting read from.

Conventions: a part is float32 in units of int16, less the constant offset of the utterance; outside of the utterance
all is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import Samples

# More than the resampler's filter reaches, at any ratio of an octave up or down.
_FILTER_REACH = 1024


@dataclass(frozen=True)
class PitchSource:
    """samples: int16, shape (n,), at `rate` hertz; offset: what is taken off each."""

    samples: Samples
    rate: int
    offset: float

    def part(self, start: int, stop: int, ratio: float) -> tuple[npt.NDArray[np.float32], float]:
        """Samples from start to stop, a little more, played `ratio` times as fast; and where in it `start` is.

        Start and stop may lie outside of the utterance. At a ratio of 1 nothing is resampled.
        """
        reach = 0 if ratio == 1.0 else _FILTER_REACH
        begin, end = start - reach, stop + reach
        part = np.zeros(end - begin, np.float32)
        first, last = max(0, begin), min(self.samples.size, end)
        if first < last:
            inside = part[first - begin : last - begin]
            np.subtract(self.samples[first:last], np.float32(self.offset), out=inside, dtype=np.float32)
        if ratio != 1.0:
            import soxr

            part = soxr.resample(part, ratio, 1.0)
        return part, reach / ratio
