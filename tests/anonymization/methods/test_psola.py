"""TD-PSOLA: where its grains go, how they are read between samples and mixed."""

import numpy as np
import pytest

from anonymization.methods.pitch_shift import psola
from anonymization.methods.pitch_shift.marks import PitchMarks, PitchSource
from anonymization.methods.pitch_shift.psola import PHASES, TAPS, lay_out, make_interpolation_table, shift_by_psola

UP, DOWN = 2**0.5, 2**-0.5


def marks_of(times, voiced=(), attacks=()):
    is_voiced = np.zeros(len(times) - 1, bool)
    is_voiced[list(voiced)] = True
    is_onset = np.zeros(len(times), bool)
    is_onset[list(attacks)] = True
    return PitchMarks(np.array(times, float), is_voiced, is_onset)


@pytest.mark.parametrize(("ratio", "keep_formants"), [(UP, False), (DOWN, True)])
def test_grains_are_a_new_period_apart_and_near_their_mark(ratio, keep_formants):
    marks = marks_of(np.arange(0, 16_001, 100), voiced=range(160))
    layout = lay_out(marks, ratio, keep_formants=keep_formants)
    assert np.diff(layout.times) == pytest.approx(100 / ratio)
    assert np.abs(layout.times - marks.times[layout.grains])[:-2].max() <= 50 + 1e-9
    assert (np.diff(layout.grains) >= 0).all()
    assert not layout.turned.any()


def test_repeated_unvoiced_grains_are_turned_round_every_second_time():
    layout = lay_out(marks_of(np.arange(0, 16_001, 80)), UP, keep_formants=False)
    repeated = np.diff(layout.grains, prepend=-1) == 0
    assert repeated.sum() > 50
    assert np.array_equal(layout.turned, repeated)


@pytest.mark.parametrize("ratio", [1.9, 0.55])
def test_attacks_come_once_at_their_time(ratio):
    attacks = [10, 33, 58, 91]
    marks = marks_of(np.arange(0, 8_001, 80), attacks=attacks)
    layout = lay_out(marks, ratio, keep_formants=False)
    for attack in attacks:
        (place,) = np.flatnonzero(layout.grains == attack)
        assert layout.times[place] == marks.times[attack]
    assert (np.diff(layout.times) > 0).all()
    assert layout.reach == pytest.approx(np.diff(layout.times))


def test_interpolation_reads_between_samples():
    """Of tones up to 0.8 of the band; 16 taps cannot do better next to its end."""
    table = make_interpolation_table().astype(np.float64)
    assert table.shape == (PHASES, TAPS)
    place = np.arange(TAPS) - (TAPS // 2 - 1)
    for cycles_per_sample in (0.01, 0.1, 0.3, 0.4):
        for phase in range(PHASES):
            value = table[phase] @ np.exp(2j * np.pi * cycles_per_sample * place)
            expected = np.exp(2j * np.pi * cycles_per_sample * phase / PHASES)
            assert abs(value - expected) < (0.003 if cycles_per_sample < 0.4 else 0.03)


@pytest.mark.parametrize("keep_formants", [True, False])
def test_blocks_do_not_show(monkeypatch, vowels, keep_formants):
    def shift():
        source = PitchSource(vowels, 16_000, 0.0)
        return shift_by_psola(source, UP, keep_formants=keep_formants).astype(np.float64)

    whole = shift()
    monkeypatch.setattr(psola, "_SAMPLES_PER_BLOCK", 1700)
    error = shift() - whole
    assert (error @ error) / (whole @ whole) < 1e-5


def test_level_of_noise_does_not_beat():
    """Mixing grains as if they were alike would leave dips of 3 dB between them."""
    noise = np.random.default_rng(0).normal(0, 3000, 80_000).astype(np.int16)
    output = shift_by_psola(PitchSource(noise, 16_000, 0.0), UP).astype(np.float64)
    power = (output**2)[8000:-8000]
    envelope = np.abs(np.fft.rfft(power - power.mean())) ** 2
    hz = np.fft.rfftfreq(power.size, 1 / 16_000)
    smooth = np.convolve(envelope, np.ones(40) / 40, "same")[(hz > 60) & (hz < 600)]
    assert smooth.max() < 3 * np.median(smooth)
    # Played faster, white noise loses what would lie above the band.
    assert power.mean() == pytest.approx(3000**2 / UP, rel=0.12)
