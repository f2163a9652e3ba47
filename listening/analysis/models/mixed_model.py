"""What each system adds to a score, and where the variance of scores comes from: a linear mixed model.

**The model** (`make_model`) is

    score ~ system + position + (1 | listener) + (1 | source utterance) + (1 | speaker)

Position in the session is centred; in the task of verifiability the class of the pair (same speaker or not) is a
further centred column, as ratings of the two classes lie far apart. Linear on raw ratings too: adequate for display,
not a model of the scale (listening tests are ordinal). Whatever the data cannot tell is left out, and the note of its
row says why: a part with one level, a part whose levels are the single ratings, a part that another part or the system
determines, a position that is not known.

**The fit** (`fit_reml`) of several crossed random parts is by profiled restricted maximum likelihood (REML):

    y = X β + Σ_k Z_k u_k + e,   u_k ~ N(0, (θ_k σ)² I),   e ~ N(0, σ² I)

Given θ, everything else has a closed form, and only cross-products of Z, X and y enter, which are summed up once: a
step costs the same for three hundred ratings and for thirty thousand. The part with most levels has a diagonal block
and is eliminated first (Schur complement); one dense Cholesky factor of the other levels remains.

Source: Bates, Mächler, Bolker & Walker, "Fitting linear mixed-effects models using lme4", Journal of Statistical
Software 67 (2015), equations 18, 34 and 39 to 42.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.arrays import Floats, Ints, Texts
from common.tables import DataTable
from listening.analysis.reading.inputs import ORIGINAL, Scored, Settings
from listening.analysis.tables import Row, make_table

_START = 0.25  # of every θ²
_MOST_STEPS = 200
_DENSE = 0.1  # share of cells that are not zero from which a dense matrix is quicker
_ZERO, _SMALL = 1e-12, 4e-4  # θ² where the slope at 0 is computed, and below which 0 itself is tried
_FLAT, _REACHED = 0.01, 1e-12  # slope of the deviance at a minimum, and what the search for its zero aims at


@dataclass(frozen=True, eq=False)
class MixedModelFit:
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


def fit_reml(y: Floats, x: Floats, parts: Sequence[Ints]) -> MixedModelFit:
    """Return the model with the given columns and random parts.

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
    return MixedModelFit(
        effects, errors, variances, best.residual * scale**2, best.deviance + 2 * free * np.log(scale), is_converged
    )


def _intercept(x: Floats) -> Floats:
    """Return the effects that give one everywhere, to put the mean back that was taken from y."""
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
    of_other = np.repeat(np.arange(1, len(blocks)), [block.shape[1] for block in blocks[1:]]).astype(np.int64)
    diagonal, square = np.asarray(large.sum(axis=0), np.float64), (others.T @ others).toarray()
    data = large.T @ xy, others.T @ xy, xy.T @ xy
    return _Products(y.size, x.shape[1], diagonal, cross, square, *data, of_other)


def _solve(products: _Products, theta: Floats) -> _Solution:
    """Return the profiled deviance (equation 42) and all that follows from θ.

    With A = Λ Z'Z Λ + I in blocks, the diagonal block of the largest part is divided out first. What is left of
    [X y]'[X y] after all levels is a matrix whose Cholesky factor holds R_X, and the residual sum r² as last pivot.
    """
    from scipy.linalg import cho_solve, cholesky

    diagonal = theta[0] ** 2 * products.large + 1
    weighted = (theta[0] ** 2 / diagonal)[:, None] * products.large_data
    left = products.data - products.large_data.T @ weighted
    logs = float(np.log(diagonal).sum())
    if products.part_of_other.size:
        factor, data = _without_largest(products, theta, diagonal, weighted)
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


def _without_largest(products: _Products, theta: Floats, diagonal: Floats, weighted: Floats) -> tuple[Any, Floats]:
    """Return the Cholesky factor of what is left of A once the largest part is divided out, and of Λ Z' [X y]."""
    from scipy.linalg import cho_factor

    of_others = theta[products.part_of_other]
    square = _weighted_square(products.cross, theta[0] ** 2 / diagonal)
    rest = of_others[:, None] * (products.others - square) * of_others
    rest[np.diag_indices_from(rest)] += 1
    return cho_factor(rest, lower=True), of_others[:, None] * (products.other_data - products.cross.T @ weighted)


def _weighted_square(cross: Any, weights: Floats) -> Floats:
    """Return C' diag(w) C, of a dense or a sparse C."""
    if isinstance(cross, np.ndarray):
        dense: Floats = cross.T @ (weights[:, None] * cross)
        return dense
    found: Floats = (cross.T @ cross.multiply(weights[:, None]).tocsr()).toarray()
    return found


