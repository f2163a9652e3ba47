"""A linear mixed model with several crossed random parts, fitted by profiled restricted maximum likelihood (REML).

    y = X β + Σ_k Z_k u_k + e,   u_k ~ N(0, (θ_k σ)² I),   e ~ N(0, σ² I)

Given θ, everything else has a closed form, and only cross-products of Z, X and y enter, which are summed up once: a
step costs the same for three hundred ratings and for thirty thousand. The part with most levels has a diagonal block
and is eliminated first (Schur complement); one dense Cholesky factor of the other levels remains.

Source: Bates, Mächler, Bolker & Walker, "Fitting linear mixed-effects models using lme4", Journal of Statistical
Software 67 (2015), equations 18, 34 and 39 to 42.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from listening.analysis.inputs import Floats, Ints

_START = 0.5
_MOST_STEPS = 200
_DENSE = 0.1  # share of cells that are not zero from which a dense matrix is quicker
_MOST_SEARCHES = 6
_INSIDE = 0.2
_NEAR_ZERO, _SMALL = 1e-4, 0.02  # θ below which a search has touched 0, and below which 0 itself is tried
_FLAT = 0.01  # slope of the deviance at a minimum
_STEP = 1e-2
_MOST_NEWTON_STEPS, _REACHED = 12, 1e-11


@dataclass(frozen=True, eq=False)
class Fit:
    """Attributes:
    effects, errors: shape (columns of X,), fixed effects and their standard errors.
    variances: shape (parts,), of the random parts, in the order given. `residual`: variance of e.
    deviance: −2 log restricted likelihood.
    is_converged: whether the minimum was found.
    """

    effects: Floats
    errors: Floats
    variances: Floats
    residual: float
    deviance: float
    is_converged: bool


@dataclass(frozen=True, eq=False)
class _Products:
    """Cross-products; the levels of the largest part first, then all others side by side.

    Attributes:
        count: of ratings. `fixed`: columns of X.
        large: shape (levels of the largest part,), its ratings by level: a diagonal block.
        cross: shape (large, others), sparse if few listeners met an utterance. others: shape (others, others).
        large_data, other_data: Z' [X y]. data: [X y]' [X y].
        part_of_other: shape (others,), which part each of the other levels belongs to.
    """

    count: int
    fixed: int
    large: Floats
    cross: Any
    others: Floats
    large_data: Floats
    other_data: Floats
    data: Floats
    part_of_other: Ints


@dataclass(frozen=True, eq=False)
class _Solution:
    deviance: float
    effects: Floats
    covariance: Floats  # of the effects, over σ²
    residual: float


def fit_reml(y: Floats, x: Floats, parts: Sequence[Ints]) -> Fit:
    """The model with the given columns and random parts.

    Args:
        y: shape (ratings,).
        x: shape (ratings, columns), of full rank.
        parts: at least one; each of shape (ratings,), the number of the level from 0, all levels present.

    Raises:
        numpy.linalg.LinAlgError: the columns of X are not independent, or nothing varies.
    """
    order = sorted(range(len(parts)), key=lambda place: -int(parts[place].max()))
    centre, scale = float(y.mean()), float(y.std())
    if scale == 0:
        raise np.linalg.LinAlgError("nothing varies")
    products = _products((y - centre) / scale, x, [parts[place] for place in order])
    theta, is_converged = _least_deviance(products, len(parts))
    best = _solve(products, theta)
    variances = np.empty(len(parts))
    variances[order] = theta**2 * best.residual * scale**2
    effects = best.effects * scale + centre * _intercept(x)
    errors = np.sqrt(best.residual * np.diag(best.covariance)) * scale
    free = products.count - products.fixed
    return Fit(
        effects, errors, variances, best.residual * scale**2, best.deviance + 2 * free * np.log(scale), is_converged
    )


def _intercept(x: Floats) -> Floats:
    """The effects that give one everywhere, to put the mean back that was taken from y."""
    return np.asarray(np.linalg.lstsq(x, np.ones(len(x)), rcond=None)[0], np.float64)


def _products(y: Floats, x: Floats, parts: list[Ints]) -> _Products:
    from scipy.sparse import csr_array, hstack

    rows = np.arange(y.size)
    blocks = [csr_array((np.ones(y.size), (rows, part)), shape=(y.size, int(part.max()) + 1)) for part in parts]
    large = blocks[0]
    others = hstack(blocks[1:], format="csr") if len(blocks) > 1 else csr_array((y.size, 0))
    xy = np.column_stack([x, y])
    cross = large.T @ others
    if cross.nnz > _DENSE * cross.shape[0] * cross.shape[1]:
        cross = cross.toarray()
    of_other = np.repeat(np.arange(1, len(blocks)), [block.shape[1] for block in blocks[1:]])
    return _Products(
        y.size, x.shape[1], np.asarray(large.sum(axis=0), np.float64), cross,
        (others.T @ others).toarray(), large.T @ xy, others.T @ xy, xy.T @ xy, of_other.astype(np.int64),
    )  # fmt: skip


def _solve(products: _Products, theta: Floats) -> _Solution:
    """Profiled deviance (equation 42) and all that follows from θ.

    With A = Λ Z'Z Λ + I in blocks, the diagonal block of the largest part is divided out first. What is left of
    [X y]'[X y] after all levels is a matrix whose Cholesky factor holds R_X, and the residual sum r² as last pivot.
    """
    from scipy.linalg import cho_factor, cho_solve, cholesky

    of_others = theta[products.part_of_other]
    diagonal = theta[0] ** 2 * products.large + 1
    weights = theta[0] ** 2 / diagonal
    weighted = weights[:, None] * products.large_data
    left = products.data - products.large_data.T @ weighted
    logs = float(np.log(diagonal).sum())
    if of_others.size:
        rest = of_others[:, None] * (products.others - _weighted_square(products.cross, weights)) * of_others
        rest[np.diag_indices_from(rest)] += 1
        data = of_others[:, None] * (products.other_data - products.cross.T @ weighted)
        factor = cho_factor(rest, lower=True)
        logs += 2 * float(np.log(np.diag(factor[0])).sum())
        left = left - data.T @ cho_solve(factor, data)
    root = cholesky(left, lower=True)
    fixed = products.fixed
    free = products.count - fixed
    squares = float(root[fixed, fixed] ** 2)
    logs += 2 * float(np.log(np.diag(root)[:fixed]).sum())
    inverse = np.linalg.inv(root[:fixed, :fixed])
    effects = inverse.T @ root[fixed, :fixed]
    residual = squares / free
    return _Solution(logs + free * (1 + np.log(2 * np.pi * residual)), effects, inverse.T @ inverse, residual)


def _weighted_square(cross: Any, weights: Floats) -> Floats:
    """C' diag(w) C, of a dense or a sparse C."""
    if isinstance(cross, np.ndarray):
        dense: Floats = cross.T @ (weights[:, None] * cross)
        return dense
    found: Floats = (cross.T @ cross.multiply(weights[:, None]).tocsr()).toarray()
    return found


