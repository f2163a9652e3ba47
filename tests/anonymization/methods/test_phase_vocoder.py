"""Phase-vocoder pitch shifting: windows, locked phases, attacks, blocks."""

import numpy as np
import pytest

from anonymization.methods.pitch_shift import phase_vocoder
from anonymization.methods.pitch_shift.marks import PitchSource
from anonymization.methods.pitch_shift.phase_vocoder import lock_phases, shift_by_vocoder

UP, DOWN = 2**0.5, 2**-0.5


def shift(samples, ratio, rate=16_000):
    return shift_by_vocoder(PitchSource(samples, rate, 0.0), ratio).astype(np.float64)


def harmonic(f0_hz, duration_s, rate=16_000):
    time_s = np.arange(round(duration_s * rate)) / rate
    tones = [np.cos(2 * np.pi * k * f0_hz * time_s) / k for k in range(1, 12)]
    return (3000 * np.sum(tones, axis=0)).astype(np.int16)


def level_range_db(output):
    """From the quietest to the loudest 50 ms."""
    short_rms = np.sqrt((output[: output.size // 800 * 800].reshape(-1, 800) ** 2).mean(axis=1))
    return 20 * np.log10(short_rms.max() / short_rms.min())


@pytest.mark.parametrize("ratio", [UP, DOWN])
def test_harmonics_keep_their_levels_and_do_not_beat(ratio):
    output = shift(harmonic(160, 2), ratio)[8000:-8000]
    spectrum = np.abs(np.fft.rfft(output * np.hanning(output.size)))
    bins_per_hz = output.size / 16_000
    levels = []
    for k in range(1, 7):
        place = round(k * 160 * ratio * bins_per_hz)
        levels.append(spectrum[place - 3 : place + 4].max() * k)
    assert 20 * np.log10(max(levels) / min(levels)) < 1.5
    assert level_range_db(output) < 2


def test_locked_frames_keep_magnitudes_and_the_phases_around_a_peak():
    rng = np.random.default_rng(1)
    here = (rng.normal(size=(1, 65)) * 0.01 + 0j).astype(np.complex64)
    here[0, 19:22] = [2 + 1j, 5, 2 - 1j]
    before_turn, back = here.copy(), np.ones((1, 65), np.complex64)
    before = np.full(65, 1j, np.complex64)
    lock_phases(here, back, before, np.inf)
    assert np.abs(here) == pytest.approx(np.abs(before_turn), abs=1e-6)
    assert here[0, 19:22] == pytest.approx(1j * before_turn[0, 19:22], abs=1e-5)
    assert np.array_equal(before, here[0])


def test_harmonics_do_not_beat_where_blocks_meet(monkeypatch):
    monkeypatch.setattr(phase_vocoder, "_FRAMES_PER_BLOCK", 10)
    output = shift(harmonic(160, 2), UP)[8000:-8000]
    assert level_range_db(output) < 2
