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


@pytest.mark.parametrize("window", ["hamming", "povey"])
def test_filterbank_has_the_values_of_kaldi(window):
    samples, rate = read_pcm16(UTTERANCE)
    energies = log_mel_filterbank(samples, FilterbankOptions(window=window, rate_hz=rate))
    assert energies.shape == (1 + (len(samples) - 400) // 160, 80)
    assert energies.dtype == np.float32
    np.testing.assert_allclose(energies[np.ix_(FRAMES, BANDS)], GOLDEN[window], atol=2e-3)


def test_filterbank_in_pieces_is_that_of_the_whole(monkeypatch):
    samples = np.random.default_rng(4).normal(0, 2000, 16_000).astype(np.int16)
    whole = log_mel_filterbank(samples, FilterbankOptions())
    monkeypatch.setattr(mel, "_FRAMES_AT_ONCE", 7)
    np.testing.assert_allclose(log_mel_filterbank(samples, FilterbankOptions()), whole, atol=1e-4)


def test_filterbank_refuses_less_than_a_frame():
    with pytest.raises(InputError, match="Expected at least 400 samples for one frame, found 399"):
        log_mel_filterbank(np.ones(399, np.int16), FilterbankOptions())
