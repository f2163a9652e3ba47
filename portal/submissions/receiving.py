"""The bytes of uploads on the portal's disk: one file for each, which one request at a time may write.

The lock is the operating system's, on the file itself, so that it ends with the process or the request that holds it,
however that ends. What an `UploadPart` yields is on disk; what lies beyond is cut off before the next part.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.conf import settings

from common.errors import NotPossible
from portal.core import upload_files
from portal.core.storage import is_local

PIECE_BYTES = 64 << 10
KEEP_EVERY_BYTES = 8 << 20
KEEP_EVERY_S = 5.0
LOCK_PATIENCE_S = 3.0
ALGORITHMS = ("sha1", "sha256", "md5")

GONE = "What was received of this upload is no longer here. Upload the file again."
ELSEWHERE = "If it breaks off here again, tell the operator: each upload has to reach one and the same web server."
Read = Callable[[int], bytes]


class UploadRefusal(StrEnum):
    """Why an upload does not go on."""

    INVALID = "invalid"
    FORBIDDEN = "forbidden"  # the sender may not submit, now or at all
    TOO_LARGE = "too-large"
    NO_ROOM = "no-room"
    WRONG_OFFSET = "wrong-offset"
    WRONG_CHECKSUM = "wrong-checksum"
    BUSY = "busy"
    AWAY = "away"  # the store of files, for a while
    GONE = "gone"
    FINISHED = "finished"
    UNFINISHED = "unfinished"


@dataclass(frozen=True)
class Checksum:
    """What the bytes of one part must hash to."""

    algorithm: str
    digest: bytes


def free_bytes() -> int:
    """Return what the disk that receives uploads can still hold.

    Raises:
        NotPossible: it is not there.
    """
    with _disk():
        disk = os.statvfs(settings.UPLOAD_DIR)
    return disk.f_bavail * disk.f_frsize


@contextmanager
def _disk(besides: type[OSError] | tuple[()] = ()) -> Iterator[None]:
    """Tell the sender when the disk does not do what is asked of it; what is named `besides` has its own meaning."""
    try:
        yield
    except besides:
        raise
    except OSError as error:
        sentence = f"The portal's disk takes no more ({error.strerror}). Tell the organizer, and continue later."
        raise NotPossible(sentence, code=UploadRefusal.NO_ROOM) from error


@contextmanager
def held(upload: UUID, *, is_new: bool) -> Iterator[int]:
    """Yield the open file of an upload, held by nobody else meanwhile.

    Args:
        is_new: no byte of it is here yet, so that the file may have to be made.

    Raises:
        NotPossible: another request writes it, it is gone, or the disk does not answer.
    """
    free_bytes()  # a disk that is away must not look as if the upload were
    try:
        with _disk(besides=FileNotFoundError):
            file = os.open(
                upload_files.path_of(upload), os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if is_new else 0), 0o600
            )
    except FileNotFoundError:
        raise NotPossible(GONE if is_local() else f"{GONE} {ELSEWHERE}", code=UploadRefusal.GONE) from None
    try:
        _lock(file)
        yield file
    finally:
        os.close(file)


def _lock(file: int) -> None:
    # A request whose connection has just ended needs a moment to let go.
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > deadline:
            raise NotPossible(
                "Another connection sends this upload just now; if it has broken off, this ends within half a minute.",
                code=UploadRefusal.BUSY,
            )
        time.sleep(0.05)


class UploadPart:
    """Writes what one request brings.

    Args:
        file: descriptor of the upload's file, held.
        start: where the part begins; the file is cut off there.
        limit: where the whole upload ends.

    Attributes:
        end: where the bytes written so far end.
    """

    def __init__(self, file: int, start: int, limit: int) -> None:
        if os.fstat(file).st_size < start:
            raise NotPossible(
                "A part of what was received is no longer here. Upload the file again.", code=UploadRefusal.GONE
            )
        os.ftruncate(file, start)
        os.lseek(file, start, os.SEEK_SET)
        self._file, self._limit = file, limit
        self.start = self.end = start

    @property
    def is_last(self) -> bool:
        return self.end == self._limit

    def receive(self, read: Read) -> Iterator[int]:
        """Take all that comes; what has come before the connection breaks is kept.

        Yields:
            How many bytes of the upload are on disk, again and again, but for the last ones of the whole upload.
        """
        told, told_at = self.start, time.monotonic()
        while piece := self._next(read):
            self._write(piece)
            seconds = time.monotonic() - told_at
            if not self.is_last and (self.end - told >= KEEP_EVERY_BYTES or seconds >= KEEP_EVERY_S):
                yield self._synced()
                told, told_at = self.end, time.monotonic()
        yield from self._end(told)

    def receive_checked(self, read: Read, checksum: Checksum, length: int | None) -> Iterator[int]:
        """Take a part that counts only as a whole, and only if it hashes to its checksum.

        Args:
            length: how many bytes were announced; None where the request does not say.

        Yields:
            As `receive`, at the end.
        """
        digest = hashlib.new(checksum.algorithm, usedforsecurity=False)
        while piece := self._next(read):
            self._write(piece)
            digest.update(piece)
        if length is not None and self.end - self.start < length:
            self._forget()
            return
        if digest.digest() != checksum.digest:
            self._forget()
            raise NotPossible(
                "This part was damaged during the transfer. Send it again.", code=UploadRefusal.WRONG_CHECKSUM
            )
        yield from self._end(self.start)

    def _next(self, read: Read) -> bytes:
        wanted = min(PIECE_BYTES, self._limit - self.end)
        try:
            return read(wanted) if wanted else b""
        except OSError:  # the connection is gone
            return b""

    def _write(self, piece: bytes) -> None:
        rest = memoryview(piece)
        with _disk():
            while rest:
                written = os.write(self._file, rest)
                self.end += written
                rest = rest[written:]

    def _end(self, told: int) -> Iterator[int]:
        end = self._synced()
        if told < end < self._limit:
            yield end

    def _synced(self) -> int:
        """Return where the bytes end that are on disk for sure, which are all."""
        with _disk():
            os.fdatasync(self._file)
        return self.end

    def _forget(self) -> None:
        os.ftruncate(self._file, self.start)
        self.end = self.start
