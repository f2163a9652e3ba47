"""The results as figures read them: rows by task and system, names as they are printed, and what every caption says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from listening.analysis.figures.words import count, percent, sentence, short_names, slug
from listening.analysis.inputs import ORIGINAL, RATED
from listening.analysis.tables import Cell, Results, Scores

Record = dict[str, Any]
EVERY_SYSTEM = "all"
_NAMING = ("system", "first", "second")
# Tables whose `first` and `second` are no systems.
_NAMES_NO_SYSTEM = frozenset({"correlations"})


class View:
    """Looks up what a figure needs; each table is read once."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.is_simulated = bool(results.study.get("is_simulated"))
        self._by_task: dict[tuple[str, str], dict[Cell, list[Record]]] = {}

    @cached_property
    def names(self) -> list[str]:
        """Every system that any table names, the original first."""
        found: dict[str, None] = {}
        for table in self.results.tables.values():
            for column in _NAMING if table.name not in _NAMES_NO_SYSTEM else ():
                if column in table.columns:
                    found |= dict.fromkeys(str(name) for name in table.values(column) if name is not None)
        return sorted(found, key=lambda name: (name != ORIGINAL, name))

    @cached_property
    def labels(self) -> dict[str, str]:
        """What each system is called on pages."""
        given = self.results.study.get("labels") or {}
        usual = {ORIGINAL: "Original", EVERY_SYSTEM: "All systems"}
        return {name: str(given.get(name) or usual.get(name, name)) for name in self.names}

    @cached_property
    def short(self) -> dict[str, str]:
        """What each system is called within a figure."""
        return short_names(self.labels)

    @cached_property
    def slugs(self) -> dict[str, str]:
        """Each system as part of the name of a figure."""
        taken: dict[str, str] = {}
        for name in self.names:
            made, again = slug(name), 2
            while made in taken.values():
                made, again = f"{slug(name)}-{again}", again + 1
            taken[name] = made
        return taken

    def tasks(self, scores: Scores) -> list[str]:
        """Those that have scores, in the order of asking."""
        table = self.results.table(scores, "summary")
        found = set(table.values("task")) if table else set()
        return [task for task in RATED if task in found] + sorted(str(task) for task in found - set(RATED))

    def rows(self, scores: Scores, name: str, task: str | None = None) -> list[Record]:
        """The rows of a table, those of a task where one is given; none where there is no such table."""
        table = self.results.table(scores, name)
        if table is None:
            return []
        key = (scores, name)
        if key not in self._by_task:
            by_task: dict[Cell, list[Record]] = {}
            has_task = "task" in table.columns
            for record in table.records():
                by_task.setdefault(record["task"] if has_task else None, []).append(record)
            self._by_task[key] = by_task
        if task is None:
            return [row for rows in self._by_task[key].values() for row in rows]
        return self._by_task[key].get(task, [])

    def by_system(self, scores: Scores, name: str, task: str, **equal: Cell) -> dict[str, Record]:
        """One row for each system."""
        rows = self.rows(scores, name, task)
        return {str(row["system"]): row for row in rows if all(row[key] == value for key, value in equal.items())}

    def scale(self, scores: Scores, task: str) -> tuple[float, float]:
        """Lowest and highest score."""
        if scores == "normalised":
            return 0.0, 1.0
        given = (self.results.study.get("scale") or {}).get(task)
        if given:
            return float(given[0]), float(given[1])
        edges = [float(row[edge]) for row in self.rows(scores, "histogram", task) for edge in ("lower", "upper")]
        return (min(edges), max(edges)) if edges else (1.0, 10.0)

    def score_words(self, scores: Scores, task: str) -> str:
        """What the axis of scores is called."""
        low, high = self.scale(scores, task)
        what = "normalised rank" if scores == "normalised" else "rating"
        return f"{sentence(task)}: {what}, {low:g} to {high:g}"

    def kind_words(self, scores: Scores, task: str | None = None) -> str:
        """The sentence of a caption that says which scores these are."""
        if scores == "normalised":
            formula = self.results.settings.get("normalisation")
            return f"Ratings normalised to ranks within each listener{f' ({formula})' if formula else ''}, 0 to 1."
        if task is None:
            return "Raw ratings."
        low, high = self.scale(scores, task)
        return f"Raw ratings, {low:g} to {high:g}."

    def size_words(self, rows: Iterable[Record], *counted: str, of: str = "ratings") -> str:
        """n and listeners of some rows; those of listeners are the most of any row, since rows share them."""
        chosen = list(rows)
        n = sum(int(row.get(name) or 0) for row in chosen for name in counted)
        listeners = max((int(row.get("listeners") or 0) for row in chosen), default=0)
        return f"n = {count(n)} {of} by {count(listeners)} listeners (the clusters)."

    def interval_words(self, *, are_drawn: bool = True) -> str:
        """Where the intervals come from."""
        settings = self.results.settings
        if not are_drawn:
            fewest = settings.get("least_clusters")
            return f"No intervals: they need at least {fewest} listeners." if fewest else "No intervals."
        return (
            f"{percent(settings.get('level', 0.95), 0)} % intervals: {count(int(settings.get('resamples', 0)))} "
            f"resamples of listeners with all their ratings, seed {settings.get('seed')}."
        )

    def simulated_words(self) -> str:
        return "Simulated: no listener gave these answers." if self.is_simulated else ""

    def caption(self, *sentences: str) -> str:
        """The sentences of a caption, the simulation named last."""
        return " ".join(one for one in (*sentences, self.simulated_words()) if one)

    @property
    def level_words(self) -> str:
        return f"{percent(self.results.settings.get('level', 0.95), 0)} %"


def ordered(records: dict[str, Record], by: str, *, highest_first: bool = True) -> list[str]:
    """The original first, then the systems by a column, those without a value last."""

    def place(name: str) -> tuple[bool, bool, float, str]:
        value = records[name].get(by)
        known = isinstance(value, (int, float))
        signed = (-float(value) if highest_first else float(value)) if known else 0.0  # type: ignore[arg-type]
        return name != ORIGINAL, not known, signed, name

    return sorted(records, key=place)


def has_interval(records: Iterable[Record], name: str) -> bool:
    return any(row.get(f"{name}_low") is not None for row in records)


def numbers_of(
    view: View, records: Sequence[Record], columns: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:  # fmt: skip
    """Columns and rows of the accessible table: those of a table of results, the label of each system in full."""
    heads = tuple(column for name in columns for column in ((name, "label") if name == "system" else (name,)))
    rows = []
    for record in records:
        cells: list[Cell] = []
        for name in columns:
            cells.append(record.get(name))
            if name == "system":
                cells.append(view.labels.get(str(record.get(name)), record.get(name)))
        rows.append(tuple(cells))
    return heads, tuple(rows)
