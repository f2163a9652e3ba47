"""Long speech measured in blocks: the same as at once, in a part of the memory."""

from functools import cache

import numpy as np
import pytest

from anonymization.checks.outputs import check_long_audio, measure_power
from evaluation.metrics.audio_checks import check_audio

LONG = 1_200_000


@cache
def speech(n=LONG, seed=1):
    if not seed:
        return np.zeros(n, np.int16)
    loudness = np.linspace(100, 12_000, n)
    return np.clip(np.random.default_rng(seed).normal(0, loudness), -32768, 32767).astype(np.int16)


@pytest.mark.parametrize(
    ("original", "output"),
    [
        ((LONG, 1), (700_000, 1)),
        ((LONG, 1), (LONG, 1)),
        ((LONG, 1), (LONG, 0)),
        ((LONG, 1), (0, 0)),
        ((3000, 1), (3000, 2)),
    ],
    ids=["shorter", "identical", "silent", "empty", "short"],
)
def test_blocks_give_what_the_whole_gives(original, output):
    """Of each the number of samples and the seed, 0 for silence."""
    pair = speech(*original), speech(*output)
    found, expected = check_long_audio(*pair, 16_000), check_audio(*pair, 16_000)
    for name in expected.__slots__:
        value = getattr(expected, name)
        assert getattr(found, name) == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), name


def test_power_of_frames_does_not_depend_on_blocks():
    samples = speech()
    frames = samples[: LONG // 160 * 160].reshape(-1, 160).astype(np.float64)
    assert np.array_equal(measure_power(samples, 160), np.mean(np.square(frames), axis=1))
    assert measure_power(samples[:100], 160).size == 0
