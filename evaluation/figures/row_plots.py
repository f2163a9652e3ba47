"""Rows below each other: names on the left, what is to be read on the right, values along an axis beneath.

`RowPlot` shows points with intervals, `ViolinPlot` distributions, `MatrixPlot` which rows differ from which others.
Rows get lower as they get more; 62 of them still have room for their names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from common.arrays import Floats
from evaluation.figures.style import SMALL, TEXT, Look, Palette, Size, draw_limit, mark_artist, mark_cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

Span = tuple[int, float, float]  # a row, and two values

WIDTH_INCHES = 4.4
HOLLOW = -1  # a fill beside those of the palette's series
MOST_CELLS = 20  # of a matrix; rows of more are bars
_FEW, _DENSE, _NAMELESS = 16, 34, 150  # with more rows than these, they are lower and hold less
_AROUND_INCHES = 0.95  # the key, the axis and its name
_RATING_SPAN = 3  # ticks of scales that are wider stand at whole numbers
_EVIDENCE_SIZES = (4.0, 5.6, 7.4)


@dataclass(frozen=True, slots=True)
class Rows:
    """What is drawn next to the rows.

    Attributes:
        names: on the left.
        columns: head and texts of what stands on the right.
        bold: rows whose names are set in bold.
        breaks: rows above which a line is drawn.
        roomy: inches of a row where there are few.
        told: of each row its whole name and where it leads (`mark_artist`); empty for nothing.
    """

    names: Sequence[str]
    columns: Sequence[tuple[str, Sequence[str]]] = ()
    bold: Collection[int] = ()
    breaks: Collection[int] = ()
    roomy: float = 0.27
    told: Sequence[tuple[str, str]] = ()

    @property
    def row_inches(self) -> float:
        rows = len(self.names)
        if rows > _NAMELESS:
            return 0.06
        return self.roomy if rows <= _FEW else 0.7 * self.roomy if rows <= _DENSE else max(0.16, 0.48 * self.roomy)

    @property
    def inches(self) -> float:
        return self.row_inches * len(self.names)

    @property
    def is_dense(self) -> bool:
        return len(self.names) > _DENSE

    def draw(self, axes: Axes, palette: Palette) -> None:
        """Set the rows out; their y is their number, from 0 on top."""
        from matplotlib.transforms import offset_copy

        count = len(self.names)
        axes.set_ylim(count - 0.5, -0.5)
        axes.set_yticks([])
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        for row in range(1, count, 2) if count > 3 else ():  # a pale ground for the eye to follow
            axes.axhspan(row - 0.5, row + 0.5, color=palette.grid, alpha=0.45, linewidth=0, zorder=0)
        for row in self.breaks:
            axes.axhline(row - 0.5, color=palette.line, linewidth=0.9)

        def write(shift: float, row: float, text: str, **look: Any) -> Any:
            place = offset_copy(axes.get_yaxis_transform(), axes.get_figure(root=True), shift, units="points")
            return axes.text(float(shift > 0), row, text, transform=place, **look)

        size = SMALL if self.is_dense else TEXT
        for row, name in enumerate(self.names if count <= _NAMELESS else ()):
            look: Look = {"ha": "right", "va": "center_baseline", "fontsize": size}
            drawn_name = write(-5, row, name, fontweight="bold" if row in self.bold else "normal", **look)
            if self.told:
                mark_artist(drawn_name, self._words(row), self.told[row][1])
        for row, (_, link) in enumerate(self.told):  # the whole row tells, not only its points
            band = axes.axhspan(row - 0.5, row + 0.5, color=palette.ink, alpha=0, linewidth=0, zorder=9)
            mark_artist(band, self._words(row), link)
        shift = 7.0
        for head, texts in self.columns:
            drawn = [write(shift, -0.5, head, va="bottom", color=palette.muted, fontsize=SMALL)]
            drawn += [
                write(shift, row, text, va="center_baseline", fontsize=SMALL) for row, text in enumerate(texts) if text
            ]
            widest = max(drawn, key=lambda one: len(one.get_text()))
            shift += 72 / axes.figure.dpi * widest.get_window_extent().width + 9

    def _words(self, row: int) -> str:
        """Return its whole name and what stands on the right, such as ``T01-p1: EER, % 22.5; group a``."""
        name = self.told[row][0]
        beside = "; ".join(f"{head} {texts[row]}" for head, texts in self.columns if texts[row])
        return f"{name}: {beside}" if name and beside else name


def set_value_axis(axes: Axes, limits: tuple[float, float], words: str, *, room: float = 0.0, most: int = 10) -> None:
    """The axis of values with `room` beyond its limits, ticks at round values."""
    low, high = limits
    axes.set_xlim(low - room, high + room)
    axes.locator_params(axis="x", nbins=most, steps=[1, 2, 5, 10], integer=high - low >= _RATING_SPAN)
    axes.set_xlabel(words)


@dataclass(frozen=True, slots=True)
class Marks:
    """Points of one look.

    Attributes:
        points: row and value.
        words: in the key; empty for none.
        spans: lines through them, such as intervals.
        marker: as matplotlib names it.
        fill: the place of a colour in the palette's series, or `HOLLOW`.
        size: of a point.
    """

    points: Sequence[tuple[int, float]]
    words: str = ""
    spans: Sequence[Span] = ()
    marker: str = "o"
    fill: int = 0
    size: float = 6.5

    def draw(self, axes: Axes, palette: Palette) -> None:
        ink = palette.ink
        if self.spans:
            rows, lows, highs = zip(*self.spans, strict=True)
            axes.hlines(rows, lows, highs, color=ink, linewidth=1.2, zorder=2.5)
            axes.plot([*lows, *highs], [*rows, *rows], "|", color=ink, markersize=5, zorder=2.5)
        colour = "none" if self.fill == HOLLOW else palette.series[self.fill]
        edge = colour if self.marker == "|" else palette.ink
        look: Look = {"marker": self.marker, "markersize": self.size, "color": ink}
        look |= {"markerfacecolor": colour, "markeredgecolor": edge}
        look |= {"markeredgewidth": 1.4 if self.marker == "|" else 0.8, "zorder": 3}
        axes.plot([value for _, value in self.points], [row for row, _ in self.points], linestyle="none", **look)
        if self.words:
            axes.plot([], [], linestyle="-" if self.spans else "none", label=self.words, linewidth=1.2, **look)


@dataclass(frozen=True, slots=True)
class RowPlot:
    """Rows on one axis of values.

    Attributes:
        limits: of the axis; an interval beyond them is cut and has an arrowhead.
        axis: its name.
        bands: areas behind the points, such as what chance gives, each from a line on.
        band_words: in the key.
        lines: values through all rows with their words for the key.
    """

    rows: Rows
    marks: Sequence[Marks]
    limits: tuple[float, float]
    axis: str
    bands: Sequence[Span] = ()
    band_words: str = ""
    lines: Sequence[tuple[float, str]] = ()

    @property
    def size(self) -> Size:
        return Size(WIDTH_INCHES, round(_AROUND_INCHES + self.rows.inches, 2))

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        self.rows.draw(axes, palette)
        for one in self.marks:
            one.draw(axes, palette)
        for place, (row, low, high) in enumerate(self.bands):
            label = self.band_words if not place else None
            look: Look = {"color": palette.series[1], "zorder": 1.5}
            axes.barh([row], [high - low], 0.72, left=low, alpha=0.45, linewidth=0, label=label, **look)
            axes.vlines(low, row - 0.36, row + 0.36, linewidth=1.3, **look)
        for value, words in self.lines:
            draw_limit(axes, value, palette, label=words)
        low, high = self.limits
        room = 0.03 * (high - low)
        set_value_axis(axes, self.limits, self.axis, room=room, most=6)
        spans = [span for one in self.marks for span in one.spans]
        cut = [(low - room, row, "<") for row, start, _ in spans if start < low]
        mark_cut(axes, [*cut, *((high + room, row, ">") for row, _, end in spans if end > high)], palette)


@dataclass(frozen=True, slots=True)
class Violin:
    """A distribution in its row.

    Attributes:
        row: its number.
        bins: lower and upper edge, and share, ascending; the outline follows them smoothly.
        mean: with its interval, where there is one.
        box: low whisker, first quartile, median, third quartile and high whisker; None where there is none.
        side: above (-1) or below (1) the middle of the row, or on both sides (0).
        is_anchor: what others are compared with.
    """

    row: int
    bins: Sequence[tuple[float, float, float]]
    mean: float
    interval: tuple[float, float] | None = None
    box: tuple[float, float, float, float, float] | None = None
    side: int = 0
    is_anchor: bool = False

    @property
    def densest(self) -> float:
        return max((share / (high - low or 1.0) for low, high, share in self.bins), default=0.0)


@dataclass(frozen=True, slots=True)
class ViolinPlot:
    """Outlines of distributions, equally wide at their widest, with boxes, and means with their intervals.

    Attributes:
        side_words: of what is above and what is below, for the key.
        reference: a value through all rows with its words.
        room: beyond the limits.
    """

    rows: Rows
    violins: Sequence[Violin]
    limits: tuple[float, float]
    axis: str
    side_words: tuple[str, str] | None = None
    reference: tuple[float, str] | None = None
    room: float = 0.0

    @property
    def size(self) -> Size:
        return Size(WIDTH_INCHES, round(_AROUND_INCHES + 0.2 + self.rows.inches, 2))

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        self.rows.draw(axes, palette)
        self._draw_outlines(axes, palette)
        self._draw_boxes(axes, palette)
        means = [(one, one.row + 0.22 * one.side) for one in self.violins]
        ends = [(y, *one.interval) for one, y in means if one.interval]
        if ends:
            axes.hlines(*zip(*ends, strict=True), color=palette.ink, linewidth=1.3, zorder=4)
        look: Look = {"marker": "D", "markersize": 3.2 if self.rows.is_dense else 4.2, "color": palette.ink}
        look |= {"markerfacecolor": palette.series[1], "markeredgewidth": 0.7, "zorder": 5}
        axes.plot([one.mean for one, _ in means], [y for _, y in means], linestyle="none", **look)
        words = "mean, interval" if ends else "mean"
        axes.plot([], [], linestyle="-" if ends else "none", linewidth=1.3, label=words, **look)
        if self.reference:
            draw_limit(axes, self.reference[0], palette, label=self.reference[1])
        set_value_axis(axes, self.limits, self.axis, room=self.room)

    def _draw_outlines(self, axes: Axes, palette: Palette) -> None:
        widest: dict[int, float] = {}
        for one in self.violins:
            widest[one.row] = max(widest.get(one.row, 0.0), one.densest)
        for one in (one for one in self.violins if one.densest):
            places, density = _smoothen(one.bins)
            colour = palette.series[0 if one.side <= 0 else 3] if one.side or not one.is_anchor else palette.muted
            stats = dict.fromkeys(("mean", "median", "min", "max"), 0.0) | {"coords": places, "vals": density}
            drawn = axes.violin(
                [stats],
                [one.row],
                orientation="horizontal",
                widths=0.88 * density.max() / widest[one.row],
                showextrema=False,
                side="both" if not one.side else "low" if one.side < 0 else "high",
            )
            [body] = cast("list[PolyCollection]", drawn["bodies"])
            body.set(facecolor=(colour, 0.3), edgecolor=colour, alpha=None, linewidth=0.9, zorder=2)
        for side, words in zip((0, 3), self.side_words or (), strict=False):
            axes.fill_between([], [], color=palette.series[side], label=words)

    def _draw_boxes(self, axes: Axes, palette: Palette) -> None:
        names = ("whislo", "q1", "med", "q3", "whishi")
        held = [one for one in self.violins if one.box]
        if not held:
            return
        thin: Look = {"color": palette.ink, "linewidth": 0.6 if self.rows.is_dense else 0.9}
        axes.bxp(
            [dict(zip(names, one.box or (), strict=True)) for one in held],
            [one.row for one in held],
            orientation="horizontal",
            widths=0.48 if self.rows.is_dense else 0.34,
            showfliers=False,
            showcaps=not self.rows.is_dense,
            boxprops=thin,
            capprops=thin,
            whiskerprops=thin | ({"linewidth": 0} if self.rows.is_dense else {}),
            medianprops=thin | {"linewidth": 2.0, "solid_capstyle": "butt"},
            manage_ticks=False,
            zorder=3,
        )
        axes.plot([], [], "s", markerfacecolor="none", markeredgecolor=palette.ink, label="quartiles, median")


def _smoothen(bins: Sequence[tuple[float, float, float]]) -> tuple[Floats, Floats]:
    """Density along the values, equal to that of each bin at its centre, monotone in between."""
    from scipy.interpolate import PchipInterpolator

    lower, upper, shares = np.array(bins, dtype=np.float64).T
    width = np.where(upper > lower, upper - lower, 1.0)
    density = shares / width
    filled = np.flatnonzero(density)
    places = np.concatenate([[lower[0]], lower + width / 2, [lower[-1] + width[-1]]])
    heights = np.concatenate([[0.6 * density[0]], density, [0.6 * density[-1]]])
    x = np.linspace(places[0], places[-1], 6 * len(bins) + 1)
    used = (x >= lower[filled[0]] - width[0] / 2) & (x <= lower[filled[-1]] + 1.5 * width[-1])
    return x[used], np.asarray(PchipInterpolator(places, heights)(x), dtype=np.float64)[used]


@dataclass(frozen=True, slots=True)
class MatrixPlot:
    """Each row against each other: a triangle that points up where it is higher, down where it is lower.

    With more than `MOST_CELLS` rows each is a bar over the ranks of all others, cut where the evidence changes, since
    cells would be too small to be read.

    Attributes:
        strengths: of the evidence, 0 for none to 3, negative where the row is lower; None where nothing is known.
        levels: words for the sizes of triangles; empty where all have one.
    """

    names: Sequence[str]
    strengths: Sequence[Sequence[int | None]]
    levels: str
    bold: Collection[int] = ()
    told: Sequence[tuple[str, str]] = ()

    @property
    def is_dense(self) -> bool:
        return len(self.names) > MOST_CELLS

    @property
    def _rows(self) -> Rows:
        names = [f"{name}  {rank}" for rank, name in enumerate(self.names, start=1)] if self.is_dense else self.names
        return Rows(names, bold=self.bold, roomy=0.34 if self.is_dense else 0.27, told=self.told)

    @property
    def size(self) -> Size:
        around = _AROUND_INCHES if self.is_dense else 0.55 + 0.08 * max(map(len, self.names))
        return Size(WIDTH_INCHES, round(around + self._rows.inches, 2))

    def paint(self, figure: Figure, palette: Palette) -> None:
        axes = figure.subplots()
        self._rows.draw(axes, palette)
        if self.is_dense:
            self._draw_bars(axes, palette)
        else:
            self._draw_cells(axes, palette)

    def _draw_cells(self, axes: Axes, palette: Palette) -> None:
        count = len(self.names)
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        axes.set_xlim(-0.5, count - 0.5)
        axes.set_xticks(range(count), self.names, rotation=90, fontsize=SMALL)
        axes.tick_params(axis="x", labeltop=True, labelbottom=False, pad=2, labelcolor=palette.ink)
        axes.set_anchor("NW")
        axes.set_aspect("equal", adjustable="box")
        point: Look = {"linestyle": "none", "markeredgecolor": palette.ink, "markeredgewidth": 0.5}
        up = point | {"marker": "^", "color": palette.series[0]}
        down = point | {"marker": "v", "color": palette.series[1]}
        alike = point | {"marker": ".", "color": palette.ink, "markersize": 3.0}
        places: dict[int, list[tuple[int, int]]] = {}
        for row, strengths in enumerate(self.strengths):
            for column, strength in enumerate(strengths):
                if strength is not None:
                    places.setdefault(strength, []).append((column, row))
        for strength, held in sorted(places.items()):
            look: Look = {"markersize": _EVIDENCE_SIZES[abs(strength) - 1]} if strength else {}
            look = (up if strength > 0 else down if strength else alike) | look
            axes.plot(*zip(*held, strict=True), **look)
        axes.plot(range(count), range(count), "_", color=palette.line, markersize=6)
        for words, look in (("row higher", up), ("row lower", down), ("not significant", alike)):
            axes.plot([], [], label=words, **(Look(markersize=7.4) | look))
        if self.levels:
            axes.plot([], [], linestyle="none", label=f"small to large: {self.levels}")

    def _draw_bars(self, axes: Axes, palette: Palette) -> None:
        count = len(self.names)
        signs: dict[int, list[tuple[int, float, float]]] = {1: [], 0: [], -1: []}
        for row, strengths in enumerate(self.strengths):
            signed = [None if one is None else (one > 0) - (one < 0) for one in strengths]
            for sign, run in groupby(enumerate(signed, start=1), key=lambda each: each[1]):
                ranks = [rank for rank, _ in run]
                if sign is not None:
                    signs[sign].append((row, ranks[0] - 0.5, len(ranks)))
        looks: dict[int, dict[str, Any]] = {
            1: {"color": palette.series[0], "linewidth": 0, "label": "higher"},
            0: {"color": "none", "edgecolor": palette.ink, "linewidth": 0.6, "label": "not significant"},
            -1: {"color": palette.series[1], "edgecolor": palette.ink, "linewidth": 0.4, "label": "lower"},
        }
        looks[-1] |= {"hatch": "////"}
        for sign, runs in signs.items():
            rows, starts, widths = ([run[part] for run in runs] for part in range(3))
            axes.barh(rows, widths, 0.62, left=starts, **looks[sign])
        axes.set_xlim(0.5, count + 0.5)
        axes.set_xticks([1, *range(5 if count <= 40 else 10, count + 1, 5 if count <= 40 else 10)])
        axes.set_xlabel("against the system of rank")
