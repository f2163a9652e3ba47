"""Long speech measured in blocks: the same as at once, in a part of the memory."""

import tracemalloc

import numpy as np
import pytest

from anonymization.checks.outputs import check_long_audio, check_output, measure_power
from evaluation.metrics.audio_checks import check_audio

LONG = 2_500_000


def speech(n=LONG, seed=1):
    loudness = np.linspace(100, 12_000, n)
    return np.clip(np.random.default_rng(seed).normal(0, loudness), -32768, 32767).astype(np.int16)


@pytest.mark.parametrize(
    ("original", "output"),
    [
        (speech(), speech(seed=2)),
        (speech(), speech(1_000_000)),
        (speech(1_000_000), speech()),
        (speech(), speech()),
        (speech(), np.zeros(LONG, np.int16)),
        (np.zeros(LONG, np.int16), speech()),
        (speech(), np.zeros(0, np.int16)),
        (speech(3000), speech(3000, seed=2)),
    ],
    ids=["other", "shorter", "longer", "identical", "silent", "from-silence", "empty", "short"],
)
def test_blocks_give_what_the_whole_gives(original, output):
    found, expected = check_long_audio(original, output, 16_000), check_audio(original, output, 16_000)
    for name in expected.__slots__:
        value = getattr(expected, name)
        assert getattr(found, name) == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), name


def test_power_of_frames_does_not_depend_on_blocks():
    samples = speech()
    frames = samples[: LONG // 160 * 160].reshape(-1, 160).astype(np.float64)
    assert np.array_equal(measure_power(samples, 160), np.mean(np.square(frames), axis=1))
    assert measure_power(samples[:100], 160).size == 0


def test_check_of_long_speech_needs_no_copy_in_double_precision():
    """A copy of either takes 64 MB."""
    original, output = speech(8_000_000), speech(8_000_000, seed=2)
    tracemalloc.start()
    try:
        check_output(original, output, 16_000, file="a.wav")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000
