"""Anchors against what ITU-R BS.1534-3 wants of them, measured by their spectrum."""

import numpy as np
import pytest

from listening.stimuli.anchors import ANCHORS_HZ, make_anchor, rate_of_anchor


def gains_db(rate_hz, low_pass_hz):
    """Return frequencies in Hz and the gain of the filter at each of them, by the spectrum of what a click becomes."""
    click = np.zeros((rate_hz, 1))
    click[rate_hz // 2] = 1
    spectrum = np.abs(np.fft.rfft(make_anchor(click, rate_hz, low_pass_hz)[:, 0]))
    return np.fft.rfftfreq(rate_hz, 1 / rate_hz), 20 * np.log10(np.maximum(spectrum, 1e-12))


@pytest.mark.parametrize(("rate_hz", "low_pass_hz"), [(22_050, 7000), (48_000, 3500)])
def test_filter_is_as_bs_1534_wants_it(rate_hz, low_pass_hz):
    hertz, gains = gains_db(rate_hz, low_pass_hz)
    assert np.abs(gains[hertz <= low_pass_hz]).max() <= 0.1
    assert gains[hertz >= low_pass_hz * 4000 / 3500].max() <= -25
    assert gains[hertz >= low_pass_hz * 4500 / 3500].max() <= -50


def test_anchor_is_neither_late_nor_longer():
    tone = np.sin(2 * np.pi * 1000 * np.arange(48000) / 48000)
    samples = np.stack([tone, -tone / 2], axis=1)
    found = make_anchor(samples, 48000, 3500)
    assert found.shape == samples.shape
    np.testing.assert_allclose(found[1000:-1000], samples[1000:-1000], atol=2e-3)


def test_rate_is_high_enough_where_sound_goes_on_beyond_the_anchor():
    assert list(map(rate_of_anchor, ANCHORS_HZ)) == [9000, 18_000]
    with pytest.raises(ValueError, match="at least 18000 Hz, found 16000 Hz"):
        make_anchor(np.ones((16000, 1)), 16000, 7000)
