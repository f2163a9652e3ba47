"""Files of CTranslate2: what is written comes back under the names of torch; cut and other ones are refused."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError

torch = pytest.importorskip("torch", reason="tensors need torch, which is not installed here")

from speech.model_files.ctranslate2 import read_tensors  # noqa: E402

TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
WEIGHT = np.array([[1.5, -2.25, 0.1], [0.0, 3.0, -1e-3]], np.float16)
VARIABLES = {
    "decoder/embeddings/weight": np.ones((4, 2), np.int8),
    "encoder/layer_0/layer_norm/gamma": WEIGHT[0],
    "encoder/layer_0/layer_norm/beta": WEIGHT[1].astype(np.float32),
    "encoder/conv1/weight": WEIGHT,
    "encoder/num_heads": np.array(8, np.int16),
}


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def whole(variables: dict[str, np.ndarray], model: str = "WhisperSpec", version: int = 6) -> bytes:
    """A file as CTranslate2 writes it."""
    parts = [struct.pack("<I", version), text(model), struct.pack("<II", 3, len(variables))]
    for name, values in variables.items():
        shape = struct.pack(f"<B{values.ndim}I", values.ndim, *values.shape)
        parts += [text(name), shape, struct.pack("<BI", TYPES[values.dtype.name], values.nbytes), values.tobytes()]
    return b"".join([*parts, struct.pack("<I", 0)])


def read(path: Path, content: bytes, prefix: str = "encoder/") -> dict[str, torch.Tensor]:
    path.write_bytes(content)
    return read_tensors(path, "WhisperSpec", prefix)


def test_variables_below_the_prefix_come_back_exactly_under_the_names_of_torch(tmp_path):
    found = read(tmp_path / "model.bin", whole(VARIABLES))
    assert sorted(found) == ["conv1.weight", "layer_0.layer_norm.bias", "layer_0.layer_norm.weight", "num_heads"]
    assert np.array_equal(found["conv1.weight"].numpy(), WEIGHT.astype(np.float32))
    assert found["layer_0.layer_norm.bias"].dtype == torch.float32
    assert int(found["num_heads"]) == 8


@pytest.mark.parametrize("kept", [0, 24, -5])
def test_a_cut_file_is_refused(tmp_path, kept):
    content = whole(dict(reversed(VARIABLES.items())))[: kept - 4 if kept < 0 else kept]
    with pytest.raises(InputError, match=r"model\.bin is no whole CTranslate2 model"):
        read(tmp_path / "model.bin", content, "")


def test_another_kind_of_file_or_model_is_refused_with_what_it_is(tmp_path):
    path = tmp_path / "model.bin"
    with pytest.raises(InputError, match="version 6; it begins with 5"):
        read(path, whole(VARIABLES, version=5))
    with pytest.raises(InputError, match="kind WhisperSpec, found TransformerSpec"):
        read(path, whole(VARIABLES, model="TransformerSpec"))
    with pytest.raises(InputError, match="found no file"):
        read_tensors(tmp_path / "absent.bin", "WhisperSpec", "")


def test_weights_rounded_to_integers_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"8-bit integers for embeddings/weight.*without quantization"):
        read(tmp_path / "model.bin", whole(VARIABLES), "decoder/")


def test_a_shape_that_its_bytes_do_not_fill_is_refused(tmp_path):
    content = whole({"encoder/a": WEIGHT}).replace(struct.pack("<2I", 2, 3), struct.pack("<2I", 2, 4))
    with pytest.raises(InputError, match="no whole"):
        read(tmp_path / "model.bin", content)
