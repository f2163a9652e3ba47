"""Pitch correlation ρF0 of an original utterance and its anonymised version (VoicePrivacy 2022).

**By a lag** (`pitch_correlation`). The official form correlates all frames, zeros included, after a rotation by the
best lag; the described form looks at the jointly voiced frames only, at the same lag. Two unrelated utterances reach
about 0.25 in the official form.

**By dynamic time warping** (`realigned_pitch_correlation`): how much intonation is left once timing is forgiven. The
results paper of 2022 (section VI.C, table IV) warps the anonymised contour non-linearly onto the original before it
correlates. Warping correlates almost anything: without limits two unrelated utterances reach 0.87, with the limits that
are the default here 0.53. Read a value only beside that floor (`FLOORS_OF_UNRELATED_SPEECH`).

**From samples** (`compare_pitch`): both sides are tracked by the same estimator.

Conventions: contours in Hz, 0 is unvoiced, 10 ms steps; samples are mono, int16 or floating point in [-1, 1]; a
positive lag moves the anonymised contour later; correlations lie in [-1, 1], higher is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.arrays import real_numbers
from common.errors import InputError
from common.numba_loops import compiled
from speech.pitch.estimators import CEILING_HZ, FLOOR_HZ, STEP_S, F0Track, track_f0

# The 2022 evaluation plan asks each data set and gender for a mean above this.
MINIMUM_OF_2022 = 0.3

# Below some forty seconds the direct correlation costs next to nothing beside the F0 extraction.
_FFT_FROM_FRAMES = 4096


@dataclass(frozen=True, slots=True)
class PitchCorrelation:
    """Pitch correlation of one utterance pair.

    Attributes:
        rho: official form, in [-1, 1]; 0 where a contour is constant, such as one without a voiced
            frame.
        rho_voiced: Pearson correlation over the jointly voiced frames at the same lag, as the
            papers describe it; None where fewer than two such frames exist or one side of them is
            constant.
        lag_frames: frames by which the anonymised contour was rotated.
        n_frames_original, n_frames_anonymised: lengths before stretching.
        n_voiced_original, n_voiced_anonymised: voiced frames before stretching.
        n_jointly_voiced: frames voiced in both after stretching and rotation.
    """

    rho: float
    rho_voiced: float | None
    lag_frames: int
    n_frames_original: int
    n_frames_anonymised: int
    n_voiced_original: int
    n_voiced_anonymised: int
    n_jointly_voiced: int


def pitch_correlation(f0_original: NDArray[np.floating], f0_anonymised: NDArray[np.floating]) -> PitchCorrelation:
    """Compare two F0 contours as ``pitch_correlation.py`` of the VoicePrivacy 2022 recipe does.

    The shorter contour is stretched linearly to the longer, values outside of 75 to 500 Hz become
    0, the raw cross-correlation (not mean-removed, first maximum) gives the lag, and the anonymised
    contour is rotated by it.

    Args:
        f0_original: shape (frames,), Hz, 0 where unvoiced.
        f0_anonymised: shape (frames,), Hz, 0 where unvoiced; may differ in length.

    Raises:
        InputError: a contour that is empty, not one-dimensional, negative or not finite.

    Example:
        >>> contour = np.array([0.0, 100.0, 120.0, 0.0])
        >>> pitch_correlation(contour, np.roll(contour, 1)).lag_frames
        -1
    """
    raw_original = validate_contour(f0_original, "original")
    raw_anonymised = validate_contour(f0_anonymised, "anonymised")
    frames = max(raw_original.size, raw_anonymised.size)
    original = clip_to_range(_stretch(raw_original, frames))
    anonymised = clip_to_range(_stretch(raw_anonymised, frames))
    lag = best_lag(original, anonymised)
    rotated = np.roll(anonymised, lag)
    voiced = (original > 0) & (rotated > 0)
    rho = pearson(original, rotated)
    return PitchCorrelation(
        rho=0.0 if rho is None else rho,
        rho_voiced=pearson(original[voiced], rotated[voiced]),
        lag_frames=lag,
        n_frames_original=raw_original.size,
        n_frames_anonymised=raw_anonymised.size,
        n_voiced_original=int(np.count_nonzero(raw_original)),
        n_voiced_anonymised=int(np.count_nonzero(raw_anonymised)),
        n_jointly_voiced=int(np.count_nonzero(voiced)),
    )


def best_lag(original: NDArray[np.float64], anonymised: NDArray[np.float64]) -> int:
    """Return the lag that numpy's ``argmax(correlate(original, anonymised, "full")) - (frames - 1)`` gives.

    Exactly that, ties included: long contours are correlated by FFT first, which leaves only the
    lags whose value lies within the rounding of both methods of the largest; these few are then
    computed by the same dot products as `numpy.correlate` takes, and the first maximum wins.

    Args:
        original, anonymised: shape (frames,), both of the same length, finite and not negative.
    """
    frames = original.size
    lags = _contending_lags(original, anonymised) if frames >= _FFT_FROM_FRAMES else None
    if lags is None:
        return int(np.argmax(np.correlate(original, anonymised, "full"))) - (frames - 1)
    return int(lags[int(np.argmax([_product_at(original, anonymised, lag) for lag in lags.tolist()]))])


def _product_at(original: NDArray[np.float64], anonymised: NDArray[np.float64], lag: int) -> float:
    """Return one value of ``numpy.correlate(…, "full")``: the same dot product of the same overlap."""
    frames = original.size
    return float(np.dot(original[max(lag, 0) : frames + min(lag, 0)], anonymised[max(-lag, 0) : frames - max(lag, 0)]))


def _contending_lags(original: NDArray[np.float64], anonymised: NDArray[np.float64]) -> NDArray[np.intp] | None:
    """Return the lags that may have the largest product, ascending; None where these are too many to gain.

    A dot product of n terms is off by at most n roundings of ‖a‖‖b‖, a convolution by FFT by a few
    for each stage of its three transforms (Higham (2002), section 3.1 and theorem 24.2; 32 is
    generous). A lag that has the largest computed product is thus within twice the sum of both of
    the largest value by FFT.
    """
    frames = original.size
    scale = float(np.linalg.norm(original) * np.linalg.norm(anonymised))
    if scale == 0.0:
        return np.array([1 - frames])  # nothing voiced on one side: all products are 0, the first one wins
    size = 1 << (2 * frames - 2).bit_length()
    spectrum = np.fft.rfft(original, size) * np.fft.rfft(anonymised[::-1], size)
    products = np.fft.irfft(spectrum, size)[: 2 * frames - 1]
    rounding = float(np.finfo(np.float64).eps) * scale * (frames + 3 * 32 * size.bit_length())
    contending = np.flatnonzero(products >= products.max() - 2 * rounding)
    return contending - (frames - 1) if contending.size <= frames // 8 else None


def validate_contour(f0: NDArray[np.floating], side: str) -> NDArray[np.float64]:
    """Return the contour as float64.

    Raises:
        InputError: empty, not one-dimensional, not of real numbers, negative or not finite; `side` names it.
    """
    contour = real_numbers(f0, f"{side} F0 contour")
    if contour.ndim != 1 or contour.size == 0:
        raise InputError(
            f"The {side} F0 contour must have the shape (frames,) with at least one frame, found {contour.shape}."
        )
    wrong = int(np.count_nonzero(~np.isfinite(contour) | (contour < 0)))
    if wrong:
        raise InputError(
            f"The {side} F0 contour must be finite and not negative (0 is unvoiced), "
            f"found {wrong} of {contour.size} frames that are not."
        )
    return contour


def _stretch(contour: NDArray[np.float64], frames: int) -> NDArray[np.float64]:
    """Return linear interpolation to another number of frames, end points fixed."""
    if contour.size == frames:
        return contour
    positions = np.linspace(1, contour.size, num=frames)
    return np.interp(positions, np.arange(1, contour.size + 1), contour)


def clip_to_range(contour: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the contour with 0 where it lies outside of 75 to 500 Hz."""
    return np.where((contour < FLOOR_HZ) | (contour > CEILING_HZ), 0.0, contour)


