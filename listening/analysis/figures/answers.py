"""Answers of any kind as figures: conditions with their intervals, pairs of them, and which differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from listening.analysis.answers.choices import AVERAGE_RECALL, GIVEN, RIGHT
from listening.analysis.answers.pairs import MEAN_AGAINST_ALL, MEAN_RATING, STRENGTH, WINS
from listening.analysis.answers.scales import DIFFERENCE, MEAN
from listening.analysis.figures.detection import plot_values
from listening.analysis.figures.labels import count, interval, listed, number, sentence, slug
from listening.analysis.figures.view import (
    Record,
    ResultsView,
    StudyFigure,
    group_rows,
    has_interval,
    plot_matrix,
    weigh_pairs,
)

_OF_CONDITIONS = (MEAN, STRENGTH, MEAN_AGAINST_ALL, AVERAGE_RECALL)
_OF_PAIRS = {WINS: 0.5, MEAN_RATING: 0.0, DIFFERENCE: 0.0, RIGHT: 0.5}  # with what they are where nothing differs
_LEVELS = (0.05, 0.01, 0.001)


def answer_figures(view: ResultsView) -> Iterator[StudyFigure]:
    """Yield of each question its conditions, its pairs, and for more than two conditions which differ."""
    rows = [row for row in view.rows("common", "estimates") if row["value"] is not None]
    for (question, measure), held in group_rows(rows, "question", "measure").items():
        yield from (replace(figure, task=question) for figure in _of_measure(view, question, measure, held))


def _of_measure(view: ResultsView, question: str, measure: str, held: Sequence[Record]) -> Iterator[StudyFigure]:
    name = f"{slug(question)}-{slug(measure)}"
    if measure in _OF_CONDITIONS and (measure != MEAN_AGAINST_ALL or len(held) > 2):  # of two it is that of their pair
        ordered = sorted(held, key=lambda row: (-float(row["value"]), str(row["condition"])))
        yield _values(view, f"conditions-{name}", question, measure, ordered, None)
    elif measure == GIVEN:
        yield _values(view, f"labels-{name}", question, measure, held, None)
    elif measure in _OF_PAIRS:
        yield _values(view, f"compared-{name}", question, measure, held, _OF_PAIRS[measure])
        if len({row["against"] for row in held}) > 1 and measure != RIGHT:
            yield from _matrix(view, f"matrix-{name}", question, held, _OF_PAIRS[measure])


def _values(
    view: ResultsView, name: str, question: str, measure: str, rows: Sequence[Record], alike: float | None
) -> StudyFigure:
    shown = [(_name(row), row) for row in rows]
    columns = [("value", [number(row["value"]) for row in rows])]
    if any(row["letters"] for row in rows):
        columns.append(("letters", [str(row["letters"] or "") for row in rows]))
    if any(row["adjusted"] is not None for row in rows):
        columns.append(("p", [_write_p(row["adjusted"]) for row in rows]))
    told = [f"{_name(row)} {number(row['value'])}{interval(row, 'value', number)}" for row in rows]
    return view.figure(
        "common",
        name,
        f"{_title(view, question)}: {measure}",
        "The first of a pair against the second; p corrected over all pairs." if alike is not None else "",
        "Conditions that share a letter do not differ significantly." if any(row["letters"] for row in rows) else "",
        f"Up to {count(max(int(row['n']) for row in rows))} answers in a row, "
        f"of {count(max(int(row['listeners']) for row in rows))} listeners.",
        f"{view.level_words} intervals, clustered by listener and item." if has_interval(rows, "value") else "",
        alt=f"{sentence(measure)}: {listed(told)}.",
        plot=plot_values(
            shown, "value", sentence(measure), columns, measure, unit=1, chance=alike, chance_words="no difference"
        ),
    )


def _matrix(
    view: ResultsView, name: str, question: str, pairs: Sequence[Record], alike: float
) -> Iterator[StudyFigure]:
    """Yield each condition against each other, by the p-values that decide."""
    tested = [row for row in pairs if row["adjusted"] is not None]
    if not tested:
        return
    differences = ((row["condition"], row["against"], row["value"] - alike, row["adjusted"]) for row in tested)
    strengths = weigh_pairs(differences, _LEVELS)
    won = {one: sum(sign for (first, _), sign in strengths.items() if first == one) for one, _ in strengths}
    names = sorted(won, key=lambda one: (-won[one], one))
    apart = sum(float(row["adjusted"]) < _LEVELS[0] for row in tested)
    yield view.figure(
        "common",
        name,
        f"{_title(view, question)}: which conditions differ",
        "Each row against the conditions of the columns.",
        f"p corrected over all {count(len(tested))} pairs.",
        alt=f"{apart} of {len(tested)} pairs differ at 5 %.",
        plot=plot_matrix(strengths, names, "p < " + ", ".join(f"{level:g}" for level in _LEVELS)),
    )


def _write_p(p: float | None) -> str:
    return "< 0.001" if p is not None and p < 0.001 else number(p, 3)


def _title(view: ResultsView, question: str) -> str:
    asked = view.results.questions.get(question)
    return asked.title if asked else sentence(question)


def _name(row: Record) -> str:
    return " – ".join(str(row[name]) for name in ("condition", "against") if row[name]) or "all"
