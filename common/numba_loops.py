"""Inner loops that numba compiles when they are first called; importing a module that has some imports no numba.

A loop of one function is called through `compiled`, so that it can be read and tested without numba; loops of several
functions are decorated with `inner` and `entry`, whose sums may be reordered.
Compiled functions release the GIL and use no threading layer of numba, which would not survive the fork of a worker:
threads are the caller's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar, cast

# Sums may be reordered for SIMD; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "arcp", "nsz"}, "error_model": "numpy"}
_turn = RLock()

_Function = TypeVar("_Function", bound=Callable[..., Any])


@functools.cache
def compiled(function: _Function) -> _Function:
    """The same function, compiled; kept on disk, or in memory where no folder can be written to."""
    from numba import njit

    try:
        return cast("_Function", njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast("_Function", njit(nogil=True)(function))


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
        """The compiled function, and in its module those that it calls."""
        from numba import njit

        with _turn:
            if self._compiled is None:
                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    if isinstance(called := names.get(name), _Loop):
                        names[name] = called.compile()
                try:
                    self._compiled = njit(cache=self._is_kept, **_OPTIONS)(self._function)
                except RuntimeError:
                    self._compiled = njit(**_OPTIONS)(self._function)
            return self._compiled
