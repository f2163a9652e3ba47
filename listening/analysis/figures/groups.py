"""Whether groups of samples hold one speaker each: each measure with its interval, and what chance gives."""

from __future__ import annotations

from evaluation.figures.numbers import NumberTable
from listening.analysis.figures.dots import Dot, DotPlot, paint_dots
from listening.analysis.figures.figure import Figure
from listening.analysis.figures.sheet import size_of
from listening.analysis.figures.view import Record, View, has_interval, numbers_of
from listening.analysis.figures.words import count, listed, number, sentence

_COLUMNS = (
    "source", "samples", "measure", "boards", "listeners", "value", "value_low", "value_high", "chance", "chance_high",
    "p",
)  # fmt: skip


def grouping_figures(view: View) -> list[Figure]:
    """One figure of all measures, by where groups come from and which samples count."""
    rows = [row for row in view.rows("common", "grouping") if row["value"] is not None]
    if not rows:
        return []
    by_heading: dict[str, list[Record]] = {}
    for row in rows:
        by_heading.setdefault(f"{sentence(str(row['source']))}: {row['samples']}", []).append(row)
    dots = [dot for heading, held in by_heading.items() for dot in (Dot(heading), *map(_dot, held))]
    plot = DotPlot(
        dots=dots,
        axis="Value (1: groups are the speakers)",
        heads=("value", "p"),
        dot_words="with interval" if has_interval(rows, "value") else "value",
        chance_words="chance, up to its 95 %",
        unit=1.0,
    )
    boards = max(int(row["boards"] or 0) for row in rows)
    listeners = max(int(row["listeners"] or 0) for row in rows)
    return [
        Figure(
            scores="common",
            name="grouping",
            title="Linkability: do groups hold one speaker each?",
            caption=view.caption(
                "Groups that listeners drew, or cut from the board at the number of speakers that they declared. "
                "Chance: the speakers of each board permuted.",
                f"n = {count(boards)} boards by {count(listeners)} listeners (the clusters).",
                view.interval_words(are_drawn=has_interval(rows, "value")),
            ),
            alt=f"Values beside chance: {listed([_text(row) for row in rows])}.",
            size=size_of(plot.inches, is_simulated=view.is_simulated),
            paint=lambda sheet: paint_dots(sheet, plot),
            count=lambda: NumberTable(*numbers_of(view, rows, _COLUMNS)),
            is_simulated=view.is_simulated,
        )
    ]


def _dot(row: Record) -> Dot:
    return Dot(
        str(row["measure"]), row["value"], row["value_low"], row["value_high"], chance=row["chance"],
        chance_high=row["chance_high"], texts=(number(row["value"]), number(row["p"], 3)),
    )  # fmt: skip


def _text(row: Record) -> str:
    return (
        f"{row['measure']} ({row['source']}, {row['samples']}) {number(row['value'])}, chance {number(row['chance'])}"
    )
