"""Plain Python loops, compiled by numba when they are first called.

A loop that numpy cannot express is written as a plain function and called through `compiled`:
importing its module imports no numba, and the function can be read and tested without it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


@functools.cache
def compiled(function: Function) -> Function:
    """The same function, compiled; kept on disk, or in memory where no folder can be written to."""
    from numba import njit

    try:
        return cast("Function", njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast("Function", njit(nogil=True)(function))
