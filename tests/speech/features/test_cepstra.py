"""The cepstra of the 2022 x-vector against Kaldi's, its moving mean and its choice of frames that hold speech."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import MetricInputError
from speech.features.cepstra import cepstral_coefficients, voiced_frames, without_local_mean, xvector_features

# Coefficients 0, 1, 2, 15 and 29 of frames 0, 25 and 49 of `tones`, computed once with kaldi-native-fbank 1.22.5
# (30 bands and coefficients, 20 to 7600 Hz, lifter 22, no dither, edges not snipped; the energy as coefficient 0, which
# is Kaldi's default).
KALDI = {
    0: [22.757, -7.349, 15.621, -3.734, -2.656],
    25: [22.818, 18.940, 39.426, 18.346, 8.889],
    49: [22.787, 8.068, -9.639, 18.267, 0.039],
}


def tones() -> np.ndarray:
    time = np.arange(8_050) / 16_000
    rising = 6000 * np.sin(2 * np.pi * (150 + 200 * time) * time)
    return np.round(rising + 2000 * np.sin(2 * np.pi * 3100 * time)).astype(np.int16)


def test_the_coefficients_are_kaldis():
    found = cepstral_coefficients(tones())
    assert found.shape == (50, 30)
    for frame, expected in KALDI.items():
        np.testing.assert_allclose(found[frame, [0, 1, 2, 15, 29]], expected, atol=0.02)


@pytest.mark.parametrize(("samples", "frames"), [(400, 3), (479, 3), (480, 3), (560, 4), (16_000, 100)])
def test_there_is_a_frame_every_10_ms(samples: int, frames: int):
    noise = np.random.default_rng(1).integers(-3000, 3000, samples).astype(np.int16)
    assert cepstral_coefficients(noise).shape == (frames, 30)


@pytest.mark.parametrize(("frames", "window"), [(3, 300), (20, 300), (20, 5), (20, 6), (20, 1)])
def test_the_mean_of_the_window_around_each_frame_is_taken_off(frames: int, window: int):
    features = np.random.default_rng(2).normal(size=(frames, 4)).astype(np.float32)
    expected = []
    for frame in range(frames):
        # Kaldi's rule: the window starts half of its length before the frame and is moved inside at the ends.
        first, behind = frame - window // 2, frame - window // 2 + window
        if first < 0:
            first, behind = 0, behind - first
        if behind > frames:
            first, behind = max(0, first - (behind - frames)), frames
        expected.append(features[frame] - features[first:behind].mean(axis=0))
    np.testing.assert_allclose(without_local_mean(features, window), expected, atol=1e-5)


def test_frames_with_a_loud_neighbour_hold_speech():
    energies = np.full(40, 2.0)
    energies[20] = 60.0
    # Threshold 5.5 + half of the mean, 3.45: one loud frame among five is a share of 0.2.
    assert np.flatnonzero(voiced_frames(energies)).tolist() == [18, 19, 20, 21, 22]
    assert voiced_frames(np.full(40, 12.0)).all()
    assert not voiced_frames(np.full(40, 10.0)).any()


def test_quiet_frames_are_dropped_from_the_features():
    generator = np.random.default_rng(3)
    speech = generator.integers(-8000, 8000, 16_000).astype(np.int16)
    pause = np.zeros(16_000, np.int16)
    features = xvector_features(np.concatenate([speech, pause]))
    assert 98 <= len(features) <= 106  # a second, and what the frames at its end still hear
    assert np.isfinite(features).all()


def test_silence_and_scraps_get_a_sentence():
    with pytest.raises(MetricInputError, match="found none in 100 frames"):
        xvector_features(np.zeros(16_000, np.int16))
    with pytest.raises(MetricInputError, match="at least 400 samples for one frame, found 399"):
        xvector_features(np.ones(399, np.int16))
