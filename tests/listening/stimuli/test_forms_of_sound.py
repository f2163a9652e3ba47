"""Stimuli of one's own recordings: another rate, two channels, and the loudness that was chosen."""

import io

import numpy as np
import pytest
import soundfile

from listening.stimuli.making import LOUDNESS_LUFS, Loudness, StimulusFormat, make_stimulus
from speech.audio.files import AudioError


def noise(seconds=2.0, rate_hz=48000, peak=0.4):
    """Noise in two channels, the right one quieter."""
    left = peak * np.random.default_rng(1).uniform(-1, 1, round(seconds * rate_hz))
    return np.stack([left, left / 2], axis=1)


def decode(made):
    return soundfile.read(io.BytesIO(made.content), always_2d=True)


def test_rate_and_channels_are_kept_where_the_form_says_so():
    heard, rate_hz = decode(make_stimulus(noise(), 48000, StimulusFormat(48000, 2, Loudness.AS_IT_IS)))
    assert (rate_hz, heard.shape[1]) == (48000, 2)
    middle = heard[48000 : 2 * 48000]
    np.testing.assert_allclose(middle[:, 1], middle[:, 0] / 2, atol=1 / 16384)


def test_recording_as_it_is_has_no_sample_changed():
    samples = noise()
    heard, _ = decode(make_stimulus(samples, 48000, StimulusFormat(48000, 2, Loudness.AS_IT_IS)))
    start = StimulusFormat(48000).silence_samples
    np.testing.assert_allclose(heard[start + 4800 : start + 9600], samples[4800:9600], atol=1 / 32768)


@pytest.mark.parametrize(("channels", "peak"), [(1, 0.02), (2, 0.4)])
def test_loudness_is_equal_by_bs1770(channels, peak):
    from pyloudnorm import Meter

    form = StimulusFormat(48000, channels, Loudness.PROGRAMME)
    made = make_stimulus(noise(peak=peak), 48000, form)
    heard, rate_hz = decode(made)
    start = form.silence_samples
    speech = heard[start : start + round(made.speech_s * rate_hz)]
    assert Meter(rate_hz).integrated_loudness(speech) == pytest.approx(LOUDNESS_LUFS, abs=0.1)


def test_mono_in_a_stereo_test_comes_from_both_sides():
    heard, _ = decode(make_stimulus(noise()[:, :1], 48000, StimulusFormat(48000, 2)))
    np.testing.assert_array_equal(heard[:, 0], heard[:, 1])


@pytest.mark.parametrize("rate_hz", [22050, 48000])
def test_files_of_one_length_class_have_one_size(rate_hz):
    form = StimulusFormat(rate_hz, 1, Loudness.PROGRAMME)
    sizes = {len(make_stimulus(noise(seconds=seconds), 48000, form).content) for seconds in (1.8, 1.85, 1.9)}
    assert len(sizes) == 1


def test_recording_too_short_for_its_loudness_is_refused():
    with pytest.raises(AudioError, match=r"at least 0\.4 s"):
        make_stimulus(noise(seconds=0.3), 48000, StimulusFormat(48000, 1, Loudness.PROGRAMME))
