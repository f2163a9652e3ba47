"""The McAdams filter on the processor's cores: blocks of frames, shared among threads, in loops compiled by numba.

Every loop works on one block of frames and shares nothing. Roots of many polynomials are found at once by the
Aberth–Ehrlich iteration (Ehrlich 1967; Aberth 1973): as many polynomials as there are lanes move side by side, so that
the processor works on four or eight of them in one instruction; a lane whose roots have settled takes the next
polynomial. Within a lane the roots move one after the other, each already seeing the new place of the one before: fewer
rounds than all at once.

Conventions: a signal is float64, full scale ±1, shape (n,); frame i starts at sample `i * hop`; a polynomial a_0 … a_p
with a_0 = 1 stands for A(z) = Σ a_k z^-k, its roots are the poles of 1/A; a real pole has an imaginary part of exactly
0. Arrays of lanes are flat: row i holds lane l at `i * _LANES + l`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from anonymization.methods.mcadams.parameters import FULL_SCALE, OFFSET, McAdamsParameters
from common.arrays import Flags, Floats, Samples
from common.numba_loops import entry, inner

Counts = npt.NDArray[np.int64]
Complexes = npt.NDArray[np.complex128]
T = TypeVar("T")
R = TypeVar("R")

# At least two and a half seconds of speech, so that neither Python nor lanes that run empty count.
_FRAMES_PER_BLOCK = 250
TINY = float(np.finfo(np.float64).tiny)

# Burg's running energy keeps too few digits below this part of the first one (a constant or a pure
# tone); there it is held at or above the energy itself, so that no pole leaves the unit circle.
ENERGY_TRUST = 1e-6
_SIDE_BY_SIDE = 4
_LANES = 32
UNIT_ROUNDOFF = 2.0**-53
START_RADIUS = 0.95
_MAX_ROUNDS = 60
# Convergence is cubic: a step this small leaves nothing for the next one to correct in float64.
LAST_STEP = 1e-9
# Closer than this to the real axis a root is tested for being a real one disturbed by rounding.
NEAR_REAL = 1e-5

# Rows of the work of one root: where it is, p(z), p'(z), a bound of the rounding in p, and Σ 1 / (z - another).
_X, _Y, _RADIUS, _P_X, _P_Y, _D_X, _D_Y, _BOUND, _SUM_X, _SUM_Y = (row * _LANES for row in range(10))
_ROWS = 10


def bend_poles(samples: Samples, parameters: McAdamsParameters, threads: int) -> Floats:
    """Return the overlap-added output of all frames to be filtered, shape (n,), before any change of level."""
    output = np.zeros(samples.size)
    blocks = list(_blocks(samples.size, parameters))
    window = parameters.analysis_window()

    def bend(block: tuple[int, int]) -> Floats:
        return _bend_block(samples[block[0] : block[1]], block[1] - block[0], window, parameters)

    for (start, end), part in zip(blocks, map_in_threads(threads, bend, blocks), strict=True):
        output[start:end] += part[: samples.size - start]
    return output


def map_in_threads(threads: int, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield what the function makes of each item, in their order; one thread is this one, so that none is started."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items)


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
    """Return output of the frames of a block of `n_samples`; zeros follow where it has fewer samples."""
    signal = np.full(n_samples, OFFSET)
    signal[: samples.size] += samples / FULL_SCALE
    hop = parameters.hop_samples
    coefficients, poles, found = find_poles(signal, window, hop, parameters.order, OFFSET)
    if not found.all():
        poles[~found] = solve_companions(coefficients[~found])
    mute = OFFSET if parameters.keep_digital_silence else math.nan
    return resynthesize(signal, window, hop, coefficients, poles, float(parameters.alpha), mute)


def solve_companions(coefficients: Floats) -> Complexes:
    """Roots, shape (frames, order), of any polynomials, shape (frames, order + 1), leading coefficient 1."""
    frames, order = coefficients.shape[0], coefficients.shape[1] - 1
    companions = np.zeros((frames, order, order))
    companions[:, 1:, :-1] = np.eye(order - 1)
    companions[:, 0] = -coefficients[:, 1:]
    return np.linalg.eigvals(companions).astype(np.complex128)


def find_poles(signal: Floats, window: Floats, hop: int, order: int, offset: float) -> tuple[Floats, Complexes, Flags]:
    """Return LPC polynomials of every whole frame of a block, as `fit_polynomials`, and their poles, as
    `find_roots`."""
    coefficients = fit_polynomials(signal, window, hop, order, offset)
    return coefficients, *find_roots(coefficients)


# Loops over frames ---------------------------------------------------------------------------------


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
    unreliable = ENERGY_TRUST * energy
    coefficients[0] = 1.0
    for j in range(1, order + 1):
        coefficients[j] = 0.0
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
        reflection = -2.0 * cross / (energy + TINY)
        for j in range(order + 1):
            previous[j] = coefficients[j]
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
    for k in range(1, coefficients.size):
        coefficients[k] = 0.0
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
    for t in range(length):
        residual[t] = padded[order + t]
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
    for i in range(count):
        for k in range(order + 1):
            states[i, k] = 0.0
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


@entry
def fit_polynomials(signal: Floats, window: Floats, hop: int, order: int, offset: float) -> Floats:
    """Return LPC polynomials, float64 (frames, order + 1), of every whole frame of a block: windowed, plus `offset`."""
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
    signal: Floats, window: Floats, hop: int, coefficients: Floats, poles: Complexes, alpha: float, mute: float
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
                for t in range(length):
                    frames[i, t] = 0.0
                for k in range(order + 1):
                    turned[i, k] = 0.0
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


# Roots ---------------------------------------------------------------------------------------------


@entry
def find_roots(coefficients: Floats) -> tuple[Complexes, Flags]:
    """Return all roots of polynomials, shape (n, order + 1), with leading coefficient 1.

    Returns complex128 (n, order); and bool (n,), False where they did not settle or are not real ones and pairs.
    """
    count, order = coefficients.shape[0], coefficients.shape[1] - 1
    roots, found = np.zeros((count, order), np.complex128), np.zeros(count, np.bool_)
    lanes = np.zeros((order + 1) * _LANES)
    places = np.zeros(2 * order * _LANES)
    work, is_open = np.empty(_ROWS * _LANES), np.empty(_LANES)
    owner, rounds = np.empty(_LANES, np.int64), np.zeros(_LANES, np.int64)
    real, imag = np.empty(order), np.empty(order)
    taken, busy = min(count, _LANES), min(count, _LANES)
    for lane in range(_LANES):
        owner[lane] = lane if lane < count else -1
        # A lane with nothing to do repeats the last polynomial.
        _take(coefficients, min(lane, count - 1), lane, lanes, places)
    while busy > 0:
        for lane in range(_LANES):
            is_open[lane] = 0.0
        for r in range(order):
            _move(lanes, places, r, order, work, is_open)
        for lane in range(_LANES):
            rounds[lane] += 1
            if owner[lane] < 0 or (is_open[lane] > 0.0 and rounds[lane] < _MAX_ROUNDS):
                continue
            for r in range(order):
                real[r], imag[r] = places[2 * r * _LANES + lane], places[(2 * r + 1) * _LANES + lane]
            found[owner[lane]] = is_open[lane] == 0.0 and _pair_roots(real, imag)
            for r in range(order):
                roots[owner[lane], r] = complex(real[r], imag[r])
            owner[lane], rounds[lane] = -1, 0
            if taken < count:
                _take(coefficients, taken, lane, lanes, places)
                owner[lane] = taken
                taken += 1
            else:
                busy -= 1
    return roots, found


@inner
def _take(coefficients: Floats, which: int, lane: int, lanes: Floats, places: Floats) -> None:
    """Put a polynomial into a lane, its roots on a circle."""
    if which < 0:
        return
    order = coefficients.shape[1] - 1
    for k in range(order + 1):
        lanes[k * _LANES + lane] = coefficients[which, k]
    for r in range(order):
        # A quarter step off symmetry: conjugate starts would never part to meet two real roots.
        angle = 2.0 * math.pi * (r + 0.25) / order
        places[2 * r * _LANES + lane] = START_RADIUS * math.cos(angle)
        places[(2 * r + 1) * _LANES + lane] = START_RADIUS * math.sin(angle)


@inner
def _move(lanes: Floats, places: Floats, r: int, order: int, work: Floats, is_open: Floats) -> None:
    """Move root r of every lane once; add 1 to `is_open` where it has not settled by that."""
    place = places[2 * r * _LANES :]
    _begin(place, work)
    first = 1 + order % 4
    for k in range(1, first):
        _evaluate_one(lanes[k * _LANES :], work)
    for k in range(first, order + 1, 4):
        _evaluate_four(lanes[k * _LANES :], work)
    last = order - order % 4
    for j in range(0, last, 4):
        _repel_four(places[2 * j * _LANES :], work, r - j)
    for j in range(last, order):
        _repel_one(places[2 * j * _LANES :], work, r - j)
    _step(place, work, is_open)


@inner
def _begin(place: Floats, work: Floats) -> None:
    for lane in range(_LANES):
        x, y = place[lane], place[_LANES + lane]
        work[_X + lane], work[_Y + lane], work[_RADIUS + lane] = x, y, math.sqrt(x * x + y * y)
        work[_P_X + lane], work[_P_Y + lane], work[_BOUND + lane] = 1.0, 0.0, 1.0
        work[_D_X + lane], work[_D_Y + lane] = 0.0, 0.0
        work[_SUM_X + lane], work[_SUM_Y + lane] = 0.0, 0.0


_State = tuple[float, float, float, float, float]


@inner
def _horner(state: _State, x: float, y: float, radius: float, coefficient: float) -> _State:
    """Return one step for p, p' and the bound of the rounding in p."""
    p_x, p_y, d_x, d_y, bound = state
    return (
        p_x * x - p_y * y + coefficient,
        p_x * y + p_y * x,
        d_x * x - d_y * y + p_x,
        d_x * y + d_y * x + p_y,
        bound * radius + abs(coefficient),
    )


