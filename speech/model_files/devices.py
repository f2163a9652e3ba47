"""Models on the processor or a graphics card: in torch, in ONNX files and by CTranslate2.

The packages of an engine say whether it has a form for a card at all (`runs_on_card`). Whether a card is used follows
from what they find here. What happens where CTranslate2 finds a card has not run on one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from common.errors import InputError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Device = Literal["cpu", "cuda"]
_CUDA = "CUDAExecutionProvider"
_CPU = "CPUExecutionProvider"
_ERRORS_ONLY = 3
log = logging.getLogger(__name__)
T = TypeVar("T")


def _finds_by_torch() -> bool:
    import torch

    return torch.cuda.is_available()


def _finds_by_onnxruntime() -> bool:
    import onnxruntime

    return _CUDA in onnxruntime.get_available_providers()


def _finds_by_ctranslate2() -> bool:
    import ctranslate2

    return bool(ctranslate2.get_cuda_device_count())


# Packages that can compute on a graphics card; each tells whether it finds one here.
_FIND_CARD: dict[str, Callable[[], bool]] = {
    "torch": _finds_by_torch,
    "onnxruntime": _finds_by_onnxruntime,
    "ctranslate2": _finds_by_ctranslate2,
}


def runs_on_card(packages: Iterable[str]) -> bool:
    """Return whether an engine of these packages has a form for a graphics card; nothing is loaded to know it."""
    return any(name in _FIND_CARD for name in packages)


def choose_device(packages: Iterable[str]) -> Device:
    """Return the graphics card where this machine has one that the engine's packages can use, else the processor."""
    return "cuda" if any(_FIND_CARD[name]() for name in packages if name in _FIND_CARD) else "cpu"


def load_where_it_can(load: Callable[[Device], T], packages: Iterable[str], title: str) -> T:
    """Return a model on the card where there is one that it can use, else on the processor.

    A card without memory left, or whose libraries are missing, costs speed and a line of log but no job.

    Raises:
        InputError: it cannot be loaded on the processor either.
    """
    if choose_device(packages) == "cuda":
        try:
            return load("cuda")
        except (InputError, RuntimeError) as error:  # torch tells of memory by a RuntimeError
            log.warning("%s works on the processor; the graphics card cannot be used: %s", title, error)
    return load("cpu")


@contextmanager
def without_tf32() -> Iterator[None]:
    """Convolutions on a card keep all 32 bits of their inputs, which it otherwise rounds to 19 (TF32); in the process.

    For networks that answer such rounding with other samples, as HiFi-GAN does.
    """
    import torch

    before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def require_torch_device(device: Device) -> None:
    """Refuse a graphics card where torch finds none.

    Raises:
        InputError: what is missing and what to do.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        built = "" if torch.version.cuda else ", and this torch was built without CUDA"
        raise InputError(
            f"torch finds no graphics card here{built}. Choose the device “cpu”, or install torch for CUDA."
        )


class _Threads:
    """How many calls hold a library at a number of threads, and the way back to what it had before the first of them.

    hold: sets the number and gives the way back.
    """

    def __init__(self, hold: Callable[[int], Callable[[], object]]) -> None:
        self._lock, self._calls, self._hold = threading.Lock(), 0, hold
        self._give_back: Callable[[], object] = lambda: None

    @contextmanager
    def at(self, threads: int) -> Iterator[None]:
        with self._lock:
            give_back = self._hold(threads)
            if not self._calls:
                self._give_back = give_back
            self._calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if not self._calls:
                    self._give_back()


def _hold_torch(threads: int) -> Callable[[], object]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    return lambda: torch.set_num_threads(before)


def _hold_products(threads: int) -> Callable[[], object]:
    from threadpoolctl import threadpool_limits

    give_back: Callable[[], object] = threadpool_limits(threads, user_api="blas").restore_original_limits
    return give_back


_torch_threads, _product_threads = _Threads(_hold_torch), _Threads(_hold_products)


def multiplies_16_bits(device: Device) -> bool:
    """Return whether a device multiplies numbers of 16 bits (bfloat16) by itself: a card does, and not every processor.

    Where it does, trainings take half of the time in 16 bits; elsewhere ten times as long as in 32.
    """
    import torch

    return device != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def use_torch_threads(threads: int) -> AbstractContextManager[None]:
    """Torch at that many threads; with one it starts none of its own, so that a process may fork afterwards.

    The number counts for the whole process: of calls side by side the last one gives back what was before the first.
    Otherwise one that ends would let another go on with more threads.
    """
    return _torch_threads.at(threads)


def use_one_thread_for_products() -> AbstractContextManager[None]:
    """Matrix products of NumPy in one thread, in the whole process: how many share one changes its last digits."""
    return _product_threads.at(1)


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Torch and matrix products of NumPy in one thread, so that no rounding depends on how many there are."""
    with use_torch_threads(1), use_one_thread_for_products():
        yield


def open_session(path: Path, device: Device = "cpu", *, threads: int = 1) -> InferenceSession:
    """Return a session of onnxruntime.

    Args:
        threads: on the processor; 1 by default, because jobs run side by side.

    Raises:
        InputError: "cuda" is asked for and onnxruntime cannot use it here.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    if device == "cuda" and _CUDA not in onnxruntime.get_available_providers():
        raise InputError(
            "This onnxruntime runs on the processor only. For a graphics card install onnxruntime-gpu in its place, or"
            " choose the device “cpu”."
        )
    session = onnxruntime.InferenceSession(path, options, providers=[_CUDA, _CPU] if device == "cuda" else [_CPU])
    # Without its libraries or a card onnxruntime falls back to the processor and only writes a line of log.
    if device == "cuda" and _CUDA not in session.get_providers():
        raise InputError(
            "onnxruntime found no graphics card that it can use, or not the CUDA and cuDNN libraries of its version."
            " Install them, or choose the device “cpu”."
        )
    return session
