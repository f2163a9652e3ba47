"""Tables of an analysis as pages show them: columns by their contents, a number with its interval beneath, as HTML.

Rows are made here rather than in a template: a page of 62 systems has tens of thousands of cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from listening.analysis.contents import CONTENTS
from listening.analysis.tables import Cell, Column, Content, Table
from listening.results.result_words import TRUTHS, label_of, number, span

NAMES = frozenset({"system", "first", "second"})
PROSE = frozenset({"remark", "reference", "heard", "caught", "excluded"})
LONG = 18  # rows; a longer table scrolls inside its region
Record = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Head:
    """The heading of a column. `kind`: ``num``, ``text`` or empty. `query`: of the address that sorts by it."""

    title: str
    kind: str
    meaning: str
    query: str = ""
    natural: str = "asc"
    sorted: str = ""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as a page shows it.

    Attributes:
        caption: what it holds and of which scores.
        rows: as HTML.
        csv: address of the whole table as a file; empty without one.
        left_out: how many rows are in the file only.
    """

    title: str
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[SafeString, ...]
    note: str = ""
    csv: str = ""
    left_out: int = 0

    @property
    def is_long(self) -> bool:
        return len(self.rows) > LONG

    @property
    def asks(self) -> bool:
        """Whether its title is a question, which no full stop follows."""
        return self.title.endswith("?")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table is shown.

    Attributes:
        hidden: columns that are not shown; so are those that are empty in every row.
        labels: what systems are called.
        link: the address of a system's page, empty where it has none.
        words: what is shown for a text of a column in place of it.
        titles: headings in place of the usual ones.
    """

    hidden: frozenset[str] = frozenset()
    labels: Mapping[str, str] | None = None
    link: Callable[[str], str] | None = None
    words: Mapping[str, Mapping[str, str]] | None = None
    titles: Mapping[str, str] | None = None


def shown_table(
    table: Table | None, caption: str, shape: Shape, *, records: Sequence[Record] | None = None, csv: str = "",
    title: str = "", most: int | None = None,
) -> ShownTable | None:  # fmt: skip
    """Some rows of a table, or all of them; None where there are none."""
    if table is None:
        return None
    found = list(table.records() if records is None else records)
    if not found:
        return None
    content = CONTENTS[table.name]
    columns, heads = table_heads(content, found, shape)
    shown = found if most is None else found[:most]
    rows = tuple(row_html([cell_html(one, row, shape) for one in columns], heads) for row in shown)
    return ShownTable(title or content.title, caption, heads, rows, content.note, csv, len(found) - len(shown))


def table_heads(content: Content, records: Sequence[Record], shape: Shape) -> tuple[list[Column], tuple[Head, ...]]:
    """The columns that are shown, and their headings."""
    columns = [one for one in content.columns if _is_shown(one, records, shape)]
    titles = shape.titles or {}
    return columns, tuple(Head(titles.get(one.name, one.title), _kind(one, records), one.meaning) for one in columns)


def row_html(cells: Sequence[str], heads: Sequence[Head], attributes: str = "") -> SafeString:
    """A row whose first cell names it; `cells` are HTML."""
    parts = [f"<tr{attributes}>"]
    for place, (cell, head) in enumerate(zip(cells, heads, strict=True)):
        if place == 0:
            parts.append(f'<th scope="row">{cell}</th>')
        else:
            kind = f' class="{head.kind}"' if head.kind else ""
            parts.append(f'<td{kind} data-label="{escape(head.title)}">{cell}</td>')
    parts.append("</tr>")
    return mark_safe("".join(parts))  # noqa: S308 - every text in it was escaped


def cell_html(column: Column, row: Record, shape: Shape) -> str:
    """What a cell holds; a number with its interval beneath it."""
    value = row.get(column.name)
    if column.name in NAMES and shape.link is not None:
        return system_html(str(value), shape)
    if isinstance(value, str):
        return escape((shape.words or {}).get(column.name, {}).get(value, value))
    text = number(value, column)
    return reading_html(text, span(row.get(f"{column.name}_low"), row.get(f"{column.name}_high"), column))


def reading_html(text: str, interval: str) -> str:
    """A number with its interval."""
    if not text:
        return ""
    if not interval:
        return escape(text)
    return f'<span class="reading">{escape(text)} <small>{escape(interval)}</small></span>'


def system_html(name: str, shape: Shape) -> str:
    """The name of a system, leading to its page."""
    several = (shape.words or {}).get("system", {}).get(name)
    if several:
        return escape(several)
    text = escape(label_of(name, shape.labels or {}))
    address = shape.link(name) if shape.link else ""
    return f'<a href="{escape(address)}">{text}</a>' if address else text


def _is_shown(column: Column, records: Sequence[Record], shape: Shape) -> bool:
    base = column.name.removesuffix("_low").removesuffix("_high")
    is_limit = base != column.name and base in records[0]  # it stands beneath its number
    return (
        not is_limit
        and column.name not in shape.hidden
        and any(row.get(column.name) not in (None, "") for row in records)
    )


def _kind(column: Column, records: Sequence[Record]) -> str:
    """Right-aligned for numbers; prose for what is said in words."""
    if column.name in PROSE:
        return "text"
    is_word = column.name in TRUTHS or any(isinstance(row.get(column.name), str) for row in records)
    return "" if is_word else "num"
