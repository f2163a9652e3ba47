"""F0 contours by Praat: values, frame times, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from speech.pitch.estimators import f0_praat, track_f0_praat
from tests.official import load_arrays
from tests.recordings import RATE, read_demo


def tone(hz: float, seconds: float, rate: int = RATE) -> np.ndarray:
    """Ten falling harmonics, none above half the rate: nothing is aliased."""
    time_s = np.arange(round(seconds * rate)) / rate
    return sum(0.3 / k * np.cos(2 * np.pi * k * hz * time_s) for k in range(1, 11))


@pytest.mark.parametrize("utterance", ["d01-0004", "d06-0001", "d08-0002"])
def test_f0_of_speech_equals_the_stored_contour(utterance):
    stored = load_arrays("f0_demo.npz")[utterance]
    measured = f0_praat(read_demo(utterance), RATE)
    assert measured.dtype == np.float64
    assert measured == pytest.approx(stored, abs=1e-4)


def test_f0_track_places_frames_every_ten_milliseconds_in_the_middle():
    track = track_f0_praat(tone(120, 1.0), RATE)
    assert track.step_s == pytest.approx(0.01)
    assert np.diff(track.times_s) == pytest.approx(np.full(track.hz.size - 1, 0.01))
    assert track.times_s[0] + track.times_s[-1] == pytest.approx(1.0)
    assert track.start_s >= 0.02
