"""Pitch correlation against the official values, at its edges, and by its properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from evaluation.metrics.pitch import PitchCorrelation, pitch_correlation
from speech.pitch.estimators import f0_praat
from tests.official import load_arrays, load_json
from tests.recordings import RATE, read_demo

EDGE_UTTERANCE = "d01-0004"


def contour(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def reference_cases(group: str) -> dict[str, dict]:
    key = {"pairs": "utterance", "edge_cases": "case"}[group]
    return {case[key]: case for case in load_json("pitch_correlation.json")[group]}


def assert_equals_official(result: PitchCorrelation, case: dict, tolerance: float) -> None:
    assert result.rho == pytest.approx(case["rho_official"], abs=tolerance)
    if case["rho_masked"] is None:
        assert result.rho_voiced is None
    else:
        assert result.rho_voiced == pytest.approx(case["rho_masked"], abs=tolerance)
    counts = (
        result.lag_frames,
        result.n_frames_original,
        result.n_frames_anonymised,
        result.n_voiced_original,
        result.n_voiced_anonymised,
        result.n_jointly_voiced,
    )
    assert counts == (
        case["lag_frames"],
        case["n_frames_orig"],
        case["n_frames_anon"],
        case["voiced_orig"],
        case["voiced_anon"],
        case["jointly_voiced_after_lag"],
    )


@pytest.mark.parametrize("utterance", reference_cases("pairs"))
def test_pitch_correlation_of_stored_contours_equals_official(utterance):
    stored = load_arrays("f0.npz")
    result = pitch_correlation(stored[f"{utterance}.orig"], stored[f"{utterance}.anon"])
    assert_equals_official(result, reference_cases("pairs")[utterance], tolerance=1e-6)


def resampled(samples: np.ndarray, factor: float) -> np.ndarray:
    size = round(samples.size * factor)
    positions = np.linspace(0, samples.size - 1, size)
    return np.interp(positions, np.arange(samples.size), samples).astype(np.int16)


def delayed(samples: np.ndarray, by: int) -> np.ndarray:
    return np.concatenate([np.zeros(by, np.int16), samples[:-by]])


EDGES = {
    "identical": lambda samples: samples,
    "delayed_800_samples": lambda samples: delayed(samples, 800),
    "delayed_16000_samples": lambda samples: delayed(samples, 16000),
    "half_gain": lambda samples: samples // 2,
    "stretched_1.005": lambda samples: resampled(samples, 1.005),
    "stretched_1.10": lambda samples: resampled(samples, 1.1),
    "stretched_0.80": lambda samples: resampled(samples, 0.8),
    "anonymised_shorter_by_1040_samples": lambda samples: samples[:-1040],
    "first_half_only": lambda samples: samples[: samples.size // 2],
    "time_reversed": lambda samples: samples[::-1],
    "digital_silence_anonymised": np.zeros_like,
}


@pytest.mark.parametrize("case", EDGES)
def test_pitch_correlation_of_live_speech_equals_official(case):
    original = read_demo(EDGE_UTTERANCE)
    result = pitch_correlation(f0_praat(original, RATE), f0_praat(EDGES[case](original), RATE))
    assert_equals_official(result, reference_cases("edge_cases")[case], tolerance=1e-3)


def test_pitch_correlation_of_silence_on_both_sides_equals_official():
    silence = f0_praat(np.zeros_like(read_demo(EDGE_UTTERANCE)), RATE)
    case = reference_cases("edge_cases")["digital_silence_both"]
    assert_equals_official(pitch_correlation(silence, silence), case, tolerance=0)


def test_pitch_correlation_rotates_by_the_delay():
    original = contour(0, 0, 100, 120, 150, 0, 0, 0)
    result = pitch_correlation(original, np.roll(original, 3))
    assert result == PitchCorrelation(
        rho=1.0,
        rho_voiced=pytest.approx(1.0),
        lag_frames=-3,
        n_frames_original=8,
        n_frames_anonymised=8,
        n_voiced_original=3,
        n_voiced_anonymised=3,
        n_jointly_voiced=3,
    )


def test_pitch_correlation_takes_the_first_of_equal_maxima():
    result = pitch_correlation(contour(0, 100, 0, 100, 0), contour(0, 0, 100, 0, 0))
    assert result.lag_frames == -1


def test_pitch_correlation_stretches_the_shorter_and_drops_interpolated_onsets():
    # Half way between 100 Hz and unvoiced lie 50 Hz, below the floor: 0 again, on either side.
    short, long = contour(100, 0, 100), contour(100, 0, 0, 0, 100)
    result = pitch_correlation(short, long)
    assert (result.rho, result.lag_frames, result.n_jointly_voiced) == (pytest.approx(1), 0, 2)
    assert pitch_correlation(long, short).rho == pytest.approx(1)


def test_pitch_correlation_ignores_values_out_of_range():
    with_octave_error = contour(0, 600, 100, 120, 60, 0)
    assert pitch_correlation(with_octave_error, contour(0, 0, 100, 120, 0, 0)).rho == 1.0


@pytest.mark.parametrize("other", [np.full(4, 110.1), contour(100, 110, 120, 130)])
@pytest.mark.parametrize("constant", [np.zeros(4), np.full(4, 100.1)])
def test_pitch_correlation_with_a_constant_contour_is_zero(other, constant):
    assert pitch_correlation(constant, other).rho == 0.0
    assert pitch_correlation(other, constant).rho == 0.0


def test_pitch_correlation_over_one_jointly_voiced_frame_is_undefined():
    result = pitch_correlation(contour(0, 100, 0), contour(0, 100, 0))
    assert (result.rho, result.rho_voiced, result.n_jointly_voiced) == (1.0, None, 1)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [(np.zeros(0), "at least one frame"), (contour(0, np.nan), "1 of 2 frames"), (contour(-1, 100), "1 of 2 frames")],
)
def test_pitch_correlation_refuses_a_contour_that_is_none(wrong, sentence):
    with pytest.raises(InputError, match=f"original F0 contour.*{sentence}"):
        pitch_correlation(wrong, contour(0, 100))
    with pytest.raises(InputError, match=f"anonymised F0 contour.*{sentence}"):
        pitch_correlation(contour(0, 100), wrong)


frequencies = st.one_of(st.just(0.0), st.floats(75, 500))
contours = st.lists(frequencies, min_size=1, max_size=60).map(np.array)


@given(contours, st.integers(0, 30))
def test_pitch_correlation_does_not_see_a_delay_within_silence(one, frames):
    silence = np.zeros(30)
    original = np.concatenate([one, silence])
    result = pitch_correlation(original, np.roll(original, frames))
    if one.any():
        assert result.lag_frames == -frames
        assert result.rho == pytest.approx(1.0)
    else:
        assert result.rho == 0.0
