"""Compiled inner loops of `mcadams`; importing this imports numba, so `mcadams` does on first use.

Every function works on one block of frames and shares nothing. Threads are the caller's (the GIL
is released): no numba threading layer, which would not survive the fork of a worker.

Conventions: a signal is float64, full scale ±1; frame i starts at sample `i * hop`; a polynomial
a_0 … a_p with a_0 = 1 stands for A(z) = Σ a_k z^-k, its roots are the poles of 1/A; a real pole has
an imaginary part of exactly 0.
"""

import math

import numpy as np
import numpy.typing as npt

from anonymization.methods._compiling import entry, inner
from anonymization.methods._mcadams_roots import find_roots

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Flags = npt.NDArray[np.bool_]

_TINY = float(np.finfo(np.float64).tiny)

# Burg's running energy keeps too few digits below this part of the first one (a constant or a pure
# tone); there it is held at or above the energy itself, so that no pole leaves the unit circle.
_ENERGY_TRUST = 1e-6
_SIDE_BY_SIDE = 4


@inner
def _burg(frame: Floats, forward: Floats, backward: Floats, coefficients: Floats, previous: Floats) -> None:
    """Write the polynomial of Burg's method into `coefficients`, shape (order + 1,).

    Scratch: `forward` and `backward`, one shorter than the frame; `previous`, as `coefficients`.
    Source: Burg 1975 with the running energy of librosa's `lpc`, which the challenge calls.
    """
    n = frame.size - 1
    order = coefficients.size - 1
    energy = 0.0
    for j in range(n):
        forward[j] = frame[j + 1]
        backward[j] = frame[j]
        energy += frame[j + 1] * frame[j + 1] + frame[j] * frame[j]
    unreliable = _ENERGY_TRUST * energy
    coefficients[0] = 1.0
    coefficients[1:] = 0.0
    for i in range(order):
        f = forward[i:n]
        b = backward[: n - i]
        cross = 0.0
        for j in range(f.size):
            cross += f[j] * b[j]
        if energy < unreliable:
            direct = 0.0
            for j in range(f.size):
                direct += f[j] * f[j] + b[j] * b[j]
            energy = max(energy, direct)
        reflection = -2.0 * cross / (energy + _TINY)
        previous[:] = coefficients
        for j in range(1, i + 2):
            coefficients[j] = previous[j] + reflection * previous[i + 1 - j]
        for j in range(f.size):
            before = f[j]
            f[j] = before + reflection * b[j]
            b[j] = b[j] + reflection * before
        energy = (1.0 - reflection * reflection) * energy - b[-1] * b[-1] - f[0] * f[0]


@inner
def _turn_poles(poles: Complexes, alpha: float, coefficients: Floats) -> None:
    """Write the polynomial of the poles with each complex angle φ turned to φ^alpha, at most π."""
    coefficients[0] = 1.0
    coefficients[1:] = 0.0
    degree = 0
    for pole in poles:
        if pole.imag > 0.0:
            radius = abs(pole)
            angle = min(math.atan2(pole.imag, pole.real) ** alpha, math.pi)
            first, second = -2.0 * radius * math.cos(angle), radius * radius
            degree += 2
            for k in range(degree, 1, -1):
                coefficients[k] += first * coefficients[k - 1] + second * coefficients[k - 2]
            coefficients[1] += first
        elif pole.imag == 0.0:
            degree += 1
            for k in range(degree, 0, -1):
                coefficients[k] -= pole.real * coefficients[k - 1]


