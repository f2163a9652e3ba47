"""Files by content: what is stored is named by its SHA-256, so nothing is stored twice and nothing is ever half there.

`store_bytes` returns the key under which `default_storage` holds the content. A key that exists is complete: a file
gets its name only when its last byte is on disk. Speech is stored as 16-bit mono samples, int16, shape (n,).
The storage is a folder (`AtomicFileSystemStorage`) or a bucket (`portal.core.s3_storage`), as `PORTAL_FILES_URL` says.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, default_storage
from numpy.typing import NDArray
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

from common.arrays import Samples
from common.errors import InputError
from speech.audio.files import AudioError, read_channels, read_pcm16, write_flac16

CHUNK_BYTES = 1 << 20
DRAFT = re.compile(r"\.[0-9a-f]{32}\.part")
SPARE_BYTES = 1 << 30  # of the disk, which the portal keeps free


class StorageAway(Exception):  # noqa: N818
    """The store of files does not answer, or not as it should; the sentence says what it said."""


class AtomicFileSystemStorage(FileSystemStorage):
    """Django's storage in a folder, writing to a temporary name first: a killed process leaves no half file."""

    is_local = True

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

    def keep(self, name: str, content: File) -> None:
        """Store content under the name that it alone has, unless it is there already."""
        if self.refresh(name):
            return
        saved = self.save(name, content)
        if saved != name:  # another process stored the same content meanwhile
            self.delete(saved)

    def replace(self, name: str, data: bytes) -> None:
        """Store bytes under a name, in place of what was there."""
        self.delete(name)
        self.save(name, File(io.BytesIO(data)))

    def refresh(self, name: str) -> bool:
        """Let a file count as stored just now; whether there is one."""
        try:
            os.utime(self.path(name))
        except FileNotFoundError:
            return False
        return True

    def is_older(self, name: str, before: float) -> bool:
        """Return whether a file was stored before this time, in seconds since 1970; so is one that is not there."""
        try:
            return Path(self.path(name)).stat().st_mtime < before
        except FileNotFoundError:
            return True

    def delete_old(self, name: str, before: float) -> bool:
        """Delete a file that was stored before this time, in seconds since 1970; whether there is none any more.

        It is put aside before its time is read, so that nobody finds it there and relies on it while it is deleted.
        """
        path = Path(self.path(name))
        aside = path.with_name(f".{uuid.uuid4().hex}.part")
        try:
            path.replace(aside)
        except FileNotFoundError:
            return True
        if aside.stat().st_mtime >= before:
            aside.replace(path)
            return False
        aside.unlink(missing_ok=True)
        return True

    def delete_drafts(self, before: float) -> int:
        """Delete what processes that were killed had half written before this time, in seconds since 1970; how many."""
        count = 0
        for place, _, names in os.walk(self.location):
            for path in (Path(place, name) for name in names if DRAFT.fullmatch(name)):
                with suppress(FileNotFoundError):  # it was completed just now
                    if path.stat().st_mtime < before:
                        path.unlink()
                        count += 1
        return count

    def adopt(self, source: Path, name: str) -> None:
        """Move a complete file of this machine to the name of its content: a rename where nothing forbids it."""
        if not self.refresh(name) and not self._renamed(source, name):
            with source.open("rb") as stream:
                self.keep(name, File(stream))
        source.unlink(missing_ok=True)

    def _renamed(self, source: Path, name: str) -> bool:
        with source.open("rb") as stream:
            os.fsync(stream.fileno())
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        os.utime(source)
        try:
            source.replace(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return False
        return True

    def read_range(self, name: str, start: int, stop: int) -> Iterator[bytes]:
        """Return the half-open range of bytes, in pieces.

        Raises:
            FileNotFoundError: at the call.
        """
        return _read_pieces(cast("BinaryIO", self.open(name)), start, stop)


def _read_pieces(stream: BinaryIO, start: int, stop: int) -> Iterator[bytes]:
    with stream:
        stream.seek(start)
        while start < stop:
            piece = stream.read(min(CHUNK_BYTES, stop - start))
            if not piece:
                return
            start += len(piece)
            yield piece


def is_local() -> bool:
    """Return whether the files are in a folder of this machine."""
    return bool(getattr(default_storage, "is_local", False))


# `default_storage` with what the portal asks beyond Django's own; both storages have all of it.
portal_files: Any = default_storage


def content_key(sha256: str, suffix: str) -> str:
    """Name under which the content with this hash is stored; `suffix` tells its format, such as ``.flac``."""
    return f"content/{sha256[:2]}/{sha256}{suffix}"


def store_bytes(data: bytes, suffix: str) -> str:
    """Store the bytes unless they are there already and return their key."""
    key = content_key(hashlib.sha256(data).hexdigest(), suffix)
    portal_files.keep(key, File(io.BytesIO(data)))
    return key


def refresh(key: str) -> bool:
    """Let a stored file count as stored just now, so that no deletion takes it; whether there is one."""
    return bool(portal_files.refresh(key))


def is_older(key: str, before: float) -> bool:
    """Return whether a file was stored before this time, in seconds since 1970; so is one that is not there."""
    return bool(portal_files.is_older(key, before))


def delete_old(key: str, before: float) -> bool:
    """Delete a file that was stored before this time, in seconds since 1970; whether there is none any more."""
    return bool(portal_files.delete_old(key, before))


def adopt_file(source: Path, key: str) -> None:
    """Move a complete file of this machine to `key`, the name of its content."""
    portal_files.adopt(source, key)


def replace_named(name: str, data: bytes) -> None:
    """Store bytes under a fixed name, replacing what was there; for derived files that can be made again."""
    portal_files.replace(name, data)


def read_stored(name: str) -> bytes | None:
    """Return the bytes of a stored file; None where there is none. One question to the store, not two."""
    try:
        stored = default_storage.open(name)
    except FileNotFoundError:
        return None
    with stored as file:
        return cast("bytes", file.read())


def wait_for_storage(seconds: float, check: Callable[[], None] = lambda: None) -> bool:
    """Return whether the store of files answers within so many seconds.

    Args:
        check: called again and again meanwhile; what it raises ends the wait.
    """
    deadline = time.monotonic() + seconds
    while True:
        check()
        try:
            default_storage.exists("health/any")
        except StorageAway:
            if time.monotonic() > deadline:
                return False
            time.sleep(1)
        else:
            return True


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):
    support_js_module_import_aggregation = True

    def create_compressor(self, **options: Any) -> Compressor:
        """By gzip alone: Brotli, which takes seconds at every start, is only there where another package wants it."""
        return Compressor(use_brotli=False, **options)


