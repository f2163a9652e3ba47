"""Tables: one model for what a page shows and what a file holds, and the one way to write them.

A `DataTable` holds values under names of columns, with every digit, and is written as CSV or as records for JSON. A
`Table` holds what is read: cells as texts with interval, note and link, in groups of rows under described columns; a
page shows it with ``components/table.html``, and `common.latex` prints it. Nothing here knows of Django or pandas.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal
from urllib.parse import urlencode

from common.harmless_cells import harmless_cell

Value = str | float | int | None
Order = Literal["", "asc", "desc"]
ARIA_SORT = {"asc": "ascending", "desc": "descending"}

# What is read --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        key: its name in files and addresses.
        heading: what a reader sees above it.
        description: what it holds and in which unit.
        digits: decimals on a page; None for text and counts.
        is_share: pages show it in percent.
        kind: how its cells look, as words of the style sheet: ``num`` for numbers, ``text`` for prose, or empty.
        unit: stands behind the heading.
        note: small text under the heading.
        footnote: number of the note beneath the table that explains it.
        natural: the order when a reader first sorts by it; empty where none does.
        query: of the address that sorts by it.
        sorted: the order in which the table stands by this column; empty where another one decides.
    """

    key: str
    heading: str = ""
    description: str = ""
    digits: int | None = None
    is_share: bool = False
    kind: str = ""
    unit: str = ""
    note: str = ""
    footnote: str = ""
    natural: Order = ""
    query: str = ""
    sorted: Order = ""

    @property
    def label(self) -> str:
        """Heading and unit."""
        return f"{self.heading}, {self.unit}" if self.unit else self.heading

    @property
    def is_number(self) -> bool:
        return self.kind.startswith("num")

    def sortable(self, natural: Order, sort: str, order: Order, query: Mapping[str, str] | None = None) -> Column:
        """Return the column with a heading that sorts by it.

        Args:
            natural: the order when first chosen; chosen again, it is turned round.
            sort, order: the key and the order by which the table stands.
            query: what else the address holds.
        """
        opposite: Order = "asc" if natural == "desc" else "desc"
        following = opposite if self.key == sort and order == natural else natural
        address = urlencode({**(query or {}), "sort": self.key, "order": following})
        return replace(self, natural=natural, sorted=order if self.key == sort else "", query=address)

    @property
    def aria_sort(self) -> str:
        """Such as ``ascending``, as a page says it."""
        return ARIA_SORT.get(self.sorted, "")


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows.

    Attributes:
        text: what is read; empty where there is nothing.
        interval: limits of the number, beneath it.
        note: what stands beneath it.
        is_unlike: whether the note tells a disagreement.
        value: the bare value, by which the table sorts where it stands.
        link: the address that the text leads to.
        moment: the time that the text tells, in ISO 8601.
        marks: words set off behind the text, such as ``late``.
        ribbon: a warning set off behind it, such as ``synthetic speech``.
        aside: secondary text behind it, such as a deviation.
        badge: the state that the text tells: ``succeeded``, ``failed``, ``running``…
        title: the tooltip.
        drawing: markup that is shown in place of the text; it must be safe.
    """

    text: str = ""
    interval: str = ""
    note: str = ""
    is_unlike: bool = False
    value: Value = None
    link: str = ""
    moment: str = ""
    marks: tuple[str, ...] = ()
    ribbon: str = ""
    aside: str = ""
    badge: str = ""
    title: str = ""
    drawing: str = ""

    @property
    def bare(self) -> str:
        """Return the value as scripts compare it: with every digit, texts in small letters; empty where there is
        none."""
        return "" if self.value is None else str(self.value).lower()


@dataclass(frozen=True, slots=True)
class Row:
    """A line. `place`: what it is among the others, such as ``reference``, as the style sheet names it."""

    cells: tuple[Cell, ...]
    place: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together.

    Attributes:
        head: names the group in the first column, beside all of its rows; their cells begin with the second column.
        band: a heading over the whole width, above the group.
        band_note: secondary text behind the band.
    """

    rows: tuple[Row, ...]
    head: Cell | None = None
    band: str = ""
    band_note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is read.

    Attributes:
        title: what it is called.
        label: the name for screen readers; the title where it is empty.
        caption: what it holds; `lead`, in bold, begins it.
        name: begins the addresses of its parts.
        styles: how it looks and folds on a small screen, as words of the style sheet.
        header: which cell of a row names it; the head of a group stands before it.
        missing: what stands in a number's cell that has none.
        anchor: of the section that sorting addresses lead to.
        is_caption_hidden: whether the caption is for those only who do not see the page.
        is_tall: whether it scrolls inside of its own region.
        is_page: whether it is one page of many, so that only the portal can sort it.
        note: how to read it.
        csv: address of the whole table as a file; empty without one.
        left_out: how many rows are in the file only.
    """

    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    title: str
    caption: str = ""
    lead: str = ""
    label: str = ""
    name: str = ""
    styles: str = "stack"
    header: int = 0
    missing: str = ""
    anchor: str = ""
    is_caption_hidden: bool = False
    is_tall: bool = False
    is_page: bool = False
    note: str = ""
    csv: str = ""
    left_out: int = 0

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows of all groups."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def is_sortable(self) -> bool:
        """Return whether a script may sort it where it stands."""
        return not self.is_page and any(column.query for column in self.columns)

    @property
    def described(self) -> list[Column]:
        """Return the columns with a description."""
        return [column for column in self.columns if column.description]


def number_columns(*heads: str) -> list[Column]:
    """Return columns of numbers, each called what stands above it."""
    return [Column(head, head, kind="num") for head in heads]


def plain_table(title: str, columns: Iterable[Column], rows: Iterable[Iterable[Cell | str]], **how: Any) -> Table:
    """Return a table whose rows are one group; a text is a cell that holds nothing else.

    Args:
        how: further attributes of the `Table`.
    """
    cells = (tuple(Cell(one) if isinstance(one, str) else one for one in row) for row in rows)
    return Table(tuple(columns), (Group(tuple(map(Row, cells))),), title, **how)


def number_table(title: str, heads: Sequence[str], rows: Iterable[Iterable[Cell | str]], **how: Any) -> Table:
    """Return a plain table whose first column names each row; all others hold numbers."""
    return plain_table(title, [Column(heads[0], heads[0]), *number_columns(*heads[1:])], rows, **how)


# What files hold -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DataTable:
    """Values under names of columns; None where there is none.

    Attributes:
        rows: a value for each column; where they are made while they are read, they are read once.
        name: what the table is called in files and addresses.
    """

    columns: tuple[str, ...]
    rows: Iterable[Sequence[Any]]
    name: str = ""

    def records(self, **equal: Value) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, those where every named column has the given value."""
        found = (dict(zip(self.columns, row, strict=True)) for row in self.rows)
        return [row for row in found if all(row[name] == value for name, value in equal.items())]

    def values(self, column: str) -> list[Any]:
        """Return the different values of a column in the order of the rows."""
        place = self.columns.index(column)
        return list(dict.fromkeys(row[place] for row in self.rows))

    @property
    def lines(self) -> Iterator[Sequence[Any]]:
        """Return the names of the columns, then the rows."""
        return chain([self.columns], self.rows)

    def csv(self, line_end: str = "\n") -> str:
        """Return the table as CSV."""
        return "".join(csv_lines(self.lines, line_end))


def csv_lines(rows: Iterable[Iterable[Any]], line_end: str = "\r\n") -> Iterator[str]:
    """Comma-separated lines one by one, the names of the columns first among the rows.

    Numbers stand in the shortest form that reads back the same, no value is empty, and no cell is a formula.
    """
    writer = csv.writer(_Echo(), lineterminator=line_end)
    for row in rows:
        yield writer.writerow([harmless_cell(cell) for cell in row])


class _Echo:
    """What the writer hands over is what it gives back."""

    def write(self, line: str) -> str:
        return line
