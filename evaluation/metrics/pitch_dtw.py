"""Pitch correlation after dynamic time warping: how much intonation is left once timing is forgiven.

The results paper of VoicePrivacy 2022 (section VI.C, table IV) warps the anonymised contour
non-linearly onto the original before correlating. Warping correlates almost anything: without limits
two unrelated utterances reach 0.87, with the limits that are the default here 0.53. Read a value only
beside that floor (`unrelated_floor` for a system, `FLOORS_OF_UNRELATED_SPEECH` for real speech).

Conventions: contours in Hz, 0 is unvoiced, 10 ms steps; higher is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.compiled import compiled
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.f0 import STEP_S
from evaluation.metrics.pitch import clip_to_range, pearson, validate_contour
from evaluation.metrics.summary import Summary, summarise

Steps = Literal["slope-limited", "free"]
BAND_S = 1.0

# Mean and standard deviation of `rho_voiced` by steps and band: Praat contours of 100 real utterances (LibriSpeech
# dev-clean and test-other, VCTK), `unrelated_floor` over 600 pairs with seed 2022. Without warping it is 0.06.
FLOORS_OF_UNRELATED_SPEECH: dict[tuple[Steps, float | None], tuple[float, float]] = {
    ("slope-limited", BAND_S): (0.532, 0.242),
    ("slope-limited", None): (0.535, 0.244),
    ("free", BAND_S): (0.860, 0.100),
    ("free", None): (0.872, 0.097),
}

_VOICING_MISMATCH = 1.0
_LARGEST_GRID = 50_000_000  # cells, nine bytes each


@dataclass(frozen=True, slots=True, eq=False)
class RealignedPitch:
    """Pitch correlation of one utterance pair after warping.

    Attributes:
        rho: over all frames, zeros included, as the official form does after its rotation; 0 where
            a contour is constant.
        rho_voiced: Pearson correlation over the jointly voiced frames; None where fewer than two
            exist or one side of them is constant.
        n_jointly_voiced: frames voiced in both after warping.
        steps: local steps that the path obeys; ``free`` also where no slope-limited path fits.
        band_s: greatest distance of the path from the straight line, in seconds; None for any.
        largest_shift_s: how far the path really leaves that line.
        warped: the anonymised contour on the frames of the original, shape (frames,), Hz.
    """

    rho: float
    rho_voiced: float | None
    n_jointly_voiced: int
    steps: Steps
    band_s: float | None
    largest_shift_s: float
    warped: NDArray[np.float64]


def realigned_pitch_correlation(
    f0_original: NDArray[np.floating],
    f0_anonymised: NDArray[np.floating],
    *,
    steps: Steps = "slope-limited",
    band_s: float | None = BAND_S,
) -> RealignedPitch:
    """Warp the anonymised contour onto the original, then correlate.

    Values outside of 75 to 500 Hz become 0. The cost of matching two frames is the difference of
    their log F0, each contour standardised over its own voiced frames; 1 where one of them is
    unvoiced, 0 where both are. The path runs from the first frames to the last ones, within
    `band_s` of the straight line between them. A frame of the original takes the (upper) median of
    the frames matched to it. No lag is searched for before.

    ``slope-limited`` is the symmetric form with slopes from 1/2 to 2, ``free`` that without limit
    (P = 1 and P = 0 of Sakoe and Chiba (1978), "Dynamic programming algorithm optimization for
    spoken word recognition", table I). Where no slope-limited path fits (one contour more than
    twice as long), the free one is taken and named in the result.

    Args:
        f0_original: shape (frames,), Hz, 0 where unvoiced.
        f0_anonymised: shape (frames,), Hz, 0 where unvoiced; may differ in length.
        steps: local continuity constraint.
        band_s: seconds, at least a frame is taken; None for no band.

    Raises:
        MetricInputError: a contour that is empty, not one-dimensional, negative or not finite;
            other steps; a negative band; a band of more than 50 million cells.
    """
    _validate_constraints(steps, band_s)
    original = clip_to_range(validate_contour(f0_original, "original"))
    anonymised = clip_to_range(validate_contour(f0_anonymised, "anonymised"))
    path, steps_taken = _best_path(original, anonymised, band_s, steps)
    shifts = path[:, 1] - _straight_line(path[:, 0], original.size, anonymised.size)
    warped = _median_per_frame(path, anonymised, original.size)
    voiced = (original > 0) & (warped > 0)
    return RealignedPitch(
        rho=pearson(original, warped) or 0.0,
        rho_voiced=pearson(original[voiced], warped[voiced]),
        n_jointly_voiced=int(np.count_nonzero(voiced)),
        steps=steps_taken,
        band_s=band_s,
        largest_shift_s=float(np.abs(shifts).max()) * STEP_S,
        warped=warped,
    )


def unrelated_floor(
    originals: Sequence[NDArray[np.floating]],
    anonymised: Sequence[NDArray[np.floating]],
    random: np.random.Generator,
    *,
    n_pairs: int = 100,
    steps: Steps = "slope-limited",
    band_s: float | None = BAND_S,
) -> Summary:
    """What warping gives on mismatched utterances of the same system: the null of the measure.

    Args:
        originals: F0 contours of the set, Hz.
        anonymised: those of the same utterances in the same order, anonymised.
        random: draws the pairs, each an original and the anonymised version of another utterance, neither
            twice as long as the other where such pairs can be found.
        n_pairs: how many.
        steps, band_s: as in `realigned_pitch_correlation`; they must be those of the measure.

    Returns:
        Mean and standard deviation of `rho_voiced`; a pair where that is not defined counts as 0.

    Raises:
        MetricInputError: fewer than two utterances, lists of different lengths, no pair asked for,
            or what `realigned_pitch_correlation` refuses.
    """
    size = len(originals)
    if size != len(anonymised) or size < 2 or n_pairs < 1:
        raise MetricInputError(
            "The floor of unrelated utterances needs two or more originals, as many anonymised ones and at least one "
            f"pair; found {size} originals, {len(anonymised)} anonymised and {n_pairs} pairs."
        )
    rows = random.integers(size, size=8 * n_pairs)
    columns = (rows + random.integers(1, size, size=8 * n_pairs)) % size
    ratios = np.array([len(one) for one in originals])[rows] / np.array([len(one) for one in anonymised])[columns]
    unlike = (ratios > 2) | (ratios < 0.5)
    drawn = np.argsort(unlike, kind="stable")[:n_pairs]
    values = [
        realigned_pitch_correlation(originals[i], anonymised[j], steps=steps, band_s=band_s).rho_voiced
        for i, j in zip(rows[drawn].tolist(), columns[drawn].tolist(), strict=True)
    ]
    return summarise(0.0 if value is None else value for value in values)


def _validate_constraints(steps: str, band_s: float | None) -> None:
    if steps not in ("slope-limited", "free"):
        raise MetricInputError(f"Steps are “slope-limited” or “free”, found “{steps}”.")
    if band_s is not None and not band_s >= 0:
        raise MetricInputError(f"The band is a number of seconds from 0, or None; found {band_s}.")


def _standardised(contour: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log F0 with mean 0 and deviation 1 over the voiced frames, NaN where unvoiced."""
    values = np.full(contour.size, np.nan)
    voiced = contour > 0
    if voiced.any():
        logarithms = np.log(contour[voiced])
        deviation = logarithms.std()
        values[voiced] = (logarithms - logarithms.mean()) / (deviation if deviation > 0 else 1.0)
    return values


