"""Vectors of voices as text, so that records and files of voices hold them whole: base64 of float16, little-endian."""

from __future__ import annotations

import base64
import binascii
import hashlib

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import MethodError
from common.arrays import Floats32


def write_vector(values: npt.NDArray[np.floating]) -> str:
    """Return a vector, shape (numbers,), as text.

    >>> write_vector(np.array([1.0, 0.5]))
    'ADwAOA=='
    """
    return base64.b64encode(np.asarray(values, dtype="<f2").tobytes()).decode("ascii")


def read_vector(text: str, size: int | None = None) -> Floats32:
    """Return the numbers of a text, shape (numbers,).

    Args:
        size: how many there must be; None for any.

    Raises:
        MethodError: no such text, numbers that are not finite, all 0, or others than `size`.

    >>> read_vector("ADwAOA==", 2)
    array([1. , 0.5], dtype=float32)
    """
    try:
        found = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f2").astype(np.float32)
    except (binascii.Error, ValueError):
        found = np.zeros(0, np.float32)
    if not found.size or not np.isfinite(found).all() or not found.any() or size not in (None, found.size):
        wanted = f"{size:,} numbers" if size else "numbers"
        raise MethodError(f"A vector of a voice is {wanted} as base64 of float16; found “{text[:20]}”.")
    return found


def hash_vector(text: str) -> str:
    """Return SHA-256 of a vector in hexadecimal, which names it where its numbers would say too much; empty for
    none."""
    return hashlib.sha256(text.encode("ascii", "replace")).hexdigest() if text else ""
