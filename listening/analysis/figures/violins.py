"""How the scores of each system are distributed: violin, box, median, and mean with its interval.

The violin follows the shares of the histogram, smoothly and without overshoot; all violins are equally wide at their
widest. For verifiability it is split: pairs of one speaker above the line, of two speakers below it.
As figure 6 of the results of VoicePrivacy 2022, boxes with median and mean, turned so that names stay readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import Palette
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.rows import DENSE, apart, row_axes, rows_inches, score_axis
from listening.analysis.figures.sheet import Mark, Sheet, key_inches, size_of
from listening.analysis.figures.view import Record, View, has_interval, numbers_of, ordered
from listening.analysis.figures.words import listed, number, percent, sentence, short_group
from listening.analysis.inputs import ORIGINAL, Floats
from listening.analysis.tables import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = (
    "system", "kind", "n", "listeners", "mean", "mean_low", "mean_high", "median", "q1", "q3", "low_whisker",
    "high_whisker", "group",
)  # fmt: skip
_HALF_ROW = 0.44
_POINTS_A_BIN = 6
# Kinds of pairs and where they lie in their row: above, below, or on both sides of its middle.
_SPLIT = (("target", -1), ("nontarget", 1))
_WHOLE = (("all", 0),)
_WORDS = {"target": "same speaker", "nontarget": "different speakers"}


@dataclass(frozen=True)
class _Drawn:
    """What is drawn: systems in order, their summaries and histograms by system and kind."""

    view: View
    scores: Scores
    task: str
    systems: Sequence[str]
    summaries: dict[tuple[str, str], Record]
    bins: dict[tuple[str, str], list[Record]]

    @property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        return _SPLIT if any(kind == "target" for _, kind in self.summaries) else _WHOLE


def violin_figures(view: View, scores: Scores, task: str) -> list[Figure]:
    """One figure of a task."""
    summaries = {(str(row["system"]), str(row["kind"])): row for row in view.rows(scores, "summary", task)}
    summaries = {key: row for key, row in summaries.items() if row["mean"] is not None}
    if not summaries:
        return []
    is_split = any(kind == "target" for _, kind in summaries)
    leading = "target" if is_split else "all"
    leaders = {system: row for (system, kind), row in summaries.items() if kind == leading}
    systems = ordered(leaders, "mean", highest_first=not is_split)
    bins: dict[tuple[str, str], list[Record]] = {}
    for row in view.rows(scores, "histogram", task):
        bins.setdefault((str(row["system"]), str(row["kind"])), []).append(row)
    drawn = _Drawn(view, scores, task, systems, summaries, bins)
    marks = _marks(drawn, None)
    height = key_inches(marks) + 0.3 + rows_inches(len(systems))
    return [
        Figure(
            scores=scores,
            name=f"violin-{task}",
            title=f"{sentence(task)} of each system",
            caption=_caption(drawn),
            alt=_alt(drawn),
            size=size_of(height, is_simulated=view.is_simulated),
            paint=lambda sheet: _paint(sheet, drawn),
            count=lambda: _count(drawn),
            task=task,
            is_simulated=view.is_simulated,
        )
    ]


def _caption(drawn: _Drawn) -> str:
    view, task = drawn.view, drawn.task
    shown = [row for (system, kind), row in drawn.summaries.items() if kind == "all" and system in drawn.systems]
    if drawn.kinds is _SPLIT:
        what = "Pairs of the same speaker above each line, of different speakers below; sorted by the mean of the same."
    else:
        what = "Sorted by mean."
    letters = "Systems that share a letter cannot be told apart." if _groups(drawn) else ""
    return view.caption(
        view.kind_words(drawn.scores, task),
        "Outline: share of ratings, equally wide for all.",
        "" if drawn.kinds is _SPLIT else "Box: quartiles and median; whiskers: within 1.5 interquartile ranges.",
        what,
        "Dashed line: mean of the originals." if ORIGINAL in drawn.systems else "",
        letters,
        view.size_words(shown, "n"),
        view.interval_words(are_drawn=has_interval(drawn.summaries.values(), "mean")),
    )


def _alt(drawn: _Drawn) -> str:
    view, kind = drawn.view, drawn.kinds[0][0]
    found = []
    for system in drawn.systems:
        row = drawn.summaries[system, kind]
        text = f"{view.labels[system]} mean {number(row['mean'])}"
        if row["mean_low"] is not None:
            text += f" ({number(row['mean_low'])} to {number(row['mean_high'])})"
        if kind == "target" and (other := drawn.summaries.get((system, "nontarget"))):
            text += f" for the same speaker, {number(other['mean'])} for different ones"
        else:
            text += f", median {number(row['median'])}"
        found.append(text)
    return f"{sentence(drawn.task)}, {view.level_words} intervals in brackets: {listed(found)}."


def _count(drawn: _Drawn) -> NumberTable:
    kinds = [kind for kind, _ in drawn.kinds]
    rows = [drawn.summaries[s, kind] for s in drawn.systems for kind in kinds if (s, kind) in drawn.summaries]
    return NumberTable(*numbers_of(drawn.view, rows, _COLUMNS))


def _groups(drawn: _Drawn) -> bool:
    return any(row["group"] for row in drawn.summaries.values())


def _marks(drawn: _Drawn, palette: Palette | None) -> list[Mark]:
    """The key; without a palette only its words."""
    ink, colours = (palette.ink, palette.series) if palette else ("k", ("k",) * 4)
    diamond = {"marker": "D", "linestyle": "none", "color": colours[1], "markeredgecolor": ink, "markersize": 5.5}
    if has_interval(drawn.summaries.values(), "mean"):
        diamond |= {"linestyle": "-", "color": ink, "markerfacecolor": colours[1], "linewidth": 1.3}
    words = "mean, interval" if "markerfacecolor" in diamond else "mean"
    marks = [Mark(words, diamond)]
    box = {"facecolor": "none", "edgecolor": ink, "linewidth": 0.9}
    if drawn.kinds is _SPLIT:
        marks += [
            Mark(_WORDS[kind], {"facecolor": colours[0 if side < 0 else 3], "edgecolor": "none"}, is_area=True)
            for kind, side in _SPLIT
        ]
    else:
        marks.append(Mark("quartiles, median", box, is_area=True))
    if ORIGINAL in drawn.systems and drawn.kinds is _WHOLE and palette:
        marks.append(Mark("originals", {"color": palette.warning, "linewidth": 1.1, "dashes": (4, 3), "marker": ""}))
    elif ORIGINAL in drawn.systems and drawn.kinds is _WHOLE:
        marks.append(Mark("originals", {"color": ink}))
    return marks


def _paint(sheet: Sheet, drawn: _Drawn) -> None:
    view, kinds = drawn.view, drawn.kinds
    marks = _marks(drawn, sheet.palette)
    sheet.key(marks, sheet.top)
    top = sheet.top + key_inches(marks) + 0.22
    leaders = [drawn.summaries[system, kinds[0][0]] for system in drawn.systems]
    columns = [("mean", [number(row["mean"]) for row in leaders])]
    if kinds is _SPLIT:
        others = [drawn.summaries.get((system, "nontarget"), {}) for system in drawn.systems]
        columns = [("same", columns[0][1]), ("diff.", [number(row.get("mean")) for row in others])]
    elif _groups(drawn):
        columns.append(("group", [short_group(str(row["group"] or "")) for row in leaders]))
    bold = [place for place, system in enumerate(drawn.systems) if system == ORIGINAL]
    axes = row_axes(sheet, [view.short[system] for system in drawn.systems], top, columns=columns, bold=bold)
    for place, system in enumerate(drawn.systems):
        bins = [drawn.bins.get((system, kind), []) for kind, _ in kinds]
        widest = max((float(one["share"] or 0) / _width(one) for rows in bins for one in rows), default=0.0) or 1.0
        for (kind, side), held in zip(kinds, bins, strict=True):
            if row := drawn.summaries.get((system, kind)):
                _outline(axes, held, place, side, _HALF_ROW / widest, _colour(system, side, sheet.palette))
                _summary(axes, row, place, side, sheet.palette, is_dense=len(drawn.systems) > DENSE)
    _reference(axes, drawn, sheet.palette)
    if bold and len(drawn.systems) > 1:
        apart(axes, 1, sheet)
    low, high = view.scale(drawn.scores, drawn.task)
    ends = [float(one[edge]) for rows in drawn.bins.values() for one in rows for edge in ("lower", "upper")]
    room = max(0.02 * (high - low), high - low and max(low - min(ends, default=low), max(ends, default=high) - high))
    score_axis(axes, low, high, view.score_words(drawn.scores, drawn.task), room=room)


def _colour(system: str, side: int, palette: Palette) -> str:
    if side:
        return palette.series[0 if side < 0 else 3]
    return palette.muted if system == ORIGINAL else palette.series[0]


def _width(row: Record) -> float:
    return float(row["upper"]) - float(row["lower"]) or 1.0


def _outline(axes: Axes, bins: Sequence[Record], place: int, side: int, scale: float, colour: str) -> None:
    """The violin, or the half of it on one side."""
    if not bins:
        return
    x, half = _smooth(bins)
    half = half * scale
    above = place - half if side <= 0 else np.full(x.size, float(place))
    below = place + half if side >= 0 else np.full(x.size, float(place))
    axes.fill_between(x, above, below, color=colour, alpha=0.3, linewidth=0, zorder=2)
    for edge in ([above] if side <= 0 else []) + ([below] if side >= 0 else []):
        axes.plot(x, edge, color=colour, linewidth=0.9, zorder=2.1)


def _smooth(bins: Sequence[Record]) -> tuple[Floats, Floats]:
    """Density along the scores, equal to that of each bin at its centre, monotone in between."""
    from scipy.interpolate import PchipInterpolator

    bins = sorted(bins, key=lambda row: float(row["lower"]))
    width = np.array([_width(row) for row in bins])
    lower = np.array([float(row["lower"]) for row in bins])
    density = np.array([float(row["share"] or 0) for row in bins]) / width
    filled = np.flatnonzero(density)
    if not filled.size:
        return lower[:1], density[:1]
    places = np.concatenate([[lower[0]], lower + width / 2, [lower[-1] + width[-1]]])
    heights = np.concatenate([[0.6 * density[0]], density, [0.6 * density[-1]]])
    x = np.linspace(places[0], places[-1], _POINTS_A_BIN * len(bins) + 1)
    smooth = np.asarray(PchipInterpolator(places, heights)(x), dtype=np.float64)
    used = (x >= lower[filled[0]] - width[0] / 2) & (x <= lower[filled[-1]] + 1.5 * width[-1])
    return x[used], smooth[used]


def _summary(axes: Axes, row: Record, place: int, side: int, palette: Palette, *, is_dense: bool) -> None:
    """The box, and the mean with its interval; without a box where the row is split."""
    y = place + 0.22 * side
    thin: dict[str, Any] = {"color": palette.ink, "solid_capstyle": "butt"}
    if not side:
        _box(axes, row, y, thin, half=0.24 if is_dense else 0.17, has_whiskers=not is_dense)
    if row["mean_low"] is not None and row["mean_high"] is not None:
        axes.plot([row["mean_low"], row["mean_high"]], [y, y], zorder=4, linewidth=1.3, **thin)
    axes.plot(
        [row["mean"]], [y], "D", markersize=3.2 if is_dense else 4.2, markerfacecolor=palette.series[1],
        markeredgecolor=palette.ink, markeredgewidth=0.6 if is_dense else 0.8, zorder=5,
    )  # fmt: skip


def _box(axes: Axes, row: Record, y: float, thin: dict[str, Any], *, half: float, has_whiskers: bool) -> None:
    """Quartiles, median and whiskers."""
    from matplotlib.patches import Rectangle

    if row["q1"] is not None and row["q3"] is not None:
        for quartile, whisker in (("q1", "low_whisker"), ("q3", "high_whisker")):
            if has_whiskers and row[whisker] is not None:
                axes.plot([row[quartile], row[whisker]], [y, y], zorder=3, linewidth=0.9, **thin)
                axes.plot([row[whisker]] * 2, [y - half / 2, y + half / 2], zorder=3, linewidth=0.9, **thin)
        corner = (float(row["q1"]), y - half)
        size = (float(row["q3"]) - corner[0], 2 * half)
        line = 0.9 if has_whiskers else 0.6
        axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=thin["color"], linewidth=line, zorder=3))
    if row["median"] is not None:
        axes.plot([row["median"]] * 2, [y - half, y + half], zorder=3.2, linewidth=2.0, **thin)


def _reference(axes: Axes, drawn: _Drawn, palette: Palette) -> None:
    row = drawn.summaries.get((ORIGINAL, "all"))
    if row and drawn.kinds is _WHOLE:
        axes.axvline(float(row["mean"]), color=palette.warning, linewidth=1.1, dashes=(4, 3), zorder=1)


def interval_text(row: Record, name: str) -> str:
    """The limits of a share in per cent, in brackets; nothing where there are none."""
    if row.get(f"{name}_low") is None:
        return ""
    return f" [{percent(row[f'{name}_low'])}, {percent(row[f'{name}_high'])}]"
