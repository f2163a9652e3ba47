"""Tables as people send them: the bytes of a CSV file become columns of text, and every bad line is named.

A file may be gzipped, start with a byte order mark, and separate its cells by commas, semicolons or tabs. Whatever else
is wrong (other bytes than UTF-8, unequal numbers of cells, columns that stand twice) is an `ProblemsError` whose
sentences say where, what was expected, what was found and what to do. Conventions: lines count from 1, the header is
line 1 unless blank lines come first; cells are stripped of blanks.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from common.csv_rows import DELIMITERS, CsvText, read_csv, to_number
from common.errors import InputError, ProblemsError
from common.file_names import plain_name
from common.text_files import LONGEST_LINE, find_long_line
from listening.analysis.tables import DICTIONARY

Source = Path | BinaryIO | bytes
MOST_BYTES = 1 << 30
MOST_CHARACTERS = 100_000_000  # of a column, each cell as long as the longest: 400 MB
LONGEST_CELL = 300
_PIECE = 1 << 20
EXAMPLES = 10
_NUMBER = re.compile(r"[-+]?(?:\d++\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?\Z", re.ASCII)

Value = TypeVar("Value")


class TableProblems:
    """Collects what is wrong with a file, of each kind the first lines and a count, and raises it all at once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sentences: list[str] = []

    def add(self, expected: str, found: str, remedy: str, *, line: int | None = None) -> None:
        place = self.name if line is None else f"{self.name}, line {line}"
        self.sentences.append(f"{place}: expected {expected}, found {found}. {remedy}")

    def add_lines(self, expected: str, found: Sequence[tuple[int, str]], remedy: str) -> None:
        """Add one kind of problem in several lines: pairs of the line and what it has there."""
        for line, what in found[:EXAMPLES]:
            self.add(expected, what, remedy, line=line)
        more = len(found) - EXAMPLES
        if more > 0:
            last = found[-1][0]
            self.sentences.append(f"{self.name}: {more:,} more lines without {expected}, up to line {last}.")

    def raise_any(self) -> None:
        """Raise all problems at once.

        Raises:
            ProblemsError: something was added.
        """
        if self.sentences:
            raise ProblemsError(self.sentences)


@dataclass(frozen=True, eq=False)
class TextTable:
    """Attributes:
    columns: cells by the name in the header, as written there.
    lines: line of the file in which each row begins.
    delimiter: what separates cells.
    problems: collects what is wrong with the file.
    """

    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    delimiter: str
    problems: TableProblems

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, rows: Sequence[int]) -> TextTable:
        """Return the same columns with the chosen rows."""
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return replace(self, columns=columns, lines=[self.lines[row] for row in rows])

    def report(self, is_wrong: Iterable[object], cells: Sequence[str], expected: str, remedy: str) -> None:
        """Say what is in the cells that are wrong."""
        rows = zip(is_wrong, self.lines, cells, strict=True)
        self.problems.add_lines(expected, [(line, quote(cell)) for wrong, line, cell in rows if wrong], remedy)

    def find_columns(self, name_of: Callable[[str], str | None], remedy: str) -> dict[str, str]:
        """Return the headers by the names that they mean; two that mean one are reported."""
        found: dict[str, str] = {}
        for header in self.columns:
            name = name_of(header)
            if name in found:
                both = f"“{found[name]}” and “{header}”"
                self.problems.add(f"one column for {name}", both, remedy.format(name=name, header=header), line=1)
            elif name is not None:
                found[name] = header
        return found

    def read_numbers(self, cells: Sequence[str]) -> list[float | None]:
        """Return the finite number in each cell, with a decimal comma where commas do not separate cells."""
        return map_cells(cells, lambda cell: parse_number(to_number(cell, self.delimiter)))


