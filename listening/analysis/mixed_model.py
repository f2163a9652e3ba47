"""What each system adds to a score, and where the variance of scores comes from: a linear mixed model.

    score ~ system + position + (1 | listener) + (1 | source utterance) + (1 | speaker)

by REML (`profiled_reml`). Position in the session is centred; in the task of verifiability the class of the pair (same
speaker or not) is a further centred column, as ratings of the two classes lie far apart. Linear on raw ratings too:
adequate for display, not a model of the scale (listening tests are ordinal).

Whatever the data cannot tell is left out, and the remark of its row says why: a part with one level, a part whose
levels are the single ratings, a part that another part or the system determines, a position that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from listening.analysis.contents import MODEL_EFFECTS, MODEL_VARIANCE
from listening.analysis.inputs import ORIGINAL, Floats, Ints, Scored, Texts
from listening.analysis.profiled_reml import Fit, fit_reml
from listening.analysis.settings import Settings
from listening.analysis.tables import Table

PARTS = ("listener", "utterance", "speaker")
RESIDUAL = "residual"
MOST_LEVELS = 2000  # beyond those of the largest part; a dense factor of them is made about a hundred times
CERTAIN_DIGITS = 6
_Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Model:
    """What is fitted for one task.

    Attributes:
        systems: the reference first. `x`: intercept, other systems, then the columns named in `covariates`.
        parts: level of each rating by the name of the random part. `left_out`: why, by name.
        covariate_remarks: sentences about covariates that are left out.
    """

    task: str
    y: Floats
    x: Floats
    systems: list[str]
    covariates: list[str]
    parts: dict[str, Ints]
    left_out: dict[str, str]
    covariate_remarks: list[str]


def model_tables(scored: Scored, settings: Settings) -> list[Table]:
    """`contents.MODEL_EFFECTS` and `contents.MODEL_VARIANCE`; a model that cannot be fitted is a remark on each row."""
    effects: list[_Row] = []
    variances: list[_Row] = []
    for task in scored.tasks:
        model = model_of(scored, task)
        fit, why_not = _fitted(model)
        effects += _effect_rows(model, fit, why_not, settings)
        variances += _variance_rows(model, fit, why_not)
    return [MODEL_EFFECTS.table(effects), MODEL_VARIANCE.table(variances)]


def model_of(scored: Scored, task: str) -> Model:
    """The model of a task without whatever its ratings cannot tell."""
    chosen = scored.ratings.task == task
    ratings = scored.ratings.rows(chosen)
    systems = scored.systems(task)
    names, place = np.unique(ratings.system, return_inverse=True)
    system = np.array([systems.index(name) for name in names], np.int64)[place]
    dummies = np.zeros((system.size, len(systems)))
    dummies[np.arange(system.size), system] = 1.0
    dummies[:, 0] = 1.0
    covariates, remarks = _covariates(task, ratings.position, ratings.is_target, dummies)
    columns = {"listener": ratings.listener, "utterance": ratings.utterance, "speaker": ratings.speaker}
    parts, left_out = _random_parts(columns, system)
    x = np.column_stack([dummies, *covariates.values()])
    return Model(task, scored.score[chosen], x, systems, list(covariates), parts, left_out, remarks)


def _covariates(task: str, position: Ints, is_target: Ints, dummies: Floats) -> tuple[dict[str, Floats], list[str]]:
    """Centred columns by name, and sentences on those that are left out."""
    found: dict[str, Floats] = {}
    remarks = []
    if (position <= 0).any():
        remarks.append("Position in the session is not known and left out.")
    elif _is_new(position - position.mean(), dummies):
        found["position"] = position - position.mean()
    else:
        remarks.append("Position in the session is determined by the system and left out.")
    if task == "verifiability":
        same = (is_target == 1).astype(np.float64)
        same -= same.mean()
        if _is_new(same, np.column_stack([dummies, *found.values()])):
            found["class"] = same
        else:
            remarks.append("Class of pairs is determined by the system and left out.")
    return found, remarks


def _is_new(column: Floats, others: Floats) -> bool:
    """Whether a column is no combination of the others."""
    length = float(column @ column)
    if length == 0:
        return False
    rest = column - others @ np.linalg.lstsq(others, column, rcond=None)[0]
    return float(rest @ rest) > 1e-8 * length


def _random_parts(columns: dict[str, Texts], system: Ints) -> tuple[dict[str, Ints], dict[str, str]]:
    """Levels of each part that can be told, and why the others are left out."""
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
    """Why a part cannot be told from what is in the model already; empty where it can."""
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
    """Whether equal levels of the first always have equal levels of the second."""
    pairs = np.unique(np.column_stack([first, second]), axis=0)
    return bool(np.unique(first).size == len(pairs))


def _fitted(model: Model) -> tuple[Fit | None, str]:
    """The fit, or why there is none."""
    if not model.parts:
        return None, "No random part can be told from the others, so there is no mixed model."
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


def _effect_rows(model: Model, fit: Fit | None, why_not: str, settings: Settings) -> list[_Row]:
    """The reference first, with what is to be said about the whole model."""
    from scipy.stats import norm

    rows: list[_Row] = []
    for place, system in enumerate(model.systems):
        row: _Row = {"task": model.task, "system": system}
        if fit is None:
            row["remark"] = why_not
        elif place == 0:
            row |= {"effect": 0.0, "remark": _reference_remark(model, fit)}
        else:
            effect, error = float(fit.effects[place]), float(fit.errors[place])
            half = float(norm.ppf((1 + settings.level) / 2)) * error
            cells = {"effect": effect, "se": error, "low": effect - half, "high": effect + half}
            row |= {name: _told(value) for name, value in cells.items()}
        rows.append(row)
    return rows


def _reference_remark(model: Model, fit: Fit) -> str:
    said = ["Reference." if model.systems[0] == ORIGINAL else "Reference, as there is no original speech."]
    units = {"position": "per trial of position", "class": "for pairs of one speaker"}
    for name, place in zip(model.covariates, range(len(model.systems), model.x.shape[1]), strict=True):
        said.append(f"{fit.effects[place]:+.4f} {units[name]} (SE {fit.errors[place]:.4f}).")
    return " ".join([*said, *model.covariate_remarks])


def _variance_rows(model: Model, fit: Fit | None, why_not: str) -> list[_Row]:
    names = [*model.parts, RESIDUAL]
    values = dict.fromkeys(names) if fit is None else dict(zip(names, [*fit.variances, fit.residual], strict=True))
    total = sum(value for value in values.values() if value is not None)
    rows: list[_Row] = []
    for name in (*PARTS, RESIDUAL):
        row: _Row = {"task": model.task, "part": name}
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
    """What is certain of a number that a search ended at, so that tables made elsewhere are the same."""
    return float(f"{value:.{CERTAIN_DIGITS}g}")
