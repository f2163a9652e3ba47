"""Pitch shifting by both techniques: what holds for any sound, and what was measured on speech."""

import doctest

import numpy as np
import pytest

from anonymization.methods.contract import MethodError
from anonymization.methods.pitch_shift import method as pitch_shift
from anonymization.methods.pitch_shift.method import PitchShift, shift_pitch
from evaluation.metrics.pitch import pitch_correlation
from speech.pitch.estimators import track_f0
from tests.recordings import first_of_each_speaker, read_demo

# Technique and formants: all that there are.
WAYS = [("psola", "moved"), ("psola", "kept"), ("vocoder", "moved")]

each_way = pytest.mark.parametrize(("technique", "formants"), WAYS, ids=["-".join(way) for way in WAYS])
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def noise(n, seed=0, level=3000):
    return np.random.default_rng(seed).normal(0, level, n).astype(np.int16)


def rms(samples):
    return np.sqrt(np.mean(samples.astype(np.float64) ** 2))


def largest_difference(a, b):
    return int(np.abs(a.astype(int) - b).max(initial=0))


# --- identity


@each_way
def test_no_shift_gives_back_speech(technique, formants):
    for row in first_of_each_speaker()[::5]:
        samples = read_demo(row["utterance_id"])[:32_000]
        assert largest_difference(shift_pitch(samples, 16_000, PitchShift(0, technique, formants)), samples) <= 1


# --- F0, level and duration


@each_way
def test_speech_moves_by_the_cents_asked_for(technique, formants):
    cents = -600
    shifts, correlations, levels_db = [], {"F": [], "M": []}, []
    for row in first_of_each_speaker()[::2]:
        gender, samples = row["gender"], read_demo(row["utterance_id"])
        output = shift_pitch(samples, 16_000, PitchShift(cents, technique, formants))
        before, after = track_f0(samples, 16_000).hz, track_f0(output, 16_000).hz
        both = (before > 130) & (after > 0)  # above 130 Hz all of it stays in the estimator's range
        if both.sum() > 30:
            shifts.append(np.median(1200 * np.log2(after[both] / before[both])))
        correlations[gender].append(pitch_correlation(before, after).rho)
        if np.abs(output.astype(int)).max() < 32_767:
            levels_db.append(20 * np.log10(rms(output) / rms(samples)))
        assert output.size == samples.size
    assert np.median(shifts) == pytest.approx(cents, abs=5)
    assert np.abs(np.array(shifts) - cents).max() < 25
    assert np.abs(levels_db).max() < 0.1
    # B2 reaches 0.61 and 0.55; a man's voice that goes down leaves the estimator's range.
    assert np.mean(correlations["F"]) > 0.8
    assert np.mean(correlations["M"]) > 0.55


@each_way
def test_pure_tone_moves_by_the_ratio_and_stays_pure(technique, formants):
    cents = -600
    time_s = np.arange(32_000) / 16_000
    tone = (10_000 * np.sin(2 * np.pi * 200 * time_s)).astype(np.int16)
    output = shift_pitch(tone, 16_000, PitchShift(cents, technique, formants))[4000:-4000].astype(np.float64)
    spectrum = np.abs(np.fft.rfft(output * np.hanning(output.size)))
    peak_hz = spectrum.argmax() * 16_000 / output.size
    assert peak_hz == pytest.approx(200 * 2 ** (cents / 1200), abs=1)
    if formants == "moved":
        spectrum[max(0, spectrum.argmax() - 5) : spectrum.argmax() + 6] = 0
        assert spectrum.max() < 0.02 * np.abs(np.fft.rfft(tone[4000:-4000] * np.hanning(output.size))).max()


def test_formants_move_or_stay_as_asked(vowels):
    def centroid(samples):
        power = np.abs(np.fft.rfft(samples.astype(np.float64))) ** 2
        return np.fft.rfftfreq(samples.size, 1 / 16_000) @ power / power.sum()

    before = centroid(vowels)
    moved = centroid(shift_pitch(vowels, 16_000, PitchShift(400)))
    kept = centroid(shift_pitch(vowels, 16_000, PitchShift(400, formants="kept")))
    assert moved / before == pytest.approx(2 ** (400 / 1200), rel=0.06)
    assert kept / before == pytest.approx(1, rel=0.06)


