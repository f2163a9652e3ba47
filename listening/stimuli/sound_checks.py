"""The sounds of the checks before the trials, synthesised.

Sound test: groups of short tones in both ears that have to be counted. Huggins pitch (Milne et al. 2021, Behavior
Research Methods 53): three noises, in one of which a narrow band around 600 Hz is inverted in one ear, which is heard
as a faint tone through headphones only. Antiphase tones (Woods et al. 2017, Attention, Perception & Psychophysics 79):
three tones of 200 Hz, one of them 6 dB quieter, another inverted in one ear, which loudspeakers cancel, so that it
seems the quietest there. Bandwidth (after the qualification of ITU-T P.808): the same noise twice, of which the second
one may lack what lies above a frequency. Environment (after the test of ITU-T P.808, clause 6.3; Naderi and Möller
2020, QoMEX): a voice twice, with noise 50 and 40 dB below it, which only a quiet place and good headphones tell apart.

Conventions: sounds are float64, shape (n, channels), full scale 1.0, −26 dBov as all stimuli, at 16 kHz where no rate
is given; how long they are does not depend on the right answer: silence fills them up. Answers count from 1. They are
to be played as they are, from lossless files.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from listening.stimuli.anchors import ANCHORS_HZ, list_anchors, make_anchor
from listening.stimuli.making import RATE_HZ, write_wav

INTERVALS = 3
MOST_TONES = 5

INTERVAL_S, GAP_S, RAMP_S = 1.0, 0.5, 0.1
LEAD_S = 0.25  # before the tones
HUGGINS_HZ, HUGGINS_WIDTH = 600.0, 0.06  # the inverted band reaches from 6 % below to 6 % above
WOODS_HZ, QUIETER_DB = 200.0, 6.0
TONE_HZ, TONE_S, TONE_RAMP_S = 440.0, 0.2, 0.02
TONE_EVERY_S, GROUP_GAP_S = 0.4, 1.0
LEVEL = 10 ** (-26 / 20)  # root mean square
SAME, DIFFERENT = 1, 2  # answers about the bandwidth
MORE_NOISE_DB, LESS_NOISE_DB, VOICE_S = -40.0, -50.0, 1.5
PITCH_HZ, VOICED_TO_HZ, SYLLABLES_HZ = 120.0, 6000.0, 4.0
FORMANTS_HZ, FORMANT_WIDTH_HZ = np.array([500.0, 1500.0, 2500.0]), 120.0

Sound = NDArray[np.float64]
Generator = np.random.Generator


def counting_tones(counts: Sequence[int]) -> Sound:
    """Return groups of so many tones each, from 1 to `MOST_TONES`, and silence up to the length of the longest.

    Raises:
        ValueError: a count out of that range.
    """
    if not all(1 <= count <= MOST_TONES for count in counts):
        raise ValueError(f"expected counts from 1 to {MOST_TONES}, found {list(counts)}")
    tone = np.zeros((round(TONE_EVERY_S * RATE_HZ), 2))
    tone[: round(TONE_S * RATE_HZ)] = _ramped(np.stack([_sine(TONE_HZ, TONE_S)] * 2, axis=1), TONE_RAMP_S)
    groups = [part for count in counts for part in [*[tone] * count, _silence(GROUP_GAP_S)]]
    left_out = len(counts) * MOST_TONES - sum(counts)
    return np.concatenate([_silence(LEAD_S), *groups, *[np.zeros_like(tone)] * left_out])


def huggins_round(answer: int, rng: Generator) -> Sound:
    """Return three noises; the one with that number, from 1, has the faint tone.

    Raises:
        ValueError: there is no such interval.
    """
    _check(answer)
    return _in_turn([_huggins(rng, is_shifted=place == answer) for place in range(1, INTERVALS + 1)])


def woods_round(answer: int, rng: Generator) -> Sound:
    """Return three tones; the one with that number, from 1, is the quietest; another is inverted in one ear.

    Raises:
        ValueError: there is no such interval.
    """
    _check(answer)
    inverted = int(rng.choice([place for place in range(1, INTERVALS + 1) if place != answer]))
    tone = _sine(WOODS_HZ, INTERVAL_S)
    intervals = []
    for place in range(1, INTERVALS + 1):
        gain = 10 ** (-QUIETER_DB / 20) if place == answer else 1.0
        intervals.append(gain * np.stack([tone, -tone if place == inverted else tone], axis=1))
    return _in_turn(intervals)


def bandwidth_round(answer: int, number: int, rng: Generator, rate_hz: int = RATE_HZ) -> Sound:
    """Return a noise twice: the same, or the second time without what lies above a frequency.

    Args:
        answer: `SAME` or `DIFFERENT`.
        number: from 0, of the rounds with a difference; these take turns with 3.5 and 7 kHz, as far as the rate allows.
    """
    noise = rng.standard_normal((round(INTERVAL_S * rate_hz), 1))
    possible = list_anchors(rate_hz) or ANCHORS_HZ[:1]
    second = make_anchor(noise, rate_hz, possible[number % len(possible)]) if answer == DIFFERENT else noise
    return _in_turn([_at_level(noise, LEVEL), _at_level(second, LEVEL)], rate_hz)


def environment_round(answer: int, rng: Generator) -> Sound:
    """Return a voice twice; the one with that number, 1 or 2, has less noise."""
    time = np.arange(round(VOICE_S * RATE_HZ)) / RATE_HZ
    phase = 2 * np.pi * np.cumsum(PITCH_HZ * (1 + 0.1 * np.sin(2 * np.pi * time + rng.uniform(0, 6)))) / RATE_HZ
    numbers = np.arange(1, int(VOICED_TO_HZ / PITCH_HZ))
    away = (numbers[:, None] * PITCH_HZ - FORMANTS_HZ) / FORMANT_WIDTH_HZ
    gains = np.sum(1 / (1 + away**2), axis=1) / np.sqrt(numbers)
    voice = _at_level((gains @ np.sin(numbers[:, None] * phase)) * np.sin(np.pi * SYLLABLES_HZ * time) ** 2, LEVEL)
    levels = [LEVEL * 10 ** ((LESS_NOISE_DB if place == answer else MORE_NOISE_DB) / 20) for place in (1, 2)]
    return _in_turn([(voice + _at_level(rng.standard_normal(len(voice)), level))[:, None] for level in levels])


def write_sound(sound: Sound, rate_hz: int = RATE_HZ) -> bytes:
    """Write a WAV file of 16 bits."""
    return write_wav(np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16), rate_hz)


def _check(answer: int) -> None:
    if not 1 <= answer <= INTERVALS:
        raise ValueError(f"expected an interval from 1 to {INTERVALS}, found {answer}")


def _huggins(rng: Generator, *, is_shifted: bool) -> Sound:
    """Return white noise, the same in both ears but for the band that is inverted in the right one."""
    left = rng.standard_normal(round(INTERVAL_S * RATE_HZ))
    right = left
    if is_shifted:
        spectrum = np.fft.rfft(left)
        frequency = np.fft.rfftfreq(len(left), 1 / RATE_HZ)
        spectrum[np.abs(frequency - HUGGINS_HZ) <= HUGGINS_WIDTH * HUGGINS_HZ] *= -1
        right = np.fft.irfft(spectrum, len(left))
    return np.stack([_at_level(left, LEVEL), _at_level(right, LEVEL)], axis=1)


def _in_turn(intervals: list[Sound], rate_hz: int = RATE_HZ) -> Sound:
    gap = np.zeros((round(GAP_S * rate_hz), intervals[0].shape[1]))
    return np.concatenate([part for one in intervals for part in (_ramped(one, RAMP_S, rate_hz), gap)])


def _sine(hertz: float, seconds: float) -> NDArray[np.float64]:
    return _at_level(np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE_HZ)) / RATE_HZ), LEVEL)


def _at_level(signal: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    return np.asarray(signal * (level / np.sqrt(np.mean(np.square(signal)))), dtype=np.float64)


def _silence(seconds: float) -> Sound:
    return np.zeros((round(seconds * RATE_HZ), 2))


def _ramped(sound: Sound, seconds: float, rate_hz: int = RATE_HZ) -> Sound:
    """Return the sound with a raised-cosine start and end."""
    ramp = np.sin(np.linspace(0, np.pi / 2, round(seconds * rate_hz)))[:, None] ** 2
    ramped = sound.copy()
    ramped[: len(ramp)] *= ramp
    ramped[-len(ramp) :] *= ramp[::-1]
    return ramped
