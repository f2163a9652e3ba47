"""Parameters of WORLD: what they say of a sound, and the sound that is made of them again."""

from __future__ import annotations

import numpy as np
import pytest

from speech.pitch.estimators import track_f0
from speech.vocoders.world_library import missing_world
from speech.vocoders.world_parameters import PARAMETERS, POINTS, RATE_HZ, analyse, contour_at_steps, synthesize

pytestmark = pytest.mark.skipif(bool(missing_world()), reason="WORLD is not installed here")

FRAME_S = 256 / 22_050


def make_pulses(hz, seconds=2.0):
    """Harmonics of equal strength, as loud from 0 Hz to 8 kHz."""
    times = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    return sum(np.cos(2 * np.pi * hz * number * times) for number in range(1, int(7900 / hz))) / 100


def filter_peak(sound, at_hz):
    """A resonance of 100 Hz width."""
    radius, angle = np.exp(-np.pi * 100 / RATE_HZ), 2 * np.pi * at_hz / RATE_HZ
    made, one, two = np.zeros_like(sound), 0.0, 0.0
    for place, value in enumerate(sound):
        now = value + 2 * radius * np.cos(angle) * one - radius**2 * two
        made[place], one, two = now, now, one
    return made / np.abs(made).max() * 0.3


def frames_of(sound):
    return int(np.ceil(sound.size / RATE_HZ / FRAME_S))


@pytest.fixture(scope="module")
def vowel():
    return filter_peak(make_pulses(125.0), 1500)


def test_envelope_has_the_resonance_of_the_sound(vowel):
    found = analyse(vowel, np.full(frames_of(vowel), 125.0), FRAME_S)
    assert found.shape == (frames_of(vowel), PARAMETERS)
    places_hz = 700 * np.expm1(np.linspace(0, np.log1p(8000 / 700), POINTS))
    loudest = places_hz[found[20:-20, :POINTS].argmax(axis=1)]
    assert loudest == pytest.approx(np.full(loudest.size, 1500.0), abs=60)


def test_voiced_frames_are_periodic_and_noise_is_not(vowel):
    noise = 0.1 * np.random.default_rng(1).standard_normal(vowel.size)
    voiced = analyse(vowel, np.full(frames_of(vowel), 125.0), FRAME_S)[20:-20, POINTS:]
    unvoiced = analyse(noise, np.zeros(frames_of(noise)), FRAME_S)[:, POINTS:]
    assert voiced.mean() < -1
    assert unvoiced == pytest.approx(np.zeros_like(unvoiced), abs=1e-6)


def test_sound_of_parameters_has_their_envelope_and_f0(vowel):
    hz = np.full(frames_of(vowel), 125.0)
    parameters = analyse(vowel, hz, FRAME_S)
    count = -(-vowel.size // 80)
    sound = synthesize(parameters, FRAME_S, contour_at_steps(hz * 1.2, FRAME_S, count))
    assert sound.shape == (80 * count,)
    again = analyse(sound[: vowel.size], hz * 1.2, FRAME_S)
    # Below two harmonics, and where nothing but the skirts of the resonance is, WORLD is not exact.
    inside = slice(10, 60)
    assert np.abs(again - parameters)[20:-20, inside].mean() < 0.15
    heard = track_f0(sound, RATE_HZ).hz
    assert np.median(heard[heard > 0]) == pytest.approx(150, abs=1)


def test_frames_stay_where_they_are():
    """A resonance that jumps after one second does so in the parameters and in the sound made of them."""
    pulses = make_pulses(125.0)
    sound = np.concatenate([filter_peak(pulses[:RATE_HZ], 800), filter_peak(pulses[RATE_HZ:], 3000)])
    hz = np.full(frames_of(sound), 125.0)
    parameters = analyse(sound, hz, FRAME_S)
    made = synthesize(parameters, FRAME_S, contour_at_steps(hz, FRAME_S, sound.size // 80))
    for found in (parameters, analyse(made, hz, FRAME_S)):
        high = found[10:-10, :POINTS].argmax(axis=1) > POINTS / 2
        assert (np.flatnonzero(high)[0] + 10) * FRAME_S == pytest.approx(1.0, abs=0.015)


def test_contour_is_interpolated_between_voiced_frames_and_0_elsewhere():
    hz = np.array([0, 100.0, 200.0, 0, 0])
    found = contour_at_steps(hz, 0.01, 10)
    # Middles of the frames are at 5, 15, 25, 35 and 45 ms, steps at 0, 5, 10 …
    assert found[:3] == pytest.approx([0, 0, 0])
    assert found[3:6] == pytest.approx([100, 100 * 2**0.5, 200])
    assert not found[7:].any()
    assert not contour_at_steps(np.zeros(5), 0.01, 10).any()


@pytest.mark.parametrize("samples", [1, 16_000])
def test_silence_and_short_sounds_have_parameters_too(samples):
    silent = analyse(np.zeros(samples), np.zeros(frames_of(np.zeros(samples))), FRAME_S)
    assert np.isfinite(silent).all()
    sound = synthesize(silent, FRAME_S, np.zeros(max(1, samples // 80)))
    assert np.abs(sound).max() < 1e-3
