"""How the inner loops of the methods are compiled; importing this imports numba, so methods do on first use.

Compiled functions release the GIL and use no threading layer of numba, which would not survive the fork of a worker:
threads are the caller's.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

# Sums may be reordered for SIMD; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "error_model": "numpy",
}

_Function = TypeVar("_Function", bound=Callable[..., Any])


def inner(function: _Function) -> _Function:
    """Compile as a part of an entry of the same module: only its own file renews what an entry keeps on disk."""
    return cast("_Function", njit(**_OPTIONS)(function))


def entry(function: _Function) -> _Function:
    """Compile and keep on disk; in memory only where numba finds no folder that it may write to."""
    try:
        return cast("_Function", njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return cast("_Function", njit(**_OPTIONS)(function))
