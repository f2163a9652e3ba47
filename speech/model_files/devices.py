"""Models on the device that was asked for, the processor or a graphics card: in torch, and in ONNX files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.errors import MetricInputError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Device = Literal["cpu", "cuda"]
_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
_ERRORS_ONLY = 3


def require_torch_device(device: Device) -> None:
    """Refuse a graphics card where torch finds none.

    Raises:
        MetricInputError: what is missing and what to do.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        built = "" if torch.version.cuda else ", and this torch was built without CUDA"
        raise MetricInputError(
            f"torch finds no graphics card here{built}. Choose the device “cpu”, or install torch for CUDA."
        )


class _TorchThreads:
    """How many calls hold torch at a number of threads, and what it had before the first of them."""

    def __init__(self) -> None:
        self._lock, self._calls, self._before = threading.Lock(), 0, 1

    def take(self, threads: int) -> None:
        import torch

        with self._lock:
            if not self._calls:
                self._before = torch.get_num_threads()
            self._calls += 1
            torch.set_num_threads(threads)

    def give_back(self) -> None:
        import torch

        with self._lock:
            self._calls -= 1
            if not self._calls:
                torch.set_num_threads(self._before)


_torch_threads = _TorchThreads()


@contextmanager
def use_torch_threads(threads: int) -> Iterator[None]:
    """Torch at that many threads; with one it starts none of its own, so that a process may fork afterwards.

    The number counts for the whole process: of calls side by side the last one gives back what was before the first.
    Otherwise one that ends would let another go on with more threads.
    """
    _torch_threads.take(threads)
    try:
        yield
    finally:
        _torch_threads.give_back()


def open_session(path: Path, device: Device = "cpu", *, threads: int = 1) -> InferenceSession:
    """A session of onnxruntime.

    Args:
        threads: on the processor; 1 by default, because jobs run side by side.

    Raises:
        MetricInputError: "cuda" is asked for and onnxruntime cannot use it here.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    if device == "cuda" and _CUDA not in onnxruntime.get_available_providers():
        raise MetricInputError(
            "This onnxruntime runs on the processor only. For a graphics card install onnxruntime-gpu in its place, or"
            " choose the device “cpu”."
        )
    session = onnxruntime.InferenceSession(path, options, providers=[_CUDA, _CPU] if device == "cuda" else [_CPU])
    # Without its libraries or a card onnxruntime falls back to the processor and only writes a line of log.
    if device == "cuda" and _CUDA not in session.get_providers():
        raise MetricInputError(
            "onnxruntime found no graphics card that it can use, or not the CUDA and cuDNN libraries of its version."
            " Install them, or choose the device “cpu”."
        )
    return session
