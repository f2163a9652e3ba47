"""The source-filter vocoder: its sincs, long speech by pieces, what changes the samples, and which files it takes."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the network needs torch, which is not installed here")

from speech.conversion.content_decoder import sharpen  # noqa: E402 (needs torch)
from speech.conversion.shape import SourceFilterShape  # noqa: E402
from speech.conversion.source_filter import SourceFilter, SourceFilterVocoder, filter_frames, low_pass, respond  # noqa: E402
from speech.vocoders.hifigan import BANDS, HOP_SAMPLES, log_mels  # noqa: E402

SHAPE = SourceFilterShape(speaker=3, width=8, blocks=2, hidden=4, filters=2, layers=3, taps=31)
VOICE = np.ones(3, np.float32)


@pytest.fixture
def network():
    torch.manual_seed(1)
    return SourceFilter(SHAPE).eval()


def spectra_of(frames):
    return (-5 + 0.3 * np.random.default_rng(1).standard_normal((frames, BANDS))).astype(np.float32)


@pytest.mark.parametrize("cut", [0.2, 0.8])
def test_sincs_pass_what_is_below_the_cut_and_their_rest_what_is_above(cut):
    low = low_pass(torch.tensor([cut]), 31)[0].numpy()
    high = np.eye(31)[15] - low
    at = np.linspace(0, 1, 1025)
    gains = [np.abs(np.fft.rfft(each, 2048)) for each in (low, high)]
    assert low.sum() == pytest.approx(1)
    below, above = at < cut - 0.12, at > cut + 0.12
    for found, passed, stopped in zip(gains, (below, above), (above, below), strict=True):
        assert found[passed] == pytest.approx(1, abs=0.02)
        assert found[stopped] == pytest.approx(0, abs=0.02)


def test_each_frame_is_filtered_by_its_own_filter():
    draw = np.random.default_rng(2)
    signal = draw.standard_normal(3 * HOP_SAMPLES).astype(np.float32)
    filters = low_pass(torch.tensor([[0.2, 0.9, 0.5]]), 31)
    found = filter_frames(torch.from_numpy(signal)[None], filters)[0].numpy()
    for frame, one in enumerate(filters[0].numpy()):
        piece = slice(frame * HOP_SAMPLES, (frame + 1) * HOP_SAMPLES)
        assert found[piece] == pytest.approx(np.convolve(signal, one, mode="same")[piece], abs=1e-5)


def test_one_frame_is_enough_and_spectrum_f0_and_voice_each_change_the_samples(network):
    vocoder, spectrum, hz = SourceFilterVocoder(network), spectra_of(20), np.full(20, 120.0)
    assert vocoder.synthesize(spectrum[:1], hz[:1], VOICE).shape == (HOP_SAMPLES,)
    base = vocoder.synthesize(spectrum, hz, VOICE)
    assert np.array_equal(base, vocoder.synthesize(spectrum, hz, VOICE))
    for other in (
        vocoder.synthesize(spectrum[::-1].copy(), hz, VOICE),
        vocoder.synthesize(spectrum, hz * 1.5, VOICE),
        vocoder.synthesize(spectrum, hz, np.array([1, -1, 1], np.float32)),
    ):
        assert not np.array_equal(base, other)


def test_before_anything_is_learnt_there_are_harmonics_with_some_noise_below_and_noise_above(network):
    """As loud as a flat spectrum says where voiced; where not, the part below is 4 dB weaker."""
    network.harmonic = network.harmonic[:1]
    torch.nn.init.zeros_(network.cut.weight)
    torch.nn.init.zeros_(network.cut.bias)
    hz = np.repeat([0.0, 200.0], 90)
    found = SourceFilterVocoder(network).synthesize(np.full((180, BANDS), -4, np.float32), hz, VOICE)
    unvoiced, voiced = (
        np.abs(np.fft.rfft(piece * np.hanning(piece.size))) ** 2 for piece in np.split(found.astype(float), 2)
    )
    at = np.linspace(0, 1, len(voiced))
    near = np.abs((at * 11_025 + 100) % 200 - 100) < 5
    below, above = at < 0.55, at > 0.85
    assert 0.85 * voiced[below].sum() < voiced[below & near].sum() < 0.95 * voiced[below].sum()
    assert voiced[above & near].sum() < 0.15 * voiced[above].sum()
    assert 10 * np.log10(unvoiced[at > 0.45].mean() / unvoiced[at < 0.15].mean()) == pytest.approx(4.2, abs=1)
    loudness = log_mels(torch.from_numpy(found[100 * HOP_SAMPLES :])[None])[0, :70]
    assert loudness.mean().item() == pytest.approx(-4, abs=0.6)


def test_sharpened_spectra_differ_more_in_time_and_from_band_to_band_and_flat_ones_stay():
    flat = np.full((9, BANDS), -3, np.float32)
    assert sharpen(flat, 1.5) == pytest.approx(flat)
    assert sharpen(spectra_of(1), 1.5).shape == (1, BANDS)
    steady = np.repeat(spectra_of(1), 7, axis=0)
    assert np.ptp(sharpen(steady, 1.5), axis=0) == pytest.approx(np.zeros(BANDS), abs=1e-5)
    peak = flat.copy()
    peak[4, 40] += 1
    found = sharpen(peak, 1.5) - flat
    mean = 1 / 9
    before = mean + 1.5 * (np.eye(9)[4] - mean)  # of the band, after it moved away from its mean
    in_time = before + 0.3 * (2 * before - np.roll(before, 1) - np.roll(before, -1))
    assert found[2:7, 40] == pytest.approx(1.6 * in_time[2:7], abs=1e-5)
    assert found[2:7, 39] == pytest.approx(-0.3 * in_time[2:7], abs=1e-5)


def test_responses_filter_each_frame_without_delay():
    """A flat one changes nothing; one that passes low frequencies alone stops high ones, in its frame."""
    draw = np.random.default_rng(3)
    signal = torch.from_numpy(draw.standard_normal((2, 40 * HOP_SAMPLES)).astype(np.float32))
    flat = torch.ones(2, 40, 129)
    assert torch.allclose(respond(signal, flat), signal, atol=1e-5)
    low = flat.clone()
    low[:, 20:, 64:] = 0
    found = respond(signal, low).numpy()
    middle = 20 * HOP_SAMPLES
    assert found[:, : middle - 2 * HOP_SAMPLES] == pytest.approx(
        signal[:, : middle - 2 * HOP_SAMPLES].numpy(), abs=1e-5
    )
    power = np.abs(np.fft.rfft(found[:, middle + 2 * HOP_SAMPLES :])) ** 2
    at = np.linspace(0, 1, power.shape[1])
    assert power[:, at > 0.55].mean() < 1e-4 * power[:, at < 0.45].mean()
