"""G_VD and De-Identification with other speakers: bootstrap over the rows and columns of similarity matrices.

The similarities stay as they were measured on all speakers, calibration included; a resample takes the blocks of its
speakers. A speaker who is drawn twice is two speakers, whose pair with each other is left out.

Conventions: matrices are speakers × speakers, a higher similarity says "same speaker"; G_VD in dB.
Source: as `bootstrap`; the measures by Noé et al., "Speech pseudonymisation assessment using voice similarity
matrices", Interspeech 2020, and the VoicePrivacy 2022 evaluation plan.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from evaluation.metrics.arrays import real_numbers
from evaluation.metrics.bootstrap import Replicates, SpeakerDraws, count_rows, replicates_of
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.sorted_scores import Floats


def bootstrap_gain_of_distinctiveness(
    original: ArrayLike, anonymised: ArrayLike, speakers: Sequence[str], draws: SpeakerDraws
) -> Replicates:
    """G_VD of the resamples, in dB: 10 log10 of the diagonal dominance of M_pp over that of M_oo.

    Args:
        original, anonymised: shape (speakers, speakers), M_oo and M_pp; NaN on the diagonal is left out.
        speakers: names of the rows.

    Raises:
        MetricInputError: matrices of another shape, a similarity between two speakers that is not finite, or an unknown
            speaker.
    """
    before, after = (_dominances(matrix, speakers, draws) for matrix in (original, anonymised))
    with np.errstate(divide="ignore", invalid="ignore"):
        return replicates_of(10 * np.log10(after / before), draws)


def bootstrap_de_identification(
    original: ArrayLike, mixed: ArrayLike, speakers: Sequence[str], draws: SpeakerDraws
) -> Replicates:
    """De-Identification of the resamples: 1 less the diagonal dominance of M_op over that of M_oo.

    Arguments and errors: as `bootstrap_gain_of_distinctiveness`, with M_oo and M_op.
    """
    before, between = (_dominances(matrix, speakers, draws) for matrix in (original, mixed))
    with np.errstate(divide="ignore", invalid="ignore"):
        return replicates_of(1 - between / before, draws)


def _dominances(similarity: ArrayLike, speakers: Sequence[str], draws: SpeakerDraws) -> Floats:
    """|mean of the diagonal - mean of the rest| of a similarity matrix for each of `count_rows`."""
    matrix = real_numbers(similarity, "similarities")
    if matrix.shape != (len(speakers), len(speakers)):
        raise MetricInputError(
            f"Expected a similarity for each pair of {len(speakers)} speakers, found shape {matrix.shape}."
        )
    own = np.diagonal(matrix)
    others = np.where(np.eye(len(speakers), dtype=np.bool_), 0.0, matrix)
    if not np.isfinite(others).all():
        raise MetricInputError("Expected finite similarities of different speakers, found some that are not.")
    rows = count_rows(draws)[:, draws.positions(speakers)].astype(np.float64)
    known = np.isfinite(own)
    with np.errstate(invalid="ignore"):
        own_mean = rows[:, known] @ own[known] / rows[:, known].sum(axis=1)
        pairs = rows.sum(axis=1) ** 2 - (rows**2).sum(axis=1)
        other_mean = ((rows @ others) * rows).sum(axis=1) / pairs
    return np.asarray(np.abs(own_mean - other_mean))
