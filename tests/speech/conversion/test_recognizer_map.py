"""The map from features of a recogniser to speaker vectors: what it learns, pieces of speech, which files it takes."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import InputError

torch = pytest.importorskip("torch", reason="files of weights are read by torch, which is not installed here")

from safetensors.numpy import save_file  # noqa: E402 (comes with torch)

from speech.conversion.recognizer_map import RecognizerMap, fit_map, load, mean_features  # noqa: E402


class Ramp:
    """An encoder whose every number is the number of the frame."""

    def encode(self, utterances, rate_hz, layers):
        assert (rate_hz, layers) == (16_000, [6])
        counts = [-(-one.size // 320) for one in utterances]
        return [np.tile(np.arange(count, dtype=np.float32)[None, :, None], (1, 1, 512)) for count in counts]


def test_linear_relation_is_found_and_what_it_does_not_tell_is_drawn():
    draw = np.random.default_rng(1)
    true, features = draw.standard_normal((5, 8)), draw.standard_normal((200, 5))
    vectors = 20 + features @ true
    names = [f"s{row // 20}" for row in range(200)]
    close = fit_map(features, vectors, names, 1e-6)
    assert close.weights == pytest.approx(true, abs=1e-3)
    wanted = vectors[3] / np.linalg.norm(vectors[3])
    assert close.expect(features[3]) == pytest.approx(wanted, abs=1e-4)
    assert close.draw(features[3], draw) == pytest.approx(wanted, abs=1e-4)  # everything is told
    own = np.repeat(5 * draw.standard_normal((10, 8)), 20, axis=0)
    apart = fit_map(features, vectors + own, names, 0.1)
    assert apart.residuals.shape == (10, 8)
    centred = own[::20] - own.mean(axis=0)
    assert apart.residuals == pytest.approx(centred, abs=1.5)
    found = {tuple(apart.draw(features[3], np.random.default_rng(seed)).round(6)) for seed in range(60)}
    assert 5 < len(found) <= 10


def test_pieces_are_of_three_seconds_and_pauses_are_left_out():
    sound = np.full(16_000 * 7, 1000, np.int16)
    assert {start: float(one[0]) for start, one in mean_features(sound, Ramp()).items()} == {0: 74.5, 48_000: 224.5}
    sound[:16_000] = 0
    # Of the first 150 frames 50 are a pause.
    assert [float(one[0]) for one in mean_features(sound[: 16_000 * 3], Ramp()).values()] == [99.5]
    assert [float(one[0]) for one in mean_features(sound[: 16_000 * 2], Ramp()).values()] == [74.5]
    assert mean_features(sound[:16_000], Ramp()) == {}


def test_file_of_other_shapes_is_refused(tmp_path):
    draw = np.random.default_rng(1)
    fitted = RecognizerMap(draw.random(512), draw.random((512, 256)), draw.random(256), draw.random((3, 256)))
    save_file(dict(fitted.tensors()), tmp_path / "map.safetensors")
    again = load(tmp_path / "map.safetensors")
    assert again.weights == pytest.approx(fitted.weights, abs=1e-3)
    save_file({"weights": np.zeros((512, 256), np.float16)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match=r"other.safetensors: expected .*features.* found"):
        load(tmp_path / "other.safetensors")
