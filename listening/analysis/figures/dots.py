"""Dots with intervals, one row each: values of systems or of measures, lines at what they are to be compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.figures.style import Palette
from listening.analysis.figures.rows import apart, row_axes, rows_inches, score_axis
from listening.analysis.figures.sheet import Mark, Sheet, key_inches

ROOMY = 0.27


@dataclass(frozen=True, slots=True)
class Dot:
    """A row.

    Attributes:
        name: on the left.
        value: drawn as a dot; None for a heading, or where nothing is known.
        low, high: of its interval.
        beside: a second value, drawn as a hollow diamond.
        chance, chance_high: what chance gives, and what it hardly exceeds.
        is_anchor: what others are compared with: a square, set apart from the rows below.
        texts: on the right.
    """

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    beside: float | None = None
    chance: float | None = None
    chance_high: float | None = None
    is_anchor: bool = False
    texts: tuple[str, ...] = ()

    @property
    def is_heading(self) -> bool:
        return self.value is None and not self.texts


@dataclass(frozen=True, slots=True)
class Line:
    """A value through all rows, with its name in the key."""

    value: float
    words: str


@dataclass(frozen=True, slots=True)
class DotPlot:
    """What a figure of dots shows; values are drawn times `unit`, in per cent of shares."""

    dots: Sequence[Dot]
    axis: str
    heads: Sequence[str] = ()
    lines: Sequence[Line] = ()
    dot_words: str = "with interval"
    anchor_words: str = ""
    beside_words: str = ""
    chance_words: str = ""
    unit: float = 100.0
    starts_at: float | None = None

    def marks(self, palette: Palette | None = None) -> list[Mark]:
        """The key; without a palette only what it takes."""
        ink, colours, warning = (palette.ink, palette.series, palette.warning) if palette else ("k", ("k",) * 4, "k")
        has_interval = any(dot.low is not None for dot in self.dots)
        marks = []
        if not all(dot.is_anchor for dot in self.dots):
            marks.append(Mark(self.dot_words, _dot_look(ink, colours[0], has_line=has_interval)))
        if self.anchor_words and any(dot.is_anchor for dot in self.dots):
            marks.append(Mark(self.anchor_words, _dot_look(ink, "none", marker="s", has_line=has_interval)))
        if self.beside_words and any(dot.beside is not None for dot in self.dots):
            marks.append(Mark(self.beside_words, _dot_look(ink, colours[1], marker="D", has_line=False)))
        if self.chance_words and any(dot.chance is not None for dot in self.dots):
            marks.append(Mark(self.chance_words, {"facecolor": colours[1], "alpha": 0.45}, is_area=True))
        for line in self.lines:
            look = {"color": warning, "linewidth": 1.1, "dashes": (4, 3), "marker": ""} if palette else {"color": "k"}
            marks.append(Mark(line.words, look))
        return marks

    @property
    def inches(self) -> float:
        return key_inches(self.marks()) + (0.28 if self.heads else 0.1) + rows_inches(len(self.dots), roomy=ROOMY)


def paint_dots(sheet: Sheet, plot: DotPlot) -> None:
    """Draw the rows on a sheet that is `plot.inches` high."""
    palette = sheet.palette
    marks = plot.marks(palette)
    sheet.key(marks, sheet.top)
    top = sheet.top + key_inches(marks) + (0.22 if plot.heads else 0.06)
    columns = [
        (head, [dot.texts[place] if place < len(dot.texts) else "" for dot in plot.dots])
        for place, head in enumerate(plot.heads)
    ]
    names = [dot.name for dot in plot.dots]
    bold = [row for row, dot in enumerate(plot.dots) if dot.is_anchor or dot.is_heading]
    axes = row_axes(sheet, names, top, roomy=ROOMY, columns=columns, bold=bold)
    for line in plot.lines:
        axes.axvline(plot.unit * line.value, color=palette.warning, linewidth=1.1, dashes=(4, 3), zorder=1)
    for row, dot in enumerate(plot.dots):
        _paint_dot(axes, row, dot, plot.unit, palette)
        if row and (dot.is_heading or plot.dots[row - 1].is_anchor):
            apart(axes, row, sheet)
    low, high = _span(plot)
    score_axis(axes, low, high, plot.axis, room=0.025 * (high - low), most=6)


def _paint_dot(axes: Any, row: int, dot: Dot, unit: float, palette: Palette) -> None:
    if dot.value is None and dot.beside is None:
        return
    if dot.chance is not None:
        high = dot.chance_high if dot.chance_high is not None else dot.chance
        axes.fill_betweenx(
            [row - 0.36, row + 0.36], unit * dot.chance, unit * high, color=palette.series[1], alpha=0.45, linewidth=0
        )
        axes.plot([unit * dot.chance] * 2, [row - 0.36, row + 0.36], color=palette.series[1], linewidth=1.3)
    if dot.low is not None and dot.high is not None:
        axes.plot(
            [unit * dot.low, unit * dot.high], [row, row], color=palette.ink, linewidth=1.3, marker="|", markersize=5,
            zorder=3,
        )  # fmt: skip
    if dot.beside is not None:
        look = _dot_look(palette.ink, palette.series[1], marker="D", has_line=False)
        axes.plot([unit * dot.beside], [row], zorder=3.5, **look)
    if dot.value is not None:
        face = "none" if dot.is_anchor else palette.series[0]
        look = _dot_look(palette.ink, face, marker="s" if dot.is_anchor else "o", has_line=False)
        axes.plot([unit * dot.value], [row], zorder=4, **look)


def _dot_look(ink: str, face: str, *, marker: str = "o", has_line: bool) -> dict[str, Any]:
    return {
        "color": ink, "marker": marker, "markerfacecolor": face, "markeredgecolor": ink, "markeredgewidth": 0.9,
        "markersize": 5.0 if marker == "D" else 6.5, "linestyle": "-" if has_line else "none", "linewidth": 1.3,
    }  # fmt: skip


def _span(plot: DotPlot) -> tuple[float, float]:
    """From the lowest to the highest of everything that is drawn."""
    values = [plot.unit * line.value for line in plot.lines]
    for dot in plot.dots:
        shown = (dot.value, dot.low, dot.high, dot.beside, dot.chance, dot.chance_high)
        values += [plot.unit * value for value in shown if value is not None]
    if plot.starts_at is not None:
        values.append(plot.unit * plot.starts_at)
    low, high = min(values, default=0.0), max(values, default=plot.unit)
    if high - low < 0.05 * plot.unit:
        high = low + 0.05 * plot.unit
    return low, high
