"""Which DET figures there are: all systems of a task, one system before the others, and kinds of pairs on boards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from evaluation.figures.numbers import NumberTable
from listening.analysis.figures.det import Curve, Panels, dealt, paint_panels
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.rates import PAIRS, detection_size, meaning_of, rate_text
from listening.analysis.figures.sheet import size_of
from listening.analysis.figures.view import EVERY_SYSTEM, Record, View, has_interval, numbers_of, ordered
from listening.analysis.figures.words import listed, sentence
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Scores

_COLUMNS = ("system", "threshold", "miss_rate", "false_alarm_rate")
_PAIR_COLUMNS = ("pairs", "system", "threshold", "miss_rate", "false_alarm_rate")
_HOW = (
    "Probit axes, clipped at 1 / (2 N); markers: equal error rates, interpolated; segments between operating points "
    "are straight in rates."
)


def det_figures(view: View, scores: Scores, task: str) -> list[Figure]:
    """The figure of all systems, and one of each system before the others."""
    points: dict[str, list[Record]] = {}
    for row in view.rows(scores, "det", task):
        points.setdefault(str(row["system"]), []).append(row)
    rates = {name: row for name, row in view.by_system(scores, "detection", task).items() if name in points}
    if not rates:
        return []
    names = ordered(rates, "eer")
    curves = [_curve(view.short[name], points[name], rates[name], is_anchor=name == ORIGINAL) for name in names]
    figure = _overview(view, scores, task, names, curves, rates, points)
    systems = [name for name in names if name != ORIGINAL]
    of_each = [_of_system(view, scores, task, name, names, curves, rates, points) for name in systems]
    return [figure, *of_each]


def _overview(
    view: View, scores: Scores, task: str, names: Sequence[str], curves: Sequence[Curve],
    rates: dict[str, Record], points: dict[str, list[Record]],
) -> Figure:  # fmt: skip
    anchors = [place for place, curve in enumerate(curves) if curve.is_anchor]
    systems = [place for place in range(len(curves)) if place not in anchors]
    panels = (
        [[*anchors, *(systems[place] for place in panel)] for panel in dealt(len(systems))] if systems else [anchors]
    )
    heads = []
    if len(panels) > 1:
        ends = [0, *accumulate(len(panel) - len(anchors) for panel in panels)]
        heads = [f"{start + 1} to {end} of {len(systems)}" for start, end in pairwise(ends)]
    drawn = Panels(
        curves, panels, systems if len(panels) > 1 else (), _axis_words(task), heads, grey_words="the other systems"
    )
    rows = [rates[name] for name in names]
    order = "Panels in the order of equal error rates, all other systems in grey." if heads else ""
    return Figure(
        scores=scores,
        name=f"det-{task}",
        title=f"{sentence(task)}: DET curves",
        caption=view.caption(
            view.kind_words(scores, task), meaning_of(task), _HOW, order, detection_size(rows)
        ),
        alt=_alt(view, task, rows),
        size=size_of(drawn.inches, is_simulated=view.is_simulated),
        paint=lambda sheet: paint_panels(sheet, drawn),
        count=lambda: _count(view, names, points),
        task=task,
        is_simulated=view.is_simulated,
    )  # fmt: skip


def _of_system(
    view: View, scores: Scores, task: str, system: str, names: Sequence[str], curves: Sequence[Curve],
    rates: dict[str, Record], points: dict[str, list[Record]],
) -> Figure:  # fmt: skip
    """The curve of a system, and that of the originals where there is one, before the others in grey."""
    own = [place for place, name in enumerate(names) if name in (ORIGINAL, system)]
    others = [place for place in range(len(names)) if place not in own]
    drawn = Panels(curves, [own], others, _axis_words(task), grey_words="the other systems")
    shown = [name for name in names if name in (ORIGINAL, system)]
    rows = [rates[name] for name in shown]
    interval = view.interval_words(are_drawn=has_interval(rows, "eer")).replace("intervals", "interval of the EER", 1)
    return Figure(
        scores=scores,
        name=f"det-{task}-of-{view.slugs[system]}",
        title=f"{sentence(task)}: DET curve of {view.labels[system]}",
        caption=view.caption(
            view.kind_words(scores, task), meaning_of(task), _HOW, detection_size(rows),
            interval if has_interval(rows, "eer") else "",
        ),
        alt=_alt(view, task, rows),
        size=size_of(drawn.inches, is_simulated=view.is_simulated),
        paint=lambda sheet: paint_panels(sheet, drawn),
        count=lambda: _count(view, shown, points),
        formats=("svg",),
        task=task,
        system=system,
        is_simulated=view.is_simulated,
    )  # fmt: skip


def pair_det_figures(view: View, scores: Scores) -> list[Figure]:
    """The curve of each kind of pairs over all systems; of single systems where a board has but those."""
    points: dict[tuple[str, str], list[Record]] = {}
    for row in view.rows(scores, "pair_det"):
        points.setdefault((str(row["pairs"]), str(row["system"])), []).append(row)
    if any(system == EVERY_SYSTEM for _, system in points):
        points = {key: rows for key, rows in points.items() if key[1] == EVERY_SYSTEM}
    rates = {(str(row["pairs"]), str(row["system"])): row for row in view.rows(scores, "pair_detection")}
    keys = sorted((key for key in points if key in rates), key=lambda key: (_place(key[0]), key))
    if not keys:
        return []
    words = {key: key[0] if key[1] == EVERY_SYSTEM else f"{key[0]}, {view.short[key[1]]}" for key in keys}
    curves = [_curve(words[key], points[key], rates[key]) for key in keys]
    panels = dealt(len(curves))
    drawn = Panels(
        curves, panels, list(range(len(curves))) if len(panels) > 1 else (),
        ("False alarms: other speakers close, %", "Misses: same speaker far, %"),
    )  # fmt: skip
    rows = [rates[key] for key in keys]
    return [
        Figure(
            scores=scores,
            name="pairs-det",
            title="Linkability: DET curves by kind of pairs",
            caption=view.caption(
                "Raw distances." if scores == "raw" else "Distances ranked within each board.",
                "Pairs of samples on a board, closeness as the score; near 50 % is private.",
                _HOW,
                view.size_words(rows, "n_target", "n_nontarget", of="pairs"),
            ),
            alt="Equal error rates: " + listed([f"{row['pairs']}, {rate_text(view, row)}" for row in rows]) + ".",
            size=size_of(drawn.inches, is_simulated=view.is_simulated),
            paint=lambda sheet: paint_panels(sheet, drawn),
            count=lambda: NumberTable(
                *numbers_of(view, [row for key in keys for row in points[key]], _PAIR_COLUMNS)
            ),
            is_simulated=view.is_simulated,
        )
    ]  # fmt: skip


def _curve(name: str, points: Iterable[Record], rate: Record, *, is_anchor: bool = False) -> Curve:
    """From the lowest threshold to the highest."""
    rows = sorted(points, key=lambda row: (float(row["miss_rate"]), -float(row["false_alarm_rate"])))
    least = tuple(0.5 / max(int(rate[column] or 1), 1) for column in ("n_target", "n_nontarget"))
    return Curve(
        name,
        np.array([float(row["miss_rate"]) for row in rows]),
        np.array([float(row["false_alarm_rate"]) for row in rows]),
        rate["eer"],
        (least[0], least[1]),
        is_anchor,
    )


def _alt(view: View, task: str, rows: Sequence[Record]) -> str:
    found = listed([rate_text(view, row) for row in rows if row["eer"] is not None])
    return f"{sentence(task)}, equal error rates, {view.level_words} intervals in brackets: {found}."


def _axis_words(task: str) -> tuple[str, str]:
    if task == "verifiability":
        return "False alarms: different speakers taken for one, %", "Misses: same speaker not recognised, %"
    return "False alarms: system taken for original, %", "Misses: original taken for processed, %"


def _count(view: View, names: Sequence[str], points: dict[str, list[Record]]) -> NumberTable:
    return NumberTable(*numbers_of(view, [row for name in names for row in points[name]], _COLUMNS))


def _place(kind: str) -> int:
    return PAIRS.index(kind) if kind in PAIRS else len(PAIRS)
