"""Figures 6 and 8 of the results of VoicePrivacy 2022, of any analysis: ratings with a reference that a reader chooses,
and measures of utterances with systems in colour.

Conventions: as `ratings`. Points of utterances stand around the centre of their cell of the grid, the cells of the
figure that counts them, so that many in one cell are all seen and no rating of a single utterance is read off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evaluation.figures.row_plots import HOLLOW
from evaluation.figures.scatter_plots import Cloud, Measure, ScatterPlot
from listening.analysis.figures.labels import count, interval, listed, number, sentence
from listening.analysis.figures.ratings import CELLS, MEASURES, make_measure, violin_figures
from listening.analysis.figures.view import Figure, Record, View
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import Results, Scores

MOST_COLOURS = 6
RECOGNISED = "1 − WER"
# Of figure 8, in its order: from left to right.
PAIRS = (("intelligibility", RECOGNISED), ("naturalness", RECOGNISED), ("naturalness", "intelligibility"))
OF_LISTENERS = ("naturalness", "intelligibility")
_LEAST_UTTERANCES = 10  # of a system, for a correlation of its own
_GOLDEN_ANGLE = 2.399963  # radians: neighbours on a spiral do not hide each other
_SPREAD = 0.42  # of a cell, from its centre


def list_paper_figures(
    results: Results, scores: Scores, reference: str, coloured: Sequence[str], printed: Mapping[frozenset[str], float]
) -> list[Figure]:
    """Figures 6 and 8 of these results, as far as they have what is shown.

    Args:
        reference: the system whose mean is a line through all of figure 6.
        coloured: the systems in colour in figure 8, at most `MOST_COLOURS`; all others are grey.
        printed: the correlations of the paper, by their two measures.
    """
    view = View(results)
    tasks = [task for task in OF_LISTENERS if task in view.tasks(scores)]
    figures = [one for task in tasks for one in violin_figures(view, scores, task, reference)]
    return figures + list(_scatter_figures(view, scores, coloured[:MOST_COLOURS], printed))


def name_measure(name: object) -> str:
    """What a correlation calls a measure, in the words of the paper."""
    return RECOGNISED if MEASURES.get(str(name)) == MEASURES[RECOGNISED] else str(name)


def _scatter_figures(
    view: View, scores: Scores, coloured: Sequence[str], printed: Mapping[frozenset[str], float]
) -> Iterator[Figure]:
    utterances = [row for row in view.rows(scores, "utterances") if row["system"] != ORIGINAL]
    known = {
        frozenset({name_measure(row["first"]), name_measure(row["second"])}): row
        for row in view.rows(scores, "correlations")
        if row["pearson"] is not None
    }
    for first, second in PAIRS:
        (y, y_slug), (x, x_slug) = MEASURES[first], MEASURES[second]
        held = [one for one in utterances if one[x] is not None and one[y] is not None]
        row = known.get(frozenset({first, second}))
        if held and row is not None:
            words = f"{sentence(first)} and {second} of each utterance, by system"
            published = printed.get(frozenset({first, second}))
            name = f"colours-{y_slug}-{x_slug}"
            yield _scatter(view, scores, held, (x, y), coloured, row, published, words, name)


def _scatter(
    view: View,
    scores: Scores,
    held: Sequence[Record],
    columns: tuple[str, str],
    coloured: Sequence[str],
    row: Record,
    published: float | None,
    title: str,
    name: str,
) -> Figure:
    axes = [make_measure(view, scores, one, np.array([float(each[one]) for each in held])) for one in columns]
    by_system: dict[str, list[Record]] = defaultdict(list)
    for one, x, y in _place(held, columns, axes):
        by_system[str(one["system"]) if one["system"] in coloured else ""].append(one | {"x": x, "y": y})
    clouds = [
        Cloud(
            view.short[system] if system else "other systems",
            coloured.index(system) if system else HOLLOW,
            [one["x"] for one in by_system[system]],
            [one["y"] for one in by_system[system]],
        )
        for system in ("", *coloured)
        if system in by_system
    ]
    here = f"Pearson {number(row['pearson'])}{interval(row, 'pearson', number, f'{view.level_words} ')}"
    heading = here if published is None else f"{here}\nVoicePrivacy 2022: {number(published)}"
    numbers: list[Record] = []
    for system in dict.fromkeys(str(one["system"]) for one in held):
        of_system = [one for one in held if one["system"] == system]
        numbers.append({"system": system, "utterances": len(of_system), "pearson": _correlate(of_system, columns)})
    told = [f"{view.labels[one['system']]} {number(one['pearson'])}" for one in numbers if one["pearson"] is not None]
    each = f" Of each system: {listed(told)}." if told else ""
    return view.figure(
        scores,
        name,
        title,
        "A point: an anonymised utterance, near the centre of its cell.",
        "Correlations of single systems have no interval." if told else "",
        f"n = {count(len(held))} utterances, {count(int(row['listeners'] or 0))} listeners.",
        intervals=row["pearson_low"] is not None,
        alt=f"{title}: {heading.replace(chr(10), '; ')}.{each}",
        plot=ScatterPlot(clouds, axes[0].words, axes[1].words, axes[0].limits, axes[1].limits, heading),
        rows=numbers,
        columns="system label utterances pearson",
        task="",
    )


def _place(
    held: Sequence[Record], columns: tuple[str, str], axes: Sequence[Measure]
) -> Iterator[tuple[Record, float, float]]:
    """Each utterance with its point: on a spiral around the centre of its cell, in an order that no system leads."""
    cells: dict[tuple[int, int], list[Record]] = defaultdict(list)
    for at in np.random.default_rng(0).permutation(len(held)).tolist():
        found = (
            int(np.clip(np.searchsorted(axis.edges, float(held[at][column]), side="right") - 1, 0, axis.edges.size - 2))
            for column, axis in zip(columns, axes, strict=True)
        )
        cells[next(found), next(found)].append(held[at])
    for cell, rows in cells.items():
        centres, spreads = [], []
        for axis, place in zip(axes, cell, strict=True):
            low, high = axis.edges[place : place + 2]
            centres.append(float(low + high) / 2)
            spreads.append(_SPREAD * float(high - low or 0.5 * (axis.limits[1] - axis.limits[0]) / CELLS))
        for place, one in enumerate(rows):
            radius, angle = ((place + 0.5) / len(rows)) ** 0.5 if len(rows) > 1 else 0.0, place * _GOLDEN_ANGLE
            x = centres[0] + spreads[0] * radius * float(np.cos(angle))
            yield one, x, centres[1] + spreads[1] * radius * float(np.sin(angle))


def _correlate(held: Sequence[Record], columns: tuple[str, str]) -> float | None:
    """None of few utterances, or where one of the two is the same for all."""
    values = np.array([[float(one[column]) for one in held] for column in columns])
    if len(held) < _LEAST_UTTERANCES or np.ptp(values, axis=1).min() == 0:
        return None
    return float(np.corrcoef(values)[0, 1])
