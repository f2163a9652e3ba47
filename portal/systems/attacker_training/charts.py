"""Line charts of a training as numbers that a template draws: one small SVG each, in the colours of the page.

They are drawn again with each epoch while somebody looks, so they are no files: no plotting library, no signed address.
Conventions: x and y in units of the drawing, y downwards; a value of None leaves a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from common.tables import Column, Table, number_columns, plain_table
from portal.core.labels import MISSING

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 36
MOST_TICKS = 6


@dataclass(frozen=True)
class Series:
    """What is drawn as one line.

    Attributes:
        label: what it is, such as ``VER_S, seed 1``.
        kind: ``source``, ``target`` or ``plain``: its colour and dashes.
        points: (x, y) in the units of the axes.
    """

    label: str
    kind: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Level:
    """A horizontal line that says what a value would be by chance; its words stand in the legend. `y`: once drawn."""

    label: str
    kind: str
    value: float
    y: float = 0.0


@dataclass(frozen=True)
class Mark:
    x: float
    y: float
    label: str = ""


@dataclass(frozen=True)
class Drawn:
    """A line as it is drawn; `path` are its points as SVG has them."""

    label: str
    kind: str
    path: str
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """A chart with all that its template needs; `table` are its numbers, the first column is that of the x axis."""

    name: str
    title: str
    caption: str
    x_label: str
    y_label: str
    alt: str
    lines: list[Drawn]
    levels: list[Level]
    x_ticks: list[Mark]
    y_ticks: list[Mark]
    table: Table
    legend: list[tuple[str, str]]

    width = WIDTH
    height = HEIGHT
    left = LEFT
    right = WIDTH - RIGHT
    top = TOP
    bottom = HEIGHT - BOTTOM
    middle = (LEFT + WIDTH - RIGHT) / 2
    half = (TOP + HEIGHT - BOTTOM) / 2


def draw_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    x_extent: tuple[float, float] | None = None,
    y_extent: tuple[float, float] | None = None,
    levels: Sequence[Level] = (),
    legend: Mapping[str, str] | None = None,
    digits: int = 1,
    **words: str,
) -> Chart | None:
    """Place the lines on their axes; None where no line has a point.

    Args:
        x_extent: ends of the axis of abscissae; those of the points where it is None.
        y_extent: the same of the ordinates.
        legend: words for each kind of line.
        digits: of the numbers in the table beneath the chart.
        words: `name`, `caption` and `y_label` of the `Chart`.
    """
    drawn = [one for one in series if one.points]
    if not drawn:
        return None
    x_low, x_high = x_extent or _extent(x for one in drawn for x, _ in one.points)
    y_low, y_high = y_extent or _extent(y for one in drawn for _, y in one.points)
    axes = _Axes(x_low, x_high, y_low, y_high)
    return Chart(
        **words,
        title=title,
        x_label=x_label,
        alt=f"{title}. {_in_words(drawn, levels, digits)}",
        lines=[_line(one, axes, digits) for one in drawn],
        levels=[replace(level, y=axes.y(level.value)) for level in levels],
        x_ticks=[Mark(axes.x(value), HEIGHT - BOTTOM, f"{value:g}") for value in ticks(x_low, x_high, whole=True)],
        y_ticks=[Mark(LEFT, axes.y(value), f"{value:g}") for value in ticks(y_low, y_high)],
        table=_table(title, x_label.partition(" (")[0], drawn, digits),
        legend=[(kind, words) for kind, words in (legend or {}).items() if any(one.kind == kind for one in drawn)],
    )


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers between two ends, six at most.

    Example:
        >>> ticks(0, 100), ticks(1, 10, whole=True)
        ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    """
    span = high - low
    if span <= 0:
        return [low]
    rough = span / (MOST_TICKS - 1)
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(size * magnitude for size in (1, 2, 5, 10) if size * magnitude >= rough * (1 - 1e-9))
    if whole:
        step = max(1.0, step)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


@dataclass(frozen=True)
class _Axes:
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - self.x_low) / ((self.x_high - self.x_low) or 1), 2)

    def y(self, value: float) -> float:
        share = (min(max(value, self.y_low), self.y_high) - self.y_low) / ((self.y_high - self.y_low) or 1)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 2)


def _extent(values: Iterable[float]) -> tuple[float, float]:
    """From zero, or from below it, to just above the greatest."""
    found = list(values)
    low, high = min(0.0, *found), max(found)
    return low, high * 1.05 if high > low else low + 1.0


def _line(series: Series, axes: _Axes, digits: int) -> Drawn:
    places = [(axes.x(x), axes.y(y), f"{series.label}, {x:g}: {y:.{digits}f}") for x, y in series.points]
    path = " ".join(f"{x},{y}" for x, y, _ in places)
    return Drawn(series.label, series.kind, path, [Mark(x, y, label) for x, y, label in places])


def _table(title: str, x_label: str, series: Sequence[Series], digits: int) -> Table:
    known = [dict(one.points) for one in series]
    places = sorted({x for one in known for x in one})
    return plain_table(
        f"Numbers of: {title}",
        [Column("x", x_label), *number_columns(*(one.label for one in series))],
        ([f"{x:g}", *(f"{one[x]:.{digits}f}" if x in one else MISSING for one in known)] for x in places),
        styles="",
    )


def _in_words(series: Sequence[Series], levels: Sequence[Level], digits: int) -> str:
    """Return the ends of the lines, for those who cannot see them."""
    ends = [
        f"{one.label}: {one.points[0][1]:.{digits}f} at {one.points[0][0]:g}, {one.points[-1][1]:.{digits}f} at "
        f"{one.points[-1][0]:g}."
        for one in series
    ]
    return " ".join([*ends, *(f"{level.label}: {level.value:.{digits}f}." for level in levels)])
