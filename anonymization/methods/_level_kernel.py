"""Compiled loops of `pitch_shift` over all samples: silence, level and rounding; importing this imports numba.

Conventions: samples are int16, an output is float32 in the same units, both of shape (n,).
"""

import numpy as np
import numpy.typing as npt

from anonymization.methods._compiling import entry

Floats = npt.NDArray[np.float32]
Samples = npt.NDArray[np.int16]


@entry
def mute_runs_of_zeros(samples: Samples, output: Floats, value: float, shortest: int) -> None:
    """Set the output to `value` wherever at least `shortest` samples in a row are 0."""
    start = 0
    for i in range(samples.size + 1):
        if i == samples.size or samples[i] != 0:
            if i - start >= shortest:
                output[start:i] = value
            start = i + 1


@entry
def measure(samples: Samples, output: Floats, offset: float) -> tuple[float, float, float]:
    """Sum of the squared samples; of the squares of output and offset together; the largest magnitude of these."""
    wanted, energy, peak = 0.0, 0.0, 0.0
    for i in range(samples.size):
        before, after = float(samples[i]), float(output[i]) + offset
        wanted += before * before
        energy += after * after
        peak = max(peak, abs(after))
    return wanted, energy, peak


@entry
def quantize(output: Floats, offset: float, gain: float) -> Samples:
    """Output and offset together, scaled and rounded."""
    quantized = np.empty(output.size, np.int16)
    for i in range(output.size):
        quantized[i] = np.int16(np.rint((float(output[i]) + offset) * gain))
    return quantized
