"""Which systems differ: every system against every other, adjusted p-values of tests within listeners.

A triangle that points up: the system of the row is rated higher; down: lower; its size is the strength of the evidence.
With more than `MOST_CELLS` systems a row is a bar over the ranks of all others, cut where the evidence changes, since
cells would be too small to be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import Palette
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.rows import BELOW_INCHES, row_axes, row_inches
from listening.analysis.figures.sheet import (
    MARGIN,
    SMALL,
    TEXT,
    WIDTH_INCHES,
    Mark,
    Sheet,
    key_inches,
    size_of,
    text_inches,
)  # fmt: skip
from listening.analysis.figures.view import Record, View
from listening.analysis.figures.words import count, listed, percent, sentence
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Scores

MOST_CELLS = 20
_LEVELS = (0.05, 0.01, 0.001)
_SIZES = (4.0, 5.6, 7.4)
_COLUMNS = (
    "first", "first_label", "second", "second_label", "listeners", "difference", "difference_low", "difference_high",
    "permutation_p", "permutation_adjusted", "wilcoxon_p", "wilcoxon_adjusted",
)  # fmt: skip
_CORRECTIONS = {"holm": "Holm", "bh": "Benjamini and Hochberg"}


@dataclass(frozen=True)
class _Drawn:
    """`cells`: of the row's system against the column's: difference and adjusted p; `alpha`: what counts as apart."""

    view: View
    systems: Sequence[str]
    cells: dict[tuple[str, str], tuple[float, float]]
    alpha: float

    @cached_property
    def levels(self) -> list[float]:
        """The usual levels of evidence from `alpha` on."""
        return [self.alpha, *(level for level in _LEVELS if level < self.alpha - 1e-9)][:3]

    @property
    def is_dense(self) -> bool:
        return len(self.systems) > MOST_CELLS

    @property
    def roomy(self) -> float:
        return 0.34 if self.is_dense else 0.27

    def strength(self, first: str, second: str) -> int:
        """0 where nothing tells them apart, else how many levels hold, negative where the first is lower."""
        difference, p = self.cells.get((first, second), (0.0, 1.0))
        held = sum(p <= level if level < self.alpha else p < level for level in self.levels)
        return held if difference > 0 else -held


def significance_figures(view: View, scores: Scores, task: str) -> list[Figure]:
    """One figure of a task."""
    rows = [row for row in view.rows(scores, "differences", task) if row["difference"] is not None]
    rows = [row for row in rows if _p(row) is not None]
    if not rows:
        return []
    cells: dict[tuple[str, str], tuple[float, float]] = {}
    for row in rows:
        first, second = str(row["first"]), str(row["second"])
        p = _p(row)
        cells[first, second] = (float(row["difference"]), p if p is not None else 1.0)
        cells[second, first] = (-float(row["difference"]), cells[first, second][1])
    means = view.by_system(scores, "summary", task, kind="all")
    systems = sorted({name for pair in cells for name in pair}, key=lambda name: (-_mean(means, name), name))
    alpha = 1 - float(view.results.settings.get("level", 0.95))
    drawn = _Drawn(view, systems, cells, round(alpha, 10))
    return [
        Figure(
            scores=scores,
            name=f"significance-{task}",
            title=f"{sentence(task)}: which systems differ",
            caption=_caption(drawn, scores, task, rows),
            alt=_alt(drawn, task),
            size=size_of(_inches(drawn), is_simulated=view.is_simulated),
            paint=lambda sheet: _paint(sheet, drawn),
            count=lambda: _count(view, rows),
            task=task,
            is_simulated=view.is_simulated,
        )
    ]


def _p(row: Record) -> float | None:
    """Of the permutation test, adjusted; of Wilcoxon's where that is missing."""
    found = row["permutation_adjusted"] if row["permutation_adjusted"] is not None else row["wilcoxon_adjusted"]
    return None if found is None else float(found)


def _mean(means: dict[str, Record], name: str) -> float:
    return float(means.get(name, {}).get("mean") or 0.0)


def _caption(drawn: _Drawn, scores: Scores, task: str, rows: Sequence[Record]) -> str:
    view, settings = drawn.view, drawn.view.results.settings
    correction = _CORRECTIONS.get(str(settings.get("correction")), "")
    listeners = max(int(row["listeners"] or 0) for row in rows)
    means = view.by_system(scores, "summary", task, kind="all")
    n = sum(int(means[name]["n"] or 0) for name in drawn.systems if name in means)
    return view.caption(
        view.kind_words(scores, task),
        f"Permutation tests within listeners, two-sided, {count(int(settings.get('permutations', 0)))} permutations, "
        f"p-values corrected over all {count(len(rows))} pairs{f' ({correction})' if correction else ''}.",
        "Each row against the systems of the columns, both sorted by mean, highest first.",
        f"n = {count(n)} ratings by {count(listeners)} listeners (the clusters), seed {settings.get('seed')}.",
    )


def _alt(drawn: _Drawn, task: str) -> str:
    names = drawn.systems
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :] if (a, b) in drawn.cells]
    apart = [pair for pair in pairs if drawn.strength(*pair)]
    text = f"{sentence(task)}: {len(apart)} of {len(pairs)} pairs differ at {percent(drawn.alpha, 0)} %."
    alike = [f"{drawn.view.labels[a]} and {drawn.view.labels[b]}" for a, b in pairs if not drawn.strength(a, b)]
    if apart and alike:
        return f"{text} Not told apart: {listed(alike)}."
    return text


def _count(view: View, rows: Sequence[Record]) -> NumberTable:
    labelled = [row | {f"{end}_label": view.labels[str(row[end])] for end in ("first", "second")} for row in rows]
    return NumberTable(_COLUMNS, tuple(tuple(row[name] for name in _COLUMNS) for row in labelled))


