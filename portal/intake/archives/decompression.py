"""Unpacks deflate, gzip, bzip2, LZMA, xz and Zstandard in bounded steps, so that no file can fill the memory.

The decompressors of the standard library, which take a largest output, do the work. Its file classes would do but for
three things: ``lzma.LZMAFile`` takes dictionaries of any size, none refuses millions of empty streams, and
``zipfile`` unpacks 4 KiB of bzip2 at once, however much comes of it.
"""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from common.memory import format_size
from portal.intake.archives.limits import (
    BYTES_PER_STREAM,
    FREE_STREAMS,
    HEAD_BYTES,
    LARGEST_DICTIONARY_BYTES,
    READ_BYTES,
    refuse,
    refuse_damaged,
    refuse_truncated,
)

_MEMORY_LIMIT = LARGEST_DICTIONARY_BYTES + 2**23
_STREAM_START = 6  # bytes that tell whether another stream follows
_DAMAGE = (zlib.error, lzma.LZMAError, zstd.ZstdError, OSError, EOFError, ValueError)


class Decompressor(Protocol):
    """What `bz2`, `lzma` and `zstd` offer, and `Inflater` for `zlib`."""

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
    """One way of packing.

    Attributes:
        title: for sentences.
        decompressor: makes one for a stream.
        starts: what a stream may begin with, the usual one first; none in a zip, whose files are of one stream each.
    """

    title: str
    decompressor: Callable[[], Decompressor]
    starts: tuple[bytes, ...] = ()


def _unpack_lzma(form: int) -> Callable[[], Decompressor]:
    return lambda: lzma.LZMADecompressor(form, memlimit=_MEMORY_LIMIT)


def _unpack_zstandard() -> Decompressor:
    largest = LARGEST_DICTIONARY_BYTES.bit_length() - 1
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: largest})


_SKIPPABLE_FRAMES = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
DEFLATE = Packing("deflate", lambda: Inflater(-zlib.MAX_WBITS))
BZIP2 = Packing("bzip2", bz2.BZ2Decompressor)
LZMA = Packing("LZMA", _unpack_lzma(lzma.FORMAT_ALONE))
PACKINGS = (
    Packing("gzip", lambda: Inflater(zlib.MAX_WBITS + 16), (b"\x1f\x8b",)),
    Packing("bzip2", bz2.BZ2Decompressor, (b"BZh",)),
    Packing("xz", _unpack_lzma(lzma.FORMAT_XZ), (b"\xfd7zXZ\x00",)),
    Packing("Zstandard", _unpack_zstandard, (b"\x28\xb5\x2f\xfd", *_SKIPPABLE_FRAMES)),
)


class Unpacked(io.RawIOBase):
    """The unpacked bytes of a packed file, forwards only.

    Args:
        file: reading begins where it stands.
        packing: None where nothing is packed.
        name: for sentences.
        length: packed bytes; to the end of the file unless given.
        head: what the decompressor is given before them.

    Raises (from reading):
        ProblemFound: the file is cut, damaged, wants too much memory, or goes on with something else.

    Attributes:
        position: how many packed bytes were read.
    """

    def __init__(
        self, file: BinaryIO, packing: Packing | None, name: str, length: int = sys.maxsize, head: bytes = b""
    ) -> None:
        self.position = 0
        self._file, self._packing, self._name = file, packing, name
        self._left = length
        self._waiting = head
        self._decompressor = packing.decompressor() if packing else None
        self._streams = 1
        self._given = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._given

    def readinto(self, buffer: Any, /) -> int:
        filled = 0
        while filled < min(len(buffer), HEAD_BYTES) and (data := self._unpack(len(buffer) - filled)):
            buffer[filled : filled + len(data)] = data
            filled += len(data)
        self._given += filled
        return filled

    def _unpack(self, size: int) -> bytes:
        if self._decompressor is None or self._packing is None:
            return self._pull(size)
        while not self._decompressor.eof or self._next_stream(self._packing):
            packed, is_end = b"", False
            if self._decompressor.needs_input:
                packed = self._waiting or self._pull(READ_BYTES)
                self._waiting = b""
                is_end = not packed
            try:
                unpacked = self._decompressor.decompress(packed, size)
            except _DAMAGE as error:
                self._refuse(error)
            if unpacked:
                return unpacked
            if is_end and not self._decompressor.eof:
                self._refuse_cut(self._packing)
        return b""

    def _next_stream(self, packing: Packing) -> bool:
        """Go on to the next stream of the file, if there is one; zeros at the end are padding."""
        rest = self._decompressor.unused_data.lstrip(b"\0") if self._decompressor else b""
        while len(rest) < _STREAM_START and (packed := self._pull(READ_BYTES)):
            rest = rest + packed if rest else packed.lstrip(b"\0")
        if not rest:
            return False
        if not any(start.startswith(rest[: len(start)]) for start in packing.starts):
            refuse("trailing-data", self._name, what=f"the {packing.title} data")
        self._streams += 1
        if self._streams > FREE_STREAMS + self.position // BYTES_PER_STREAM:
            refuse("too-many-streams", self._name, streams=self._streams, position=self.position)
        self._decompressor, self._waiting = packing.decompressor(), rest
        return True

    def _pull(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        self.position += len(data)
        return data

    def _refuse_cut(self, packing: Packing) -> NoReturn:
        if packing.starts:
            refuse_truncated(self._name, f"the rest of the {packing.title} file")
        refuse_damaged(self._name, f"the end of its {packing.title} data", "data that are cut")

    def _refuse(self, error: Exception) -> NoReturn:
        if "memory" in str(error).lower():
            limit = format_size(LARGEST_DICTIONARY_BYTES)
            refuse("huge-dictionary", self._name, limit=limit, found="a larger one")
        refuse_damaged(self._name, "packed data without problems", "damaged data")
