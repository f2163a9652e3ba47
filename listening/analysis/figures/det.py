"""DET curves of listeners on probit axes, equal error rates marked on the diagonal of equal rates.

Up to `MOST_IN_ONE` curves share one panel; more are dealt to panels of `IN_A_PANEL`, sorted by their rate, before all
others in grey, so that each can be found. Curves are told apart by colour, dashes and marker together.

Conventions: the polygon of the operating points is straight in rates, so it bends on probit axes; dots are operating
points where they are few. Rates below 1 / (2 N) are drawn there, and the axes end where the smallest class ends.
Source: Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.figures.det import DASHES, MARKERS
from evaluation.figures.style import Palette
from listening.analysis.figures.sheet import KEY_LINE, MARGIN, SMALL, TEXT, WIDTH_INCHES, Mark, Sheet, text_inches
from listening.analysis.inputs import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_IN_ONE = 6
IN_A_PANEL = 5
_MOST_LINES = 16  # of grey curves; more are drawn as the area that they fill
_FEW_POINTS = 16
_BETWEEN_PANELS, _KEY_COLUMN = 0.42, 1.85  # inches
_BETWEEN = 12
_STEP, _SMALL_STEP = 1 / 100, 1 / 40  # in probits: less than a point of print
_TICKS = (0.1, 0.5, 2, 5, 10, 20, 50, 80, 90, 95, 98, 99.5, 99.9)
# Of small panels, by where their axes begin.
_SMALL_TICKS = {0.1: (0.1, 2.0, 20.0, 50.0, 80.0, 98.0, 99.9), 0.5: (0.5, 5.0, 20.0, 50.0, 80.0, 95.0, 99.5)}


@dataclass(frozen=True, slots=True)
class Curve:
    """A DET curve.

    Attributes:
        name: in the key.
        miss_rate, false_alarm_rate: of each operating point, shares.
        eer: a share, None where there is none.
        least: smallest rates that the trials can show: 1 / (2 N) of targets and of nontargets.
        is_anchor: what others are compared with: the originals.
    """

    name: str
    miss_rate: Floats
    false_alarm_rate: Floats
    eer: float | None
    least: tuple[float, float]
    is_anchor: bool = False

    @property
    def words(self) -> str:
        return self.name if self.eer is None else f"{self.name} {100 * self.eer:.1f} %"


@dataclass(frozen=True, slots=True)
class Panels:
    """What is drawn before what: curves of each panel by their places in `curves`, others in grey behind them."""

    curves: Sequence[Curve]
    panels: Sequence[Sequence[int]]
    grey: Sequence[int]
    axis_words: tuple[str, str]
    heads: Sequence[str] = ()
    grey_words: str = "others"

    @property
    def columns(self) -> int:
        return 1 if len(self.panels) == 1 else 2

    @property
    def _key_inches(self) -> float:
        """Of the longest key of a panel."""
        entries = max(map(len, self.panels))
        return KEY_LINE * -(-entries // self.key_columns) + 0.06

    @property
    def key_columns(self) -> int:
        """Two where a panel has the width of the sheet and names are short."""
        is_short = all(text_inches(curve.words) < _KEY_COLUMN - 0.4 for curve in self.curves)
        return 2 if self.columns == 1 and is_short else 1

    @property
    def _side(self) -> float:
        """Of the square of a panel."""
        return 3.65 if self.columns == 1 else (WIDTH_INCHES - self.left - 2 * MARGIN - _BETWEEN_PANELS) / 2

    @property
    def _row_inches(self) -> float:
        return (0.24 if self.heads else 0.06) + self._side + self.below + self._key_inches

    @property
    def below(self) -> float:
        """Between a panel and its key: ticks, and the name of the axis where there is one panel."""
        return 0.5 if self.columns == 1 else 0.26

    @property
    def inches(self) -> float:
        rows = -(-len(self.panels) // self.columns)
        return self.head + rows * self._row_inches + 0.06

    @property
    def head(self) -> float:
        """The key, and the names of the axes where there are several panels."""
        return (3 if self.columns > 1 else 1) * KEY_LINE + 0.04

    @property
    def left(self) -> float:
        """Of the first panel: room for ticks, and for the name of the axis of a single one."""
        return 0.62 if self.columns == 1 else 0.42

    def place(self, panel: int, top: float) -> tuple[float, float, float]:
        """Left, top and side of the square of a panel."""
        row, column = divmod(panel, self.columns)
        left = self.left + (self._side + _BETWEEN_PANELS) * column
        return left, top + row * self._row_inches + (0.24 if self.heads else 0.06), self._side


def dealt(count: int) -> list[list[int]]:
    """So many curves in panels as equally full as can be."""
    if count <= MOST_IN_ONE:
        return [list(range(count))]
    panels = 2 * -(-count // (2 * IN_A_PANEL))  # two in a row
    ends = [round(count * panel / panels) for panel in range(panels + 1)]
    return [list(range(start, end)) for start, end in pairwise(ends)]


def paint_panels(sheet: Sheet, drawn: Panels) -> None:
    """Draw all panels on a sheet that is `drawn.inches` high."""
    palette = sheet.palette
    ticks = _ticks(drawn)
    marks = [
        Mark("chance", {"color": palette.muted, "linewidth": 1.1, "dashes": (5, 3), "marker": ""}),
        Mark("equal rates", {"color": palette.line, "linewidth": 1.0, "dashes": (1, 2), "marker": ""}),
    ]
    if drawn.grey:
        marks.append(Mark(drawn.grey_words, {"facecolor": palette.line, "alpha": 0.4}, is_area=True))
    sheet.key(marks, sheet.top, left=drawn.left)
    top = sheet.top + drawn.head
    step = _STEP if drawn.columns == 1 else _SMALL_STEP
    behind = [_drawable(drawn.curves[place], _SMALL_STEP) for place in drawn.grey]
    for number, panel in enumerate(drawn.panels):
        left, upper, side = drawn.place(number, top)
        axes = sheet.axes(left, upper, side, side)
        _frame(axes, ticks, palette, has_names=number % drawn.columns == 0)
        hidden = {drawn.grey.index(place) for place in panel if place in drawn.grey}
        _paint_grey(axes, [line for place, line in enumerate(behind) if place not in hidden], palette)
        for position, place in _positions(drawn, panel):
            _paint_curve(axes, drawn.curves[place], position, step, palette)
        if drawn.heads:
            sheet.words(left, upper - 0.12, drawn.heads[number], color=palette.muted)
        _paint_key(sheet, drawn, panel, left, upper + side + drawn.below)
    _name_axes(sheet, drawn, top)


def _positions(drawn: Panels, panel: Sequence[int]) -> list[tuple[int, int]]:
    """Each curve of a panel with its number among those that are no anchor, which decides how it looks."""
    anchors = [drawn.curves[place].is_anchor for place in panel]
    return [(entry - sum(anchors[:entry]), place) for entry, place in enumerate(panel)]


def _name_axes(sheet: Sheet, drawn: Panels, top: float) -> None:
    """On the axes of the only panel, or once above several."""
    along, up = drawn.axis_words
    if drawn.columns > 1:
        sheet.words(drawn.left, sheet.top + 1.45 * KEY_LINE, f"↑ {up}")
        sheet.words(drawn.left, sheet.top + 2.4 * KEY_LINE, f"→ {along}")
        return
    left, upper, side = drawn.place(0, top)
    sheet.words(0.15, upper + side / 2, up, ha="center", va="center", rotation=90, fontsize=TEXT)
    sheet.words(left + side / 2, upper + side + 0.38, along, ha="center", fontsize=TEXT)


def _paint_key(sheet: Sheet, drawn: Panels, panel: Sequence[int], left: float, top: float) -> None:
    """Names and rates below a panel."""
    for entry, (position, place) in enumerate(_positions(drawn, panel)):
        line, side = divmod(entry, drawn.key_columns)
        mark = Mark(drawn.curves[place].words, _look(drawn.curves[place], position, sheet.palette))
        sheet.key([mark], top + KEY_LINE * line, left=left + _KEY_COLUMN * side)


def _look(curve: Curve, position: int, palette: Palette) -> dict[str, Any]:
    """Colour, dashes and marker of a curve; the anchor is in ink."""
    if curve.is_anchor:
        line: dict[str, Any] = {"color": palette.ink, "linewidth": 1.8, "marker": "h"}
    else:
        dashes = DASHES[(position + position // len(palette.series)) % len(DASHES)]
        line = {"color": palette.series[position % len(palette.series)], "linewidth": 1.7, "marker": MARKERS[position]}
        line |= {"dashes": dashes} if dashes else {}
    return line | {"markersize": 6.5, "markeredgecolor": palette.ink, "markeredgewidth": 0.8}


def _paint_curve(axes: Axes, curve: Curve, position: int, step: float, palette: Palette) -> None:
    look = _look(curve, position, palette)
    marker = {name: look.pop(name) for name in ("marker", "markersize", "markeredgecolor", "markeredgewidth")}
    x, y = _drawable(curve, step)
    axes.plot(x, y, zorder=3, **look)
    if curve.miss_rate.size <= _FEW_POINTS:
        x, y = _ends(curve)
        axes.plot(x, y, "o", color=look["color"], markersize=2.6, markeredgewidth=0, zorder=3.2)
    if curve.eer is not None:
        at = _probit(np.clip(curve.eer, min(curve.least), 1 - min(curve.least)))
        axes.plot(at, at, color=look["color"], zorder=4, **marker)


def _paint_grey(axes: Axes, lines: Sequence[tuple[Floats, Floats]], palette: Palette) -> None:
    """Others behind: lines, or the area between the lowest and the highest of many."""
    if len(lines) <= _MOST_LINES:
        for x, y in lines:
            axes.plot(x, y, color=palette.line, alpha=0.4, linewidth=0.9, zorder=2)
        return
    low, high = axes.get_xlim()
    grid = np.linspace(low, high, 200)
    heights = np.stack([np.interp(grid, x[np.argsort(x, kind="stable")], y[np.argsort(x, kind="stable")])
                        for x, y in lines])  # fmt: skip
    axes.fill_between(
        grid, heights.min(axis=0), heights.max(axis=0), color=palette.line, alpha=0.25, linewidth=0, zorder=1.5
    )


def _frame(axes: Axes, ticks: Sequence[float], palette: Palette, *, has_names: bool) -> None:
    """Square probit axes with the diagonal of equal rates and that of chance."""
    places = _probit(np.array(ticks) / 100)
    room = 0.12
    limits = np.array([places[0] - room, places[-1] + room])
    axes.plot(limits, limits, color=palette.line, linewidth=1.0, dashes=(1, 2), zorder=1)
    axes.plot(limits, -limits, color=palette.muted, linewidth=1.1, dashes=(5, 3), zorder=1)
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    names = [f"{tick:g}" for tick in ticks]
    axes.set_xticks(places, names)
    axes.set_yticks(places, names if has_names else [""] * len(names))
    axes.tick_params(axis="both", length=0, pad=4, labelsize=SMALL)
    axes.grid(visible=True)


def _ticks(drawn: Panels) -> list[float]:
    """Of both axes, to where the smaller class of most curves ends; fewer where panels are small."""
    finest = 100 * float(np.median([max(curve.least) for curve in drawn.curves]))
    low = 0.1 if finest < 0.4 else 0.5
    return [tick for tick in (_TICKS if drawn.columns == 1 else _SMALL_TICKS[low]) if low <= tick <= 100 - low]


def _ends(curve: Curve) -> tuple[Floats, Floats]:
    """The operating points in probits, none beyond what the trials can show: the first one of each end is the last."""
    least_miss, least_false_alarm = curve.least
    begin = int(np.searchsorted(curve.miss_rate, least_miss, side="right")) - 1
    end = int(np.searchsorted(-curve.false_alarm_rate, -least_false_alarm)) + 1
    used = slice(max(begin, 0), max(end, begin + 2))
    return (
        _probit(np.clip(curve.false_alarm_rate[used], least_false_alarm, 1 - least_false_alarm)),
        _probit(np.clip(curve.miss_rate[used], least_miss, 1 - least_miss)),
    )


def _drawable(curve: Curve, step: float) -> tuple[Floats, Floats]:
    """The polygon in probits: coarse ones with points along their segments, fine ones thinned."""
    false_alarm, miss = curve.false_alarm_rate, curve.miss_rate
    if 1 < miss.size <= 8 * _FEW_POINTS:
        along = np.linspace(0, miss.size - 1, _BETWEEN * (miss.size - 1) + 1)
        places = np.arange(miss.size)
        false_alarm, miss = np.interp(along, places, false_alarm), np.interp(along, places, miss)
    x, y = _ends(Curve(curve.name, miss, false_alarm, curve.eer, curve.least))
    cells = np.round(np.stack([x, y]) / step)
    kept = np.append(True, (np.diff(cells) != 0).any(axis=0))
    return x[kept], y[kept]


def _probit(rates: Floats) -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri(rates), dtype=np.float64)
