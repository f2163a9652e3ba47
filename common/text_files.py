"""Text files as people really send them: UTF-8 with problems reported instead of raised.

Every reader of a listing goes through `read_text_file`, so that a wrong encoding, a byte order mark
or Windows line ends get the same sentence everywhere. Conventions: a *name* is the file as its
owner knows it; line numbers count from 1.
"""

from __future__ import annotations

import codecs
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from common.file_names import plain_name
from common.problems import Problem, Severity

Source = Path | TextIO
LONGEST_LINE = 100_000  # characters: more than any listing or table has, and little to whatever looks at a line


# How compressed files begin, what makes them and what unpacks them.
_PACKED = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh91AY&SY": ("bzip2", "bunzip2"),
    b"\xfd7zXZ\0": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"PK\x03\x04": ("zip", "unzip"),
}

# Told of each file that is read: who is to say at which one a process ended sets it there.
on_reading: Callable[[Path], None] = lambda path: None  # noqa: ARG005, E731


def source_name(source: Source) -> str:
    """Return the name used in reports when the caller gives none: the file's name, or ``(stream)``."""
    return source.name if isinstance(source, Path) else "(stream)"


def read_text_file(source: Source, name: str | None = None) -> tuple[str, list[Problem]]:
    """Read a whole text file in NFC, in which names are compared; line ends become LF, a byte order mark is dropped.

    Args:
        source: a path (decoded strictly as UTF-8) or an open text stream.
        name: the file as its owner knows it.

    Returns:
        The text (empty when it cannot be read) and what was wrong with the file as a whole.
    """
    name = name or source_name(source)
    if not isinstance(source, Path):
        return _tidy(source.read(), name)
    on_reading(source)
    try:
        if not stat.S_ISREG(source.stat().st_mode):
            return "", [Problem("not-a-file", name, "a text file", "a folder, pipe or device", "Put a file there.")]
        data = source.read_bytes()
    except OSError as error:
        reason = error.strerror or "an unreadable file"
        return "", [Problem("missing-file", name, "a readable text file", f"“{reason}”", "Add the file.")]
    if packed := next((what for magic, what in _PACKED.items() if data.startswith(magic)), None):
        remedy = f"Unpack it first ({packed[1]})."
        return "", [Problem("not-text", name, "text", f"a file that {packed[0]} compressed", remedy)]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "", [_wrong_encoding(name, "UTF-16", 1)]
    try:
        return _tidy(data.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02X}, perhaps Latin-1"
        return "", [_wrong_encoding(name, found, line)]


def _wrong_encoding(name: str, found: str, line: int) -> Problem:
    return Problem("wrong-encoding", name, "UTF-8 text", found, "Save it as UTF-8.", line=line)


def _tidy(text: str, name: str) -> tuple[str, list[Problem]]:
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        remedy = "Replace it by a text file."
        return "", [Problem("not-text", name, "text", "a zero byte", remedy, line=line)]
    problems = []
    if text.startswith("\ufeff"):
        text = text[1:]
        problems.append(_note(name, "byte-order-mark", "plain UTF-8", "a byte order mark"))
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        problems.append(_note(name, "windows-line-ends", "LF line ends", "CR LF"))
    if (long := find_long_line(text)) is not None:
        expected, remedy = f"at most {LONGEST_LINE:,} characters in a line", "Break or shorten the line."
        return "", [Problem("long-line", name, expected, f"{long[1]:,}", remedy, line=long[0])]
    return plain_name(text), problems


def find_long_line(text: str) -> tuple[int, int] | None:
    """Return number and characters of the first line that is longer than `LONGEST_LINE`; None where there is none."""
    start = 0
    while len(text) - start > LONGEST_LINE:
        end = text.rfind("\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            end = text.find("\n", start)
            return text.count("\n", 0, start) + 1, (len(text) if end < 0 else end) - start
        start = end + 1
    return None


def _note(name: str, code: str, expected: str, found: str) -> Problem:
    return Problem(code, name, expected, found, "It was ignored; nothing to do.", Severity.NOTE, line=1)