@inner
def _find_residual(padded: Floats, polynomial: Floats, residual: Floats) -> None:
    """FIR-filter a frame, which follows as many zeros as the polynomial has order, into `residual`."""
    order, length = polynomial.size - 1, residual.size
    residual[:] = padded[order:]
    for k in range(1, 1 + order % 4):
        x = padded[order - k :]
        for t in range(length):
            residual[t] += polynomial[k] * x[t]
    for k in range(1 + order % 4, order + 1, 4):
        # Four taps for each time that the residual is read and written.
        a_0, a_1, a_2, a_3 = polynomial[k], polynomial[k + 1], polynomial[k + 2], polynomial[k + 3]
        x = padded[order - k - 3 :]
        for t in range(length):
            residual[t] += a_0 * x[t + 3] + a_1 * x[t + 2] + a_2 * x[t + 1] + a_3 * x[t]


@inner
def _resonate(frames: Floats, polynomials: Floats, states: Floats) -> None:
    """All-pole filter in place, from zero state; the frames side by side, as each alone waits for its last sample."""
    count, order = frames.shape[0], polynomials.shape[1] - 1
    states[:] = 0.0
    # Transposed direct form; a state has order + 1 entries, of which the last stays 0.
    for t in range(frames.shape[1]):
        for i in range(count):
            state, polynomial = states[i], polynomials[i]
            output = frames[i, t] + state[0]
            for k in range(order):
                state[k] = state[k + 1] - polynomial[k + 1] * output
            frames[i, t] = output


@inner
def _is_level(signal: Floats, start: int, length: int, value: float) -> bool:
    for t in range(start, start + length):  # noqa: SIM110 (numba knows no generator expression)
        if signal[t] != value:
            return False
    return True


def find_poles(signal: Floats, window: Floats, hop: int, order: int, offset: float) -> tuple[Floats, Complexes, Flags]:
    """LPC polynomials of every whole frame of a block, as `fit_polynomials`, and their poles, as `find_roots`."""
    coefficients = fit_polynomials(signal, window, hop, order, offset)
    return coefficients, *find_roots(coefficients)


@entry
def fit_polynomials(signal: Floats, window: Floats, hop: int, order: int, offset: float) -> Floats:
    """LPC polynomials, float64 (frames, order + 1), of every whole frame of a block: windowed, plus `offset`."""
    length = window.size
    frames = 1 + (signal.size - length) // hop
    coefficients = np.empty((frames, order + 1))
    frame, forward, backward = np.empty(length), np.empty(length - 1), np.empty(length - 1)
    previous = np.empty(order + 1)
    for i in range(frames):
        for t in range(length):
            frame[t] = signal[i * hop + t] * window[t] + offset
        _burg(frame, forward, backward, coefficients[i], previous)
    return coefficients


@entry
def resynthesize(
    signal: Floats,
    window: Floats,
    hop: int,
    coefficients: Floats,
    poles: Complexes,
    alpha: float,
    mute: float,
) -> Floats:
    """Overlap-added output of every whole frame of a block, float64, as long as the block.

    Per frame: windowed, filtered by its own polynomial over that of its turned poles, windowed.
    A frame whose samples all equal `mute` adds nothing; NaN mutes none.
    """
    length, count, order = window.size, poles.shape[0], poles.shape[1]
    output = np.zeros(signal.size)
    padded, frames = np.zeros(order + length), np.empty((_SIDE_BY_SIDE, length))
    turned, states = np.empty((_SIDE_BY_SIDE, order + 1)), np.empty((_SIDE_BY_SIDE, order + 1))
    for first in range(0, count, _SIDE_BY_SIDE):
        together = min(_SIDE_BY_SIDE, count - first)
        for i in range(together):
            start = (first + i) * hop
            if _is_level(signal, start, length, mute):
                frames[i] = 0.0
                turned[i] = 0.0
                continue
            for t in range(length):
                padded[order + t] = signal[start + t] * window[t]
            _find_residual(padded, coefficients[first + i], frames[i])
            _turn_poles(poles[first + i], alpha, turned[i])
        _resonate(frames[:together], turned[:together], states[:together])
        for i in range(together):
            part = output[(first + i) * hop :]
            for t in range(length):
                part[t] += frames[i, t] * window[t]
    return output
