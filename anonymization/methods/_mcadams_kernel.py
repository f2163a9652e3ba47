"""Compiled inner loops of `mcadams`; importing this imports numba, so `mcadams` does on first use.

Every function works on one block of frames and shares nothing. Threads are the caller's (the GIL
is released): no numba threading layer, which would not survive the fork of a worker.

Conventions: a signal is float64, full scale ±1; frame i starts at sample `i * hop`; a polynomial
a_0 … a_p with a_0 = 1 stands for A(z) = Σ a_k z^-k, its roots are the poles of 1/A; a real pole has
an imaginary part of exactly 0.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Flags = npt.NDArray[np.bool_]

# Sums may be reordered for SIMD; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "arcp", "nsz"}
_TINY = float(np.finfo(np.float64).tiny)
_UNIT_ROUNDOFF = 2.0**-53

# Burg's running energy keeps too few digits below this part of the first one (a constant or a pure
# tone); there it is held at or above the energy itself, so that no pole leaves the unit circle.
_ENERGY_TRUST = 1e-6
_START_RADIUS = 0.95
_MAX_ITERATIONS = 60
# Convergence is cubic: a step this small leaves nothing for the next one to correct in float64.
_LAST_STEP = 1e-9
# Closer than this to the real axis a root is tested for being a real one disturbed by rounding.
_NEAR_REAL = 1e-5

_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": _FAST, "error_model": "numpy"}

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _inner(function: _Function) -> _Function:
    """Compile as a part of an entry."""
    return cast("_Function", njit(**_OPTIONS)(function))


def _entry(function: _Function) -> _Function:
    """Compile and keep on disk; in memory only where numba finds no folder that it may write to."""
    try:
        return cast("_Function", njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return cast("_Function", njit(**_OPTIONS)(function))


@_inner
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


@_inner
def _aberth_step(coefficients: Floats, real: Floats, imag: Floats, r: int) -> float:
    """Move root r once. Its step relative to its size; 0 where p(z) is rounding noise already."""
    x, y = real[r], imag[r]
    radius = math.sqrt(x * x + y * y)
    p_x, p_y, d_x, d_y, bound = 1.0, 0.0, 0.0, 0.0, 1.0
    for k in range(1, coefficients.size):
        d_x, d_y = d_x * x - d_y * y + p_x, d_x * y + d_y * x + p_y
        p_x, p_y = p_x * x - p_y * y + coefficients[k], p_x * y + p_y * x
        bound = bound * radius + abs(coefficients[k])
    if math.sqrt(p_x * p_x + p_y * p_y) <= 4.0 * _UNIT_ROUNDOFF * bound:
        return 0.0
    sum_x, sum_y = 0.0, 0.0
    for j in range(real.size):
        u, v = x - real[j], y - imag[j]
        weight = 1.0 / (u * u + v * v) if j != r else 0.0
        sum_x += u * weight
        sum_y -= v * weight
    # Newton's p / p' over 1 - p / p' · Σ, that is p / (p' - p · Σ).
    q_x = d_x - (p_x * sum_x - p_y * sum_y)
    q_y = d_y - (p_x * sum_y + p_y * sum_x)
    scale = 1.0 / (q_x * q_x + q_y * q_y)
    step_x = (p_x * q_x + p_y * q_y) * scale
    step_y = (p_y * q_x - p_x * q_y) * scale
    real[r] = x - step_x
    imag[r] = y - step_y
    return math.sqrt(step_x * step_x + step_y * step_y) / radius


@_inner
def _find_roots(coefficients: Floats, real: Floats, imag: Floats, settled: Flags) -> bool:
    """All roots at once (Ehrlich 1967; Aberth 1973); False where they do not settle."""
    order = real.size
    for r in range(order):
        # A quarter step off symmetry: conjugate starts would never part to meet two real roots.
        angle = 2.0 * math.pi * (r + 0.25) / order
        real[r] = _START_RADIUS * math.cos(angle)
        imag[r] = _START_RADIUS * math.sin(angle)
        settled[r] = False
    for _ in range(_MAX_ITERATIONS):
        open_roots = 0
        for r in range(order):
            if not settled[r]:
                settled[r] = _aberth_step(coefficients, real, imag, r) <= _LAST_STEP
                open_roots += not settled[r]
        if open_roots == 0:
            return True
    return False


@_inner
def _pair_roots(real: Floats, imag: Floats) -> bool:
    """Set the imaginary part of real roots to 0; False where the others are not pairs."""
    order = real.size
    for r in range(order):
        if abs(imag[r]) < _NEAR_REAL:
            # Real, unless another root lies closer to its conjugate than it does itself.
            nearest = 2.0 * abs(imag[r])
            is_real = True
            for j in range(order):
                if j != r and math.hypot(real[j] - real[r], imag[j] + imag[r]) < nearest:
                    is_real = False
            if is_real:
                imag[r] = 0.0
    balance = 0
    for r in range(order):
        balance += (imag[r] > 0.0) - (imag[r] < 0.0)
    return balance == 0


@_inner
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


@_inner
def _refilter(frame: Floats, old: Floats, new: Floats, residual: Floats, state: Floats) -> None:
    """Filter a frame in place by old(z) / new(z), both from zero state."""
    order = old.size - 1
    residual[:] = frame
    for k in range(1, order + 1):
        later = residual[k:]
        for t in range(later.size):
            later[t] += old[k] * frame[t]
    state[:] = 0.0
    # Transposed direct form; state has order + 1 entries, of which the last stays 0.
    for t in range(frame.size):
        output = residual[t] + state[0]
        for k in range(order):
            state[k] = state[k + 1] - new[k + 1] * output
        frame[t] = output


@_inner
def _is_level(signal: Floats, start: int, length: int, value: float) -> bool:
    for t in range(start, start + length):  # noqa: SIM110 (numba knows no generator expression)
        if signal[t] != value:
            return False
    return True


@_entry
def find_poles(signal: Floats, window: Floats, hop: int, order: int, offset: float) -> tuple[Floats, Complexes, Flags]:
    """LPC polynomials and poles of every whole frame of a block.

    The polynomial is fitted to the windowed frame plus `offset`. Returns coefficients, float64
    (frames, order + 1); poles, complex128 (frames, order); found, bool (frames,), False where the
    poles are not to be used.
    """
    length = window.size
    frames = 1 + (signal.size - length) // hop
    coefficients = np.empty((frames, order + 1))
    poles = np.empty((frames, order), np.complex128)
    found = np.empty(frames, np.bool_)
    frame, forward, backward = np.empty(length), np.empty(length - 1), np.empty(length - 1)
    previous = np.empty(order + 1)
    real, imag, settled = np.empty(order), np.empty(order), np.empty(order, np.bool_)
    for i in range(frames):
        for t in range(length):
            frame[t] = signal[i * hop + t] * window[t] + offset
        _burg(frame, forward, backward, coefficients[i], previous)
        found[i] = _find_roots(coefficients[i], real, imag, settled) and _pair_roots(real, imag)
        for r in range(order):
            poles[i, r] = complex(real[r], imag[r])
    return coefficients, poles, found


@_entry
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
    length = window.size
    order = poles.shape[1]
    output = np.zeros(signal.size)
    frame, residual = np.empty(length), np.empty(length)
    turned, state = np.empty(order + 1), np.empty(order + 1)
    for i in range(poles.shape[0]):
        start = i * hop
        if _is_level(signal, start, length, mute):
            continue
        for t in range(length):
            frame[t] = signal[start + t] * window[t]
        _turn_poles(poles[i], alpha, turned)
        _refilter(frame, coefficients[i], turned, residual, state)
        for t in range(length):
            output[start + t] += frame[t] * window[t]
    return output