def load_audio(key: str) -> tuple[Samples, int]:
    """Return samples, int16, shape (n,), and rate in Hz of a stored file.

    Raises:
        AudioError: the file is missing, or what is stored is not mono audio.
        StorageAway, OSError: the storage does not answer.
    """
    with _open_recording(key) as file:
        return read_pcm16(cast("BinaryIO", file))


def load_channels(key: str) -> tuple[NDArray[np.float64], int]:
    """As `load_audio` of any number of channels: float64, shape (n, channels), full scale 1.0, and the rate in Hz."""
    with _open_recording(key) as file:
        return read_channels(cast("BinaryIO", file))


def _open_recording(key: str) -> File[Any]:
    try:
        return default_storage.open(key)
    except FileNotFoundError as error:
        remedy = "Restore the portal's files from a backup; originals also come back with another import."
        raise AudioError("missing-file", "the stored recording", "none", remedy) from error


def read_recording(what: str, key: str) -> tuple[Samples, int]:
    """Read a stored recording for a training.

    Args:
        what: names the recording in the error.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return load_audio(key)
    except AudioError as error:
        raise InputError(f"The {what} cannot be read: {error}") from error


def keep_audio(samples: Samples, rate_hz: int) -> str:
    """Store int16 samples, shape (n,), n > 0, as FLAC; the same samples have the same key."""
    flac = io.BytesIO()
    write_flac16(flac, samples, rate_hz)
    return store_bytes(flac.getvalue(), ".flac")
