"""A figure of an analysis, and the results as figures read them: rows by task and system, names and numbers as they are
printed, and what every caption says.

A figure is what it says in words and numbers at once, and its files when they are asked for. Everything but drawing is
cheap, so that a page may have the words of every figure without a plotting library. A figure is named by a slug and the
scores that it shows; its files are named after both, ``raw/det-naturalness-light.svg``. Ratings that are simulated are
called so inside of the picture, since pictures travel without their captions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.tables import Value
from evaluation.figures.row_plots import MatrixPlot
from evaluation.figures.style import STAMP_INCHES, ImageFormat, Plot, Size, darken, draw_formats, place_systems
from listening.analysis.figures.labels import (
    count,
    find_free,
    percent,
    sentence,
    short_names,
    slug,
)
from listening.analysis.reading.inputs import ORIGINAL
from listening.analysis.tables import Results, Scores

ALL_FORMATS: tuple[ImageFormat, ...] = ("svg", "pdf", "png")
DARK = "-dark.svg"  # PDF and PNG are for print, on white paper
SIMULATED = "SIMULATED: no listener gave these answers"


Record = dict[str, Any]
EVERY_SYSTEM = "all"
_NAMING = ("system", "first", "second")
# Tables whose `first` and `second` are no systems.
_NAMES_NO_SYSTEM = frozenset({"correlations"})


@dataclass(frozen=True)
class StudyFigure:
    """A figure.

    Attributes:
        scores: what it shows: ``raw``, ``normalised``, or ``common`` where it rests on neither.
        name: a slug, unique among the figures of these scores.
        title: what it shows, in a few words.
        caption: how to read it: scores, n, listeners, where intervals come from, whether ratings are simulated.
        reading: the first sentence of the caption; pages have the whole behind a fold.
        alt: the finding in words, with numbers.
        plot: the picture.
        formats: the files that are worth making.
        task: of the ratings; empty where there is none.
        system: whose figure it is; empty where it is of all.
        is_for_organizers: shows single samples of several systems.
    """

    scores: Scores
    name: str
    title: str
    caption: str
    alt: str
    plot: Plot
    formats: tuple[ImageFormat, ...] = ALL_FORMATS
    task: str = ""
    system: str = ""
    is_for_organizers: bool = False
    is_simulated: bool = False
    reading: str = ""

    @property
    def size(self) -> Size:
        """Return the size of every file."""
        size = self.plot.size
        return Size(size.width_inches, size.height_inches + STAMP_INCHES) if self.is_simulated else size

    @property
    def files(self) -> list[str]:
        """Return the paths of the files worth making: SVG for both themes of a page, PDF and PNG for print."""
        ends = {"svg": ("-light.svg", DARK), "pdf": (".pdf",), "png": (".png",)}
        return [f"{self.scores}/{self.name}{end}" for one in self.formats for end in ends[one]]

    def draw(self, files: Iterable[str]) -> dict[str, bytes]:
        """Return some of `files` by their paths, painted once: a dark SVG is the light one in other colours.

        Equal results give equal bytes.
        """
        formats: dict[str, Any] = {path: path.rpartition(".")[2] for path in files}
        drawn = draw_formats(
            self.plot,
            dict.fromkeys(formats.values()),
            title=self.title,
            description=self.alt,
            theme="light",
            stamp=SIMULATED if self.is_simulated else "",
        )
        return {
            path: darken(drawn[image_format]) if path.endswith(DARK) else drawn[image_format]
            for path, image_format in formats.items()
        }


class ResultsView:
    """Looks up what a figure needs; each table is read once."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.is_simulated = bool(results.study.get("is_simulated"))
        self._rows: dict[tuple[str, str], list[Record]] = {}

    @cached_property
    def names(self) -> list[str]:
        """Return every system that any table names, the original first."""
        found: dict[str, None] = {}
        for table in self.results.tables.values():
            for column in _NAMING if table.name not in _NAMES_NO_SYSTEM else ():
                if column in table.columns:
                    found |= dict.fromkeys(str(name) for name in table.values(column) if name is not None)
        return sorted(found, key=lambda name: (name != self.results.original, name))

    @cached_property
    def labels(self) -> dict[str, str]:
        """Return what each system is called on pages."""
        given = self.results.study.get("labels") or {}
        usual = {ORIGINAL: "Original", EVERY_SYSTEM: "All systems"}
        return {name: str(given.get(name) or usual.get(name, name)) for name in self.names}

    @cached_property
    def short(self) -> dict[str, str]:
        """Return what each system is called within a figure."""
        return short_names(self.labels)

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the place of each system among colours, markers and dashes: one in every figure, by label order."""
        labels = {name: self.labels[name] for name in self.names if name != self.results.original}
        places = place_systems(labels.values())
        return {name: places[label] for name, label in labels.items()}

    def told(self, system: str) -> tuple[str, str]:
        """Return a system's label and its name, of which a page makes a link."""
        return self.labels.get(system, system), system

    @cached_property
    def slugs(self) -> dict[str, str]:
        """Return each system as part of the name of a figure."""
        taken: dict[str, str] = {}
        for name in self.names:
            taken[name] = find_free(slug(name), taken.values())
        return taken

    def tasks(self, scores: Scores) -> list[str]:
        """Return the tasks that have scores, in the order of asking."""
        table = self.results.table(scores, "summary")
        found = set(table.values("task")) if table else set()
        asked = [task for task in self.results.study["tasks"] if task in found]
        return asked + sorted(str(task) for task in found.difference(asked))

    def compares_voices(self, scores: Scores, task: str) -> bool:
        """Return whether A was judged against B, so that pairs of one speaker and of two have means of their own."""
        return any(row["kind"] != "all" for row in self.rows(scores, "summary", task))

    def rows(self, scores: Scores, name: str, task: str | None = None) -> list[Record]:
        """Return the rows of a table, those of a task where one is given; none where there is no such table."""
        if (scores, name) not in self._rows:
            self._rows[scores, name] = self.results.records(scores, name)
        return [row for row in self._rows[scores, name] if task in (None, row.get("task"))]

    def by_system(self, scores: Scores, name: str, task: str, **equal: Value) -> dict[str, Record]:
        """Return one row for each system."""
        rows = self.rows(scores, name, task)
        return {str(row["system"]): row for row in rows if all(row[key] == value for key, value in equal.items())}

    def scale(self, scores: Scores, task: str) -> tuple[float, float]:
        """Return the lowest and highest score."""
        if scores == "normalised":
            return 0.0, 1.0
        given = (self.results.study.get("scale") or {}).get(task)
        if given:
            return float(given[0]), float(given[1])
        edges = [float(row[edge]) for row in self.rows(scores, "histogram", task) for edge in ("lower", "upper")]
        return (min(edges), max(edges)) if edges else (1.0, 10.0)

    def figure(
        self,
        scores: Scores,
        name: str,
        title: str,
        *caption: str,
        alt: str,
        plot: Plot,
        intervals: bool | None = None,
        **more: Any,
    ) -> StudyFigure:
        """Return a figure of these results.

        Args:
            caption: sentences; empty ones are left out. Which scores these are is said first where ratings of a task
                are shown, then where `intervals` come from, or that there are none, and at last the simulation.
            more: fields of `StudyFigure`.
        """
        kind = self.kind_words(scores, more["task"]) if "task" in more else ""
        origin = "" if intervals is None else self.interval_words(are_drawn=intervals, are_widened="task" in more)
        simulated = "Simulated: no listener gave these answers." if self.is_simulated else ""
        sentences = " ".join(one for one in (kind, *caption, origin, simulated) if one)
        more["reading"] = next(filter(None, caption), "")
        return StudyFigure(scores, name, title, sentences, alt, plot, is_simulated=self.is_simulated, **more)

    def score_words(self, scores: Scores, task: str) -> str:
        """Return what the axis of scores is called."""
        low, high = self.scale(scores, task)
        what = "normalised rank" if scores == "normalised" else "rating"
        return f"{sentence(task)}: {what}, {low:g} to {high:g}"

    def kind_words(self, scores: Scores, task: str) -> str:
        """Return the sentence of a caption that says which scores these are; without a task, of all tasks together."""
        if scores == "normalised":
            formula = self.results.settings.get("normalisation")
            return f"Ratings normalised to ranks within each listener{f' ({formula})' if formula else ''}, 0 to 1."
        if not task:
            return "Raw ratings."
        low, high = self.scale(scores, task)
        return f"Raw ratings, {low:g} to {high:g}."

    def size_words(self, rows: Iterable[Record], *counted: str, of: str = "ratings") -> str:
        """Return n and listeners of some rows; the most listeners of any row, since rows share them."""
        chosen = list(rows)
        n = sum(int(row.get(name) or 0) for row in chosen for name in counted)
        listeners = max((int(row.get("listeners") or 0) for row in chosen), default=0)
        return f"n = {count(n)} {of} by {count(listeners)} listeners (the clusters)."

    def interval_words(self, *, are_drawn: bool = True, are_widened: bool = False) -> str:
        """Return where the intervals come from; those of ratings of a task are widened for other utterances."""
        settings = self.results.settings
        if not are_drawn:
            fewest = settings.get("least_clusters")
            return f"No intervals: they need at least {fewest} listeners." if fewest else "No intervals."
        widened = ", wider where several listeners rated an utterance" if are_widened else ""
        return (
            f"{self.level_words} intervals: {count(int(settings.get('resamples', 0)))} "
            f"resamples of listeners with all their ratings{widened}, seed {settings.get('seed')}."
        )

    @property
    def level_words(self) -> str:
        return f"{percent(self.results.level, 0)} %"