def _least_deviance(products: _Products, parts: int) -> tuple[Floats, bool]:
    """Return θ at the minimum, and whether it is one.

    The search is by θ², by which the deviance has a slope at 0, too: a part is 0 where it rises from there. Deviances
    tell θ to six digits or so, and which six depends on the order in which a processor adds: the search ends at the
    zero of the exact gradient.
    """
    from scipy.optimize import minimize, root

    def look(squares: Floats) -> tuple[float, Floats]:
        theta = np.sqrt(np.maximum(squares, _ZERO))
        return _solve(products, theta).deviance, _gradient(products, theta) / theta**2

    options = {"maxiter": _MOST_STEPS, "ftol": 1e-12, "gtol": 1e-6}
    start, bounds = np.full(parts, _START), [(0.0, None)] * parts
    squares = minimize(look, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    for part in np.flatnonzero(squares < _SMALL):
        without = squares.copy()
        without[part] = 0.0
        squares = without if look(without)[1][part] > -_FLAT else squares
    inside = np.flatnonzero(squares)

    def gradient(logs: Floats) -> Floats:
        squares[inside] = np.exp(logs)
        slopes: Floats = look(squares)[1] * squares
        return slopes[inside]

    if inside.size:
        squares[inside] = np.exp(root(gradient, np.log(squares[inside]), tol=_REACHED).x)
    return np.sqrt(squares), bool(np.all(np.abs(look(squares)[1] * squares) < _FLAT))


def _gradient(products: _Products, theta: Floats) -> Floats:
    """Return the gradient of the deviance by log θ², for parts above 0, exactly.

    With U = A⁻¹ Λ Z' [X y] and C = (X' V⁻¹ X)⁻¹, for the q levels of a part:
    q − tr(A⁻¹) − tr(U_X C U_X') − (n − p) ‖U_y − U_X β‖² / r², each over the levels of that part.
    """
    from scipy.linalg import cho_solve

    solution = _solve(products, theta)
    of_others = theta[products.part_of_other]
    diagonal = theta[0] ** 2 * products.large + 1
    inverses = np.array([(1 / diagonal).sum(), *np.zeros(theta.size - 1)])
    solved = theta[0] * products.large_data / diagonal[:, None]
    blocks = [solved]
    if of_others.size:
        factor, data = _without_largest(products, theta, diagonal, theta[0] * solved)
        inverse = cho_solve(factor, np.eye(of_others.size))
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


PARTS = ("listener", "utterance", "speaker")
RESIDUAL = "residual"
MOST_LEVELS = 2000  # beyond those of the largest part; a dense factor of them is made about a hundred times
CERTAIN_DIGITS = 6


@dataclass(frozen=True, eq=False)
class Model:
    """What is fitted for one task.

    Attributes:
        systems: the reference first. `x`: intercept, other systems, then the columns named in `covariates`.
        parts: level of each rating by the name of the random part. `left_out`: why, by name.
        covariate_notes: sentences about covariates that are left out.
    """

    task: str
    y: Floats
    x: Floats
    systems: list[str]
    covariates: list[str]
    parts: dict[str, Ints]
    left_out: dict[str, str]
    covariate_notes: list[str]


def make_model_tables(scored: Scored, settings: Settings) -> list[DataTable]:
    """Make ``model_effects`` and ``model_variance``; a model that cannot be fitted is a note on each row."""
    effects: list[Row] = []
    variances: list[Row] = []
    for task in scored.tasks:
        model = make_model(scored, task)
        fit, why_not = _fitted(model)
        effects += _effect_rows(model, fit, why_not, settings)
        variances += _variance_rows(model, fit, why_not)
    return [make_table("model_effects", effects), make_table("model_variance", variances)]


def make_model(scored: Scored, task: str) -> Model:
    """Return the model of a task without whatever its ratings cannot tell."""
    chosen = scored.ratings.task == task
    ratings = scored.ratings.rows(chosen)
    systems = scored.systems(task)
    names, place = np.unique(ratings.system, return_inverse=True)
    system = np.array([systems.index(name) for name in names], np.int64)[place]
    dummies = np.zeros((system.size, len(systems)))
    dummies[np.arange(system.size), system] = 1.0
    dummies[:, 0] = 1.0
    covariates, notes = _covariates(task in scored.comparing, ratings.position, ratings.is_target, dummies)
    columns = {"listener": ratings.listener, "utterance": ratings.utterance, "speaker": ratings.speaker}
    parts, left_out = _random_parts(columns, system)
    x = np.column_stack([dummies, *covariates.values()])
    return Model(task, scored.score[chosen], x, systems, list(covariates), parts, left_out, notes)


def _covariates(
    compares_voices: bool, position: Ints, is_target: Ints, dummies: Floats
) -> tuple[dict[str, Floats], list[str]]:
    """Return centred columns by name, and sentences on those that are left out."""
    found: dict[str, Floats] = {}
    notes = []
    if (position <= 0).any():
        notes.append("Position in the session is not known and left out.")
    elif _is_new(position - position.mean(), dummies):
        found["position"] = position - position.mean()
    else:
        notes.append("Position in the session is determined by the system and left out.")
    if compares_voices:
        same = (is_target == 1).astype(np.float64)
        same -= same.mean()
        if _is_new(same, np.column_stack([dummies, *found.values()])):
            found["class"] = same
        else:
            notes.append("Class of pairs is determined by the system and left out.")
    return found, notes


def _is_new(column: Floats, others: Floats) -> bool:
    """Return whether a column is no combination of the others."""
    length = float(column @ column)
    if length == 0:
        return False
    rest = column - others @ np.linalg.lstsq(others, column, rcond=None)[0]
    return float(rest @ rest) > 1e-8 * length


def _random_parts(columns: dict[str, Texts], system: Ints) -> tuple[dict[str, Ints], dict[str, str]]:
    """Return the levels of each part that can be told, and why the others are left out."""
    parts: dict[str, Ints] = {}
    left_out: dict[str, str] = {}
    for name, values in columns.items():
        _, level = np.unique(values, return_inverse=True)
        level = level.astype(np.int64)
        if why := _why_untold(name, values, level, system, parts):
            left_out[name] = f"Left out: {why}"
        else:
            parts[name] = level
    return parts, left_out


def _why_untold(name: str, values: Texts, level: Ints, system: Ints, parts: dict[str, Ints]) -> str:
    """Return why a part cannot be told from what is in the model already; empty where it can."""
    levels = int(level.max()) + 1
    if (values == "").any():
        return f"the {name} of some ratings is not known."
    if levels == 1:
        return f"all ratings have one {name}."
    if levels == level.size:
        return f"each {name} was rated once, which cannot be told from the residual."
    if _determines(system, level):
        return f"each system has one {name} only."
    for other, others in parts.items():
        if _determines(others, level) and _determines(level, others):
            return f"each {other} has a {name} of its own."
    return ""


def _determines(first: Ints, second: Ints) -> bool:
    """Return whether equal levels of the first always have equal levels of the second."""
    pairs = first.astype(np.int64) * (int(second.max(initial=0)) + 1) + second
    return bool(np.unique(first).size == np.unique(pairs).size)


def _fitted(model: Model) -> tuple[MixedModelFit | None, str]:
    """Return the fit, or why there is none."""
    if not model.parts:
        return None, "The random parts cannot be distinguished, so there is no mixed model."
    if model.y.size <= model.x.shape[1] + 1:
        return None, "There are too few ratings for a model."
    if np.ptp(model.y) == 0:
        return None, "All scores are equal, so there is nothing to explain."
    levels = sorted((int(part.max()) + 1 for part in model.parts.values()), reverse=True)
    if sum(levels[1:]) > MOST_LEVELS:
        return None, f"Not fitted: {sum(levels):,} listeners, utterances and speakers would take too long."
    try:
        fit = fit_reml(model.y, model.x, list(model.parts.values()))
    except np.linalg.LinAlgError:
        return None, "The model cannot be fitted: nothing is left to explain after the systems."
    if not (fit.is_converged and np.isfinite(fit.errors).all()):
        return None, "The fit did not converge, so it is not shown."
    return fit, ""


def _effect_rows(model: Model, fit: MixedModelFit | None, why_not: str, settings: Settings) -> list[Row]:
    """Return the reference first, with what is to be said about the whole model."""
    from scipy.stats import norm

    rows: list[Row] = []
    for place, system in enumerate(model.systems):
        row: Row = {"task": model.task, "system": system}
        if fit is None:
            row["remark"] = why_not
        elif place == 0:
            row |= {"effect": 0.0, "remark": _reference_note(model, fit)}
        else:
            effect, error = float(fit.effects[place]), float(fit.errors[place])
            half = float(norm.ppf((1 + settings.level) / 2)) * error
            cells = {"effect": effect, "se": error, "low": effect - half, "high": effect + half}
            row |= {name: _told(value) for name, value in cells.items()}
        rows.append(row)
    return rows


def _reference_note(model: Model, fit: MixedModelFit) -> str:
    said = ["Reference." if model.systems[0] == ORIGINAL else "Reference, as there is no original speech."]
    units = {"position": "per trial of position", "class": "for pairs of one speaker"}
    for name, place in zip(model.covariates, range(len(model.systems), model.x.shape[1]), strict=True):
        said.append(f"{fit.effects[place]:+.4f} {units[name]} (SE {fit.errors[place]:.4f}).")
    return " ".join([*said, *model.covariate_notes])


def _variance_rows(model: Model, fit: MixedModelFit | None, why_not: str) -> list[Row]:
    names = [*model.parts, RESIDUAL]
    values = dict.fromkeys(names) if fit is None else dict(zip(names, [*fit.variances, fit.residual], strict=True))
    total = sum(value for value in values.values() if value is not None)
    rows: list[Row] = []
    for name in (*PARTS, RESIDUAL):
        row: Row = {"task": model.task, "part": name}
        value = values.get(name)
        if name in model.left_out:
            row["remark"] = model.left_out[name]
        elif value is None:
            row["remark"] = why_not
        else:
            row |= {"variance": _told(value), "share": _told(value / total)}
            row["remark"] = "Estimated as 0." if value == 0 else ""
        rows.append(row)
    return rows


def _told(value: float) -> float:
    """Return what is certain of a number that a search ended at, so that tables made elsewhere are the same."""
    return float(f"{value:.{CERTAIN_DIGITS}g}")
