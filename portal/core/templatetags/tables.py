"""Headings and rows of a table as HTML, for ``components/table.html``: the one place that makes them.

They are made here rather than in the template, whose tags cost 40 µs a cell: a page of results has thousands of cells.
"""

from __future__ import annotations

from collections.abc import Iterator

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from common.tables import Cell, Column, Group, Row, Table

register = template.Library()


@register.simple_tag
def table_head(table: Table) -> SafeString:
    """`{% table_head table %}`: the headings; those of columns that sort are links."""
    headings = "".join(_heading_html(table, column) for column in table.columns)
    return mark_safe(f"<thead><tr>{headings}</tr></thead>")  # noqa: S308 - every text in it was escaped


def _heading_html(table: Table, column: Column) -> str:
    kind = "num" if column.is_number else column.kind
    classes = f' class="{escape(kind)}"' if kind else ""
    order = f' aria-sort="{column.aria_sort}"' if column.sorted else ""
    text: str = escape(column.label)
    if column.query:
        address = escape(f"?{column.query}#{table.anchor}" if table.anchor else f"?{column.query}")
        natural = f' data-order="{column.natural}"' if table.is_sortable else ""
        text = f'<a href="{address}"{natural}>{text}</a>'
    note = f"<sup>{escape(column.footnote)}</sup>" if column.footnote else ""
    note += f" <small>{escape(column.note)}</small>" if column.note else ""
    return f'<th scope="col"{classes}{order}>{text}{note}</th>'


@register.simple_tag
def table_body(table: Table) -> SafeString:
    """`{% table_body table %}`: every group of rows as a ``tbody``."""
    parts = [part for group in table.groups for part in _group_html(table, group)]
    return mark_safe("".join(parts))  # noqa: S308 - every text in it was escaped


def _group_html(table: Table, group: Group) -> Iterator[str]:
    if group.band:
        note = f' <span class="soft">{escape(group.band_note)}</span>' if group.band_note else ""
        yield f'<tbody class="role"><tr><th scope="rowgroup" colspan="{len(table.columns)}">'
        yield f"{escape(group.band)}{note}</th></tr></tbody>"
    yield "<tbody>"
    for place, row in enumerate(group.rows):
        yield f'<tr data-place="{escape(row.place)}">' if row.place else "<tr>"
        if group.head is not None and place == 0:
            yield f'<th scope="rowgroup" rowspan="{len(group.rows)}">{_content_html(group.head)}</th>'
        yield from _cells_html(table, row, is_headed=group.head is not None, is_first=place == 0)
        yield "</tr>"
    yield "</tbody>"


def _cells_html(table: Table, row: Row, *, is_headed: bool, is_first: bool) -> Iterator[str]:
    columns = table.columns[1:] if is_headed else table.columns
    is_sortable = table.is_sortable
    for place, (column, cell) in enumerate(zip(columns, row.cells, strict=True)):
        value = f' data-value="{escape(cell.bare)}"' if is_sortable and column.query else ""
        if place == table.header and not is_headed:
            prose = ' class="text"' if column.kind == "text" else ""
            yield f'<th scope="row"{prose}{value}>{_content_html(cell)}</th>'
            continue
        kind = f"{column.kind} after" if is_headed and not is_first and place == 0 else column.kind
        classes = f' class="{kind}"' if kind else ""
        title = f' title="{escape(cell.title)}"' if cell.title else ""
        content = _content_html(cell) or _missing_html(table, column)
        # Phones show no head; a cell with a note of its own says what differs from that of its column.
        label = f"{column.label} ({column.note})" if column.note and not cell.note else column.label
        yield f'<td{classes} data-label="{escape(label)}"{value}{title}>{content}</td>'


def _missing_html(table: Table, column: Column) -> str:
    return f'<span class="soft missing">{escape(table.missing)}</span>' if table.missing and column.is_number else ""


def _content_html(cell: Cell) -> str:
    if cell.drawing:
        return cell.drawing
    text: str = escape(cell.text)
    if cell.badge:
        text = f'<span class="badge" data-state="{escape(cell.badge)}">{text}</span>'
    if cell.moment:
        text = f'<time datetime="{escape(cell.moment)}">{text}</time>'
    if cell.link:
        text = f'<a href="{escape(cell.link)}">{text}</a>'
    behind = [f' <span class="mark">{escape(mark)}</span>' for mark in cell.marks]
    behind += [f' <span class="ribbon">{escape(cell.ribbon)}</span>'] if cell.ribbon else []
    behind += [f' <span class="soft">{escape(cell.aside)}</span>'] if cell.aside else []
    if behind:
        text = f"<span>{text}{''.join(behind)}</span>"
    if not (cell.interval or cell.note):
        return text
    below = [f" <small>{escape(cell.interval)}</small>"] if cell.interval else []
    unlike = ' class="unlike"' if cell.is_unlike else ""
    below += [f" <small{unlike}>{escape(cell.note)}</small>"] if cell.note else []
    return f'<span class="reading">{text}{"".join(below)}</span>'
