"""The tensors of a CTranslate2 model file, read without CTranslate2: its program gives results, but no layers between.

A file (`model.bin`, version 6 of the format) is a list: name, shape, type and bytes of each variable, little-endian,
then names that mean another one. Only the variables below a prefix are read, the rest is passed over. Names become
those that torch would give: `layer_0/layer_norm/gamma` is `layer_0.layer_norm.weight`. Weights that were rounded to
integers are refused: they are of use with their scales only. Halves (float16) become float32, which is exact.

Source: `ModelSpec._serialize` in CTranslate2, python/ctranslate2/specs/model_spec.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

_VERSION = 6
_TYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("<f4"),
    1: np.dtype("i1"),
    2: np.dtype("<i2"),
    3: np.dtype("<i4"),
    4: np.dtype("<f2"),
}
_TORCH_NAMES = (("/", "."), (".gamma", ".weight"), (".beta", ".bias"))
_MOST_VARIABLES, _MOST_DIMENSIONS, _LONGEST_NAME = 100_000, 8, 1_000


def read_tensors(path: Path, model: str, prefix: str) -> dict[str, Tensor]:
    """Return the variables below a prefix, without it, under the names of torch.

    Args:
        path: a file of the format's version 6.
        model: as the file must call its kind, such as `WhisperSpec`.
        prefix: such as `encoder/`.

    Returns:
        float32, or int32 for whole numbers such as `num_heads`.

    Raises:
        InputError: no such file, another kind of file or model, a cut one, or weights rounded to integers.
    """
    import torch

    if not path.is_file():
        raise InputError(f"Expected a CTranslate2 model at {path}, found no file.")
    found: dict[str, Tensor] = {}
    with path.open("rb") as file:
        _check_head(file, path, model)
        for name, values in _variables(file, path, prefix):
            if values.ndim and values.dtype.kind == "i":
                raise InputError(
                    f"{path.name} has {values.dtype.itemsize * 8}-bit integers for {name}; expected float16, float32. "
                    "Convert the model without quantization."
                )
            for old, new in _TORCH_NAMES:
                name = name.replace(old, new)
            found[name] = torch.from_numpy(values.astype(np.int32 if values.dtype.kind == "i" else np.float32))
    return found


def _check_head(file: BinaryIO, path: Path, model: str) -> None:
    (version,) = _numbers(file, path, "<I")
    if version != _VERSION:
        raise InputError(f"{path.name} is no CTranslate2 model of version {_VERSION}; it begins with {version}.")
    kind = _text(file, path)
    if kind != model:
        raise InputError(f"{path.name}: expected a model of the kind {model}, found {kind}.")
    _numbers(file, path, "<I")  # the revision of the kind: what it changes, names and shapes show


def _variables(file: BinaryIO, path: Path, prefix: str) -> Iterator[tuple[str, NDArray[Any]]]:
    (count,) = _numbers(file, path, "<I")
    if count > _MOST_VARIABLES:
        raise _cut(path)
    left = path.stat().st_size
    for _ in range(count):
        name = _text(file, path)
        (dimensions,) = _numbers(file, path, "<B")
        if dimensions > _MOST_DIMENSIONS:
            raise _cut(path)
        shape = _numbers(file, path, f"<{dimensions}I")
        kind, size = _numbers(file, path, "<BI")
        if size > left - file.tell():
            raise _cut(path)
        if not name.startswith(prefix):
            file.seek(size, 1)
            continue
        wanted = _TYPES.get(kind)
        if wanted is None:
            raise InputError(f"{path.name}: {name} is of the unknown type {kind}; expected float16 or float32.")
        values = np.frombuffer(_bytes(file, path, size), wanted)
        if values.size != np.prod(shape, dtype=np.int64):
            raise _cut(path)
        yield name.removeprefix(prefix), values.reshape(shape)


def _numbers(file: BinaryIO, path: Path, form: str) -> tuple[int, ...]:
    return struct.unpack(form, _bytes(file, path, struct.calcsize(form)))


def _text(file: BinaryIO, path: Path) -> str:
    """Return a text with its length before it and a zero behind it."""
    (length,) = _numbers(file, path, "<H")
    if not 0 < length <= _LONGEST_NAME:
        raise _cut(path)
    return _bytes(file, path, length)[:-1].decode("utf-8", "replace")


def _bytes(file: BinaryIO, path: Path, size: int) -> bytes:
    content = file.read(size)
    if len(content) != size:
        raise _cut(path)
    return content


def _cut(path: Path) -> InputError:
    return InputError(f"{path.name} is no whole CTranslate2 model. Copy it again and compare its size.")
