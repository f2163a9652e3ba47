"""The inversion attack: can a linear map, learnt from pairs, lead from original to anonymised speaker vectors?

An attacker who anonymised some speech of their own fits a map on those pairs, sends further original utterances through
it and takes, for each anonymised one, the original that comes nearest. Conventions: vectors are (n, d), the same
utterances in the same order on both sides; recovery rates lie between 0 and 1, lower is more private, chance stands
beside them. Sources: P. Schönemann, Psychometrika 1966 (orthogonal map); P. Champion et al., "Are disentangled
representations all you need to build speaker anonymization systems?", Interspeech 2022 (attack by rotation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Floats, unit_vectors
from common.errors import InputError

Map = Literal["orthogonal", "affine"]
Places = NDArray[np.int64]

WORTH = (
    "High recovery shows that the anonymiser moves all voices by nearly the same linear map, so that an attacker with "
    "pairs can undo it; recovery near chance shows only that no linear map was found, not that the voices are "
    "protected."
)
RIDGE = 0.01  # of the mean variance of the first vectors; without it as many pairs as dimensions would fit noise
_BLOCK = 1024  # anonymised utterances compared at a time


@dataclass(frozen=True, slots=True)
class Inversion:
    """What the attack recovers of the utterances that it has not learnt from.

    Attributes:
        kind: of the map.
        pairs: it was learnt from.
        utterances, speakers: held out, looked for among each other.
        disjoint_speakers: no speaker of the pairs is held out.
        utterance_recovery_rate: share of anonymised utterances whose nearest mapped original is their own.
        utterance_chance_rate: the same by guessing.
        speaker_recovery_rate: share whose nearest mapped original is of their speaker.
        speaker_chance_rate: the same by guessing.
        relative_error: norm of what the map misses over the norm of the anonymised vectors, which have length 1 each; 0
            is exact.
    """

    kind: Map
    pairs: int
    utterances: int
    speakers: int
    disjoint_speakers: bool
    utterance_recovery_rate: float
    utterance_chance_rate: float
    speaker_recovery_rate: float
    speaker_chance_rate: float
    relative_error: float


def invert_embeddings(
    original: ArrayLike,
    anonymised: ArrayLike,
    speakers: Sequence[str],
    *,
    generator: np.random.Generator,
    kind: Map = "orthogonal",
    pairs: int | None = None,
    disjoint_speakers: bool = True,
) -> Inversion:
    """Learn the map on some pairs and recover the others.

    Args:
        original, anonymised: shape (n, d), finite and not zero; compared as directions.
        speakers: of each utterance, n.
        generator: draws the pairs that the attacker has: those of a random half of the speakers, or of a random half of
            the utterances.
        kind: ``orthogonal`` (rotation and reflection) or ``affine`` (least squares with a small ridge).
        pairs: how many of the drawn ones the attacker has; all where not given.
        disjoint_speakers: draw speakers rather than utterances.

    Raises:
        InputError: sides of different shapes, vectors that are zero or not finite, too few speakers, utterances
            or pairs.
    """
    first, second = unit_vectors(original, "original vectors"), unit_vectors(anonymised, "anonymised vectors")
    if first.shape != second.shape or len(first) != len(speakers):
        raise InputError(
            "Expected an original vector, an anonymised vector and a speaker of each utterance, found shapes "
            f"{first.shape} and {second.shape} and {len(speakers)} speakers."
        )
    names, codes = np.unique(np.asarray(speakers, str), return_inverse=True)
    known, held_out = _split(codes.astype(np.int64), len(names), generator, disjoint_speakers)
    known = _draw(known, pairs, generator)
    mapped = fit_map(first[known], second[known], kind)(first[held_out])
    found = _nearest(second[held_out], unit_vectors(mapped, "mapped vectors"))
    mine = codes[held_out]
    _, per_speaker = np.unique(mine, return_counts=True)
    return Inversion(
        kind=kind,
        pairs=len(known),
        utterances=len(held_out),
        speakers=len(per_speaker),
        disjoint_speakers=disjoint_speakers,
        utterance_recovery_rate=float(np.mean(found == np.arange(len(held_out)))),
        utterance_chance_rate=1 / len(held_out),
        speaker_recovery_rate=float(np.mean(mine[found] == mine)),
        speaker_chance_rate=float(np.sum((per_speaker / len(held_out)) ** 2)),
        relative_error=float(np.linalg.norm(mapped - second[held_out]) / np.linalg.norm(second[held_out])),
    )


@dataclass(frozen=True, slots=True, eq=False)
class LinearMap:
    """y = x A + b.

    Attributes:
        matrix: A, shape (d, e).
        offset: b, shape (e,).
    """

    matrix: Floats
    offset: Floats

    def __call__(self, vectors: Floats) -> Floats:
        moved: Floats = vectors @ self.matrix + self.offset
        return moved


def fit_map(first: Floats, second: Floats, kind: Map, *, ridge: float = RIDGE) -> LinearMap:
    """Return the map of a kind with the least squared error from the first to the second vectors, each (pairs, d).

    Args:
        ridge: of the affine map, in parts of the mean variance; 0 gives plain least squares, of least norm where pairs
            are few.

    Raises:
        InputError: another kind, or no pair.
    """
    if not len(first):
        raise InputError("Expected pairs of vectors to learn a map from, found none.")
    if kind == "orthogonal":
        left, _, right = np.linalg.svd(first.T @ second)
        return LinearMap(left @ right, np.zeros(second.shape[1]))
    if kind != "affine":
        raise InputError(f"Maps are “orthogonal” and “affine”, found “{kind}”.")
    centre, target = first.mean(axis=0), second.mean(axis=0)
    matrix = _least_squares(first - centre, second - target, ridge)
    return LinearMap(matrix, target - centre @ matrix)


def _least_squares(first: Floats, second: Floats, ridge: float) -> Floats:
    if ridge == 0:
        return np.asarray(np.linalg.lstsq(first, second, rcond=None)[0], np.float64)
    squares = first.T @ first
    # A single pair has no variance: then the map is its target alone.
    extra = max(ridge * float(np.trace(squares)) / len(squares), np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.solve(squares + extra * np.eye(len(squares)), first.T @ second), np.float64)


def _split(
    codes: Places, speakers: int, generator: np.random.Generator, disjoint_speakers: bool
) -> tuple[Places, Places]:
    """Return places of the pairs that the attacker may have, and of those held out."""
    if disjoint_speakers:
        if speakers < 3:
            raise InputError(
                "Learning from other speakers than those to be recovered needs three speakers, one to learn from and "
                f"two to distinguish; found {speakers}."
            )
        drawn = np.isin(codes, generator.permutation(speakers)[: speakers // 2])
    else:
        if len(codes) < 4:
            raise InputError(f"The inversion attack needs four utterances or more, found {len(codes)}.")
        drawn = np.zeros(len(codes), bool)
        drawn[generator.permutation(len(codes))[: len(codes) // 2]] = True
    return np.flatnonzero(drawn), np.flatnonzero(~drawn)


def _draw(known: Places, pairs: int | None, generator: np.random.Generator) -> Places:
    if pairs is None:
        return known
    if not 1 <= pairs <= len(known):
        raise InputError(f"Expected 1 to {len(known)} pairs to learn from, as many as were drawn, found {pairs}.")
    return np.sort(generator.choice(known, pairs, replace=False))


def _nearest(wanted: Floats, gallery: Floats) -> Places:
    """Return row of the gallery with the largest cosine to each wanted vector; the first of equals."""
    found = [(wanted[start : start + _BLOCK] @ gallery.T).argmax(axis=1) for start in range(0, len(wanted), _BLOCK)]
    return np.concatenate(found).astype(np.int64)
