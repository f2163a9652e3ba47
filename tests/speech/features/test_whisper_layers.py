"""Layers of Whisper: the last is that of CTranslate2; shapes, batches and edges on a small random network."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the encoder needs torch, which is not installed here")

from common.errors import InputError  # noqa: E402 (needs torch)
from speech.features import whisper_layers  # noqa: E402
from speech.features.whisper_layers import WhisperEncoder, WhisperLayers, WhisperShape, cut_evenly  # noqa: E402
from tests.speech.model_files.test_ctranslate2 import whole  # noqa: E402

SMALL = WhisperShape(width=8, depth=2, heads=2)
NOISE = np.random.default_rng(5).normal(0, 3000, 481_000).astype(np.int16)


@pytest.fixture(scope="module")
def small() -> WhisperLayers:
    torch.manual_seed(1)
    return WhisperLayers(WhisperEncoder(SMALL))


def saved(encoder: WhisperEncoder, heads: int = SMALL.heads) -> bytes:
    """The network as a file of CTranslate2."""
    names = {"positions": "position_encodings.encodings"}
    variables = {}
    for name, tensor in encoder.state_dict().items():
        new = names.get(name, name)
        if "layer_norm" in name:
            new = new.replace("weight", "gamma").replace("bias", "beta")
        variables[f"encoder/{new.replace('.', '/')}"] = tensor.numpy()
    return whole(variables | {"encoder/num_heads": np.array(heads, np.int16)})


def test_the_spectrum_is_that_of_the_recogniser():
    extractor = pytest.importorskip("faster_whisper.feature_extractor", reason="faster-whisper is not installed here")
    wave = np.zeros(480_000, np.float32)
    wave[:50_000] = NOISE[:50_000] / 32768
    expected = extractor.FeatureExtractor()(wave, padding=0)[:, :3000]
    np.testing.assert_allclose(whisper_layers.log_mel(NOISE[:50_000]).numpy(), expected, atol=1e-4)


def test_layers_come_in_the_order_asked_for_and_the_last_is_normalised(small):
    (everything,), (two,) = (small.encode([NOISE[:5000]], 16_000, layers) for layers in ([0, 1, 2], [2, 0]))
    np.testing.assert_array_equal(two, everything[[2, 0]])
    np.testing.assert_allclose(everything[2].mean(axis=1), 0, atol=1e-5)
    assert np.abs(everything[1].mean(axis=1)).max() > 0.01


def test_a_long_recording_is_cut_into_equal_pieces_of_whole_frames():
    pieces = list(cut_evenly(NOISE))
    assert [piece.size for piece in pieces] == [752 * 320, 481_000 - 752 * 320]
    assert np.array_equal(np.concatenate(pieces), NOISE)
    assert [piece.size for piece in cut_evenly(NOISE[:480_000])] == [480_000]


@pytest.mark.parametrize(
    ("utterances", "rate_hz", "layers", "sentence"),
    [
        ([NOISE[:9]], 8_000, [1], "at 16000 Hz, found 8000 Hz"),
        ([NOISE[:9]], 16_000, [3], r"from 0 to 2, at least one; found \[3\]"),
        ([NOISE[:9], NOISE[:0]], 16_000, [1], "utterance 2 has none"),
    ],
)
def test_what_cannot_be_encoded_is_refused(small, utterances, rate_hz, layers, sentence):
    with pytest.raises(InputError, match=sentence):
        small.encode(utterances, rate_hz, layers)


def test_a_file_gives_the_same_network_and_every_difference_is_named(tmp_path):
    encoder, path = WhisperEncoder(SMALL), tmp_path / "model.bin"
    path.write_bytes(saved(encoder))
    loaded = whisper_layers.load_encoder(path, SMALL)
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)
    with pytest.raises(InputError, match="12 missing: layer_2") as caught:
        whisper_layers.load_encoder(path, WhisperShape(width=4, depth=3, heads=2))
    assert "conv1.weight is 8×80×3 instead of 4×80×3" in str(caught.value)
    path.write_bytes(saved(encoder, heads=4))
    with pytest.raises(InputError, match="expected 2 heads of attention, found 4"):
        whisper_layers.load_encoder(path, SMALL)
