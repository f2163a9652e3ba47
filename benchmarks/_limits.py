"""What a device could do at most, and what a network asks of it.

The limit of a device is a matrix product by the same library, on as many threads, measured beside the work. A
multiply-add counts as two operations; only matrix products and convolutions are counted, so features, normalisation
and activations are work that counts for nothing. Conventions: operations as FLOP, rates in FLOP per second.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

Device = Literal["cpu", "cuda"]
Work = Callable[[], object]

SIZES = {"cpu": 1024, "cuda": 8192}
# The default attacker: blocks of two convolutions of each width, the first of a width but the first halves both sides.
RESNET_BLOCKS = ((32, 3), (64, 4), (128, 6), (256, 3))
RESNET_BANDS, RESNET_DIMENSION = 80, 256


def measure_seconds(work: Work, device: Device, *, rounds: int = 2) -> float:
    """The least seconds of some rounds: processor time, which other work on the machine hardly changes; on a graphics
    card by the clock, once it has finished."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    found = []
    for _ in range(rounds):
        _wait(device)
        began = clock()
        work()
        _wait(device)
        found.append(clock() - began)
    return min(found)


def _wait(device: Device) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


# Limits --------------------------------------------------------------------------------------------


def torch_limit(device: Device, dtype: str) -> float:
    """FLOP/s of a matrix product in torch."""
    import torch

    size = SIZES[device]
    left, right = (torch.randn(size, size, device=device).to(getattr(torch, dtype)) for _ in range(2))
    torch.mm(left, right)
    return 2 * size**3 / measure_seconds(lambda: torch.mm(left, right), device, rounds=5)


def onnx_limit(device: Device) -> float:
    """FLOP/s of a matrix product in onnxruntime, float32; on a graphics card with its copies there and back."""
    from speech.model_files.devices import open_session

    size = SIZES["cpu"] if device == "cpu" else 4096
    random = np.random.default_rng(1)
    given = {name: random.normal(size=(size, size)).astype(np.float32) for name in "ab"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "product.onnx"
        path.write_bytes(product_model())
        session = open_session(path, device)
        session.run(None, given)
        return 2 * size**3 / measure_seconds(lambda: session.run(None, given), device, rounds=5)


def product_model() -> bytes:
    """A model that is one matrix product, c = a b, as an ONNX file (protocol buffers of `onnx.proto3`)."""
    node = _field(1, b"a") + _field(1, b"b") + _field(2, b"c") + _field(4, b"MatMul")
    tensor = _field(1, _field(1, 1))  # TypeProto.tensor_type.elem_type: float
    ends = [
        _field(number, _field(1, name) + _field(2, tensor)) for number, name in ((11, b"a"), (11, b"b"), (12, b"c"))
    ]
    graph = _field(1, node) + _field(2, b"product") + b"".join(ends)
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer; every number and length here is below 128 or takes two bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    size = len(value)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + length + value


# Counts --------------------------------------------------------------------------------------------


def resnet34_flop(frames: int) -> int:
    """FLOP of the default attacker for one utterance."""
    return sum(2 * weights * places for weights, places in _resnet34_layers(frames))


def resnet34_weights() -> int:
    """Weights of its convolutions and its last layer, without biases and normalisation."""
    return sum(weights for weights, _ in _resnet34_layers(1))


def _resnet34_layers(frames: int) -> Iterator[tuple[int, int]]:
    """Weights of each layer, and how often each of them is used."""
    width, bands = RESNET_BLOCKS[0][0], RESNET_BANDS
    yield 9 * width, bands * frames
    for group, (channels, blocks) in enumerate(RESNET_BLOCKS):
        for block in range(blocks):
            if group and not block:
                bands, frames = -(-bands // 2), -(-frames // 2)
                yield width * channels, bands * frames  # the shortcut
            yield 9 * width * channels, bands * frames
            yield 9 * channels**2, bands * frames
            width = channels
    yield 2 * width * bands * RESNET_DIMENSION, 1  # of means and deviations


@contextmanager
def torch_flop() -> Iterator[Callable[[], int]]:
    """Counts what torch does inside: matrix products and convolutions, forwards and backwards."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        yield counter.get_total_flops


@contextmanager
def lstm_flop(lstm: Any) -> Iterator[Callable[[], int]]:
    """Counts what an LSTM does inside, from the shapes that it is given; torch's counter does not know it."""
    counted = [0]

    def count(_: object, given: tuple[Any, ...], __: object) -> None:
        windows, steps, _width = given[0].shape
        for layer in range(lstm.num_layers):
            width = lstm.input_size if layer == 0 else lstm.hidden_size
            counted[0] += 2 * windows * steps * 4 * lstm.hidden_size * (width + lstm.hidden_size)

    handle = lstm.register_forward_hook(count)
    try:
        yield lambda: counted[0]
    finally:
        handle.remove()
