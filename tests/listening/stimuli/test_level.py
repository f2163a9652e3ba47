"""The active speech level against signals whose level is known, and against P.56 written down sample by sample."""

import numpy as np
import pytest

from speech.audio.files import AudioError
from speech.audio.level import active_speech_level
from tests.listening.stimuli.speech import demo_recordings

RATE_HZ = 16000
TIME = np.arange(4 * RATE_HZ) / RATE_HZ


def sine(dbov, hertz=1000.0, time=TIME):
    return np.sqrt(2) * 10 ** (dbov / 20) * np.sin(2 * np.pi * hertz * time)


def noise(dbov, seconds, seed=0):
    signal = np.random.default_rng(seed).standard_normal(round(seconds * RATE_HZ))
    return signal * 10 ** (dbov / 20) / np.sqrt(np.mean(signal**2))


@pytest.mark.parametrize("dbov", [-3.0103, -50.0])
def test_level_of_a_steady_tone_is_its_root_mean_square(dbov):
    level = active_speech_level(sine(dbov), RATE_HZ)
    assert level.active_dbov == pytest.approx(dbov, abs=0.05)
    assert level.long_term_dbov == pytest.approx(dbov, abs=0.001)
    assert level.activity == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("rate_hz", [8000, 16000, 48000])
def test_level_does_not_depend_on_the_rate(rate_hz):
    time = np.arange(4 * rate_hz) / rate_hz
    assert active_speech_level(sine(-26, 440, time), rate_hz).active_dbov == pytest.approx(-26, abs=0.05)


def test_pauses_do_not_count():
    talk = noise(-26, 2)
    spoken = np.concatenate([talk, np.zeros(8 * RATE_HZ)])
    level = active_speech_level(spoken, RATE_HZ)
    assert level.long_term_dbov == pytest.approx(-26 - 10 * np.log10(5), abs=0.01)
    # The hangover of 0.2 s and the decay of the envelope count as activity of a little over two seconds.
    assert level.activity == pytest.approx(2.3 / 10, abs=0.02)
    assert -26.8 < level.active_dbov < -26.3


def test_speech_has_the_level_that_p56_gives_sample_by_sample():
    for samples in demo_recordings(step=60):
        signal = samples / 32768
        assert active_speech_level(signal, RATE_HZ).active_dbov == pytest.approx(by_sample(signal), abs=1e-6)


def by_sample(signal):
    """P.56, section 8: one sample after the other, the threshold 15.9 dB under the level found by interpolation."""
    keep, hangover = np.exp(-1 / (RATE_HZ * 0.03)), round(0.2 * RATE_HZ)
    thresholds = [2.0**power for power in range(-15, 0)]
    active, waiting = [0] * 15, [hangover + 1] * 15
    p = q = energy = 0.0
    for sample in signal:
        energy += sample * sample
        p = keep * p + (1 - keep) * abs(sample)
        q = keep * q + (1 - keep) * p
        for j, threshold in enumerate(thresholds):
            waiting[j] = 0 if q >= threshold else waiting[j] + 1
            active[j] += waiting[j] <= hangover
    before = None
    for j, threshold in enumerate(thresholds):
        level = 10 * np.log10(energy / active[j])
        margin = level - 20 * np.log10(threshold)
        if margin <= 15.9:
            last_level, last_margin = before
            return last_level + (last_margin - 15.9) / (last_margin - margin) * (level - last_level)
        before = level, margin
    raise AssertionError("no threshold is 15.9 dB under the level")


@pytest.mark.parametrize("signal", [np.zeros(0), np.zeros(1600), np.full(16000, 1e-6)])
def test_silence_has_no_level(signal):
    with pytest.raises(AudioError, match="expected speech"):
        active_speech_level(signal, RATE_HZ)
