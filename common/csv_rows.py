"""Rows of the tables that people send: cells between commas, semicolons or tabs, as their spreadsheet writes them.

Every reader of a table goes through `read_csv`, so that what one takes, all take. Conventions: the header is the first
row that is not blank, and tells what separates the cells; where that is no comma, numbers may have a decimal comma.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

DELIMITERS = (",", ";", "\t")


class CsvError(ValueError):
    """Quotes that do not close, or stand where none may; the row begins in `line`."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class CsvText:
    """A table as text.

    Attributes:
        delimiter: what separates its cells.
    """

    text: str
    delimiter: str

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each row, the header first, with the line that it begins in; blank ones are left out.

        Raises:
            CsvError: at the first row that cannot be split.
        """
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, strict=True)
        line = 1
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise CsvError(line, str(error)) from error

    def to_number(self, cell: str) -> str:
        """Return a number with a point, where it may be written with a comma."""
        return cell if self.delimiter == "," else cell.replace(",", ".")


def read_csv(text: str, known: Callable[[str], bool], delimiters: tuple[str, ...] = DELIMITERS) -> CsvText:
    """Tell by the header of a table what separates its cells.

    Args:
        text: of the file; a byte order mark is dropped.
        known: whether a cell of the header, without blanks around it, is the name of a column that is looked for.
        delimiters: what may separate cells; the first one does where none gives a known column or a second cell.

    Example:
        >>> read_csv("key;sex\\na,1;f\\n", {"key", "sex"}.__contains__).delimiter
        ';'
    """
    text = text.removeprefix("\ufeff")
    header = text.lstrip("\r\n")

    def count(delimiter: str) -> tuple[int, int]:
        try:
            cells = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter), [])
        except csv.Error:  # told when the rows are read
            return 0, 0
        return sum(known(cell.strip()) for cell in cells), len(cells)

    return CsvText(text, max(delimiters, key=count))
