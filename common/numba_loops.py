"""Inner loops that numba compiles when they are first called; importing a module that has some imports no numba.

A loop of one function is called through `compiled`, so that it can be read and tested without numba; loops of several
functions are decorated with `inner` and `entry`, whose sums may be reordered.
An inner loop becomes a part of the code of each entry. Were it called instead, a process that compiled it would run
another order of its sums than one that found the entry on disk, and their last digits would differ.
Compiled functions release the GIL and use no threading layer of numba, which would not survive the fork of a worker:
threads are the caller's.
Of processes that want a loop at the same time one compiles it; the others wait and take what it kept on disk.
"""

from __future__ import annotations

import fcntl
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

# Sums may be reordered for SIMD; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "arcp", "nsz"}, "error_model": "numpy"}
_turn = RLock()

_Function = TypeVar("_Function", bound=Callable[..., Any])


@functools.cache
def compiled(function: _Function) -> _Function:
    """Return the same function, compiled; kept on disk, or in memory where no folder can be written to."""
    return cast("_Function", _compile_and_keep(function, {"nogil": True}))


def inner(function: _Function) -> _Function:
    """Compile as a part of an entry of the same module: only its own file renews what an entry keeps on disk."""
    return cast("_Function", _Loop(function, is_kept=False))


def entry(function: _Function) -> _Function:
    """Compile and keep on disk; in memory only where numba finds no folder that it may write to."""
    return cast("_Function", _Loop(function, is_kept=True))


class _Loop:
    """A function of Python until it is called."""

    def __init__(self, function: Callable[..., Any], *, is_kept: bool) -> None:
        functools.update_wrapper(self, function)
        self._function, self._is_kept = function, is_kept
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compile())(*arguments)

    def compile(self) -> Callable[..., Any]:
        """Return the compiled function, and in its module those that it calls."""
        from numba import njit

        with _turn:
            if self._compiled is None:
                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    if isinstance(called := names.get(name), _Loop):
                        names[name] = called.compile()
                if self._is_kept:
                    self._compiled = _compile_and_keep(self._function, _OPTIONS)
                else:
                    self._compiled = cast("Callable[..., Any]", njit(forceinline=True, **_OPTIONS)(self._function))
            return self._compiled


def _compile_and_keep(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """Return the function as numba compiles it when it is called, or takes it from the disk."""
    from numba import njit

    try:
        loop: Any = njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no folder
        return cast("Callable[..., Any]", njit(**options)(function))
    compile_or_load = loop.compile
    lock = Path(loop.stats.cache_path, f"{function.__module__}.{function.__qualname__}.lock")

    def in_turn(signature: Any) -> Any:
        with _turn, _turn_of_processes(lock):
            return compile_or_load(signature)

    loop.compile = in_turn
    return cast("Callable[..., Any]", loop)


@contextmanager
def _turn_of_processes(lock: Path) -> Iterator[None]:
    """Alone among the processes that hold this file; without a turn where it cannot be made or locked."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a")
    except OSError:
        yield
        return
    with file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
