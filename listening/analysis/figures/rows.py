"""Rows: one system below the other, names on the left, what is to be read on the right, scores along.

Rows get lower as they get more; 62 of them still have room for their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from listening.analysis.figures.sheet import MARGIN, SMALL, TEXT, Sheet, text_inches
from listening.analysis.figures.words import nice_step, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RATING_SPAN = 3  # ticks of scales that are wider stand at whole numbers
BELOW_INCHES = 0.5  # for ticks and the name of the axis
_FEW, DENSE = 16, 34  # with more rows than these, they are lower and hold less


def row_inches(rows: int, *, roomy: float = 0.4) -> float:
    """Height of each of so many rows."""
    return roomy if rows <= _FEW else 0.7 * roomy if rows <= DENSE else max(0.16, 0.48 * roomy)


def rows_inches(rows: int, *, roomy: float = 0.4) -> float:
    """Height of them all with the axis below."""
    return rows * row_inches(rows, roomy=roomy) + BELOW_INCHES


def row_axes(
    sheet: Sheet,
    names: Sequence[str],
    top: float,
    *,
    roomy: float = 0.4,
    columns: Sequence[tuple[str, Sequence[str]]] = (),
    left: float | None = None,
    right: float | None = None,
    bold: Sequence[int] = (),
    height: float | None = None,
) -> Axes:
    """Axes whose y is the number of the row, from 0 on top.

    Args:
        names: of the rows.
        top: in inches.
        roomy: height of a row where there are few.
        columns: head and texts of what stands on the right of the rows.
        left, right: where scores begin and end, in inches; after what the texts need where not given.
        bold: rows whose names are set in bold.
        height: of all rows, in inches, where it is not that of `row_inches`.
    """
    widths = [max(text_inches(text) for text in (head, *texts)) + 0.12 for head, texts in columns]
    points = TEXT if len(names) <= DENSE else SMALL
    start = left if left is not None else MARGIN + _name_inches(names, points, bold) + 0.08
    end = right if right is not None else sheet.width - MARGIN - sum(widths) - (0.02 if widths else 0.06)
    height = height or len(names) * row_inches(len(names), roomy=roomy)
    axes = sheet.axes(start, top, end - start, height)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks([])
    axes.tick_params(axis="x", length=0, pad=4, labelsize=SMALL)
    for row, name in enumerate(names):
        y = top + height * (row + 0.5) / len(names)
        look = {"fontweight": "bold"} if row in bold else {}
        sheet.words(start - 0.06, y, name, ha="right", color=sheet.palette.ink, fontsize=points, **look)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    _stripe(axes, len(names), sheet)
    x = end + 0.1
    for (head, texts), width in zip(columns, widths, strict=True):
        if head:
            sheet.words(x, top - 0.09, head, color=sheet.palette.muted)
        for row, text in enumerate(texts):
            y = top + height * (row + 0.5) / len(names)
            sheet.words(x, y, text, color=sheet.palette.ink)
        x += width
    return axes


def _name_inches(names: Sequence[str], points: float, bold: Sequence[int]) -> float:
    return max(text_inches(name, points) * (1.15 if row in bold else 1) for row, name in enumerate(names))


def score_axis(axes: Axes, low: float, high: float, label: str, *, room: float = 0.0, most: int = 9) -> None:
    """The axis of scores from `low` to `high` with `room` on both sides, ticks at round values."""
    axes.set_xlim(low - room, high + room)
    step = nice_step(high - low, most)
    if high - low >= _RATING_SPAN:
        step = max(step, 1.0)
    first = -(-low // step) * step
    places = [first + step * place for place in range(int((high - first) / step + 1e-6) + 1)]
    digits = 0 if step >= 1 else 1 if step >= 0.1 else 2
    axes.set_xticks(places, [number(place, digits) for place in places])
    axes.set_xlabel(label, fontsize=TEXT)


def apart(axes: Axes, row: int, sheet: Sheet) -> None:
    """A line between this row and the one above."""
    axes.axhline(row - 0.5, color=sheet.palette.line, linewidth=0.9)


def _stripe(axes: Axes, rows: int, sheet: Sheet) -> None:
    """Every second row on a pale ground, for the eye to follow it."""
    if rows < 4:
        return
    for row in range(1, rows, 2):
        axes.axhspan(row - 0.5, row + 0.5, color=sheet.palette.grid, alpha=0.45, linewidth=0, zorder=0)
