"""Kinds of arrays, and numbers at the door of a metric, as arrays.

Conventions: what is no array of real numbers is refused, never converted: text, truth values, None.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.errors import InputError

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Texts = NDArray[np.str_]
Samples = NDArray[np.int16]  # of sound, shape (n,), mono


def real_numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return the values as float64, of any shape; NaN and infinite ones stay.

    Raises:
        InputError: no real numbers, or rows of different lengths; `what` names the values.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"Expected real numbers as {what}, found rows of different lengths.") from error
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"Expected real numbers as {what}, found {array.dtype}.")
    return array.astype(np.float64, copy=False)


def unit_vectors(vectors: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return vectors brought to length 1, shape (n, d).

    Raises:
        InputError: no real numbers, another shape, or a vector that is zero or not finite; `what` names them.
    """
    array = real_numbers(vectors, what)
    if array.ndim != 2:
        raise InputError(f"Expected {what} of shape (utterances, dimensions), found shape {array.shape}.")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    wrong = int(np.count_nonzero(~(np.isfinite(lengths) & (lengths > 0))))
    if wrong:
        raise InputError(f"Expected {what} that are finite and not zero, found {wrong} of {len(array)} that are not.")
    return np.asarray(array / lengths, np.float64)
