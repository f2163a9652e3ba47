"""De-Identification and G_VD from the similarity matrices that a team hands in: the last step of protocol 2.7.

``similarity_matrices_DeID_Gvd/<trials>/similarity_matrix_{osp_osp,osp_psp,psp_psp}.npy`` hold the similarity of every
speaker to every speaker, original with original, original with anonymised, anonymised with anonymised.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.formats.claims import ClaimIdentity, Gender
from evaluation.formats.problems import Problem
from evaluation.formats.recomputation import RecomputedNumber, unlike
from evaluation.formats.results_2022 import new_claim
from evaluation.formats.single_files import SIMILARITY_FOLDER
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.voice_similarity import diagonal_dominance
from evaluation.objective.sources import Work
from evaluation.objective.values import Basis
from evaluation.protocols.recipes import DataSet

MOST_SPEAKERS = 2000
PAIRS = ("osp_osp", "osp_psp", "psp_psp")
_REMEDY = "Hand in the matrices as the official script saved them."


def add_similarity(work: Work) -> None:
    """G_VD and De-Identification of each trial set whose matrices are there."""
    for folder in sorted(work.folder.rglob(SIMILARITY_FOLDER)):
        for data_set in work.recipe.sets("trial"):
            paths = [folder / data_set.name / f"similarity_matrix_{pair}.npy" for pair in PAIRS]
            if all(path.is_file() for path in paths):
                _add_set(work, data_set, paths)


def _add_set(work: Work, data_set: DataSet, paths: list[Path]) -> None:
    names = [path.relative_to(work.folder).as_posix() for path in paths]
    try:
        matrices = [read_matrix(path, name) for path, name in zip(paths, names, strict=True)]
        oo, op, pp = (diagonal_dominance(matrix) for matrix in matrices)
    except MetricInputError as error:
        work.problems.add(
            Problem("unusable-matrix", names[0].rpartition("/")[0], "three usable matrices", str(error), _REMEDY)
        )
        return
    if not (oo > 0 and pp > 0):
        found = "voices that nothing tells apart"
        work.problems.add(Problem("unusable-matrix", names[0], "a diagonal that stands out", found, _REMEDY))
        return
    values = {"de_identification": 1 - op / oo, "gain_of_voice_distinctiveness": 10 * math.log10(pp / oo)}
    for metric, value in values.items():
        identity = ClaimIdentity(data_set.name, Gender(data_set.gender), metric, "official")
        for claim in work.add(identity, value, Basis.SIMILARITY, len(matrices[0])):
            written = new_claim(identity, value).written
            work.unlike[identity] = unlike(RecomputedNumber(claim, names[-1], value, written), "unlike-matrices")


def read_matrix(path: Path, name: str) -> NDArray[np.float64]:
    """A square matrix of finite numbers from an ``.npy`` file; its header is held against its size before it is read.

    Raises:
        MetricInputError: no such file; says what it is instead.
    """
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, kind = read(file)
            is_square = len(shape) == 2 and shape[0] == shape[1] and 2 <= shape[0] <= MOST_SPEAKERS
            if kind.kind != "f" or not is_square:
                raise MetricInputError(
                    f"{name}: expected a square matrix of real numbers, found {kind} of shape {shape}."
                )
            if path.stat().st_size - file.tell() != math.prod(shape) * kind.itemsize:
                raise MetricInputError(f"{name}: expected {math.prod(shape)} numbers, found another size.")
        matrix: NDArray[np.float64] = np.load(path, allow_pickle=False).astype(np.float64)
    except (OSError, ValueError) as error:
        if isinstance(error, MetricInputError):
            raise
        raise MetricInputError(f"{name}: expected a file of numpy (.npy), found: {error}.") from error
    if not np.isfinite(matrix[~np.eye(len(matrix), dtype=bool)]).all():
        raise MetricInputError(f"{name}: expected finite similarities of different speakers, found others.")
    return matrix
