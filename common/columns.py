"""Lines of a fixed number of fields, split by numpy: for listings of a million lines.

A regular file (one space between fields, no blank line) is split without a Python object per line; any other file is
tidied line by line first, which is slower but gives the same table. Conventions: fields are bytes padded with zeros to
a multiple of eight, so that they compare as 64-bit words; line numbers count from 1.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common import text_files
from common.problems import Problem, ProblemList, Severity
from common.text_files import Source, read_text_file, source_name

WORD_BYTES = 8
LONGEST_LINE_BYTES = 1024
PADDING = bytes(LONGEST_LINE_BYTES)
_SPACE, _LINE_END = 32, 10

Field = NDArray[np.bytes_]


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of a file, still in its bytes.

    Attributes:
        name: the file as its owner knows it.
        data: the lines, followed by zeros.
        ends: shape (lines, fields), the position just after each field.
        lines: shape (lines,), the line number of each entry in the file.
        problems: everything wrong with the file as a listing; a line with a problem is left out.
    """

    name: str
    data: bytearray
    ends: NDArray[np.int64]
    lines: NDArray[np.int64]
    problems: tuple[Problem, ...]

    def span(self, first: int, last: int) -> Field:
        """Return the bytes from field `first` to field `last` of every line, with the spaces between them."""
        starts = np.zeros(len(self.ends), np.int64)
        if first:
            starts = self.ends[:, first - 1] + 1
        else:
            starts[1:] = self.ends[:-1, -1] + 1
        return gather(self.data, starts, self.ends[:, last] - starts)


def read_columns(source: Source, form: str, name: str | None = None) -> Columns:
    """Split a file whose lines look like `form`, such as ``<model> <utterance> <score>``.

    Problems reported: those of `read_text_file`, ``empty-file``, ``malformed-line`` (another number of fields, or over
    1024 bytes), ``blank-line`` (a note).
    """
    name = name or source_name(source)
    fields = len(form.split())
    data = _plain_bytes(source)
    ends = None if data is None else _regular_ends(data, fields)
    if data is not None and ends is not None and len(ends):
        return Columns(name, data, ends, np.arange(1, len(ends) + 1), ())
    text, file_problems = read_text_file(source, name)
    problems = ProblemList()
    problems.keep(file_problems)
    if not text and not file_problems:
        problems.add(Problem("empty-file", name, "at least one line", "none", "Fill the file."))
    data, lines = _tidied(text, form, name, problems)
    ends = _regular_ends(data, fields)
    assert ends is not None, "tidied lines are regular"  # noqa: S101
    return Columns(name, data, ends, lines, problems.report())


def as_words(field: Field, width_bytes: int) -> NDArray[np.uint64]:
    """Return fields as rows of 64-bit words, shape (lines, words), padded with zeros to `width_bytes`."""
    if field.itemsize < width_bytes:
        field = field.astype(f"S{width_bytes}")
    return field.view(np.uint64).reshape(len(field), field.itemsize // WORD_BYTES)


def gather(data: bytes | bytearray, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Field:
    """Return the stretches of `data` at `starts`, shape (n,); `data` must end in `PADDING`."""
    shortest, longest = (int(lengths.min()), int(lengths.max())) if lengths.size else (1, 1)
    width = -(-longest // WORD_BYTES) * WORD_BYTES
    everywhere = np.ndarray((len(data) - width + 1,), f"V{width}", buffer=data, strides=(1,))
    words = everywhere[starts].view(np.uint64).reshape(len(starts), width // WORD_BYTES)
    kept = np.where(np.arange(width) < np.arange(width + 1)[:, None], np.uint8(255), np.uint8(0))
    masks = np.ascontiguousarray(kept.view(np.uint64).T)
    for column in range(shortest // WORD_BYTES, width // WORD_BYTES):  # words before it belong to every stretch
        words[:, column] &= masks[column][lengths]
    return words.view(f"S{width}").reshape(len(starts))


def _plain_bytes(source: Source) -> bytearray | None:
    """Return the bytes of a file of plain ASCII lines, followed by zeros; None for anything else."""
    if not isinstance(source, Path):
        return None
    text_files.on_reading(source)
    try:
        size = source.stat().st_size
        data = bytearray(size + LONGEST_LINE_BYTES)
        with source.open("rb") as file:
            read = file.readinto(memoryview(data)[:size])
    except OSError:
        return None
    plain = read == size and data.isascii() and b"\r" not in data and data.find(b"\0") == size
    return data if plain else None


def _regular_ends(data: bytearray, fields: int) -> NDArray[np.int64] | None:
    """Where the fields end, or None for lines that are not regular; `data` ends in zeros."""
    buffer = np.frombuffer(data, np.uint8, len(data) - LONGEST_LINE_BYTES)
    separators = np.flatnonzero(buffer <= _SPACE)
    if separators.size % fields or (buffer.size and buffer[-1] != _LINE_END):
        return None
    ends = separators.reshape(-1, fields)
    kinds = buffer[separators].reshape(-1, fields)
    if (kinds[:, :-1] != _SPACE).any() or (kinds[:, -1] != _LINE_END).any():
        return None
    if separators.size and (separators[0] == 0 or np.diff(separators).min() == 1):
        return None
    if ends.size and np.diff(ends[:, -1], prepend=-1).max() > LONGEST_LINE_BYTES:
        return None
    return ends


def _tidied(text: str, form: str, name: str, problems: ProblemList) -> tuple[bytearray, NDArray[np.int64]]:
    """Return the lines of the right number of fields, as bytes with padding, and their numbers."""
    fields = len(form.split())
    kept, lines = bytearray(), array("q")
    for number, line in enumerate(_split_lines(text), start=1):
        parts = line.split()
        if len(parts) == fields and len(line.encode()) < LONGEST_LINE_BYTES:
            kept += f"{' '.join(parts)}\n".encode()
            lines.append(number)
        elif parts:
            shown = line if len(line) <= 60 else line[:57] + "…"
            found = f"“{shown}”"
            problems.add(Problem("malformed-line", name, f"“{form}”", found, "Correct the line.", line=number))
        else:
            remedy = "It was skipped; remove it."
            problems.add(Problem("blank-line", name, "an entry", "a blank line", remedy, Severity.NOTE, number))
    return kept + PADDING, np.array(lines, np.int64)


def _split_lines(text: str) -> Iterator[str]:
    """Yield the lines one by one: a list of a million strings would take several times the memory of the file."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1
