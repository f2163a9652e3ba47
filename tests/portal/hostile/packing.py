"""Builds archives byte by byte, right or wrong: what the standard library refuses to write must be written here."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = 512
TAR_END = bytes(2 * BLOCK)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(range(256)) * 4


def tar_header(
    name: str | bytes, size: int = 0, kind: bytes = b"0", link: str = "", form: int = tarfile.GNU_FORMAT
) -> bytes:
    """One header block; a name in bytes is put in as it is."""
    info = tarfile.TarInfo("x" if isinstance(name, bytes) else name)
    info.size, info.type, info.linkname = size, kind, link
    block = info.tobuf(form, "utf-8", "surrogateescape")
    return signed(name.ljust(100, b"\0") + block[100:]) if isinstance(name, bytes) else block


def signed(block: bytes) -> bytes:
    """A header block with its checksum set right."""
    total = sum(block[:148]) + 8 * 32 + sum(block[156:])
    return block[:148] + b"%06o\0 " % total + block[156:]


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def tar_file(name: str | bytes, data: bytes = WAV) -> bytes:
    return tar_header(name, len(data)) + padded(data)


def pax_header(*records: tuple[str, str | bytes], kind: bytes = b"x") -> bytes:
    data = b"".join(pax_record(key, value) for key, value in records)
    return tar_header("PaxHeaders/x", len(data), kind) + padded(data)


def pax_record(key: str, value: str | bytes) -> bytes:
    rest = b" " + key.encode() + b"=" + (value.encode() if isinstance(value, str) else value) + b"\n"
    length = len(rest) + 1
    while len(str(length)) + len(rest) != length:
        length += 1
    return str(length).encode() + rest


def tar(*parts: bytes, end: bytes = TAR_END) -> bytes:
    return b"".join(parts) + end


@dataclass
class ZipEntry:
    """One entry of a zip. The fields named `local_…` stand in the header before the data only."""

    name: bytes
    data: bytes = WAV
    method: int = 8
    flags: int = 0
    attributes: int = 0
    system: int = 3
    extra: bytes = b""
    crc: int | None = None
    size: int | None = None
    packed_size: int | None = None
    packed: bytes | None = None
    local_name: bytes | None = None
    local_size: int | None = None
    local_method: int | None = None
    after: bytes = b""
    start: int | None = None
    local: bytes = field(default=b"", init=False)

    def __post_init__(self) -> None:
        if self.packed is None:
            self.packed = deflate(self.data) if self.method == 8 else self.data
        self.crc = zlib.crc32(self.data) if self.crc is None else self.crc
        self.size = len(self.data) if self.size is None else self.size
        self.packed_size = len(self.packed) if self.packed_size is None else self.packed_size
        name = self.name if self.local_name is None else self.local_name
        size = self.size if self.local_size is None else self.local_size
        method = self.method if self.local_method is None else self.local_method
        numbers = (self.crc, self.packed_size, size)
        if self.flags & 8:
            self.after = self.after or struct.pack("<4s3L", b"PK\x07\x08", *numbers)
            numbers = (0, 0, 0)
        self.local = (
            struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, self.flags, method, 0, 33, *numbers, len(name), 0) + name
        )

    def record(self, start: int) -> bytes:
        numbers = (self.crc, self.packed_size, self.size, len(self.name), len(self.extra), 0, 0, 0, self.attributes)
        fixed = (b"PK\x01\x02", 20 | self.system << 8, 20, self.flags, self.method, 0, 33, *numbers, start)
        return struct.pack("<4s6H3L5H2L", *fixed) + self.name + self.extra


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zip_of(
    *entries: ZipEntry, before: bytes = b"", after: bytes = b"", comment: bytes = b"", count: int | None = None
) -> bytes:
    """A zip of entries one after the other, its list of contents and its end record."""
    body, records = io.BytesIO(), []
    body.write(before)
    for entry in entries:
        records.append(entry.record(body.tell() if entry.start is None else entry.start))
        body.write(entry.local + (entry.packed or b"") + entry.after)
    number, listing = len(entries) if count is None else count, b"".join(records)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, number, number, len(listing), body.tell(), len(comment))
    return body.getvalue() + listing + end + comment + after


def write_many(path: Path, parts: object) -> None:
    """Write an iterable of bytes without holding all of it."""
    with path.open("wb") as file:
        file.writelines(parts)  # type: ignore[arg-type]
