"""Two measures of each utterance against each other, as the number of utterances in each cell of a grid.

Ratings are few levels and utterances many, so points would lie on each other: the area of a circle is the number of
utterances there. No single utterance is named. The correlation stands in the corner with its interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evaluation.figures.numbers import NumberTable
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.rows import score_axis
from listening.analysis.figures.sheet import KEY_LINE, MARGIN, SMALL, TEXT, Mark, Sheet, size_of
from listening.analysis.figures.view import Record, View
from listening.analysis.figures.words import count, nice_step, number, sentence
from listening.analysis.inputs import ORIGINAL, RATED, Floats
from listening.analysis.tables import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _SIDE, _BELOW = 0.62, 3.6, 0.5
_BINS = 20
_MEASURES = ("pearson", "spearman")
_LARGEST_CIRCLE = 0.86  # of the side of a cell
# Measures by the column of the table of utterances: what correlations call them, slug, axis, range where it is fixed.
_WER = "one_minus_wer"


@dataclass(frozen=True, slots=True)
class _Axis:
    """A measure. `edges`: of its cells, ascending; values beyond them count in the outermost."""

    column: str
    words: str
    edges: Floats
    low: float
    high: float


@dataclass(frozen=True)
class _Drawn:
    """`utterances`: those with both measures."""

    view: View
    x: _Axis
    y: _Axis
    utterances: Sequence[Record]
    correlation: Record

    @property
    def below(self) -> int:
        """Utterances with more errors than words."""
        return sum(float(row[_WER]) < 0 for row in self.utterances) if _WER in (self.x.column, self.y.column) else 0

    @cached_property
    def cells(self) -> Mapping[tuple[int, int], int]:
        """How many utterances lie in each cell, by its column and line."""
        places = zip(*(_cells(axis, self.utterances) for axis in (self.x, self.y)), strict=True)
        return dict(sorted(Counter(places).items()))


_NAMES = {
    "naturalness": ("naturalness", "naturalness"),
    "intelligibility": ("intelligibility", "intelligibility"),
    "1 − WER": (_WER, "wer"),
    "one_minus_wer": (_WER, "wer"),
    "ρF0": ("pitch_correlation", "pitch"),
    "pitch_correlation": ("pitch_correlation", "pitch"),
}


def scatter_figures(view: View, scores: Scores) -> list[Figure]:
    """One figure for each pair of measures whose correlation is known."""
    utterances = view.rows(scores, "utterances")
    figures = []
    for row in view.rows(scores, "correlations"):
        first, second = (_NAMES.get(str(row[end])) for end in ("first", "second"))
        if first is None or second is None or row["pearson"] is None or not {first[0], second[0]} & set(RATED):
            continue
        drawn = _drawn(view, scores, row, first[0], second[0], utterances)
        if drawn.utterances:
            figures.append(_figure(view, scores, drawn, f"scatter-{first[1]}-{second[1]}"))
    return figures


def _drawn(
    view: View, scores: Scores, correlation: Record, first: str, second: str, utterances: Sequence[Record]
) -> _Drawn:  # fmt: skip
    """The subjective measure upwards; of two, the first."""
    x_name, y_name = (first, second) if second == "naturalness" else (second, first)
    x, y = _axis(view, scores, x_name), _axis(view, scores, y_name)
    held = [row for row in utterances if row[x.column] is not None and row[y.column] is not None]
    return _Drawn(view, x, y, [row for row in held if row["system"] != ORIGINAL], correlation)


def _axis(view: View, scores: Scores, column: str) -> _Axis:
    if column == _WER:
        # The last cell holds those in which every word was recognised, and no others.
        return _Axis(column, "1 − WER of the recogniser", np.linspace(0, 1 + 1 / _BINS, _BINS + 2), 0, 1)
    if column == "pitch_correlation":
        return _Axis(column, "Pitch correlation ρF0", np.linspace(-1, 1, _BINS + 1), -1, 1)
    low, high = view.scale(scores, column)
    levels = round(high - low)
    # Raw ratings have a cell for each level, so that an utterance with one rating stands on it.
    edges = np.arange(low - 0.5, high + 1) if 2 <= levels <= _BINS else np.linspace(low, high, _BINS + 1)
    return _Axis(column, view.score_words(scores, column), edges, low, high)


def _cells(axis: _Axis, utterances: Sequence[Record]) -> list[int]:
    """The number of the cell of each utterance along an axis."""
    values = np.array([float(row[axis.column]) for row in utterances])
    found = np.searchsorted(axis.edges, values, side="right") - 1
    return [int(place) for place in np.clip(found, 0, axis.edges.size - 2)]


def _figure(view: View, scores: Scores, drawn: _Drawn, name: str) -> Figure:
    row = drawn.correlation
    title = f"{sentence(str(row['first']))} and {row['second']} of each utterance"
    perfect = " The last column: every word recognised." if _WER in (drawn.x.column, drawn.y.column) else ""
    clipped = (
        f"{perfect} {count(drawn.below)} utterances with more errors than words stand at 0." if drawn.below else perfect
    )
    return Figure(
        scores=scores,
        name=name,
        title=title,
        caption=view.caption(
            view.kind_words(scores),
            f"Area of a circle: anonymised utterances in that cell.{clipped}",
            f"n = {count(int(row['utterances'] or len(drawn.utterances)))} utterances, "
            f"{count(int(row['listeners'] or 0))} listeners (the clusters).",
            view.interval_words(are_drawn=row["pearson_low"] is not None),
        ),
        alt=f"{title}: {'; '.join(_correlation(view, row, one) for one in _MEASURES)}.",
        size=size_of(2 * KEY_LINE + 0.1 + _SIDE + _BELOW, is_simulated=view.is_simulated),
        paint=lambda sheet: _paint(sheet, drawn),
        count=lambda: _count(drawn),
        is_simulated=view.is_simulated,
    )  # fmt: skip


def _correlation(view: View, row: Record, name: str) -> str:
    text = f"{sentence(name)} {number(row[name])}"
    if row[f"{name}_low"] is None:
        return text
    return f"{text} ({view.level_words} {number(row[f'{name}_low'])} to {number(row[f'{name}_high'])})"


def _count(drawn: _Drawn) -> NumberTable:
    """The cells that hold utterances."""
    columns = (f"{drawn.x.column}_from", f"{drawn.x.column}_to", f"{drawn.y.column}_from", f"{drawn.y.column}_to")
    rows = []
    for (x, y), held in drawn.cells.items():
        edges = (drawn.x.edges[x], drawn.x.edges[x + 1], drawn.y.edges[y], drawn.y.edges[y + 1])
        rows.append((*(round(float(edge), 6) for edge in edges), held))
    return NumberTable((*columns, "utterances"), tuple(rows))


def _paint(sheet: Sheet, drawn: _Drawn) -> None:
    palette, view, row = sheet.palette, drawn.view, drawn.correlation
    sheet.words(_LEFT, sheet.top + 0.5 * KEY_LINE, _correlation(view, row, "pearson"))
    sheet.words(_LEFT, sheet.top + 1.5 * KEY_LINE, _correlation(view, row, "spearman"))
    most = max(drawn.cells.values())
    top = sheet.top + 2 * KEY_LINE + 0.1
    axes = sheet.axes(_LEFT, top, sheet.width - _LEFT - MARGIN - 0.06, _SIDE)
    score_axis(axes, drawn.x.low, drawn.x.high, drawn.x.words, room=_room(drawn.x))
    axes.set_ylim(drawn.y.edges[0] - 0.01, drawn.y.edges[-1] + 0.01)
    _y_ticks(axes, drawn.y)
    axes.set_ylabel(drawn.y.words, fontsize=TEXT)
    axes.tick_params(axis="both", length=0, pad=4, labelsize=SMALL)
    axes.grid(visible=True)
    inches = ((sheet.width - _LEFT - MARGIN - 0.06) / (drawn.x.edges.size - 1), _SIDE / (drawn.y.edges.size - 1))
    widest = 72 * _LARGEST_CIRCLE * min((inches[0] * inches[1]) ** 0.5, 1.4 * min(inches))
    x, y, areas = [], [], []
    for (column, line), held in drawn.cells.items():
        x.append((drawn.x.edges[column] + drawn.x.edges[column + 1]) / 2)
        y.append((drawn.y.edges[line] + drawn.y.edges[line + 1]) / 2)
        areas.append(max(widest**2 * held / most, 1.2))
    axes.scatter(x, y, s=areas, color=palette.series[0], edgecolors=palette.ink, linewidths=0.4, zorder=3)
    circle = {"marker": "o", "linestyle": "none", "color": palette.series[0], "markeredgecolor": palette.ink,
              "markeredgewidth": 0.4}  # fmt: skip
    left = sheet.width - 1.45
    sheet.key([Mark(f"{count(most)} utterances", circle | {"markersize": min(widest, 12)})], sheet.top, left=left)
    few = max(1, most // 10)
    small = max(min(widest, 12) * (few / most) ** 0.5, 1.1)
    sheet.key([Mark(count(few), circle | {"markersize": small})], sheet.top + KEY_LINE, left=left)


def _room(axis: _Axis) -> float:
    beyond = max(axis.low - float(axis.edges[0]), float(axis.edges[-1]) - axis.high, 0.0)
    return beyond + 0.01 * (axis.high - axis.low)


def _y_ticks(axes: Axes, axis: _Axis) -> None:
    step = nice_step(axis.high - axis.low, 10)
    first = -(-axis.low // step) * step
    axes.set_yticks([first + step * place for place in range(int((axis.high - first) / step + 1e-6) + 1)])
