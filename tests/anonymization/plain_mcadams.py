"""B2 frame by frame with `numpy.roots` and `scipy.signal.lfilter`: a yardstick, not a product.

Tests hold the fast method against it, and `benchmarks.b2` divides by its time. Conventions as in
`anonymization.methods.mcadams.method`; the official behaviour at every edge, unless told otherwise.
"""

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

Floats = npt.NDArray[np.float64]
Poles = npt.NDArray[np.complex128]

EPSILON = float(np.finfo(np.float32).eps)
LENGTH, HOP, ORDER = 320, 160, 20


def burg(signal: Floats) -> Floats:
    """LPC polynomial of order 20 by Burg's method, shape (21,), of a signal of shape (n,)."""
    coefficients = np.zeros(ORDER + 1)
    coefficients[0] = 1
    forward, backward = signal[1:], signal[:-1]
    energy = forward @ forward + backward @ backward
    for i in range(ORDER):
        reflection = -2 * (backward @ forward) / (energy + np.finfo(np.float64).tiny)
        previous = coefficients.copy()
        coefficients[1 : i + 2] += reflection * previous[i::-1]
        forward, backward = forward + reflection * backward, backward + reflection * forward
        energy = (1 - reflection**2) * energy - backward[-1] ** 2 - forward[0] ** 2
        forward, backward = forward[1:], backward[:-1]
    return coefficients


def turn_poles(poles: Poles, alpha: float) -> Poles:
    """Complex pairs, positive angle first, turned from angle φ to φ^alpha; real poles kept."""
    turned = poles.copy()
    positive = np.flatnonzero(poles.imag != 0)[::2]
    angles = np.clip(np.angle(poles[positive]) ** alpha, 0, np.pi)
    turned[positive] = np.abs(poles[positive]) * np.exp(1j * angles)
    turned[positive + 1] = turned[positive].conj()
    return turned


def plain_mcadams(
    samples: npt.NDArray[np.int16], alpha: float, *, first_frame: bool = False, tail: bool = False
) -> npt.NDArray[np.int16]:
    """Anonymise int16 samples, shape (n,), to int16 of the same shape."""
    signal = samples / 32768 + EPSILON
    if tail:  # zeros, with the constant that every sample gets
        signal = np.append(signal, np.full(LENGTH, EPSILON))
    hann = np.hanning(LENGTH)
    window = np.sqrt(hann / (hann.sum() / HOP))
    output = np.zeros(signal.size)
    stop = samples.size if tail else signal.size - LENGTH + 1
    for start in range(0 if first_frame else HOP, stop, HOP):
        frame = signal[start : start + LENGTH] * window
        coefficients = burg(frame + EPSILON)
        turned = np.real(np.poly(turn_poles(np.roots(coefficients).astype(np.complex128), alpha)))
        residual = lfilter(coefficients, [1], frame)
        output[start : start + LENGTH] += lfilter([1], turned, residual) * window
    output = output[: samples.size]
    peak = np.abs(output).max(initial=0)
    return (output / peak * 32766 if peak else output).astype(np.int16)
