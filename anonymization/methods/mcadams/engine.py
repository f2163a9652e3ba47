"""Roots of many polynomials at once by the Aberth–Ehrlich iteration, compiled (Ehrlich 1967; Aberth 1973).

As many polynomials as there are lanes move side by side, so that the processor works on four or eight of them in
one instruction; a lane whose roots have settled takes the next polynomial. Within a lane the roots move one after
the other, each already seeing the new place of the one before: fewer rounds than all at once.

Conventions: as `_mcadams_kernel`. Arrays of lanes are flat: row i holds lane l at `i * _LANES + l`.
"""

import math

import numpy as np
import numpy.typing as npt

from anonymization.methods._compiling import entry, inner

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Complexes = npt.NDArray[np.complex128]
Flags = npt.NDArray[np.bool_]

_LANES = 32
_UNIT_ROUNDOFF = 2.0**-53
_START_RADIUS = 0.95
_MAX_ROUNDS = 60
# Convergence is cubic: a step this small leaves nothing for the next one to correct in float64.
_LAST_STEP = 1e-9
# Closer than this to the real axis a root is tested for being a real one disturbed by rounding.
_NEAR_REAL = 1e-5

# Rows of the work of one root: where it is, p(z), p'(z), a bound of the rounding in p, and Σ 1 / (z - another).
_X, _Y, _RADIUS, _P_X, _P_Y, _D_X, _D_Y, _BOUND, _SUM_X, _SUM_Y = (row * _LANES for row in range(10))
_ROWS = 10


@entry
def find_roots(coefficients: Floats) -> tuple[Complexes, Flags]:
    """All roots of polynomials, shape (n, order + 1), with leading coefficient 1.

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
        is_open[:] = 0.0
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
        places[2 * r * _LANES + lane] = _START_RADIUS * math.cos(angle)
        places[(2 * r + 1) * _LANES + lane] = _START_RADIUS * math.sin(angle)


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
    """One step for p, p' and the bound of the rounding in p."""
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
        p_x, p_y, noise = work[_P_X + i], work[_P_Y + i], 4.0 * _UNIT_ROUNDOFF * work[_BOUND + i]
        sum_x, sum_y, limit = work[_SUM_X + i], work[_SUM_Y + i], _LAST_STEP * work[_RADIUS + i]
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
