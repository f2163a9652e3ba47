"""What leaving listeners out changes: the mean of each system before and after the exclusions that stand.

A slope for each system where they are few, else a row each; further screening rules are rows of changes below. A rule
may catch one listener, whose ratings before and after would tell: where rules but the standing one are drawn the figure
is for organizers, and the standing one has a figure of its own for everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.figures.numbers import NumberTable
from evaluation.figures.style import Palette
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.rows import row_axes, row_inches, score_axis
from listening.analysis.figures.sheet import Mark, Sheet, key_inches, size_of
from listening.analysis.figures.view import Record, View, numbers_of
from listening.analysis.figures.words import count, listed, number, sentence
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Scores

STANDING = "standing"
_COLUMNS = (
    "rule", "system", "listeners_before", "listeners_after", "n_before", "n_after", "mean_before", "mean_after",
    "eer_before", "eer_after",
)  # fmt: skip
_ROW = 0.27
_BELOW = 0.55


@dataclass(frozen=True)
class _Drawn:
    """`rows`: of the rule that is shown system by system; `rules`: changes of the means by rule."""

    view: View
    scores: Scores
    task: str
    rule: str
    rows: Sequence[Record]
    rules: dict[str, list[Record]]

    @property
    def upper_inches(self) -> float:
        return len(self.rows) * row_inches(len(self.rows), roomy=_ROW)

    @property
    def inches(self) -> float:
        return key_inches(_marks(None)) + 0.28 + self.upper_inches + _BELOW + 0.3 + _ROW * len(self.rules) + _BELOW


def exclusion_figures(view: View, scores: Scores, task: str) -> list[Figure]:
    """Of a task: all rules, where others than the standing one leave a listener out, and the standing one alone."""
    rules: dict[str, list[Record]] = {}
    for row in view.rows(scores, "exclusion_effect", task):
        if row["mean_before"] is not None and row["mean_after"] is not None:
            rules.setdefault(str(row["rule"]), []).append(row)
    rules = {rule: rows for rule, rows in rules.items() if _left_out(rows) or _is_change(rows)}
    if not rules:
        return []
    figures = []
    if set(rules) != {STANDING}:
        figures.append(_figure(view, scores, task, f"exclusions-{task}", rules))
    if STANDING in rules:  # its name is its own: a drawn file of all rules is never taken for it
        figures.append(_figure(view, scores, task, f"exclusions-standing-{task}", {STANDING: rules[STANDING]}))
    return figures


def _figure(view: View, scores: Scores, task: str, name: str, rules: dict[str, list[Record]]) -> Figure:
    shown = STANDING if STANDING in rules else max(rules, key=lambda rule: _left_out(rules[rule]))
    rows = sorted(rules[shown], key=lambda row: (row["system"] != ORIGINAL, -float(row["mean_before"])))
    drawn = _Drawn(view, scores, task, shown, rows, rules)
    every = [row for held in rules.values() for row in held]
    return Figure(
        scores=scores,
        name=name,
        title=f"{sentence(task)}: what leaving listeners out changes",
        caption=_caption(drawn),
        alt=_alt(drawn),
        size=size_of(drawn.inches, is_simulated=view.is_simulated),
        paint=lambda sheet: _paint(sheet, drawn),
        count=lambda: NumberTable(*numbers_of(view, every, _COLUMNS)),
        formats=("svg", "pdf"),
        task=task,
        is_about_screening=set(rules) != {STANDING},
        is_simulated=view.is_simulated,
    )


def _left_out(rows: Sequence[Record]) -> int:
    return max(int(row["listeners_before"] or 0) - int(row["listeners_after"] or 0) for row in rows)


def _is_change(rows: Sequence[Record]) -> bool:
    return any(row["mean_before"] != row["mean_after"] for row in rows)


def _rule_words(rule: str) -> str:
    return "all exclusions that stand" if rule == STANDING else f"the rule “{rule}”"


def _caption(drawn: _Drawn) -> str:
    view, rows = drawn.view, drawn.rows
    before = max(int(row["listeners_before"] or 0) for row in rows)
    n_before, n_after = (sum(int(row[name] or 0) for row in rows) for name in ("n_before", "n_after"))
    return view.caption(
        view.kind_words(drawn.scores, drawn.task),
        f"Above: mean of each system with every listener and after {_rule_words(drawn.rule)}. "
        "Below: change of each system's mean by each rule, and the listeners that it leaves out.",
        f"n = {count(n_before)} ratings by {count(before)} listeners before, {count(n_after)} ratings after "
        f"{_rule_words(drawn.rule)}. No intervals: both means share most ratings.",
    )


def _alt(drawn: _Drawn) -> str:
    view = drawn.view
    changes = [(float(row["mean_after"]) - float(row["mean_before"]), row) for row in drawn.rows]
    largest = sorted(changes, key=lambda change: -abs(change[0]))[:3]
    found = [
        f"{view.labels[str(row['system'])]} {number(row['mean_before'])} to {number(row['mean_after'])}"
        for _, row in largest
    ]
    rules = [f"{rule} {_left_out(rows)}" for rule, rows in drawn.rules.items()]
    return (
        f"{sentence(drawn.task)}: after {_rule_words(drawn.rule)}, means change most for {'; '.join(found)}. "
        f"Listeners left out by rule: {listed(rules, first=6)}."
    )


def _marks(palette: Palette | None) -> list[Mark]:
    ink, fill = (palette.ink, palette.series[0]) if palette else ("k", "k")
    dot = {"marker": "o", "linestyle": "none", "markeredgecolor": ink, "markersize": 6.0}
    return [Mark("before", dot | {"color": "none"}), Mark("after", dot | {"color": fill})]


def _paint(sheet: Sheet, drawn: _Drawn) -> None:
    palette, view = sheet.palette, drawn.view
    marks = _marks(palette)
    sheet.key(marks, sheet.top)
    top = sheet.top + key_inches(marks) + 0.22
    names = [view.short[str(row["system"])] for row in drawn.rows]
    changes = [f"{number(row['mean_after'] - row['mean_before'])}" for row in drawn.rows]
    columns = [("change", changes)]
    bold = [place for place, row in enumerate(drawn.rows) if row["system"] == ORIGINAL]
    axes = row_axes(sheet, names, top, roomy=_ROW, columns=columns, bold=bold)
    for place, row in enumerate(drawn.rows):
        ends = [float(row["mean_before"]), float(row["mean_after"])]
        axes.plot(ends, [place, place], color=palette.ink, linewidth=1.2, zorder=2)
        for x, mark in zip(ends, marks, strict=True):
            axes.plot([x], [place], zorder=3, markeredgewidth=0.8, **mark.look)
    values = [float(row[name]) for row in drawn.rows for name in ("mean_before", "mean_after")]
    low, high = _span(values, 0.1 * (view.scale(drawn.scores, drawn.task)[1] - view.scale(drawn.scores, drawn.task)[0]))
    score_axis(axes, low, high, view.score_words(drawn.scores, drawn.task), room=0.03 * (high - low), most=6)
    _paint_rules(sheet, drawn, top + drawn.upper_inches + _BELOW + 0.3)


def _paint_rules(sheet: Sheet, drawn: _Drawn, top: float) -> None:
    """The change of each system's mean as a line across the row of each rule."""
    palette = sheet.palette
    rules = list(drawn.rules)
    left_out = [count(_left_out(drawn.rules[rule])) for rule in rules]
    axes = row_axes(sheet, rules, top, roomy=_ROW, columns=[("left out", left_out)], height=_ROW * len(rules))
    changes = [
        [float(row["mean_after"]) - float(row["mean_before"]) for row in drawn.rules[rule]] for rule in rules
    ]  # fmt: skip
    for place, held in enumerate(changes):
        axes.plot(held, [place] * len(held), "|", color=palette.series[0], markersize=9, markeredgewidth=1.4)
    axes.axvline(0, color=palette.line, linewidth=0.9)
    widest = max([abs(change) for held in changes for change in held] + [1e-3])
    score_axis(axes, -widest, widest, "change of each system's mean", room=0.06 * widest, most=5)


def _span(values: Sequence[float], least: float) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high - low >= least else (low - least / 2, high + least / 2)