@inner
def _evaluate_one(rows: Floats, work: Floats) -> None:
    """Take in the first row of coefficients."""
    for i in range(_LANES):
        x, y, radius = work[_X + i], work[_Y + i], work[_RADIUS + i]
        state = (work[_P_X + i], work[_P_Y + i], work[_D_X + i], work[_D_Y + i], work[_BOUND + i])
        state = _horner(state, x, y, radius, rows[i])
        work[_P_X + i], work[_P_Y + i], work[_D_X + i], work[_D_Y + i], work[_BOUND + i] = state


@inner
def _evaluate_four(rows: Floats, work: Floats) -> None:
    """Take in the first four rows of coefficients, while the rest stays in registers."""
    for i in range(_LANES):
        x, y, radius = work[_X + i], work[_Y + i], work[_RADIUS + i]
        state = (work[_P_X + i], work[_P_Y + i], work[_D_X + i], work[_D_Y + i], work[_BOUND + i])
        state = _horner(state, x, y, radius, rows[i])
        state = _horner(state, x, y, radius, rows[_LANES + i])
        state = _horner(state, x, y, radius, rows[2 * _LANES + i])
        state = _horner(state, x, y, radius, rows[3 * _LANES + i])
        work[_P_X + i], work[_P_Y + i], work[_D_X + i], work[_D_Y + i], work[_BOUND + i] = state