def _least_deviance(products: _Products, parts: int) -> tuple[Floats, bool]:
    """θ at the minimum, and whether it is one.

    The deviance is even in θ, so its slope is 0 at θ = 0 whether that is a minimum or a ridge, and a search that
    touches 0 stays there. Its slope by θ² tells the two apart: where it falls, the search goes on from inside, each
    time from nearer, for a first step may leap over a minimum close to 0 and land on 0 again.
    """
    from scipy.optimize import minimize

    def deviance(theta: Floats) -> float:
        return _solve(products, theta).deviance

    theta = np.full(parts, _START)
    for search in range(_MOST_SEARCHES):
        found = minimize(
            deviance, theta, method="L-BFGS-B", bounds=[(0.0, None)] * parts,
            options={"maxiter": _MOST_STEPS, "ftol": 1e-12, "gtol": 1e-6},
        )  # fmt: skip
        theta = found.x.copy()
        is_falling = np.zeros(parts, np.bool_)
        for place in np.flatnonzero(theta < _SMALL):
            if _slope_at_zero(products, theta, int(place)) > -_FLAT:
                theta[place] = 0.0
            elif theta[place] < _NEAR_ZERO:
                is_falling[place] = True
        if is_falling.any():
            theta[is_falling] = _INSIDE / 2**search
            continue
        theta, is_reached = _polished(products, theta)  # a search may end early: then it goes on from here
        if is_reached:
            return theta, True
    return theta, False