@each_way
def test_another_rate_keeps_level_and_moves_the_pitch(technique, formants):
    rate = 44_100
    time_s = np.arange(rate) / rate
    tone = (8_000 * np.sin(2 * np.pi * 180 * time_s) + 2_000 * np.sin(2 * np.pi * 360 * time_s)).astype(np.int16)
    output = shift_pitch(tone, rate, PitchShift(300, technique, formants))
    assert rms(output) == pytest.approx(rms(tone), rel=0.001)
    f0 = track_f0(output, rate).hz
    assert np.median(f0[f0 > 0]) == pytest.approx(180 * 2**0.25, rel=0.005)


# --- level


@each_way
def test_level_is_kept_or_peak(vowels, technique, formants):
    quiet = (vowels // 8).astype(np.int16)
    kept = shift_pitch(quiet, 16_000, PitchShift(300, technique, formants))
    peak = shift_pitch(quiet, 16_000, PitchShift(300, technique, formants, level="peak"))
    assert rms(kept) == pytest.approx(rms(quiet), rel=0.005)
    assert np.abs(peak.astype(int)).max() == 32_766


@each_way
def test_full_scale_square_wave_is_scaled_down_and_not_clipped(technique, formants):
    square = np.where(np.arange(16_000) // 53 % 2 == 0, 32_767, -32_768).astype(np.int16)
    output = shift_pitch(square, 16_000, PitchShift(400, technique, formants))
    magnitude = np.abs(output.astype(int))
    assert magnitude.max() <= 32_767
    assert 0.3 * rms(square) < rms(output) < rms(square)
    # Clipping would leave many samples at the limit.
    if formants == "moved":
        assert np.count_nonzero(magnitude == magnitude.max()) < 20


@pytest.mark.parametrize("technique", ["psola", "vocoder"])
def test_what_leaves_the_band_is_not_blown_up(technique):
    tone = (5_000 * np.cos(2 * np.pi * 7_900 * np.arange(16_000) / 16_000)).astype(np.int16)
    output = shift_pitch(tone, 16_000, PitchShift(600, technique))
    assert rms(output[2000:-2000]) < 0.02 * rms(tone)


# --- silence, offset, noise


@each_way
def test_digital_silence_stays_silent(vowels, technique, formants):
    samples = vowels.copy()
    samples[10_000:14_000] = 0
    output = shift_pitch(samples, 16_000, PitchShift(-350, technique, formants))
    assert not output[10_000:14_000].any()
    assert output[9_000:10_000].any()
    assert not shift_pitch(np.zeros(9_000, np.int16), 16_000, PitchShift(300, technique, formants)).any()


@each_way
def test_noise_gets_no_pitch(technique, formants):
    output = shift_pitch(noise(80_000), 16_000, PitchShift(600, technique, formants)).astype(np.float64)
    spectrum = np.abs(np.fft.rfft(output, 2 * output.size)) ** 2
    correlation = np.fft.irfft(spectrum)[: 16_000 // 50]
    # What a lag of 2 to 20 ms has in common with the noise; repeated grains, as they are, would give about 0.3.
    assert correlation[32:].max() / correlation[0] < 0.08
    assert np.count_nonzero(track_f0(output.astype(np.int16), 16_000).hz) < 25


@pytest.mark.parametrize("technique", ["psola", "vocoder"])
def test_click_stays_one_click_at_its_time(technique):
    samples = noise(16_000, level=3)
    samples[8_000] = 20_000
    power = shift_pitch(samples, 16_000, PitchShift(-600, technique)).astype(np.float64) ** 2
    assert power[8_000 - 32 : 8_000 + 33].sum() > 0.9 * power.sum()


# --- as methods


def test_docstring_examples_run():
    assert doctest.testmod(pitch_shift).failed == 0


# --- bad input


@pytest.mark.parametrize(
    ("samples", "rate", "sentence"),
    [
        (np.zeros(800, np.int16), 7_999, "8000 to 48000 Hz; found 7999 Hz"),
        (np.zeros(800, np.int16), 16_000.5, "found 16000.5 Hz"),
    ],
)
def test_unusable_samples_are_refused(samples, rate, sentence):
    with pytest.raises(MethodError, match=sentence):
        shift_pitch(samples, rate, PitchShift(300))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"cents": 1201}, "-1200 to 1200 cents; found 1201"),
        ({"cents": 300, "technique": "sola"}, 'technique is one of psola, vocoder; found "sola"'),
        ({"cents": 300, "formants": "lost"}, 'formants is one of moved, kept; found "lost"'),
        ({"cents": 300, "level": "loud"}, 'level is one of kept, peak; found "loud"'),
        ({"cents": 300, "technique": "vocoder", "formants": "kept"}, "to keep them, take the technique psola"),
    ],
)
def test_unusable_shifts_are_refused(values, sentence):
    with pytest.raises(MethodError, match=sentence):
        PitchShift(**values)
