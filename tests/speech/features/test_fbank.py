"""Kaldi's filterbank: golden values of an independent implementation, the definition written out, and its edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from speech.audio.files import read_pcm16
from speech.features import mel
from speech.features.mel import FilterbankOptions, log_mel_filterbank

UTTERANCE = Path(__file__).parents[3] / "demo" / "corpus" / "d01" / "d01-0001.flac"
FRAMES, BANDS = (0, 50, 150, 250), (0, 20, 50, 79)
# kaldi-native-fbank 1.22.5 on UTTERANCE at the scale of int16: FbankOptions with dither 0, 80 bins and the window.
GOLDEN = {
    "hamming": [
        [-4.1631, 1.0686, 4.2514, 7.0013],
        [11.7422, 15.0928, 14.3219, 11.4085],
        [11.4887, 22.0427, 20.5494, 17.3487],
        [9.756, 14.7008, 18.2864, 15.8868],
    ],
    "povey": [
        [-4.0821, 1.0464, 4.2702, 7.0251],
        [10.1615, 15.1045, 14.31, 11.2808],
        [11.1525, 22.0603, 20.5643, 17.3689],
        [8.0837, 14.739, 18.2644, 15.8944],
    ],
}


def by_definition(samples, options):
    """One frame and one band at a time, in double precision, with the transform written as a sum."""
    size, hop = options.frame_samples, options.hop_samples
    points = 512
    turns = np.exp(-2j * np.pi * np.outer(np.arange(points // 2), np.arange(size)) / points)
    phases = 2 * np.pi * np.arange(size) / (size - 1)
    hamming, hann = 0.54 - 0.46 * np.cos(phases), 0.5 - 0.5 * np.cos(phases)
    window = hamming if options.window == "hamming" else hann**0.85
    mel = [1127 * np.log(1 + hertz / 700) for hertz in np.arange(points // 2) * options.rate_hz / points]
    low, high = (1127 * np.log(1 + hertz / 700) for hertz in (options.lowest_hz, options.rate_hz / 2))
    width = (high - low) / (options.bands + 1)
    rows = []
    for start in range(0, len(samples) - size + 1, hop):
        frame = samples[start : start + size].astype(float)
        frame = frame - frame.mean()
        frame = np.array([frame[i] - options.preemphasis * frame[max(0, i - 1)] for i in range(size)])
        power = np.abs(turns @ (frame * window)) ** 2
        row = []
        for band in range(options.bands):
            middle = low + (band + 1) * width
            weights = [max(0.0, 1 - abs(each - middle) / width) for each in mel]
            row.append(np.log(max(float(np.dot(weights, power)), 1.1920929e-07)))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("window", ["hamming", "povey"])
def test_filterbank_has_the_values_of_kaldi(window):
    samples, rate = read_pcm16(UTTERANCE)
    energies = log_mel_filterbank(samples, FilterbankOptions(window=window, rate_hz=rate))
    assert energies.shape == (1 + (len(samples) - 400) // 160, 80)
    assert energies.dtype == np.float32
    np.testing.assert_allclose(energies[np.ix_(FRAMES, BANDS)], GOLDEN[window], atol=2e-3)


@pytest.mark.parametrize("window", ["hamming", "povey"])
@pytest.mark.parametrize("bands", [23, 80])
def test_filterbank_is_its_definition(window, bands):
    samples = np.random.default_rng(3).normal(0, 2000, 1500).astype(np.int16)
    options = FilterbankOptions(window=window, bands=bands)
    np.testing.assert_allclose(log_mel_filterbank(samples, options), by_definition(samples, options), atol=1e-3)


def test_filterbank_in_pieces_is_that_of_the_whole(monkeypatch):
    samples = np.random.default_rng(4).normal(0, 2000, 16_000).astype(np.int16)
    whole = log_mel_filterbank(samples, FilterbankOptions())
    monkeypatch.setattr(mel, "_FRAMES_AT_ONCE", 7)
    np.testing.assert_allclose(log_mel_filterbank(samples, FilterbankOptions()), whole, atol=1e-4)


def test_filterbank_of_silence_is_its_floor():
    energies = log_mel_filterbank(np.full(400, 7, np.int16), FilterbankOptions())
    np.testing.assert_allclose(energies, np.full((1, 80), np.log(np.finfo(np.float32).eps)), rtol=1e-6)


def test_filterbank_refuses_less_than_a_frame():
    with pytest.raises(InputError, match="Expected at least 400 samples for one frame, found 399"):
        log_mel_filterbank(np.ones(399, np.int16), FilterbankOptions())
