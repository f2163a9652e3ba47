"""Rows of the tables that people send: cells between commas, semicolons or tabs, as their spreadsheet writes them.

Every reader of a table goes through `read_csv`, so that what one takes, all take. Conventions: the header is the first
row that is not blank, and tells what separates the cells, unless a first line such as ``sep=;`` does; where that is no
comma, numbers may have a decimal comma. Spreadsheets write semicolons where the comma is decimal; between tabs it may
as well separate thousands.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from common.errors import InputError

DELIMITERS = (",", ";", "\t")
_STATED = re.compile(r'"?sep=(.)"?[,;\t]*(?=\r?\n)', re.IGNORECASE)  # for Excel alone
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


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
            InputError: at the first row that cannot be split.
        """
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, strict=True)
        line = 1
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise InputError(str(error), line=line) from error


def to_number(cell: str, delimiter: str) -> str:
    """Return a number with a point where its comma can only be decimal, any other cell as it is.

    Args:
        cell: of a table whose cells stand between `delimiter`.

    Example:
        >>> to_number("0,5", ";"), to_number("16,000", "\\t"), to_number("1,234.5", ";")
        ('0.5', '16,000', '1,234.5')
    """
    is_open = delimiter == "," or (delimiter == "\t" and _THOUSANDS.fullmatch(cell.strip()))
    return cell if is_open or cell.count(",") != 1 or "." in cell else cell.replace(",", ".")


def read_csv(text: str, known: Callable[[str], bool], delimiters: tuple[str, ...] = DELIMITERS) -> CsvText:
    """Tell by the header of a table, or by a line before it, what separates its cells.

    Args:
        text: of the file; a byte order mark is dropped.
        known: whether a cell of the header, without blanks around it, is the name of a column that is looked for.
        delimiters: what may separate cells; the first one does where none gives a known column or a second cell.

    Example:
        >>> read_csv("key;sex\\na,1;f\\n", {"key", "sex"}.__contains__).delimiter
        ';'
    """
    text = text.removeprefix("\ufeff")
    if (stated := _STATED.match(text)) and stated[1] in delimiters:
        return CsvText(text[stated.end() :], stated[1])

    def count(delimiter: str) -> tuple[int, int]:
        try:
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            cells = next((row for row in rows if any(cell.strip() for cell in row)), [])
        except csv.Error:  # told when the rows are read
            return 0, 0
        return sum(known(cell.strip()) for cell in cells), len(cells)

    return CsvText(text, max(delimiters, key=count))
