"""Voice similarity matrices, De-Identification and gain of voice distinctiveness G_VD (2020, 2022).

M_oo compares original with original voices, M_op original with anonymised, M_pp anonymised with
anonymised. De-Identification is high where M_op has lost its diagonal; G_VD is 0 dB where
pseudo-speakers differ from each other as much as the speakers did.

Conventions: a score is higher for more similar voices (LLR or cosine); rows and columns follow one
utterance list, whose sorted order is the official one; speakers stand in order of appearance.
Source: Noé et al. (2020), "Speech pseudonymisation assessment using voice similarity matrices";
VoicePrivacy 2022 evaluation plan, equations 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Floats, real_numbers, unit_vectors
from common.errors import InputError
from evaluation.metrics.calibration import Compatibility, calibrated_llrs, is_official

Form = Literal["official", "plan"]
# Whom an estimate needs. The formula takes two speakers, but these are a single pair: calibrated scores that part them
# saturate in all three matrices, and G_VD is 0 dB whatever the voices are.
LEAST_SPEAKERS = 3


@dataclass(frozen=True, slots=True, eq=False)
class SimilarityMatrix:
    """Similarity of every speaker to every speaker.

    Attributes:
        values: shape (speakers, speakers), in (0, 1); NaN on the diagonal for a speaker with a
            single utterance.
        speakers: in order of first appearance.
        form: ``official`` or ``plan``.
        diagonal_dominance: |mean of the diagonal - mean of the rest|, in [0, 1] (plan, equation 2).
    """

    values: Floats
    speakers: tuple[str, ...]
    form: Form
    diagonal_dominance: float


@dataclass(frozen=True, slots=True, eq=False)
class VoiceDistinctiveness:
    """Three matrices and what they say.

    Attributes:
        oo, op, pp: the matrices; `op` is None where its scores were not given.
        de_identification_score: 1 - D(M_op) / D(M_oo); 1 is perfect, below 0 is possible; None
            without `op`.
        gain_db: G_VD = 10 log10(D(M_pp) / D(M_oo)); negative where voices became more alike, -inf
            where they cannot be distinguished any more.
    """

    oo: SimilarityMatrix
    op: SimilarityMatrix | None
    pp: SimilarityMatrix
    de_identification_score: float | None
    gain_db: float


def voice_distinctiveness(
    scores_oo: ArrayLike,
    scores_op: ArrayLike | None,
    scores_pp: ArrayLike,
    speakers: Sequence[str],
    *,
    form: Form = "official",
    compatibility: Compatibility = "documented",
) -> VoiceDistinctiveness:
    """Return De-Identification and G_VD from the pair scores of one trial set.

    Args:
        scores_oo, scores_op, scores_pp: shape (utterances, utterances), as `similarity_matrix`
            takes them; `scores_from_pairs` and `cosine_scores` make them. In `scores_op` the row
            is the original utterance.
        speakers: speaker of each utterance.
        form, compatibility: as in `similarity_matrix`.

    D = 0 gives a gain of -inf for M_pp, for M_oo an error (``official``: what division by zero
    gives there, inf or nan). Tied scores need not give it: the calibration of the official form
    takes those of different speakers for the lower ones, and the plan's form divides the diagonal
    by more terms than it has, so that only scores of 0 do.

    Raises:
        InputError: what `similarity_matrix` refuses, or D(M_oo) = 0.
    """
    oo, pp = (
        similarity_matrix(scores, speakers, form=form, compatibility=compatibility) for scores in (scores_oo, scores_pp)
    )
    op = None
    if scores_op is not None:
        op = similarity_matrix(scores_op, speakers, form=form, compatibility=compatibility)
    return _summary(oo, op, pp, compatibility)


def voice_distinctiveness_of_embeddings(
    original: ArrayLike,
    anonymised: ArrayLike,
    speakers: Sequence[str],
    *,
    form: Form = "official",
    compatibility: Compatibility = "documented",
) -> VoiceDistinctiveness:
    """Return De-Identification and G_VD from one embedding per utterance, compared by cosine.

    Args:
        original, anonymised: shape (utterances, dimensions), finite and not zero, the same
            utterances in the same order.
        speakers: speaker of each utterance.
        form, compatibility: as in `similarity_matrix`. Cosines are no LLRs: the plan's form keeps
            all similarities between 0.27 and 0.73.

    Raises:
        InputError: embeddings of other shapes, zero or not finite, or what
            `voice_distinctiveness` refuses.
    """
    first = unit_vectors(original, "original embeddings")
    second = unit_vectors(anonymised, "anonymised embeddings")
    if first.shape != second.shape:
        raise InputError(
            f"Expected as many anonymised embeddings as original ones, found shapes {first.shape} and {second.shape}."
        )
    oo, op, pp = (  # one at a time: each square of scores is gone before the next is made
        similarity_matrix(a @ b.T, speakers, form=form, compatibility=compatibility)
        for a, b in ((first, first), (first, second), (second, second))
    )
    return _summary(oo, op, pp, compatibility)


def similarity_matrix(
    scores: ArrayLike,
    speakers: Sequence[str],
    *,
    form: Form = "official",
    compatibility: Compatibility = "documented",
) -> SimilarityMatrix:
    """Return voice similarity of all speakers from the scores of all utterance pairs.

    ``official``: only the pairs above the diagonal count (the first utterance before the second in
    the list, for M_op too). Their scores are calibrated by Laplace PAV on the labels same or
    different speaker; S(A, B) = sigmoid(mean LLR), A before B, mirrored.

    ``plan``: equation 1 as printed: scores are LLRs already, all pairs but an utterance with itself
    count, and the sum is divided by n_A n_B, on the diagonal too, where it has n_A fewer terms. So
    M_op need not be symmetric. Where every score below the diagonal is NaN, each pair was scored
    once and stands for both orders.

    A speaker with a single utterance has no pair on the diagonal: NaN there, and left out of the
    diagonal's mean. The official code gives nan for everything then, or silently drops the speaker
    if it is the last one (an error here where only one is left then); ``compatibility="official"`` does the same.

    Args:
        scores: shape (utterances, utterances); the diagonal is never read.
        speakers: speaker of each utterance, of two speakers at least, one of them with two
            utterances.

    Raises:
        InputError: another shape, a score that counts and is not finite, too few speakers or
            utterances.

    Example:
        >>> scores = np.array([[0, 4, -4, -4], [4, 0, -4, -4], [-4, -4, 0, 4], [-4, -4, 4, 0]])
        >>> similarity_matrix(scores, ["A", "A", "B", "B"], form="plan").values.round(2)
        array([[0.88, 0.02],
               [0.02, 0.88]])
    """
    square = _validate_scores(scores, speakers, form)
    names = tuple(dict.fromkeys(speakers))
    numbers = {name: number for number, name in enumerate(names)}
    codes = np.array([numbers[speaker] for speaker in speakers], np.int32)
    means = _official_means(square, codes) if form == "official" else _plan_means(square, codes)
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        values = np.exp(-np.logaddexp(0.0, -means))
    if is_official(compatibility) and form == "official" and codes[-1] not in codes[:-1]:
        names, values = names[:-1], values[:-1, :-1]
    return SimilarityMatrix(values, names, form, diagonal_dominance(values, compatibility=compatibility))


def diagonal_dominance(values: ArrayLike, *, compatibility: Compatibility = "documented") -> float:
    """|mean of the diagonal - mean of the other elements| (plan, equation 2).

    Args:
        values: shape (speakers, speakers); NaN on the diagonal is left out of its mean, or makes
            the result nan with ``compatibility="official"``.

    Raises:
        InputError: not square, fewer than two speakers, nothing but NaN on the diagonal.
    """
    matrix = real_numbers(values, "similarities")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise InputError(f"Expected a square matrix of at least two speakers, found shape {matrix.shape}.")
    diagonal = np.diag(matrix)
    if not is_official(compatibility):
        diagonal = diagonal[~np.isnan(diagonal)]
    if diagonal.size == 0:
        raise InputError("Expected a speaker that is compared with themselves, found none on the diagonal.")
    return float(abs(diagonal.mean() - matrix[~np.eye(len(matrix), dtype=bool)].mean()))


def _official_means(square: Floats, codes: NDArray[np.int32]) -> Floats:
    """Return mean calibrated LLR per ordered speaker pair (the earlier one first), mirrored."""
    n_speakers = int(codes.max()) + 1
    above = np.triu(np.ones(square.shape, dtype=bool), 1)
    scores = square[above]
    blocks = (codes[:, None] * n_speakers + codes)[above]
    same = blocks % (n_speakers + 1) == 0
    llrs = calibrated_llrs(scores[same], scores[~same], laplace=True)
    cells = n_speakers * n_speakers
    sums = np.bincount(blocks[same], llrs.target, cells) + np.bincount(blocks[~same], llrs.nontarget, cells)
    with np.errstate(invalid="ignore"):  # 0 / 0 where a speaker has no pair
        means = (sums / np.bincount(blocks, minlength=cells)).reshape(n_speakers, n_speakers)
    upper: Floats = np.triu(means)
    return upper + np.triu(means, 1).T


def _plan_means(square: Floats, codes: NDArray[np.int32]) -> Floats:
    """Sum of scores over n_A n_B per speaker pair, NaN on the diagonal of single utterances."""
    membership = np.equal.outer(np.arange(codes.max() + 1), codes).astype(np.float64)
    scores = square.copy()
    np.fill_diagonal(scores, 0.0)
    if _is_half(square):
        scores = np.triu(scores, 1)
        scores += scores.T
    counts = membership.sum(axis=1)
    means: Floats = (membership @ scores @ membership.T) / np.outer(counts, counts)
    means[np.diag(counts == 1)] = np.nan
    return means


def _is_half(square: Floats) -> bool:
    return bool(np.isnan(square[np.tri(len(square), k=-1, dtype=bool)]).all())


def _summary(
    oo: SimilarityMatrix,
    op: SimilarityMatrix | None,
    pp: SimilarityMatrix,
    compatibility: Compatibility,
) -> VoiceDistinctiveness:
    original = np.float64(oo.diagonal_dominance)
    if original == 0 and not is_official(compatibility):
        raise InputError(
            "The original voices cannot be distinguished (diagonal dominance 0), so nothing can be gained or lost. "
            "Check the scores of the original pairs."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        return VoiceDistinctiveness(
            oo=oo,
            op=op,
            pp=pp,
            de_identification_score=None if op is None else float(1 - op.diagonal_dominance / original),
            gain_db=float(10 * np.log10(pp.diagonal_dominance / original)),
        )


def _validate_scores(scores: ArrayLike, speakers: Sequence[str], form: str) -> Floats:
    if form not in ("official", "plan"):
        raise InputError(f"Forms are “official” and “plan”, found “{form}”.")
    square = real_numbers(scores, "scores")
    if square.shape != (len(speakers), len(speakers)):
        raise InputError(
            f"Expected the scores of {len(speakers)} utterances with each other, found shape {square.shape}."
        )
    different = len(set(speakers))
    if different < 2 or different == len(speakers):
        raise InputError(
            "A similarity matrix needs two speakers, one of them with two utterances; "
            f"found {different} speakers and {len(speakers)} utterances."
        )
    counting = np.triu(np.ones(square.shape, dtype=bool), 1)
    if form == "plan" and not _is_half(square):
        counting |= counting.T
    wrong = int(np.count_nonzero(~np.isfinite(square) & counting))
    if wrong:
        row, column = np.argwhere(~np.isfinite(square) & counting)[0]
        raise InputError(
            f"Expected a finite score for {np.count_nonzero(counting)} utterance pairs, found {wrong} missing or not "
            f"finite, first that of utterances {row + 1} and {column + 1}. Score these pairs again."
        )
    return square