def pearson(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Pearson correlation, None where it is not defined (no frame, or a constant side)."""
    if first.size == 0 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    first = first - first.mean()
    second = second - second.mean()
    norm = float(np.sqrt(first @ first) * np.sqrt(second @ second))
    return float(np.clip(first @ second / norm, -1.0, 1.0))


Steps = Literal["slope-limited", "free"]
BAND_S = 1.0

# Mean and standard deviation of `rho_voiced` by steps and band: Praat contours of 100 real utterances (LibriSpeech
# dev-clean and test-other, VCTK), 600 pairs with seed 2022, as the tests draw them; without warping it is 0.06.
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
        InputError: a contour that is empty, not one-dimensional, negative or not finite;
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


def _validate_constraints(steps: str, band_s: float | None) -> None:
    if steps not in ("slope-limited", "free"):
        raise InputError(f"Steps are “slope-limited” or “free”, found “{steps}”.")
    if band_s is not None and not band_s >= 0:
        raise InputError(f"The band is a number of seconds from 0, or None; found {band_s}.")


def _standardised(contour: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log F0 with mean 0 and deviation 1 over the voiced frames, NaN where unvoiced."""
    values = np.full(contour.size, np.nan)
    voiced = contour > 0
    if voiced.any():
        logarithms = np.log(contour[voiced])
        deviation = logarithms.std()
        values[voiced] = (logarithms - logarithms.mean()) / (deviation if deviation > 0 else 1.0)
    return values


def _band_edges(rows: int, columns: int, band_s: float | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and last column of each row within the band; wide enough to be a connected stripe."""
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
    """Return how the cheapest path reaches each cell of the stripe; 0 where none does.

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
        raise InputError(
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


@dataclass(frozen=True, slots=True, eq=False)
class PitchOfPair:
    """Everything about the pitch of one pair.

    Attributes:
        original, anonymised: the F0 contours; `F0Track.estimator` names program and versions.
        correlation: official form and form of the papers.
        realigned: after dynamic time warping; None where it was not asked for.
    """

    original: F0Track
    anonymised: F0Track
    correlation: PitchCorrelation
    realigned: RealignedPitch | None

    @property
    def estimator(self) -> str:
        """Program, versions, method and range; the same for both contours."""
        return self.original.estimator


def compare_pitch(
    original: NDArray[np.generic],
    anonymised: NDArray[np.generic],
    rate: int,
    *,
    rate_anonymised: int | None = None,
    estimator: str = "praat",
    realign: bool = False,
    steps: Steps = "slope-limited",
    band_s: float | None = BAND_S,
) -> PitchOfPair:
    """Track both sides and correlate them.

    Different lengths are stretched onto each other, different rates are no obstacle (contours are
    in Hz every 10 ms), a side that is silent or unvoiced gives a correlation of 0.

    Args:
        original, anonymised: shape (samples,), int16, or floating point in [-1, 1].
        rate: samples per second, of the anonymised side too unless `rate_anonymised` is given.
        estimator: a key of `speech.pitch.estimators.ESTIMATORS`; the challenge's is ``praat``.
        realign: also correlate after warping, with `steps` and `band_s` of
            `realigned_pitch_correlation`.

    Raises:
        InputError: what `track_f0` refuses (shorter than 40 ms, not mono, not finite, …); the
            sentence names the side.
    """
    first = _track(original, rate, estimator, "original")
    second = _track(anonymised, rate if rate_anonymised is None else rate_anonymised, estimator, "anonymised")
    realigned = realigned_pitch_correlation(first.hz, second.hz, steps=steps, band_s=band_s) if realign else None
    return PitchOfPair(first, second, pitch_correlation(first.hz, second.hz), realigned)


def _track(samples: NDArray[np.generic], rate: int, estimator: str, side: str) -> F0Track:
    try:
        return track_f0(samples, rate, estimator)
    except InputError as error:
        raise InputError(f"The {side} utterance: {error}") from None