@inner
def _repel_one(others: Floats, work: Floats, own: int) -> None:
    """Add 1 / (z - another) of the first root of `others`, nothing where it is the root itself (`own` is 0)."""
    is_self = 1.0 if own == 0 else 0.0
    for i in range(_LANES):
        u, v = work[_X + i] - others[i], work[_Y + i] - others[_LANES + i]
        weight = 1.0 / (u * u + v * v + is_self)
        work[_SUM_X + i] += u * weight
        work[_SUM_Y + i] -= v * weight


@inner
def _repel_four(others: Floats, work: Floats, own: int) -> None:
    """As `_repel_one` of the first four roots, over one common denominator: divisions are what costs."""
    self_0, self_1 = 1.0 if own == 0 else 0.0, 1.0 if own == 1 else 0.0
    self_2, self_3 = 1.0 if own == 2 else 0.0, 1.0 if own == 3 else 0.0
    for i in range(_LANES):
        x, y = work[_X + i], work[_Y + i]
        u_0, v_0 = x - others[i], y - others[_LANES + i]
        u_1, v_1 = x - others[2 * _LANES + i], y - others[3 * _LANES + i]
        u_2, v_2 = x - others[4 * _LANES + i], y - others[5 * _LANES + i]
        u_3, v_3 = x - others[6 * _LANES + i], y - others[7 * _LANES + i]
        d_0, d_1 = u_0 * u_0 + v_0 * v_0 + self_0, u_1 * u_1 + v_1 * v_1 + self_1
        d_2, d_3 = u_2 * u_2 + v_2 * v_2 + self_2, u_3 * u_3 + v_3 * v_3 + self_3
        d_01, d_23 = d_0 * d_1, d_2 * d_3
        weight = 1.0 / (d_01 * d_23)
        work[_SUM_X + i] += ((u_0 * d_1 + u_1 * d_0) * d_23 + (u_2 * d_3 + u_3 * d_2) * d_01) * weight
        work[_SUM_Y + i] -= ((v_0 * d_1 + v_1 * d_0) * d_23 + (v_2 * d_3 + v_3 * d_2) * d_01) * weight


@inner
def _step(place: Floats, work: Floats, is_open: Floats) -> None:
    """Newton's p / p' over 1 - p / p' · Σ, that is p / (p' - p · Σ); none where p is rounding noise already."""
    for i in range(_LANES):
        p_x, p_y, noise = work[_P_X + i], work[_P_Y + i], 4.0 * UNIT_ROUNDOFF * work[_BOUND + i]
        sum_x, sum_y, limit = work[_SUM_X + i], work[_SUM_Y + i], LAST_STEP * work[_RADIUS + i]
        q_x = work[_D_X + i] - (p_x * sum_x - p_y * sum_y)
        q_y = work[_D_Y + i] - (p_x * sum_y + p_y * sum_x)
        scale = 1.0 / (q_x * q_x + q_y * q_y)
        scale = 0.0 if p_x * p_x + p_y * p_y <= noise * noise else scale
        step_x, step_y = (p_x * q_x + p_y * q_y) * scale, (p_y * q_x - p_x * q_y) * scale
        place[i] = work[_X + i] - step_x
        place[_LANES + i] = work[_Y + i] - step_y
        # What is not a number is no small step either.
        is_open[i] += 0.0 if step_x * step_x + step_y * step_y <= limit * limit else 1.0


@inner
def _pair_roots(real: Floats, imag: Floats) -> bool:
    """Set the imaginary part of real roots to 0; False where the others are not pairs."""
    order = real.size
    for r in range(order):
        if abs(imag[r]) < NEAR_REAL:
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
