"""Stored speech: 16-bit mono samples by the key of their file."""

from __future__ import annotations

import io
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt
from django.core.files.storage import default_storage

from evaluation.formats.audio import AudioError, read_pcm16, write_flac16
from portal.core.storage import store_bytes

Samples = npt.NDArray[np.int16]


def load_audio(key: str) -> tuple[Samples, int]:
    """Samples, int16, shape (n,), and rate in Hz of a stored file.

    Raises:
        AudioError: the file is missing, or what is stored is not mono audio.
        OSError: the storage does not answer.
    """
    try:
        stored = default_storage.open(key)
    except FileNotFoundError as error:
        remedy = "Bring the portal's files back from a backup; originals also come back with another import."
        raise AudioError("missing-file", "the stored recording", "none", remedy) from error
    with stored as file:
        return read_pcm16(cast("BinaryIO", file))


def keep_audio(samples: Samples, rate_hz: int) -> str:
    """Store int16 samples, shape (n,), n > 0, as FLAC; the same samples have the same key."""
    flac = io.BytesIO()
    write_flac16(flac, samples, rate_hz)
    return store_bytes(flac.getvalue(), ".flac")
