"""Log-mel features against a plain calculation, and padding that has no effect."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import InputError

torch = pytest.importorskip("torch", reason="the features need torch, which is not installed here")

from speech.features.log_mel import frame_counts, log_mel  # noqa: E402 (needs torch)


def noise(samples: int, seed: int) -> torch.Tensor:
    generator = np.random.default_rng(seed)
    loudness = np.repeat(generator.uniform(0.001, 0.3, samples // 400 + 1), 400)[:samples]
    return torch.from_numpy((generator.standard_normal(samples) * loudness).astype(np.float32))


def plain_log_mel(samples: np.ndarray, bands: int) -> np.ndarray:
    """The definition, frame by frame and band by band, in double precision."""
    padded = np.concatenate([np.zeros(200), samples.astype(np.float64), np.zeros(200)])
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 400)
    hertz = np.arange(201) * 40.0
    mels = np.linspace(0, 2595 * np.log10(1 + 8000 / 700), bands + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    levels = []
    for start in range(0, samples.size + 1, 160):
        power = np.abs(np.fft.rfft(padded[start : start + 400] * window)) ** 2
        row = []
        for band in range(bands):
            width, centre = edges[band + 1] - edges[band], edges[band + 1]
            weights = np.clip(1 - np.abs(hertz - centre) / width, 0, None)
            row.append(10 * np.log10(max(float(power @ weights), 1e-10)))
        levels.append(row)
    floored = np.maximum(np.array(levels), np.max(levels) - 80)
    return floored - floored.mean(axis=0)


def test_the_features_are_those_of_the_definition():
    bands = 24
    samples = noise(5_333, seed=1)
    found = log_mel(samples[None], bands=bands)[0].numpy()
    expected = plain_log_mel(samples.numpy(), bands)
    assert found.shape == (5_333 // 160 + 1, bands)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_padding_has_no_effect_whatever_it_holds():
    utterances = [noise(samples, seed) for seed, samples in enumerate((8_000, 7_999, 4_801, 4_800, 1))]
    lengths = torch.tensor([item.numel() for item in utterances])
    batch = torch.full((len(utterances), 8_000), 0.9)
    for row, item in zip(batch, utterances, strict=True):
        row[: item.numel()] = item
    together, counts = log_mel(batch, lengths), frame_counts(lengths)
    assert counts.tolist() == [51, 50, 31, 31, 1]
    for row, count, item in zip(together, counts, utterances, strict=True):
        torch.testing.assert_close(row[:count], log_mel(item[None])[0], rtol=0, atol=2e-3)
        assert not row[count:].any()


@pytest.mark.parametrize(
    ("waveforms", "lengths", "sentence"),
    [
        (torch.zeros(4), None, "found \\(4,\\)"),
        (torch.zeros(2, 9), torch.tensor([9, 0]), "1 to 9 samples, found 0 to 9"),
    ],
)
def test_what_is_no_batch_of_speech_is_refused(waveforms: torch.Tensor, lengths: torch.Tensor | None, sentence: str):
    with pytest.raises(InputError, match=sentence):
        log_mel(waveforms, lengths)