def read_text(source: Source, name: str) -> str:
    """Return the text of a file in NFC, unzipped where it is gzipped, without a byte order mark.

    Raises:
        ProblemsError: it cannot be read, is no UTF-8 text, holds more than 1 GiB, or has a line of more than
            `LONGEST_LINE` characters.
    """
    data = _unzipped(_read(source, name), name)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ProblemsError(f"{name}: expected UTF-8 text, found UTF-16. Save it as UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProblemsError(
            f"{name}, line {line}: expected UTF-8 text, found the byte 0x{data[error.start]:02X}. "
            "Save the table as CSV in UTF-8; spreadsheets and archives cannot be read as they are."
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ProblemsError(f"{name}, line {line}: expected text, found a zero byte. Save the table as CSV.")
    if (long := find_long_line(text)) is not None:
        expected = f"at most {LONGEST_LINE:,} characters in a line"
        raise ProblemsError(f"{name}, line {long[0]}: expected {expected}, found {long[1]:,}. Shorten the line.")
    return plain_name(text)


def split_table(
    text: str, name: str, known: Callable[[str], bool], *, is_exact: bool = False, longest_cell: int = LONGEST_CELL
) -> TextTable:
    """Return the columns of a CSV text.

    Args:
        known: whether a name in a header is one that is looked for; decides what separates the cells.
        is_exact: cells keep their blanks, and commas separate them, whatever the header looks like.
        longest_cell: characters that a cell may have.

    Raises:
        ProblemsError: there is no header or no row, a column stands twice, or lines have too many or too few
            cells, or too long ones for so many lines.
    """
    if not text.strip():
        raise ProblemsError(f"{name}: expected a table, found an empty file. Its first line names the columns.")
    table = read_csv(text, known, DELIMITERS[:1] if is_exact else DELIMITERS)
    lines, rows = _split(table, name, longest_cell)
    if not is_exact:
        rows = [[cell.strip() for cell in row] for row in rows]
    header = rows[0]
    problems = TableProblems(name)
    for twice in (cell for cell, count in Counter(header).items() if cell and count > 1):
        problems.add("each column once", f"{twice!r} more than once", "Rename or remove one of them.", line=lines[0])
    problems.add_lines(
        f"{len(header)} cells as in the header",
        [(line, f"{len(row)}") for line, row in zip(lines, rows, strict=True) if len(row) != len(header)],
        "Put cells that hold separators or quotes into double quotes.",
    )
    repeated = [(line, "the header again") for line, row in zip(lines[1:], rows[1:], strict=True) if row == header]
    problems.add_lines("a row", repeated, "Remove the line.")
    problems.raise_any()
    if len(rows) == 1:
        raise ProblemsError(f"{name}: expected rows below the header, found none. Put a rating into each line.")
    columns = dict(zip(header, map(list, zip(*rows[1:], strict=True)), strict=True))
    for (
        column,
        cells,
    ) in columns.items():  # arrays of texts are as wide as the longest: one cell may ask for much memory
        most, longest = MOST_CHARACTERS // len(cells), max(cells, key=len)
        if len(longest) > most:
            expected = f"at most {most:,} characters in {quote(column)} of {len(cells):,} rows"
            line = lines[1 + cells.index(longest)]
            problems.add(expected, f"{len(longest):,}", "Shorten the cell.", line=line)
    problems.raise_any()
    return TextTable(columns, lines[1:], table.delimiter, problems)


def list_names(of: str) -> dict[str, str]:
    """Return our names of the columns of ``ratings`` or ``answers``, by every name that means them."""
    return list_words({name: one["aliases"] for name, one in DICTIONARY[of].items()})


def list_words(aliases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return our words by each that means them, ours among these."""
    return {alias: word for word, others in aliases.items() for alias in (word, *others)}


def plain_header(header: str) -> str:
    """Return a header in small letters, with underscores for blanks and hyphens."""
    return re.sub(r"[\s\-]+", "_", header.strip().lower())


def map_cells(cells: Iterable[str], of: Callable[[str], Value]) -> list[Value]:
    """Return a function of each cell, called once for each different one."""
    return list(map(cache(of), cells))


def parse_number(cell: str) -> float | None:
    """Return the finite number that a cell holds; None where it holds none."""
    if not _NUMBER.match(cell):
        return None
    number = float(cell)
    return number if np.isfinite(number) else None


def quote(cell: str) -> str:
    """Return a cell as sentences quote it."""
    return "nothing" if not cell else f"“{cell}”" if len(cell) <= 60 else f"“{cell[:57]}…”"


def _split(table: CsvText, name: str, longest_cell: int) -> tuple[list[int], list[list[str]]]:
    """Return the line and cells of every row, the header first; blank lines left out."""
    lines: list[int] = []
    rows: list[list[str]] = []
    long: list[tuple[int, str]] = []
    try:
        for line, row in table.rows():
            if any(len(cell) > longest_cell for cell in row):
                long.append((line, f"{max(map(len, row)):,}"))
            lines.append(line)
            rows.append(row)
    except InputError as error:
        raise ProblemsError(
            f"{name}, line {error.line}: expected comma-separated cells, found “{error}”. "
            "A double quote that is not closed, or one within a cell, is the usual cause: double it."
        ) from None
    problems = TableProblems(name)
    problems.add_lines(f"cells of at most {longest_cell} characters", long, "Close the quotes, or shorten the names.")
    problems.raise_any()
    return lines, rows


def _read(source: Source, name: str) -> bytes:
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        else:
            data = source if isinstance(source, bytes) else source.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "an unreadable file"
        raise ProblemsError(f"{name}: expected a readable file, found “{reason}”. Name another file.") from None
    return _limited(data, name)


def _unzipped(data: bytes, name: str) -> bytes:
    """Unzip every member of the file, as far as it is allowed to be long; anything else stays as it is."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            pieces, size = list[bytes](), 0
            while size <= MOST_BYTES and (piece := file.read(_PIECE)):  # all at once takes the memory of the longest
                pieces.append(piece)
                size += len(piece)
            return _limited(b"".join(pieces), name)
    except EOFError:
        sentence = f"{name}: expected a whole gzip file, found its end missing. Send it again."
        raise ProblemsError(sentence) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ProblemsError(f"{name}: expected a gzip file, found “{error}”. Zip it again.") from None


def _limited(data: bytes, name: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise ProblemsError(f"{name}: expected at most 1 GiB of text, found more. Analyse it in parts.")
    return data
