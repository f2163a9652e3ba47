"""The regressor of F0: long speech by pieces, smoothing, and which files it takes."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import InputError

torch = pytest.importorskip("torch", reason="the network needs torch, which is not installed here")

from speech.conversion.content_decoder import ContentDecoder  # noqa: E402 (needs torch)
from speech.conversion.f0_regressor import F0Regressor, Regressor, load, smooth  # noqa: E402
from speech.conversion.shape import DecoderShape, RegressorShape  # noqa: E402
from speech.model_files.checkpoints import save_checkpoint  # noqa: E402

SHAPE = RegressorShape(content=4, speaker=3, width=8, layers=4)


@pytest.fixture
def network():
    torch.manual_seed(1)
    return F0Regressor(SHAPE).eval()


def test_long_speech_is_estimated_by_pieces_as_at_once(network):
    content, vector = torch.randn(2500, 4), np.ones(3, np.float32)
    found = Regressor(network).estimate(content, vector)
    with torch.inference_mode():
        whole = network(content[None], torch.ones(1, 3))[0].numpy().astype(float)
    whole[:, 0] = float(network.mean) + float(network.spread) * whole[:, 0]
    assert found == pytest.approx(smooth(whole), abs=1e-4)


def test_unvoiced_frames_have_no_f0_and_one_frame_is_enough(network):
    with torch.no_grad():
        network.leave[1].bias[:] = torch.tensor([0.5, 50.0])
    hz = Regressor(network).predict(torch.randn(1, 4), np.ones(3, np.float32))
    assert hz.shape == (1,)
    assert hz[0] > 0
    with torch.no_grad():
        network.leave[1].bias[1] = -50.0
    assert not Regressor(network).predict(torch.randn(9, 4), np.ones(3, np.float32)).any()


def test_smoothing_removes_what_lasts_two_frames_and_keeps_steps():
    course = np.repeat([1.0, 3.0], 10)
    disturbed = course.copy()
    disturbed[[3, 4]] = 9
    assert np.array_equal(smooth(np.stack([course, disturbed], axis=1)), np.stack([course, course], axis=1))


def test_weights_of_another_network_are_refused_with_a_sentence(network, tmp_path):
    path = tmp_path / "weights.safetensors"
    save_checkpoint(path, network)
    load(path, shape=SHAPE)
    with pytest.raises(InputError, match=r"does not hold this network.*of another shape: enter\.weight is 8×4"):
        load(path, shape=RegressorShape(content=5, speaker=3, width=8, layers=4))
    save_checkpoint(path, ContentDecoder(DecoderShape(inputs=6, bottleneck=4, stages=1, codes=2, speaker=3, width=8)))
    with pytest.raises(InputError, match=r"does not hold this network.*missing: .*layers\.0\.along\.weight"):
        load(path, shape=SHAPE)
    with pytest.raises(InputError, match="found no file"):
        load(tmp_path / "none.safetensors")
