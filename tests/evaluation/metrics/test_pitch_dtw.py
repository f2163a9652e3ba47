"""Pitch correlation after warping, its floor on unrelated speech, and the lag of long contours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from evaluation.metrics import pitch
from evaluation.metrics.averages import Summary, summarise
from evaluation.metrics.pitch import (
    FLOORS_OF_UNRELATED_SPEECH,
    best_lag,
    pitch_correlation,
    realigned_pitch_correlation,
)
from tests.official import load_arrays

STEPS = ["slope-limited", "free"]


def unrelated_floor(originals, anonymised, random: np.random.Generator, *, n_pairs: int, **how) -> Summary:
    """What warping gives on pairs of different utterances, neither twice as long as the other where such are found."""
    rows = random.integers(len(originals), size=8 * n_pairs)
    columns = (rows + random.integers(1, len(originals), size=8 * n_pairs)) % len(originals)
    ratios = np.array([len(one) for one in originals])[rows] / np.array([len(one) for one in anonymised])[columns]
    drawn = np.argsort((ratios > 2) | (ratios < 0.5), kind="stable")[:n_pairs]
    pairs = zip(rows[drawn].tolist(), columns[drawn].tolist(), strict=True)
    return summarise(realigned_pitch_correlation(originals[i], anonymised[j], **how).rho_voiced or 0 for i, j in pairs)


def melody(frames: int = 300, seed: int = 0) -> np.ndarray:
    """A moving contour with pauses, Hz."""
    random = np.random.default_rng(seed)
    hz = 160 + 50 * np.sin(np.cumsum(random.uniform(0.01, 0.12, frames)))
    pauses = np.repeat(random.random(frames // 20 + 1) < 0.3, 20)[:frames]
    return np.where(pauses, 0.0, hz)


def slowed_down(contour: np.ndarray, frames: int, by: float) -> np.ndarray:
    """Locally stretched and compressed; the ends stay; nearest frame, so that nothing is interpolated."""
    positions = np.linspace(0, 1, frames)
    warped = positions + by * np.sin(2 * np.pi * positions) / (2 * np.pi)
    return contour[np.round(warped * (contour.size - 1)).astype(int)]


@pytest.mark.parametrize("steps", STEPS)
def test_realignment_leaves_an_identical_contour_alone(steps):
    contour = melody()
    result = realigned_pitch_correlation(contour, contour, steps=steps)
    assert np.array_equal(result.warped, contour)
    assert (result.rho, result.rho_voiced) == (pytest.approx(1), pytest.approx(1))
    assert (result.largest_shift_s, result.steps) == (0.0, steps)
    assert result.n_jointly_voiced == np.count_nonzero(contour)


@pytest.mark.parametrize("steps", STEPS)
def test_realignment_undoes_a_change_of_timing(steps):
    original = melody()
    anonymised = slowed_down(original, 380, by=0.4)
    result = realigned_pitch_correlation(original, anonymised, steps=steps)
    assert result.rho_voiced > 0.99
    assert result.rho_voiced > (pitch_correlation(original, anonymised).rho_voiced or 0)
    assert result.warped.shape == original.shape
    assert result.largest_shift_s > 0.05


def test_realignment_does_not_see_a_change_of_register():
    original = melody()
    same = realigned_pitch_correlation(original, slowed_down(original, 300, 0.4))
    higher = realigned_pitch_correlation(original, 1.5 * slowed_down(original, 300, 0.4))
    assert higher.warped == pytest.approx(1.5 * same.warped)
    assert higher.rho_voiced == pytest.approx(same.rho_voiced)


def test_the_band_limits_how_far_the_path_may_leave_the_straight_line():
    original = melody()
    anonymised = np.concatenate([np.zeros(60), original])[:300]
    for band_s in (0.1, 0.3, 1.0):
        result = realigned_pitch_correlation(original, anonymised, band_s=band_s)
        assert result.largest_shift_s <= band_s + 1e-9
        assert result.band_s == band_s
    wide = realigned_pitch_correlation(original, anonymised, steps="free", band_s=None)
    narrow = realigned_pitch_correlation(original, anonymised, steps="free", band_s=0.0)
    assert wide.rho > narrow.rho
    assert narrow.largest_shift_s == pytest.approx(0.01)


def test_contours_of_very_unequal_length_fall_back_to_free_steps():
    original = melody(300)
    result = realigned_pitch_correlation(original, original[::3])
    assert result.steps == "free"
    assert realigned_pitch_correlation(original, original[::2]).steps in STEPS
    assert realigned_pitch_correlation(original[:1], original).warped.shape == (1,)
    assert realigned_pitch_correlation(original, original[:1]).warped.shape == (300,)


@pytest.mark.parametrize("other", [np.zeros(40), melody(60)])
def test_realignment_of_nothing_voiced_is_zero(other):
    result = realigned_pitch_correlation(np.zeros(50), other)
    assert (result.rho, result.rho_voiced, result.n_jointly_voiced) == (0.0, None, 0)


def cheapest_by_recursion(costs: np.ndarray, slope_limited: bool) -> float:
    """The least total over all paths, by trying every one of them."""
    rows, columns = costs.shape

    def best(i: int, j: int) -> float:
        if (i, j) == (0, 0):
            return costs[0, 0]
        ways = []
        if i > 0 and j > 0:
            ways.append(best(i - 1, j - 1) + 2 * costs[i, j])
        if slope_limited:
            if i > 0 and j > 1:
                ways.append(best(i - 1, j - 2) + 2 * costs[i, j - 1] + costs[i, j])
            if i > 1 and j > 0:
                ways.append(best(i - 2, j - 1) + 2 * costs[i - 1, j] + costs[i, j])
        else:
            if j > 0:
                ways.append(best(i, j - 1) + costs[i, j])
            if i > 0:
                ways.append(best(i - 1, j) + costs[i, j])
        return min(ways, default=np.inf)

    return best(rows - 1, columns - 1)


def path_total(costs: np.ndarray, path: np.ndarray) -> float:
    """Total of a path, last cell first: twice a cell reached diagonally, once any other and the start."""
    steps = path[:-1] - path[1:]
    return float(costs[0, 0] + sum(costs[i, j] * step.sum() for (i, j), step in zip(path[:-1], steps, strict=True)))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000), st.booleans())
def test_the_path_is_the_cheapest_of_all(rows, columns, seed, slope_limited):
    costs = np.random.default_rng(seed).integers(0, 9, (rows, columns)).astype(float)
    first = np.zeros(rows, np.int64)
    moves = pitch._best_moves(costs, first, slope_limited)
    compiled = pitch.compiled(pitch._best_moves)(costs, first, slope_limited)
    assert np.array_equal(moves, compiled)
    path = pitch._trace(moves, first, columns, slope_limited)
    expected = cheapest_by_recursion(costs, slope_limited)
    if path is None:
        assert expected == np.inf
    else:
        assert path_total(costs, path) == expected
        assert {*map(tuple, (path[:-1] - path[1:]).tolist())} <= {(1, 1), (1, 0), (0, 1)}


@pytest.mark.parametrize(("rows", "columns"), [(1, 333), (333, 1)])
def test_a_free_path_fits_in_the_narrowest_band(rows, columns):
    random = np.random.default_rng(rows * columns)
    first, second = (random.uniform(75, 500, size) for size in (rows, columns))
    assert realigned_pitch_correlation(first, second, steps="free", band_s=0.0).warped.shape == (rows,)


@pytest.mark.slow  # thousands of pairs of recordings
def test_unrelated_speech_has_the_documented_floors():
    stored = load_arrays("f0.npz")
    contours = [stored[name] for name in stored if name.endswith(".orig")]
    for (steps, band_s), (mean, std) in FLOORS_OF_UNRELATED_SPEECH.items():
        floor = unrelated_floor(contours, contours, np.random.default_rng(1), n_pairs=90, steps=steps, band_s=band_s)
        assert floor.n == 90
        assert floor.mean == pytest.approx(mean, abs=std)
    assert FLOORS_OF_UNRELATED_SPEECH["free", None][0] > FLOORS_OF_UNRELATED_SPEECH["slope-limited", 1.0][0] + 0.3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps": "steep"}, "“slope-limited” or “free”, found “steep”"),
        ({"band_s": -1.0}, "found -1.0"),
        ({"band_s": float("nan")}, "found nan"),
    ],
)
def test_realignment_refuses_other_constraints(options, sentence):
    with pytest.raises(InputError, match=sentence):
        realigned_pitch_correlation(melody(), melody(), **options)


def test_realignment_refuses_contours_that_are_none_or_too_long_without_a_band():
    with pytest.raises(InputError, match=r"original F0 contour.*at least one frame"):
        realigned_pitch_correlation(np.zeros(0), melody())
    with pytest.raises(InputError, match=r"anonymised F0 contour.*1 of 2 frames"):
        realigned_pitch_correlation(melody(), np.array([1.0, np.nan]))
    with pytest.raises(InputError, match="narrower band"):
        realigned_pitch_correlation(np.zeros(8000), np.zeros(8000), band_s=None)


def long_contours(kind: str, frames: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if kind == "speech-like":
        return melody(frames, 1), melody(frames, 2)
    if kind == "silent":
        return np.zeros(frames), melody(frames)
    period = np.where(random.random(97) < 0.5, 0.0, np.round(random.uniform(75, 300, 97)))
    return np.resize(period, frames), np.resize(period, frames)


@pytest.mark.parametrize("kind", ["speech-like", "periodic", "silent"])
def test_the_lag_of_long_contours_is_that_of_numpy_with_its_ties(kind):
    first, second = long_contours(kind, 4096, np.random.default_rng(4096))
    by_numpy = int(np.argmax(np.correlate(first, second, "full"))) - (first.size - 1)
    assert best_lag(first, second) == by_numpy
