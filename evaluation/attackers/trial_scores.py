"""Scores of verification trials from speaker vectors, by the rules of the protocol that one names.

Protocols differ in what happens before vectors are compared; `PRESETS` says how. All trials of a list are scored by
matrix products, in the order of the list. Conventions: scores grow with likeness: cosines from -1 to 1, or natural-log
likelihood ratios that are not calibrated.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Floats, unit_vectors
from common.errors import InputError
from evaluation.attackers.back_ends import BackEnd, Cosine, Plda

Average = Literal["mean", "mean-of-directions", "most-similar"]
Places = NDArray[np.int64]

_CELLS = 4_000_000  # of scores or gathered factors at a time: 32 MB
_DENSE = 1 / 64  # of the product of models and utterances; sparser trials are scored pair by pair
_MOST_NAMES = 5


@dataclass(frozen=True)
class ScoringOptions:
    """How a protocol makes scores from vectors.

    Attributes:
        name: as in `PRESETS`.
        description: for people.
        centre: the mean of the training vectors is taken off every vector first.
        enrolment_average: of a model's vectors: as they are, or each at length 1; or none: the most similar one counts.
        back_end: what compares.
    """

    name: str
    description: str
    centre: bool
    enrolment_average: Average
    back_end: Literal["cosine", "plda"]


PRESETS: dict[str, ScoringOptions] = {
    name: ScoringOptions(name, **options)
    for name, options in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}


_REMEDIES = {
    "plda": "Attack with an encoder whose training fits them (train-attacker, recipe 2022)",
    "cosine": "Attack with an encoder trained by a recipe with centre = true, which subtracts the mean",
}


def fit_back_end(
    options: ScoringOptions,
    training: ArrayLike | None = None,
    speakers: Sequence[str] | None = None,
    *,
    loading: float = 0.0,
    lda_dimensions: int = 200,
) -> BackEnd:
    """Return the back end of a protocol, fitted on the vectors of the training corpus where it learns from them.

    Args:
        training: shape (n, d); needed for PLDA and for centring.
        speakers: of each training vector; needed for PLDA.
        loading, lda_dimensions: as in `Plda.fit`.

    Raises:
        InputError: vectors that the protocol needs are missing, or PLDA cannot be fitted on them.
    """
    if options.back_end == "cosine" and not options.centre:
        return Cosine()
    if training is None or (options.back_end == "plda" and speakers is None):
        needed = "vectors and speakers" if options.back_end == "plda" else "vectors"
        raise InputError(
            f"Scoring as in {options.name} ({options.description}) needs {needed} of the training corpus, found none. "
            f"{_REMEDIES[options.back_end]}, or score by cosine as in 2024."
        )
    vectors = _matrix(training, "the training")
    if options.back_end == "cosine":
        return Cosine(vectors.mean(axis=0))
    return Plda.fit(vectors, speakers or (), lda_dimensions=lda_dimensions, loading=loading)


def score_trials(
    enrolment: Mapping[str, ArrayLike],
    tests: Mapping[str, ArrayLike],
    trials: Iterable[Sequence[object]],
    back_end: BackEnd | None = None,
    options: ScoringOptions = PRESETS["2024"],
) -> Floats:
    """Return the score of each trial, shape (trials,), in their order.

    Args:
        enrolment: the vectors of each model, each shape (utterances, d).
        tests: the vector of each trial utterance, each shape (d,).
        trials: model and utterance, whatever else follows.
        back_end: of `fit_back_end`; made here where it needs no training.
        options: how the vectors of a model are averaged.

    Raises:
        InputError: a trial names a model or an utterance without a vector; names all of them.
        InputError: no trials, vectors of different sizes, zero or not finite.
    """
    back_end = back_end or fit_back_end(options)
    rows, columns, models, utterances = _places(trials, enrolment, tests)
    one_by_one = options.enrolment_average == "most-similar"
    prepared, counts = _prepare({name: enrolment[name] for name in models}, back_end)
    averages = prepared if one_by_one else _average(prepared, counts, options)
    heard = back_end.prepare(_stack({name: tests[name] for name in utterances}))
    if heard.shape[1] != averages.shape[1]:
        raise InputError(
            f"Expected trial vectors of {averages.shape[1]} dimensions, as those of the models, found {heard.shape[1]}."
        )
    used = np.ones(len(averages), np.int64) if one_by_one else counts
    first, second = back_end.model_factors(averages, used), back_end.test_factors(heard)
    if one_by_one:
        return _most_similar(first, second, counts, rows, columns)
    if rows.size < _DENSE * len(first) * len(second):
        return _pairwise(first, second, rows, columns)
    return _blockwise(first, second, rows, columns)


def score_pairs(rows: ArrayLike, columns: ArrayLike, back_end: BackEnd) -> Floats:
    """Return scores of every utterance with every other, shape (n, m), for the similarity matrices of G_VD.

    Each row is a model of one utterance.

    Args:
        rows, columns: vectors, shapes (n, d) and (m, d).
    """
    first, second = (back_end.prepare(_matrix(side, "the pairs")) for side in (rows, columns))
    counts = np.ones(len(first), np.int64)
    scores: Floats = back_end.model_factors(first, counts) @ back_end.test_factors(second).T
    return scores


def _places(
    trials: Iterable[Sequence[object]], enrolment: Mapping[str, ArrayLike], tests: Mapping[str, ArrayLike]
) -> tuple[Places, Places, list[str], list[str]]:
    """Return row and column of each trial among the models and utterances that occur, in order of their appearance."""
    models: dict[str, int] = {}
    utterances: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    for trial in trials:
        rows.append(models.setdefault(str(trial[0]), len(models)))
        columns.append(utterances.setdefault(str(trial[1]), len(utterances)))
    if not rows:
        raise InputError("Expected trials to score, found none.")
    lost_models = sorted(name for name in models if name not in enrolment)
    lost_utterances = sorted(name for name in utterances if name not in tests)
    if lost_models or lost_utterances:
        parts = [
            f"{len(names)} {kind} ({', '.join(names[:_MOST_NAMES])}{', …' if len(names) > _MOST_NAMES else ''})"
            for kind, names in (("models", lost_models), ("utterances", lost_utterances))
            if names
        ]
        raise InputError(
            f"Expected a vector of each model and utterance of the trials, found none of {' and '.join(parts)}. "
            "Extract them, or remove these trials from the list."
        )
    return np.array(rows, np.int64), np.array(columns, np.int64), list(models), list(utterances)


def _prepare(vectors: Mapping[str, ArrayLike], back_end: BackEnd) -> tuple[Floats, Places]:
    """Return enrolment vectors, shape (utterances, d), one model after the other, and how many each model has."""
    matrices = {name: _matrix(values, f"model {name}") for name, values in vectors.items()}
    sizes = {matrix.shape[1] for matrix in matrices.values()}
    if len(sizes) > 1:
        raise InputError(f"Expected enrolment vectors of one size, found {_listed(sizes)} dimensions.")
    counts = np.array([len(matrix) for matrix in matrices.values()], np.int64)
    return back_end.prepare(np.concatenate(list(matrices.values()))), counts


def _average(prepared: Floats, counts: Places, options: ScoringOptions) -> Floats:
    """Return one vector of each model, shape (models, d)."""
    if options.enrolment_average == "mean-of-directions":
        prepared = unit_vectors(prepared, "enrolment vectors")
    starts = np.concatenate([[0], counts.cumsum()[:-1]])
    return np.asarray(np.add.reduceat(prepared, starts, axis=0) / counts[:, None])


def _most_similar(first: Floats, second: Floats, counts: Places, rows: Places, columns: Places) -> Floats:
    """Of each trial the highest score of an enrolment utterance of its model."""
    scores = np.empty(rows.size)
    order = np.argsort(rows, kind="stable")
    bounds = np.searchsorted(rows[order], np.arange(counts.size + 1))
    ends = counts.cumsum()
    for model, (end, count) in enumerate(zip(ends.tolist(), counts.tolist(), strict=True)):
        mine = order[bounds[model] : bounds[model + 1]]
        scores[mine] = (first[end - count : end] @ second.T).max(axis=0)[columns[mine]]
    return scores


def _blockwise(first: Floats, second: Floats, rows: Places, columns: Places) -> Floats:
    """Products of some models at a time with all utterances, of which the trials' cells are taken."""
    scores = np.empty(rows.size)
    height = max(1, _CELLS // len(second))
    order = np.argsort(rows, kind="stable")
    starts = range(0, len(first), height)
    bounds = np.searchsorted(rows[order], [*starts, len(first)])
    for number, start in enumerate(starts):
        mine = order[bounds[number] : bounds[number + 1]]
        scores[mine] = (first[start : start + height] @ second.T)[rows[mine] - start, columns[mine]]
    return scores


def _pairwise(first: Floats, second: Floats, rows: Places, columns: Places) -> Floats:
    scores = np.empty(rows.size)
    step = max(1, _CELLS // first.shape[1])
    for start in range(0, rows.size, step):
        some = slice(start, start + step)
        scores[some] = np.einsum("ij,ij->i", first[rows[some]], second[columns[some]])
    return scores


def _stack(vectors: Mapping[str, ArrayLike]) -> Floats:
    arrays = {name: np.asarray(vector, np.float64) for name, vector in vectors.items()}
    wrong = [name for name, array in arrays.items() if array.ndim != 1]
    sizes = {array.size for array in arrays.values()}
    if wrong or len(sizes) > 1:
        raise InputError(
            f"Expected one vector of one size for each utterance, found {_listed(sizes)} numbers"
            + (f" and another shape for {wrong[0]}." if wrong else ".")
        )
    return _finite(np.stack(list(arrays.values())), list(arrays))


def _matrix(values: ArrayLike, what: str) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"Expected vectors of {what}, shape (utterances, dimensions), found {array.shape}.")
    return _finite(array, [what] * len(array))


def _finite(array: Floats, names: Sequence[str]) -> Floats:
    broken = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if broken.size:
        raise InputError(
            f"Expected finite vectors, found {broken.size} that are not, first of {names[int(broken[0])]}."
        )
    return array


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(str(size) for size in sorted(sizes))
