"""Scores as small multiples: same and different speakers of each system, or the originals beside each system.

As figures 7 and 8 of the results of VoicePrivacy 2022. One series is filled, the other a line, so that they are told
apart without colour; all panels have one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import Palette
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.rows import score_axis
from listening.analysis.figures.sheet import (
    KEY_LINE,
    MARGIN,
    SMALL,
    TEXT,
    WIDTH_INCHES,
    Mark,
    Sheet,
    size_of,
    text_inches,
)
from listening.analysis.figures.view import Record, View, numbers_of, ordered
from listening.analysis.figures.words import listed, number, percent, sentence
from listening.analysis.inputs import ORIGINAL, Floats
from listening.analysis.tables import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ("system", "kind", "lower", "upper", "count", "share")
_LEFT, _BETWEEN, _PANEL_INCHES, _HEAD_INCHES, _BELOW_INCHES = 0.5, 0.24, 0.8, 0.3, 0.46
_TOPS_PERCENT = (10, 20, 30, 40, 60, 80, 100)
_MANY = 16
_LITTLE_HIGHER = 2.0


@dataclass(frozen=True)
class _Panel:
    """A system: the bins of the series that is filled, and of the one that is a line."""

    system: str
    filled: Sequence[Record]
    line: Sequence[Record]
    eer: float | None


@dataclass(frozen=True)
class _Drawn:
    view: View
    scores: Scores
    task: str
    panels: Sequence[_Panel]
    filled_words: str
    line_words: str

    @property
    def columns(self) -> int:
        return 1 if len(self.panels) == 1 else 2 if len(self.panels) <= _MANY else 3

    @property
    def rows(self) -> int:
        return -(-len(self.panels) // self.columns)

    @property
    def inches(self) -> float:
        return KEY_LINE + 0.04 + self.rows * (self.head_inches + self.panel_inches) + _BELOW_INCHES

    @property
    def width_inches(self) -> float:
        """Of a panel."""
        return (WIDTH_INCHES - _LEFT - MARGIN - _BETWEEN * (self.columns - 1)) / self.columns

    @property
    def panel_inches(self) -> float:
        return _PANEL_INCHES if self.columns < 3 else 0.75 * _PANEL_INCHES

    @property
    def head_inches(self) -> float:
        """Room for the name and the rate above a panel: one line, or two where names are long."""
        return _HEAD_INCHES + (0.17 if self.has_long_names else 0)

    @property
    def has_long_names(self) -> bool:
        widest = max(text_inches(self.view.short[panel.system]) for panel in self.panels)
        return widest + text_inches("EER 50.0 %") > self.width_inches


def histogram_figures(view: View, scores: Scores, task: str) -> list[Figure]:
    """One figure of a task."""
    bins: dict[tuple[str, str], list[Record]] = {}
    for row in view.rows(scores, "histogram", task):
        bins.setdefault((str(row["system"]), str(row["kind"])), []).append(row)
    if not bins:
        return []
    detection = view.by_system(scores, "detection", task)
    is_split = any(kind == "target" for _, kind in bins)
    systems = _order(view, scores, task, {system for system, _ in bins}, is_split=is_split)
    if not is_split and len(systems) > 1 and ORIGINAL in systems:
        systems.remove(ORIGINAL)  # it stands in every panel
    panels = [
        _Panel(
            system,
            bins.get((system, "target" if is_split else "all"), []),
            bins.get((system, "nontarget") if is_split else (ORIGINAL, "all"), []),
            detection.get(system, {}).get("eer"),
        )
        for system in systems
    ]
    words = ("same speaker", "different speakers") if is_split else ("system", "originals")
    drawn = _Drawn(view, scores, task, panels, *words)
    return [
        Figure(
            scores=scores,
            name=f"histogram-{task}",
            title=f"{sentence(task)}: scores of {words[0]} and {words[1]}"
            if is_split
            else f"{sentence(task)}: scores of each system beside the originals",
            caption=_caption(drawn, is_split=is_split),
            alt=_alt(drawn),
            size=size_of(drawn.inches, is_simulated=view.is_simulated),
            paint=lambda sheet: _paint(sheet, drawn),
            count=lambda: _count(drawn),
            task=task,
            is_simulated=view.is_simulated,
        )
    ]


def _order(view: View, scores: Scores, task: str, systems: set[str], *, is_split: bool) -> list[str]:
    """As in the figure of equal error rates, or by mean where there are none."""
    if is_split:
        rates = view.by_system(scores, "detection", task)
        return ordered({name: rates.get(name, {"eer": None}) for name in systems}, "eer")
    means = view.by_system(scores, "summary", task, kind="all")
    return ordered({name: means.get(name, {"mean": None}) for name in systems}, "mean")


def _caption(drawn: _Drawn, *, is_split: bool) -> str:
    view = drawn.view
    rows = [row for row in view.rows(drawn.scores, "summary", drawn.task) if row["kind"] == "all"]
    what = f"Filled: {drawn.filled_words}; line: {drawn.line_words}; shares of the ratings of each kind."
    order = "Sorted by equal error rate, the originals first." if is_split else "Sorted by mean."
    eer = "Beside each name its EER." if any(panel.eer is not None for panel in drawn.panels) else ""
    size = f"▲: higher than its panel. {view.size_words(rows, 'n')}"
    return view.caption(view.kind_words(drawn.scores, drawn.task), what, order, eer, size)


def _alt(drawn: _Drawn) -> str:
    found = []
    for panel in drawn.panels:
        text = f"{drawn.view.labels[panel.system]}: most often {_mode(panel.filled)} for {drawn.filled_words}"
        if panel.line:
            text += f", {_mode(panel.line)} for {drawn.line_words}"
        if panel.eer is not None:
            text += f", EER {percent(panel.eer)} %"
        found.append(text)
    return f"{sentence(drawn.task)}. {listed(found)}."


def _mode(bins: Sequence[Record]) -> str:
    """The fullest bin in words."""
    if not bins:
        return "nothing"
    fullest = max(bins, key=lambda row: float(row["share"] or 0))
    middle = (float(fullest["lower"]) + float(fullest["upper"])) / 2
    return f"{number(middle, 0 if middle == round(middle) else 2)} ({percent(fullest['share'], 0)} %)"


def _count(drawn: _Drawn) -> NumberTable:
    rows = [row for panel in drawn.panels for row in panel.filled]
    if drawn.line_words == "originals":
        return NumberTable(*numbers_of(drawn.view, [*(drawn.panels[0].line if drawn.panels else ()), *rows], _COLUMNS))
    rows = [row for panel in drawn.panels for series in (panel.filled, panel.line) for row in series]
    return NumberTable(*numbers_of(drawn.view, rows, _COLUMNS))


def _paint(sheet: Sheet, drawn: _Drawn) -> None:
    palette = sheet.palette
    sheet.key(
        [
            Mark(drawn.filled_words, {"facecolor": palette.series[0], "alpha": 0.75}, is_area=True),
            Mark(drawn.line_words, {"color": palette.ink, "linewidth": 1.5, "marker": ""}),
        ],
        sheet.top,
        left=_LEFT,
    )  # fmt: skip
    width = drawn.width_inches
    high = _top_percent(drawn)
    every = [row for panel in drawn.panels for bins in (panel.filled, panel.line) for row in bins]
    low_edge = min((float(row["lower"]) for row in every), default=0.0)
    high_edge = max((float(row["upper"]) for row in every), default=1.0)
    for place, panel in enumerate(drawn.panels):
        row, column = divmod(place, drawn.columns)
        left = _LEFT + (width + _BETWEEN) * column
        top = sheet.top + KEY_LINE + 0.04 + row * (drawn.head_inches + drawn.panel_inches) + drawn.head_inches
        axes = sheet.axes(left, top, width, drawn.panel_inches)
        low, end = drawn.view.scale(drawn.scores, drawn.task)
        if place + drawn.columns < len(drawn.panels):
            axes.set_xticks([])
        else:
            score_axis(axes, low, end, "", most=9 if end - low > 1 and drawn.columns < 3 else 5 if end - low > 1 else 3)
        axes.set_xlim(low_edge, high_edge)
        _paint_panel(axes, panel, palette)
        _name_cut(axes, panel, high, palette)
        axes.set_ylim(0, 1.04 * high)
        if column == 0:
            axes.set_yticks([0, high / 2, high], ["0", f"{high / 2:g}", f"{high} %"])
        else:
            axes.set_yticks([])
        axes.hlines([high / 2, high], low_edge, high_edge, color=palette.grid, linewidth=0.8, zorder=0)
        axes.tick_params(axis="both", length=0, pad=4, labelsize=SMALL)
        _head(sheet, drawn, panel, left, top - 0.1, width)
    words = drawn.view.score_words(drawn.scores, drawn.task)
    sheet.words(_LEFT + (sheet.width - _LEFT) / 2, sheet.height - 0.13, words, ha="center", fontsize=TEXT)


def _top_percent(drawn: _Drawn) -> int:
    """Where every panel ends: above all bars of systems; what is higher of the originals is cut and named."""
    systems = [panel for panel in drawn.panels if panel.system != ORIGINAL] or drawn.panels
    bins = [row for panel in systems for row in panel.filled]
    if drawn.line_words != "originals":
        bins += [row for panel in systems for row in panel.line]
    highest = 100 * max((float(row["share"] or 0) for row in bins), default=1.0)
    every = [row for panel in drawn.panels for held in (panel.filled, panel.line) for row in held]
    highest_of_all = 100 * max((float(row["share"] or 0) for row in every), default=1.0)
    if highest_of_all <= _LITTLE_HIGHER * highest:
        highest = highest_of_all
    return next(top for top in _TOPS_PERCENT if highest <= top + 1e-9)


def _name_cut(axes: Axes, panel: _Panel, top: int, palette: Palette) -> None:
    """The share of a bar that is higher than its panel, beside it."""
    for row in (*panel.filled, *panel.line):
        share = 100 * float(row["share"] or 0)
        if share > 1.04 * top:
            low, high = axes.get_xlim()
            is_left = float(row["upper"]) < (low + high) / 2
            axes.annotate(
                f"▲ {share:.0f} %", (float(row["upper" if is_left else "lower"]), 0.86 * top),
                xytext=(3 if is_left else -3, 0), textcoords="offset points", ha="left" if is_left else "right",
                va="center", fontsize=SMALL, color=palette.muted,
            )  # fmt: skip


def _paint_panel(axes: Axes, panel: _Panel, palette: Palette) -> None:
    if panel.filled:
        x, shares = _steps(panel.filled)
        axes.fill_between(x, shares, color=palette.series[0], alpha=0.75, linewidth=0)
    if panel.line:
        x, shares = _steps(panel.line)
        axes.plot(x, shares, color=palette.ink, linewidth=1.3, solid_joinstyle="miter")
    axes.spines["left"].set_visible(False)


def _steps(bins: Sequence[Record]) -> tuple[Floats, Floats]:
    """The outline of bars, shares in per cent."""
    bins = sorted(bins, key=lambda row: float(row["lower"]))
    edges = [float(bins[0]["lower"]), *(float(row["upper"]) for row in bins)]
    shares = 100 * np.array([float(row["share"] or 0) for row in bins])
    return np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(shares, 2), [0.0]])


def _head(sheet: Sheet, drawn: _Drawn, panel: _Panel, left: float, y: float, width: float) -> None:
    look: dict[str, Any] = {"fontweight": "bold"} if panel.system == ORIGINAL else {}
    is_above = drawn.has_long_names and panel.eer is not None
    sheet.words(left, y - (0.17 if is_above else 0), drawn.view.short[panel.system], color=sheet.palette.ink, **look)
    if panel.eer is not None:
        x, side = (left, "left") if is_above else (left + width, "right")
        sheet.words(x, y, f"EER {percent(panel.eer)} %", ha=side, color=sheet.palette.muted)
