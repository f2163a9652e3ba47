"""Unpacks gzip, bzip2, xz and Zstandard files in bounded steps, so that no file can fill the memory.

The file classes of the standard library would do but for three things: ``lzma.LZMAFile`` takes dictionaries of any
size, ``gzip.GzipFile`` and ``bz2.BZ2File`` go through millions of empty streams without a word, and none of them
tells how much was read of the packed file, which the ratio needs. Their decompressors, which take a largest output,
are what is used here.

Conventions: `read` gives at least one byte, at most as many as asked for, and nothing at the end of the file.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import BinaryIO, NoReturn, Protocol, cast

import zstandard

from common.memory import format_size
from portal.intake.archives.limits import (
    BYTES_PER_STREAM,
    FREE_STREAMS,
    LARGEST_DICTIONARY_BYTES,
    READ_BYTES,
    refuse,
    refuse_damaged,
    refuse_truncated,
)

UNPACK_BYTES = 2**17  # unpacked at a time
_MEMORY_LIMIT = LARGEST_DICTIONARY_BYTES + 2**23
_STREAM_START = 6  # bytes that tell whether another stream follows
_ZSTANDARD = 0xFD2FB528
_SKIPPABLE = 0x184D2A50

DAMAGE = (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError, ValueError)


class ByteReader(Protocol):
    """A stream of unpacked bytes."""

    @property
    def position(self) -> int:
        """How many bytes of the packed file were read so far."""

    def read(self, size: int) -> bytes: ...


class Decompressor(Protocol):
    """What `bz2` and `lzma` offer, and `Inflater` for `zlib`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Inflater:
    """`zlib.decompressobj` with the interface of `bz2` and `lzma`.

    Args:
        window_bits: 31 for gzip, -15 for the bare deflate of zip.
    """

    def __init__(self, window_bits: int) -> None:
        self._inner = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(data or self._inner.unconsumed_tail, max_length)


@dataclass(frozen=True, slots=True)
class Packing:
    """One way of packing a single file.

    Attributes:
        title: for sentences.
        start: the first bytes of each stream.
        decompressor: makes one for a stream; None where `ZstandardReader` does the work.
    """

    title: str
    start: bytes
    decompressor: Callable[[], Decompressor] | None


PACKINGS = (
    Packing("gzip", b"\x1f\x8b", lambda: Inflater(31)),
    Packing("bzip2", b"BZh", bz2.BZ2Decompressor),
    Packing("xz", b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_LIMIT)),
    Packing("Zstandard", b"\x28\xb5\x2f\xfd", None),
)


def open_packed(file: BinaryIO, packing: Packing, name: str) -> ByteReader:
    """The unpacked bytes of a file from its beginning.

    Args:
        name: of the file, for sentences.
    """
    return StreamReader(file, packing, name) if packing.decompressor else ZstandardReader(file, name)


class PlainReader:
    """A file that is not packed."""

    def __init__(self, file: BinaryIO) -> None:
        self.position = 0
        self._file = file

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.position += len(data)
        return data


class Buffered:
    """Gives out in any sizes what `_unpack` makes in its own."""

    _unpacked, _taken = b"", 0

    def _unpack(self) -> bytes:
        """The next unpacked bytes; none at the end."""
        raise NotImplementedError

    def read(self, size: int) -> bytes:
        """At least one byte, at most as many as asked for; none at the end."""
        if self._taken == len(self._unpacked):
            self._unpacked, self._taken = self._unpack(), 0
        data = self._unpacked[self._taken : self._taken + size]
        self._taken += len(data)
        return data


class StreamReader(Buffered):
    """A gzip, bzip2 or xz file of one stream or several in a row.

    Raises (from `read`):
        ProblemFound: the file is cut, damaged, wants too much memory, or goes on with something else.
    """

    def __init__(self, file: BinaryIO, packing: Packing, name: str) -> None:
        assert packing.decompressor is not None  # noqa: S101
        self.position = 0
        self._file, self._packing, self._name = file, packing, name
        self._new, self._decompressor = packing.decompressor, packing.decompressor()
        self._waiting = b""  # packed, not yet handed to the decompressor
        self._streams = 1

    def _unpack(self) -> bytes:
        while True:
            if self._decompressor.eof and not self._next_stream():
                return b""
            packed, is_end = b"", False
            if self._decompressor.needs_input:
                packed = self._waiting or self._pull()
                self._waiting = b""
                is_end = not packed
            try:
                unpacked = self._decompressor.decompress(packed, UNPACK_BYTES)
            except DAMAGE as error:
                self._refuse(error)
            if unpacked:
                return unpacked
            if is_end and not self._decompressor.eof:
                refuse_truncated(self._name, f"the rest of the {self._packing.title} file")

    def _next_stream(self) -> bool:
        """Go on to the next stream of the file, if there is one; zeros at the end are padding."""
        rest = self._decompressor.unused_data.lstrip(b"\0")
        while len(rest) < _STREAM_START and (packed := self._pull()):
            rest = (rest + packed).lstrip(b"\0") if not rest else rest + packed
        if not rest:
            return False
        if not rest.startswith(self._packing.start):
            refuse_trailing(self._name, f"the {self._packing.title} file")
        self._streams += 1
        check_streams(self._streams, self.position, self._name)
        self._decompressor, self._waiting = self._new(), rest
        return True

    def _pull(self) -> bytes:
        data = self._file.read(READ_BYTES)
        self.position += len(data)
        return data

    def _refuse(self, error: Exception) -> NoReturn:
        if "memory" in str(error).lower():
            refuse_dictionary(self._name, "a larger one")
        refuse_damaged(self._name, f"{self._packing.title} data without problems", "damaged data")


