"""The sounds of the screening tests: what each ear gets, measured in the files."""

import io
import wave

import numpy as np
import pytest

from listening.stimuli.sound_checks import (
    bandwidth_round,
    counting_tones,
    environment_round,
    huggins_round,
    woods_round,
    write_sound,
)

RATE_HZ = 16000
ANSWERS = [1, 2, 3]


def rng(seed=0):
    return np.random.default_rng(seed)


def heard(sound):
    """Both channels of the WAV file, full scale 1.0."""
    with wave.open(io.BytesIO(write_sound(sound))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, RATE_HZ)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    return samples / 32768


def intervals(sound):
    """The three seconds of sound, which half a second of silence follows each."""
    parts = sound.reshape(3, 24000, 2)
    assert not parts[:, 16000:].any()
    return parts[:, :16000]


def band(signal, low, high):
    spectrum = np.fft.rfft(signal)
    frequency = np.fft.rfftfreq(len(signal), 1 / RATE_HZ)
    return np.fft.irfft(np.where((frequency > low) & (frequency < high), spectrum, 0), len(signal))


def correlation(left, right):
    return np.corrcoef(left, right)[0, 1]


@pytest.mark.parametrize("answer", ANSWERS)
def test_huggins_pitch_is_in_one_interval_and_only_between_the_ears(answer):
    for place, sound in enumerate(intervals(heard(huggins_round(answer, rng(answer)))), 1):
        left, right = sound.T
        in_band = correlation(band(left, 575, 625), band(right, 575, 625))
        outside = correlation(band(left, 700, 7000), band(right, 700, 7000))
        assert in_band == pytest.approx(-1 if place == answer else 1, abs=0.05)
        assert outside > 0.999
        # One ear alone hears noise: the band is as strong as its neighbours.
        for ear in (left, right):
            strength = np.std(band(ear, 564, 636)) / np.std(band(ear, 464, 536))
            assert 0.7 < strength < 1.4


@pytest.mark.parametrize("answer", ANSWERS)
def test_woods_quietest_is_another_one_over_loudspeakers(answer):
    sounds = intervals(heard(woods_round(answer, rng(answer))))
    over_headphones = [np.std(sound) for sound in sounds]
    over_loudspeakers = [np.std(sound.sum(axis=1)) for sound in sounds]
    assert 1 + int(np.argmin(over_headphones)) == answer
    assert 1 + int(np.argmin(over_loudspeakers)) != answer
    assert min(over_loudspeakers) < 1e-3
    assert 20 * np.log10(max(over_headphones) / min(over_headphones)) == pytest.approx(6, abs=0.05)
    spectrum = np.abs(np.fft.rfft(sounds[answer - 1][:, 0]))
    assert int(np.argmax(spectrum)) == 200


@pytest.mark.parametrize(("rate_hz", "number", "low_pass_hz"), [(16000, 1, 3500), (48000, 0, 3500), (48000, 1, 7000)])
def test_bandwidth_differs_by_what_lies_above_a_frequency_or_not_at_all(rate_hz, number, low_pass_hz):
    for answer in (1, 2):
        sound = bandwidth_round(answer, number, rng(), rate_hz)[:, 0]
        first, second = (part[: 2 * len(part) // 3] for part in np.split(sound, 2))
        above = np.fft.rfftfreq(len(first), 1 / rate_hz) > 4000 / 3500 * low_pass_hz
        left = np.sum(np.abs(np.fft.rfft(second)[above])) / np.sum(np.abs(np.fft.rfft(first)[above]))
        assert (left < 0.01) if answer == 2 else (left == 1)
        assert np.std(second) == pytest.approx(np.std(first), rel=0.02)


@pytest.mark.parametrize("answer", [1, 2])
def test_environment_has_ten_decibels_less_noise_behind_one_of_two_equal_voices(answer):
    first, second = np.split(environment_round(answer, rng(3))[:, 0], 2)
    noise = [np.std(band(part[2000:22000], 7200, 7900)) for part in (first, second)]
    apart = 20 * np.log10(noise[1] / noise[0])
    assert apart == pytest.approx(10 if answer == 1 else -10, abs=1)
    assert correlation(first, second) > 0.99


@pytest.mark.parametrize("counts", [[2, 5], [1, 4, 2]])
def test_tones_can_be_counted_in_both_ears(counts):
    left, right = heard(counting_tones(counts)).T
    np.testing.assert_array_equal(left, right)
    is_sounding = np.abs(left).reshape(-1, 800).max(axis=1) > 0.01  # by 50 ms
    starts = np.flatnonzero(np.diff(is_sounding.astype(int), prepend=0) == 1) * 0.05
    groups = np.split(starts, np.flatnonzero(np.diff(starts) > 1.2) + 1)
    assert [len(group) for group in groups] == counts


@pytest.mark.parametrize("make", [huggins_round, woods_round])
def test_files_of_a_test_are_equally_long_and_seeded(make):
    files = [write_sound(make(answer, rng(7))) for answer in ANSWERS]
    assert len({len(file) for file in files}) == 1
    assert files[0] == write_sound(make(1, rng(7)))
    assert len(set(files)) == 3


def test_length_of_counted_tones_does_not_tell_the_counts():
    assert len(write_sound(counting_tones([2, 2]))) == len(write_sound(counting_tones([5, 4])))


def test_levels_are_those_of_stimuli():
    noise, tone = intervals(heard(huggins_round(1, rng())))[1], intervals(heard(woods_round(1, rng())))[1]
    assert 20 * np.log10(np.std(noise[2000:-2000])) == pytest.approx(-26, abs=0.3)
    assert 20 * np.log10(np.std(tone[2000:-2000])) == pytest.approx(-26, abs=0.05)


def test_interval_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="from 1 to 3"):
        huggins_round(4, rng())
    with pytest.raises(ValueError, match="from 1 to 5"):
        counting_tones([6])
