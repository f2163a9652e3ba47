"""Each listener: how scores were used, and whether they agree with those of all others. For organizers alone.

One row a listener, sorted by agreement; those left out are hollow, those that a screening rule would catch are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import Palette
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.rows import BELOW_INCHES, row_axes, score_axis
from listening.analysis.figures.sheet import MARGIN, Mark, Sheet, key_inches, size_of, text_inches
from listening.analysis.figures.view import Record, View
from listening.analysis.figures.words import count, number, sentence
from listening.analysis.tables import Scores

_COLUMNS = (
    "listener", "n", "mean", "sd", "bias", "inconsistency", "correlation", "repeat_difference", "excluded", "caught",
)  # fmt: skip
_TOKEN = 8
_ROW, _DENSE_ROW, _DENSE = 0.165, 0.06, 150
_GAP = 0.16
# Normalised scores of every listener have the same mean.
_LEFT_WORDS = {
    False: "mean and standard deviation of a listener's scores",
    True: "inconsistency, the standard deviation of a listener's scores around the means of all listeners",
}


@dataclass(frozen=True)
class _Drawn:
    view: View
    scores: Scores
    task: str
    rows: Sequence[Record]

    @property
    def is_dense(self) -> bool:
        """So many that rows have no room for a name."""
        return len(self.rows) > _DENSE

    @property
    def rows_inches(self) -> float:
        return len(self.rows) * (_DENSE_ROW if self.is_dense else _ROW)


def listener_figures(view: View, scores: Scores, task: str) -> list[Figure]:
    """One figure of a task."""
    rows = [row for row in view.rows(scores, "listeners", task) if row["mean"] is not None]
    if not rows:
        return []
    rows.sort(key=lambda row: (-_agreement(row), str(row["listener"])))
    drawn = _Drawn(view, scores, task, rows)
    counted = [row for row in rows if not row["excluded"]]
    is_normalised = scores == "normalised"
    return [
        Figure(
            scores=scores,
            name=f"listeners-{task}",
            title=f"{sentence(task)}: each listener",
            caption=view.caption(
                view.kind_words(scores, task),
                f"Left: {_LEFT_WORDS[is_normalised]}; right: correlation with the system means of all other listeners. "
                "Sorted by it.",
                f"n = {count(sum(int(row['n'] or 0) for row in rows))} ratings by {count(len(rows))} listeners, "
                f"{count(len(rows) - len(counted))} of them left out by a standing rule.",
            ),
            alt=_alt(drawn),
            size=size_of(key_inches(_marks(drawn, None)) + 0.3 + drawn.rows_inches + BELOW_INCHES,
                         is_simulated=view.is_simulated),
            paint=lambda sheet: _paint(sheet, drawn),
            count=lambda: NumberTable(_COLUMNS, tuple(tuple(row[name] for name in _COLUMNS) for row in rows)),
            task=task,
            is_about_listeners=True,
            is_simulated=view.is_simulated,
        )
    ]  # fmt: skip


def _agreement(row: Record) -> float:
    return -2.0 if row["correlation"] is None else float(row["correlation"])


def _alt(drawn: _Drawn) -> str:
    means = sorted(float(row["mean"]) for row in drawn.rows)
    known = sorted(_agreement(row) for row in drawn.rows if row["correlation"] is not None)
    caught = sum(bool(row["caught"]) for row in drawn.rows)
    left_out = sum(bool(row["excluded"]) for row in drawn.rows)
    text = f"{sentence(drawn.task)}, {len(drawn.rows)} listeners: means from {number(means[0])} to {number(means[-1])}"
    if known:
        text += (
            f"; agreement with the others from {number(known[0])} to {number(known[-1])}, "
            f"median {number(known[len(known) // 2])}"
        )
    return f"{text}; {left_out} left out, {caught} caught by screening rules."


def _marks(drawn: _Drawn, palette: Palette | None) -> list[Mark]:
    ink, fill = (palette.ink, palette.series[0]) if palette else ("k", "k")
    dot = {"marker": "o", "linestyle": "none", "color": fill, "markeredgecolor": ink, "markersize": 5.0}
    marks = [Mark("listener", dot)]
    if any(row["excluded"] for row in drawn.rows):
        marks.append(Mark("left out", dot | {"markerfacecolor": "none"}))
    if any(row["caught"] for row in drawn.rows):
        warning = palette.warning if palette else "k"
        marks.append(Mark("caught by a rule", dot | {"marker": "X", "color": warning, "markersize": 6.0}))
    return marks


def _paint(sheet: Sheet, drawn: _Drawn) -> None:
    palette = sheet.palette
    marks = _marks(drawn, palette)
    sheet.key(marks, sheet.top)
    top = sheet.top + key_inches(marks) + 0.24
    names = ["" if drawn.is_dense else _short(str(row["listener"])) for row in drawn.rows]
    start = MARGIN + max(map(text_inches, names)) + 0.12
    width = (sheet.width - start - MARGIN - 0.08 - _GAP) / 2
    left_column, head = ("inconsistency", "inconsistency") if drawn.scores == "normalised" else ("mean", "mean ± SD")
    halves = ((start, names, head), (start + width + _GAP, [""] * len(names), "agreement"))
    rows = range(len(drawn.rows))
    for half, (left, labels, head) in enumerate(halves):
        axes = row_axes(sheet, labels, top, left=left, right=left + width, height=drawn.rows_inches)
        sheet.words(left, top - 0.12, head, color=palette.muted)
        values = [row[left_column if half == 0 else "correlation"] for row in drawn.rows]
        if half == 0 and left_column != "mean":
            most = max([0.1, *(float(value) for value in values if value is not None)])
            score_axis(axes, 0, most, "normalised rank", most=4, room=0.05 * most)
        elif half == 0:
            low, high = drawn.view.scale(drawn.scores, drawn.task)
            score_axis(axes, low, high, "rating", most=5,
                       room=0.05 * (high - low))  # fmt: skip
            for row, record in enumerate(drawn.rows):
                if record["sd"] is not None:
                    ends = (float(record["mean"]) - float(record["sd"]), float(record["mean"]) + float(record["sd"]))
                    axes.plot(ends, [row, row], color=palette.muted, linewidth=0.9, zorder=2)
        else:
            least = min([0.6, *(float(value) for value in values if value is not None)])
            score_axis(axes, floor(5 * least) / 5, 1.0, "correlation", most=5, room=0.02)
        for looks, chosen in _chosen(drawn.rows, marks):
            places = [row for row in rows if row in chosen and values[row] is not None]
            axes.plot([float(values[row]) for row in places], places, **(looks | {"markeredgewidth": 0.7}))


def _chosen(rows: Sequence[Record], marks: Sequence[Mark]) -> list[tuple[dict[str, Any], set[int]]]:
    """The look of listeners and who has it."""
    by_words = {mark.words: mark.look for mark in marks}
    left_out = {place for place, row in enumerate(rows) if row["excluded"]}
    caught = {place for place, row in enumerate(rows) if row["caught"]}
    others = set(range(len(rows))) - left_out - caught
    groups = {"listener": others, "left out": left_out, "caught by a rule": caught - left_out}
    return [(by_words[words], held) for words, held in groups.items() if held]


def _short(listener: str) -> str:
    return listener if len(listener) <= _TOKEN + 4 else listener[:_TOKEN] + "…"
