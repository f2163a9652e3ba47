"""The common form of all stimuli: level, peak, edges, duration; on the demo corpus and on real speech."""

import numpy as np
import pytest

from listening.stimuli.making import SILENCE_SAMPLES, make_uniform, padded_samples
from speech.audio.files import AudioError, resample
from speech.audio.level import active_speech_level
from tests.listening.stimuli.speech import demo_recordings


@pytest.mark.parametrize("gain", [0.02, 1.0])
def test_recordings_of_any_loudness_come_to_the_same_level(gain):
    for samples in demo_recordings(step=30):
        uniform = make_uniform(np.rint(gain * samples).astype(np.int16), 16000)
        level = active_speech_level(uniform.speech / 32768, 16000)
        assert level.active_dbov == pytest.approx(-26, abs=0.1)
        assert uniform.level_dbov == pytest.approx(-26, abs=0.05)
        assert uniform.gain_db == pytest.approx(-26 - uniform.level_before_dbov, abs=0.3)


def test_peak_guard_keeps_a_peaky_recording_quieter_and_unclipped():
    samples = np.random.default_rng(0).normal(0, 300, 48000)
    samples[[9000, 20000, 31000]] = 30000
    uniform = make_uniform(np.rint(samples).astype(np.int16), 16000)
    assert uniform.is_guarded
    assert uniform.peak_dbov == pytest.approx(-1, abs=0.001)
    assert np.abs(uniform.samples.astype(int)).max() == round(32768 * 10 ** (-1 / 20))
    assert uniform.level_dbov < -26.5
    ratio = uniform.speech[9000] / uniform.speech[9001 : 9001 + 5]
    assert np.allclose(ratio, 30000 / np.rint(samples[9001:9006]), rtol=0.02)  # nothing but a gain


def test_duration_is_on_the_grid_between_a_silent_frame_and_another():
    assert [padded_samples(n) for n in (1, 8192, 8193, 16384, 16385)] == [16384, 16384, 24576, 24576, 32768]
    for samples in demo_recordings(step=30):
        uniform = make_uniform(samples, 16000)
        assert uniform.samples.size % (2 * SILENCE_SAMPLES) == 0
        assert uniform.speech_samples == uniform.speech.size == samples.size
        before, behind = np.flatnonzero(uniform.samples)[[0, -1]]
        assert before >= SILENCE_SAMPLES
        assert behind < SILENCE_SAMPLES + samples.size
        silence = uniform.samples.size - SILENCE_SAMPLES - uniform.speech_samples
        assert SILENCE_SAMPLES <= silence < 3 * SILENCE_SAMPLES
        assert uniform.padded_s == uniform.samples.size / 16000


def test_only_a_start_or_end_that_would_click_is_faded():
    time = np.arange(16000) / 16000
    cut = np.rint(5000 * np.cos(2 * np.pi * 200 * time)).astype(np.int16)
    whole = np.rint(cut * np.sin(np.pi * time)).astype(np.int16)
    faded, untouched = make_uniform(cut, 16000), make_uniform(whole, 16000)
    assert (faded.is_faded, untouched.is_faded) == (True, False)
    assert max(abs(int(faded.speech[0])), abs(int(faded.speech[-1]))) < 33
    middle = slice(160, faded.speech_samples - 160)
    gain = 10 ** (faded.gain_db / 20)
    assert np.abs(faded.speech[middle] - gain * cut[middle]).max() <= 0.5 + 1e-6


def test_other_rates_are_converted():
    samples = demo_recordings(step=119)[0]
    uniform = make_uniform(resample(samples, 16000, 48000), 48000)
    assert uniform.speech_samples == samples.size
    assert uniform.level_dbov == pytest.approx(-26, abs=0.05)


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        (np.zeros(16000, np.int16), "nothing but silence"),
        (np.ones(1000, np.int16), "0.062 s"),
        (np.zeros(0), "0.000 s"),
    ],
)
def test_what_is_no_speech_is_refused_with_a_sentence(samples, found):
    with pytest.raises(AudioError, match=found):
        make_uniform(samples, 16000)
