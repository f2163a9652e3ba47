"""Files by content: what is stored is named by its SHA-256, so nothing is stored twice and nothing is ever half there.

`store_bytes` returns the key under which `default_storage` holds the content. A key that exists is complete: a file
gets its name only when its last byte is on disk. Speech is stored as 16-bit mono samples, int16, shape (n,).
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import uuid
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, default_storage
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

from speech.audio.files import AudioError, read_pcm16, write_flac16

CHUNK_BYTES = 1 << 20
SPARE_BYTES = 1 << 30  # of the disk, which the portal keeps free
Samples = npt.NDArray[np.int16]


class AtomicFileSystemStorage(FileSystemStorage):
    """Django's storage in a folder, writing to a temporary name first: a killed process leaves no half file."""

    def _save(self, name: str, content: File) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            with draft.open("xb") as stream:
                for chunk in content.chunks():
                    stream.write(chunk)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return name


def content_key(sha256: str, suffix: str) -> str:
    """Name under which the content with this hash is stored; `suffix` tells its format, such as ``.flac``."""
    return f"content/{sha256[:2]}/{sha256}{suffix}"


def store_bytes(data: bytes, suffix: str) -> str:
    """Store the bytes unless they are there already and return their key."""
    key = content_key(hashlib.sha256(data).hexdigest(), suffix)
    return _store(key, File(io.BytesIO(data)))


def refresh(key: str) -> bool:
    """Let a stored file count as stored just now, so that no deletion takes it; whether there is one."""
    try:
        os.utime(default_storage.path(key))
    except FileNotFoundError:
        return False
    return True


def is_older(key: str, before: float) -> bool:
    """Whether a file was stored before this time, in seconds since 1970; so is one that is not there."""
    try:
        return Path(default_storage.path(key)).stat().st_mtime < before
    except FileNotFoundError:
        return True


def delete_old(key: str, before: float) -> bool:
    """Delete a file that was stored before this time, in seconds since 1970; whether there is none any more.

    It is put aside before its time is read, so that nobody finds it there and relies on it while it is deleted.
    """
    path = Path(default_storage.path(key))
    aside = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        path.replace(aside)
    except FileNotFoundError:
        return True
    if aside.stat().st_mtime >= before:
        aside.replace(path)
        return False
    aside.unlink()
    return True


def adopt_file(source: Path, key: str) -> None:
    """Move a complete file of this machine to `key`, the name of its content: a rename where nothing forbids it."""
    if not refresh(key) and not _renamed(source, key):
        with source.open("rb") as stream:
            _store(key, File(stream))
    source.unlink(missing_ok=True)


def _renamed(source: Path, key: str) -> bool:
    """Whether the file could become the stored one as it is: the storage is a folder beside it."""
    if not isinstance(default_storage, FileSystemStorage):
        return False
    with source.open("rb") as stream:
        os.fsync(stream.fileno())
    target = Path(default_storage.path(key))
    target.parent.mkdir(parents=True, exist_ok=True)
    os.utime(source)
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def replace_named(name: str, data: bytes) -> None:
    """Store bytes under a fixed name, replacing what was there; for derived files that can be made again."""
    default_storage.delete(name)
    default_storage.save(name, File(io.BytesIO(data)))


def _store(key: str, content: File) -> str:
    if refresh(key):
        return key
    saved = default_storage.save(key, content)
    if saved != key:  # another process stored the same content meanwhile
        default_storage.delete(saved)
    return key


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):
    support_js_module_import_aggregation = True

    def create_compressor(self, **options: Any) -> Compressor:
        """By gzip alone: Brotli, which takes seconds at every start, is only there where another package wants it."""
        return Compressor(use_brotli=False, **options)


def load_audio(key: str) -> tuple[Samples, int]:
    """Samples, int16, shape (n,), and rate in Hz of a stored file.

    Raises:
        AudioError: the file is missing, or what is stored is not mono audio.
        OSError: the storage does not answer.
    """
    try:
        stored = default_storage.open(key)
    except FileNotFoundError as error:
        remedy = "Restore the portal's files from a backup; originals also come back with another import."
        raise AudioError("missing-file", "the stored recording", "none", remedy) from error
    with stored as file:
        return read_pcm16(cast("BinaryIO", file))


def keep_audio(samples: Samples, rate_hz: int) -> str:
    """Store int16 samples, shape (n,), n > 0, as FLAC; the same samples have the same key."""
    flac = io.BytesIO()
    write_flac16(flac, samples, rate_hz)
    return store_bytes(flac.getvalue(), ".flac")