class ZstandardReader(Buffered):
    """A Zstandard file of one frame or several in a row.

    The library's reader says nothing of a file that was cut, and opens a window of any size that it may: so the frames
    are followed here while their bytes pass.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._source = _FollowedFile(file, name)
        decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_DICTIONARY_BYTES)
        self._reader = decompressor.stream_reader(
            cast("BinaryIO", self._source), read_size=READ_BYTES, read_across_frames=True, closefd=False
        )
        self._name = name

    @property
    def position(self) -> int:
        return self._source.position

    def _unpack(self) -> bytes:
        try:
            unpacked = self._reader.read(UNPACK_BYTES)
        except DAMAGE:
            refuse_damaged(self._name, "Zstandard data without problems", "damaged data")
        if not unpacked:
            self._source.check_end()
        return unpacked


class _FollowedFile:
    """Hands a Zstandard file on to the library and follows its frames (RFC 8878, section 3.1)."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.position = 0
        self._file, self._name = file, name
        self._data, self._at = b"", 0
        self._is_inside = True
        self._streams = 0
        self._frames = self._follow()
        next(self._frames)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(READ_BYTES if size < 0 else size)
        self.position += len(data)
        if data:
            self._frames.send(data)
        return data

    def check_end(self) -> None:
        """The file is at its end: is it the end of a frame?"""
        if self._is_inside or self._at < len(self._data):
            refuse_truncated(self._name, "the rest of the Zstandard file")

    def _follow(self) -> Generator[None, bytes, None]:
        while True:
            magic = int.from_bytes((yield from self._take(4)), "little")
            self._is_inside = True
            self._count()
            if magic & ~0xF == _SKIPPABLE:
                yield from self._skip(int.from_bytes((yield from self._take(4)), "little"))
            elif magic == _ZSTANDARD:
                yield from self._follow_frame()
            else:
                refuse_trailing(self._name, "the Zstandard file")
            self._is_inside = False

    def _follow_frame(self) -> Generator[None, bytes, None]:
        descriptor = (yield from self._take(1))[0]
        is_single, has_checksum = descriptor & 0x20, descriptor & 0x04
        window = 0
        if not is_single:
            stated = (yield from self._take(1))[0]
            window = (1 << (10 + (stated >> 3))) // 8 * (8 + (stated & 7))
        yield from self._skip((0, 1, 2, 4)[descriptor & 3])
        content = yield from self._take((1 if is_single else 0, 2, 4, 8)[descriptor >> 6])
        window = int.from_bytes(content, "little") if is_single else window
        if window > LARGEST_DICTIONARY_BYTES:
            refuse_dictionary(self._name, f"one of {format_size(window)}")
        while True:
            block = int.from_bytes((yield from self._take(3)), "little")
            is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
            if not size:
                self._count()
            yield from self._skip(1 if kind == 1 else size)
            if is_last:
                break
        yield from self._skip(4 if has_checksum else 0)

    def _count(self) -> None:
        self._streams += 1
        check_streams(self._streams, self.position, self._name)

    def _take(self, size: int) -> Generator[None, bytes, bytes]:
        while len(self._data) - self._at < size:
            rest = self._data[self._at :]
            self._data, self._at = rest + (yield), 0
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def _skip(self, size: int) -> Generator[None, bytes, None]:
        while size > len(self._data) - self._at:
            size -= len(self._data) - self._at
            self._data, self._at = (yield), 0
        self._at += size


def check_streams(streams: int, position: int, name: str) -> None:
    """Refuse a file of very many streams, each of which takes time and gives nothing."""
    if streams > FREE_STREAMS + position // BYTES_PER_STREAM:
        refuse("too-many-streams", name, streams=streams, position=position)


def refuse_dictionary(name: str, found: str) -> NoReturn:
    """Refuse what needs more memory to unpack than any archive should."""
    refuse("huge-dictionary", name, limit=format_size(LARGEST_DICTIONARY_BYTES), found=found)


def refuse_trailing(name: str, what: str) -> NoReturn:
    """Refuse a file that goes on after its end."""
    refuse("trailing-data", name, what=what)