def _marks(drawn: _Drawn, palette: Palette | None) -> list[Mark]:
    ink, colours = (palette.ink, palette.series) if palette else ("k", ("k",) * 4)
    if drawn.is_dense:
        return [
            Mark("rated higher", {"facecolor": colours[0], "edgecolor": "none"}, is_area=True),
            Mark("not told apart", {"facecolor": "none", "edgecolor": ink, "linewidth": 0.8}, is_area=True),
            Mark("lower", {"facecolor": colours[1], "edgecolor": ink, "hatch": "////", "linewidth": 0.4}, is_area=True),
        ]  # fmt: skip
    point = {"linestyle": "none", "markeredgecolor": ink, "markeredgewidth": 0.5}
    levels = "p < " + ", ".join(f"{level:g}" for level in drawn.levels)
    return [
        Mark("row higher", point | {"marker": "^", "color": colours[0], "markersize": 7.4}),
        Mark("row lower", point | {"marker": "v", "color": colours[1], "markersize": 7.4}),
        Mark("not told apart", point | {"marker": ".", "color": ink, "markersize": 3.0}),
        Mark(f"small to large: {levels}"),
    ]


def _inches(drawn: _Drawn) -> float:
    rows = len(drawn.systems) * row_inches(len(drawn.systems), roomy=drawn.roomy)
    return key_inches(_marks(drawn, None)) + _above(drawn) + rows + (BELOW_INCHES if drawn.is_dense else 0.1)


def _above(drawn: _Drawn) -> float:
    """Room for the names of columns."""
    if drawn.is_dense:
        return 0.1
    return 0.14 + max(text_inches(drawn.view.short[name]) for name in drawn.systems)


def _paint(sheet: Sheet, drawn: _Drawn) -> None:
    marks = _marks(drawn, sheet.palette)
    sheet.key(marks, sheet.top)
    top = sheet.top + key_inches(marks) + _above(drawn)
    names = [drawn.view.short[name] for name in drawn.systems]
    bold = [place for place, name in enumerate(drawn.systems) if name == ORIGINAL]
    if drawn.is_dense:
        names = [f"{name}  {place}" for place, name in enumerate(names, start=1)]
        _paint_bars(sheet, drawn, names, bold, top)
    else:
        _paint_cells(sheet, drawn, names, bold, top)


def _paint_cells(sheet: Sheet, drawn: _Drawn, names: Sequence[str], bold: Sequence[int], top: float) -> None:
    palette, size = sheet.palette, len(names)
    widest = MARGIN + max(text_inches(name, TEXT) for name in names) * 1.1 + 0.1
    cell = min(row_inches(size, roomy=drawn.roomy), (WIDTH_INCHES - widest - MARGIN) / size)
    axes = row_axes(sheet, names, top, roomy=drawn.roomy, bold=bold, right=widest + cell * size, left=widest)
    axes.set_xlim(-0.5, size - 0.5)
    axes.grid(visible=False)
    axes.set_xticks(range(size), names, rotation=90, fontsize=SMALL)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, pad=2)
    axes.tick_params(axis="x", labelcolor=palette.ink, length=0)
    axes.spines["bottom"].set_visible(False)
    places: dict[int, tuple[list[int], list[int]]] = {}
    for row, first in enumerate(drawn.systems):
        for column, second in enumerate(drawn.systems):
            if (first, second) in drawn.cells:
                x, y = places.setdefault(drawn.strength(first, second), ([], []))
                x.append(column)
                y.append(row)
    for strength, (x, y) in sorted(places.items()):
        if not strength:
            axes.plot(x, y, ".", color=palette.ink, markersize=3.0, markeredgewidth=0)
            continue
        marker, colour = ("^", palette.series[0]) if strength > 0 else ("v", palette.series[1])
        axes.plot(
            x, y, marker, color=colour, markersize=_SIZES[abs(strength) - 1], markeredgecolor=palette.ink,
            markeredgewidth=0.5,
        )  # fmt: skip
    axes.plot(range(size), range(size), "_", color=palette.line, markersize=6)


def _paint_bars(sheet: Sheet, drawn: _Drawn, names: Sequence[str], bold: Sequence[int], top: float) -> None:
    """Each row as runs of equal evidence along the ranks of the others."""
    palette, size = sheet.palette, len(names)
    axes = row_axes(sheet, names, top, roomy=drawn.roomy, bold=bold)
    axes.set_xlim(0.5, size + 0.5)
    signs: dict[int, list[tuple[int, float, float]]] = {1: [], -1: [], 0: []}
    for row, first in enumerate(drawn.systems):
        kinds = [None if first == second else _sign(drawn.strength(first, second)) for second in drawn.systems]
        for kind, run in groupby(enumerate(kinds, start=1), key=lambda each: each[1]):
            ranks = [rank for rank, _ in run]
            if kind is not None:
                signs[kind].append((row, ranks[0] - 0.5, len(ranks)))
    looks: dict[int, dict[str, Any]] = {
        1: {"color": palette.series[0], "linewidth": 0},
        -1: {"color": palette.series[1], "edgecolor": palette.ink, "hatch": "////", "linewidth": 0.4},
        0: {"color": "none", "edgecolor": palette.ink, "linewidth": 0.6},
    }
    for kind, runs in signs.items():
        rows, starts, widths = ([run[part] for run in runs] for part in range(3))
        axes.barh(rows, widths, 0.62, left=starts, **looks[kind])
    step = 5 if size <= 40 else 10
    ranks = [1, *range(step, size + 1, step)]
    axes.set_xticks(ranks, [str(rank) for rank in ranks])
    axes.set_xlabel("against the system of rank", fontsize=TEXT)


def _sign(strength: int) -> int:
    return (strength > 0) - (strength < 0)