def _band_edges(rows: int, columns: int, band_s: float | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last column of each row within the band; wide enough to be a connected stripe."""
    if band_s is None:
        return np.zeros(rows, np.int64), np.full(rows, columns - 1, np.int64)
    centres = _straight_line(np.arange(rows), rows, columns)
    width = max(band_s / STEP_S, columns / rows, 1.0)
    first = np.clip(np.ceil(centres - width), 0, columns - 1).astype(np.int64)
    last = np.clip(np.floor(centres + width), 0, columns - 1).astype(np.int64)
    first[0], last[-1] = 0, columns - 1
    return first, last


def _straight_line(row: NDArray[np.integer], rows: int, columns: int) -> NDArray[np.float64]:
    return row.astype(np.float64) * ((columns - 1) / max(rows - 1, 1))


def _cost_stripe(
    original: NDArray[np.float64],
    anonymised: NDArray[np.float64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Local costs within the band, shape (frames, widest row): column c of row i is first[i] + c."""
    columns = first[:, None] + np.arange(int((last - first).max()) + 1)
    a = original[:, None]
    b = anonymised[np.minimum(columns, anonymised.size - 1)]
    costs = np.where(np.isnan(a) & np.isnan(b), 0.0, np.nan_to_num(np.abs(a - b), nan=_VOICING_MISMATCH))
    costs[columns > last[:, None]] = np.inf
    return costs


def _best_moves(costs: NDArray[np.float64], first: NDArray[np.int64], slope_limited: bool) -> NDArray[np.int8]:
    """How the cheapest path reaches each cell of the stripe; 0 where none does.

    1 is a diagonal step. Slope-limited: 2 a diagonal step, then one along the row; 3 a diagonal
    step, then one down the column. Free: 2 one step along the row, 3 one down the column. A
    diagonal step counts twice; of equal totals the lowest code is taken. Runs compiled.
    """
    rows, width = costs.shape
    moves = np.zeros((rows, width), np.int8)
    totals = np.full((rows, width), np.inf)
    for i in range(rows):
        up = first[i] - first[i - 1] if i > 0 else 0
        up_two = first[i] - first[i - 2] if i > 1 else 0
        for c in range(width):
            cost = costs[i, c]
            if cost == np.inf:
                break
            best = cost if i == 0 and c == 0 else np.inf
            k = c + up - 1
            if i > 0 and 0 <= k < width and totals[i - 1, k] + 2 * cost < best:
                best = totals[i - 1, k] + 2 * cost
                moves[i, c] = 1
            if slope_limited:
                k = c + up - 2
                if i > 0 and c > 0 and 0 <= k < width and totals[i - 1, k] + 2 * costs[i, c - 1] + cost < best:
                    best = totals[i - 1, k] + 2 * costs[i, c - 1] + cost
                    moves[i, c] = 2
                k = c + up_two - 1
                j = c + up
                if i > 1 and 0 <= k < width and j < width and totals[i - 2, k] + 2 * costs[i - 1, j] + cost < best:
                    best = totals[i - 2, k] + 2 * costs[i - 1, j] + cost
                    moves[i, c] = 3
            else:
                if c > 0 and totals[i, c - 1] + cost < best:
                    best = totals[i, c - 1] + cost
                    moves[i, c] = 2
                k = c + up
                if i > 0 and k < width and totals[i - 1, k] + cost < best:
                    best = totals[i - 1, k] + cost
                    moves[i, c] = 3
            totals[i, c] = best
    return moves


def _trace(
    moves: NDArray[np.int8], first: NDArray[np.int64], columns: int, slope_limited: bool
) -> NDArray[np.int64] | None:
    """Matched frames (original, anonymised) of the path, shape (cells, 2), or None: no path fits."""
    i, j = moves.shape[0] - 1, columns - 1
    cells = [(i, j)]
    while (i, j) != (0, 0):
        move = moves[i, j - first[i]]
        if move == 0:
            return None
        if slope_limited and move != 1:
            cells.append((i, j - 1) if move == 2 else (i - 1, j))
            i, j = (i - 1, j - 2) if move == 2 else (i - 2, j - 1)
        else:
            i, j = i - (move != 2), j - (move != 3)
        cells.append((i, j))
    return np.array(cells, np.int64)


def _best_path(
    original: NDArray[np.float64], anonymised: NDArray[np.float64], band_s: float | None, steps: Steps
) -> tuple[NDArray[np.int64], Steps]:
    first, last = _band_edges(original.size, anonymised.size, band_s)
    cells = int((last - first).max() + 1) * original.size
    if cells > _LARGEST_GRID:
        raise MetricInputError(
            f"Warping {anonymised.size} frames onto {original.size} needs {cells} cells, more than {_LARGEST_GRID}. "
            "Give a narrower band in seconds."
        )
    costs = _cost_stripe(_standardised(original), _standardised(anonymised), first, last)
    if steps == "slope-limited":
        path = _trace(compiled(_best_moves)(costs, first, True), first, anonymised.size, True)
        if path is not None:
            return path, steps
    path = _trace(compiled(_best_moves)(costs, first, False), first, anonymised.size, False)
    assert path is not None, "the band connects both ends"  # noqa: S101
    return path, "free"


def _median_per_frame(path: NDArray[np.int64], anonymised: NDArray[np.float64], frames: int) -> NDArray[np.float64]:
    """For each frame of the original the upper median of the matched anonymised values: never a mean of two."""
    rows, values = path[:, 0], anonymised[path[:, 1]]
    order = np.lexsort((values, rows))
    counts = np.bincount(rows, minlength=frames)
    starts = np.cumsum(counts) - counts
    medians: NDArray[np.float64] = values[order][starts + counts // 2]
    return medians