def ordered(records: dict[str, Record], by: str, *, highest_first: bool = True) -> list[str]:
    """Return the original first, then the systems by a column, those without a value last."""

    def place(name: str) -> tuple[bool, bool, float, str]:
        value = records[name].get(by)
        known = isinstance(value, (int, float))
        signed = (-float(value) if highest_first else float(value)) if known else 0.0  # type: ignore[arg-type]
        return name != ORIGINAL, not known, signed, name

    return sorted(records, key=place)


def group_rows(rows: Iterable[Record], *columns: str) -> dict[tuple[str, ...], list[Record]]:
    """Return rows by their cells in some columns, in the order of the first of each."""
    found: dict[tuple[str, ...], list[Record]] = {}
    for row in rows:
        found.setdefault(tuple(str(row[column]) for column in columns), []).append(row)
    return found


def plot_matrix(
    strengths: Mapping[tuple[str, str], int], names: Sequence[str], levels: str, view: ResultsView | None = None
) -> MatrixPlot:
    """Plot each against each other, by how `weigh_pairs` found them; systems as the view calls them, if it is given."""
    return MatrixPlot(
        [view.short[name] for name in names] if view else names,
        [[strengths.get((first, second)) for second in names] for first in names],
        levels,
        [place for place, name in enumerate(names) if name == ORIGINAL] if view else (),
        [view.told(name) for name in names] if view else (),
    )


def weigh_pairs(pairs: Iterable[tuple[Any, Any, float, float]], levels: Sequence[float]) -> dict[tuple[str, str], int]:
    """Return by how many levels each two differ, in either order; negative where the first is lower.

    Args:
        pairs: first, second, difference and p.
    """
    found: dict[tuple[str, str], int] = {}
    for first, second, difference, p in pairs:
        held = sum(p < level for level in levels) * (1 if difference > 0 else -1)
        found[str(first), str(second)], found[str(second), str(first)] = held, -held
    return found


def has_interval(records: Iterable[Record], name: str) -> bool:
    return any(row.get(f"{name}_low") is not None for row in records)


def find_limits(values: Iterable[float | None], least_span: float = 0.0) -> tuple[float, float]:
    """Return the lowest and the highest of all values, widened upwards to a span."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=least_span)
    return low, max(high, low + least_span)