def _slope_at_zero(products: _Products, theta: Floats, place: int) -> float:
    """Of the deviance by θ² of one part, where that part is 0."""
    at, beside = theta.copy(), theta.copy()
    at[place], beside[place] = 0.0, _STEP
    return (_solve(products, beside).deviance - _solve(products, at).deviance) / _STEP**2


def _polished(products: _Products, theta: Floats) -> tuple[Floats, bool]:
    """The zero of the gradient near θ, and whether it was reached.

    Differences of deviances tell θ to six digits or so, and which six depends on the order in which a processor adds.
    Newton's method on the exact gradient ends at the same place wherever it starts.
    """
    inside = np.flatnonzero(theta)
    logs = 2 * np.log(theta[inside])

    def gradient(at: Floats) -> Floats:
        full = theta.copy()
        full[inside] = np.exp(at / 2)
        return _gradient(products, full)[inside]

    if not inside.size:
        return theta, True
    slope = gradient(logs)
    for _ in range(_MOST_NEWTON_STEPS):
        if np.abs(slope).max() < _REACHED:
            break
        nearer = logs - np.clip(np.linalg.solve(_curvature(gradient, logs), slope), -1, 1)
        left = gradient(nearer)
        if np.abs(left).max() > np.abs(slope).max():
            break
        logs, slope = nearer, left
    result = theta.copy()
    result[inside] = np.exp(logs / 2)
    return result, bool(np.abs(slope).max() < _FLAT)


def _curvature(gradient: Callable[[Floats], Floats], at: Floats) -> Floats:
    """Derivatives of a gradient, by differences. Shape (parts, parts)."""
    steps = _STEP * np.eye(at.size)
    return np.column_stack([(gradient(at + step) - gradient(at - step)) / (2 * _STEP) for step in steps])


def _gradient(products: _Products, theta: Floats) -> Floats:
    """Of the deviance by log θ², for parts above 0, exactly.

    With U = A⁻¹ Λ Z' [X y] and C = (X' V⁻¹ X)⁻¹, for the q levels of a part:
    q − tr(A⁻¹) − tr(U_X C U_X') − (n − p) ‖U_y − U_X β‖² / r², each over the levels of that part.
    """
    from scipy.linalg import cho_factor, cho_solve

    solution = _solve(products, theta)
    of_others = theta[products.part_of_other]
    diagonal = theta[0] ** 2 * products.large + 1
    large_data = theta[0] * products.large_data
    inverses = np.array([(1 / diagonal).sum(), *np.zeros(theta.size - 1)])
    solved = large_data / diagonal[:, None]
    blocks = [solved]
    if of_others.size:
        rest = of_others[:, None] * (products.others - _weighted_square(products.cross, theta[0] ** 2 / diagonal))
        rest *= of_others
        rest[np.diag_indices_from(rest)] += 1
        factor = cho_factor(rest, lower=True)
        inverse = cho_solve(factor, np.eye(len(rest)))
        data = of_others[:, None] * (products.other_data - products.cross.T @ (theta[0] * solved))
        others = cho_solve(factor, data)
        scaled = of_others[:, None] * others
        blocks[0] = solved - theta[0] * (products.cross @ scaled) / diagonal[:, None]
        square = of_others[:, None] * _weighted_square(products.cross, (theta[0] / diagonal) ** 2) * of_others
        inverses[0] += float((inverse * square).sum())
        own = np.diag(inverse)
        for part in range(1, theta.size):
            inverses[part] = own[products.part_of_other == part].sum()
            blocks.append(others[products.part_of_other == part])
    fixed, free = products.fixed, products.count - products.fixed
    found = np.empty(theta.size)
    for part, block in enumerate(blocks):
        of_x, rest_of_y = block[:, :fixed], block[:, fixed] - block[:, :fixed] @ solution.effects
        explained = float((of_x @ solution.covariance * of_x).sum())
        squares = float(rest_of_y @ rest_of_y) / (solution.residual * free)
        found[part] = len(block) - inverses[part] - explained - free * squares
    return found
