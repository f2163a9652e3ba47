"""The decoder to parameters of WORLD: long speech by pieces, loudness, and which files it takes."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the network needs torch, which is not installed here")

from speech.conversion.content_decoder import intonation, sharpen  # noqa: E402 (needs torch)
from speech.conversion.shape import WorldDecoderShape  # noqa: E402
from speech.conversion.world_decoder import WorldConverter, WorldDecoder, parameters_at_loudness  # noqa: E402
from speech.pitch.estimators import track_f0  # noqa: E402

SHAPE = WorldDecoderShape(content=4, speaker=3, width=8, blocks=4)


@pytest.fixture
def network():
    torch.manual_seed(1)
    return WorldDecoder(SHAPE).eval()


def test_long_speech_is_decoded_by_pieces_as_at_once(network):
    content, vector = torch.randn(2500, 4), np.ones(3, np.float32)
    hz = np.where(np.arange(2500) % 70 < 40, 120.0, 0.0)
    found = WorldConverter(network).speak(content, hz, vector)
    with torch.inference_mode():
        whole = network(content[None], torch.from_numpy(intonation(hz))[None], torch.ones(1, 3))[0].numpy()
    assert found.shape == (2500, 81)
    whole[:, :80] = sharpen(whole[:, :80], 1.3)
    assert found == pytest.approx(whole, abs=1e-4)


def test_parameters_do_not_tell_how_loud_the_recording_was():
    times = np.arange(32_000) / 16_000
    sound = sum(np.cos(2 * np.pi * 120 * number * times) / number for number in range(1, 20))
    loud, quiet = ((level * sound).astype(np.int16) for level in (6000, 600))
    found = [parameters_at_loudness(each, track_f0(each, 16_000))[10:-10] for each in (loud, quiet)]
    assert np.abs(found[0] - found[1])[:, 5:40].mean() < 0.05
