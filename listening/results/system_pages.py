"""What the results page of a system shows: its numbers beside the originals and the others, its curves, each comparison
it is part of; and for those who may hear it, its utterances, and where listeners and recogniser disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import escape

from listening.analysis.contents import CONTENTS, DETECTION, SUMMARY
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Cell, Column, Results, Table
from listening.results.result_drawings import DetPlot, Histogram, det_plot, histogram
from listening.results.result_headlines import System, systems_of
from listening.results.result_pages import WORDS, Reader, TaskWords, tasks_of
from listening.results.result_shown_figures import ShownFigure
from listening.results.result_tables import (
    Head,
    Shape,
    ShownTable,
    cell_html,
    reading_html,
    row_html,
    shown_table,
    table_heads,
)
from listening.results.result_words import SCORES, TASKS, label_of, listed, number, rate_in_words, share_a_letter, span

Record = Mapping[str, Cell]
MOST_OTHER_CURVES = 30
ENDS = frozenset({"naturalness", "intelligibility"})
EXTREMES = 12  # utterances at either end
KINDS = {"target": ("Same speaker", "same"), "nontarget": ("Different speakers", "different")}


@dataclass(frozen=True)
class SystemTask:
    """A system in a task."""

    name: str
    words: TaskWords
    said: str
    alike: str
    numbers: ShownTable
    det: DetPlot | None
    curve: ShownTable | None
    histograms: tuple[Histogram, ...]
    comparisons: ShownTable | None
    figures: tuple[ShownFigure, ...]

    @property
    def files(self) -> list[Mapping[str, str]]:
        """The drawn curve."""
        return [file for figure in self.figures for file in figure.downloads]

    @property
    def det_id(self) -> str:
        return f"det-{self.name}"

    @property
    def points_id(self) -> str:
        return f"det-{self.name}-points"


@dataclass(frozen=True)
class SystemPage:
    """Everything of a system that everybody sees."""

    label: str
    tasks: tuple[SystemTask, ...]
    others: tuple[ShownTable, ...]
    figures: tuple[ShownFigure, ...]


@dataclass(frozen=True)
class HeardPage:
    """Single utterances, for those who may hear them."""

    disagreements: tuple[tuple[str, str, ShownTable], ...]
    utterances: tuple[tuple[str, ShownTable], ...]


def system_page(results: Results, reader: Reader, name: str, figures: Sequence[ShownFigure]) -> SystemPage | None:
    """The page of a system; None where the study does not have it."""
    labels = results.study["labels"]
    shape = Shape(labels=labels, link=reader.system, words=WORDS)
    own = [one for one in figures if one.system == name]
    tasks = tuple(
        made
        for task in tasks_of(results, reader.scores)
        if (made := _task(results, reader, task, name, shape, own)) is not None
    )
    used = {id(one) for task in tasks for one in task.figures}
    others = tuple(_rows_of(results, reader, name, shape))
    if not tasks and not others:
        return None
    return SystemPage(label_of(name, labels), tasks, others, tuple(one for one in own if id(one) not in used))


def heard_page(
    utterances: Table | None, disagreements: Table | None, name: str, scores: str, heard: Mapping[str, str]
) -> HeardPage:  # fmt: skip
    """Its utterances, the worst and the best of each score, and its disagreements.

    Args:
        heard: by utterance the address of the page that plays it beside the original.
    """
    of_system = utterances.records(system=name) if utterances else []
    ends = []
    for column, title in (("naturalness", "Naturalness"), ("intelligibility", "Intelligibility")):
        rated = [row for row in of_system if isinstance(row[column], (int, float))]
        known = sorted(rated, key=lambda row: float(row[column] or 0))
        if not known:
            continue
        half = min(EXTREMES, -(-len(known) // 2))
        for rows, words in ((known[:half], "rated lowest"), (known[half:][::-1][:EXTREMES], "rated highest")):
            if rows:
                what = f"{title}, {words}"
                ends.append((what, _heard_table(rows, "utterances", what, scores, heard, ENDS - {column})))
    unlike = []
    for kind, title, lead in DISAGREEMENTS:
        rows = disagreements.records(system=name, kind=kind) if disagreements else []
        if rows:
            unlike.append((title, lead, _heard_table(rows, "disagreements", title, scores, heard)))
    return HeardPage(tuple(unlike), tuple(ends))


DISAGREEMENTS = (
    (
        "heard-badly",
        "Rated badly, recognised well",
        "The recogniser got every word, and listeners rated these lowest. What do they hear that it does not?",
    ),
    (
        "heard-well",
        "Rated well, recognised badly",
        "The recogniser made most errors in these, and listeners rated them highest.",
    ),
)


# A task --------------------------------------------------------------------------------------------


def _task(
    results: Results, reader: Reader, task: str, name: str, shape: Shape, figures: Sequence[ShownFigure]
) -> SystemTask | None:  # fmt: skip
    systems = systems_of(results, reader.scores, task)
    own = next((one for one in systems if one.name == name), None)
    if own is None:
        return None
    original = next((one for one in systems if one.name == ORIGINAL), None)
    others = [one for one in systems if one.name not in (name, ORIGINAL)]
    return SystemTask(
        name=task,
        words=TASKS[task],
        said=_said(own, task),
        alike=_alike(own, others, task, shape),
        numbers=_numbers(own, original, others, task, reader.scores),
        det=_det(results, reader.scores, task, name),
        curve=_curve(results, reader, task, name, shape),
        histograms=tuple(_histograms(results, reader.scores, task, name, shape)),
        comparisons=_comparisons(results, reader, task, name, shape),
        figures=tuple(one for one in figures if one.task == task),
    )


def _said(own: System, task: str) -> str:
    limits = [own.detection.get(name) for name in ("eer", "eer_low", "eer_high")]
    rate, low, high = (float(one) if isinstance(one, (int, float)) else None for one in limits)
    return rate_in_words(task, is_original=False, rate=rate, low=low, high=high)


def _alike(own: System, others: Sequence[System], task: str, shape: Shape) -> str:
    """Which systems cannot be told from this one."""

    def group(one: System) -> str:
        return str((one.detection if TASKS[task].is_detection else one.all).get("group") or "")

    if not group(own):
        return ""
    is_spaced = any(" " in group(one) for one in (own, *others))
    alike = [
        label_of(one.name, shape.labels or {})
        for one in others
        if group(one) and share_a_letter(group(own), group(one), is_spaced=is_spaced)
    ]
    if not others:
        return ""
    if not alike:
        return "It can be told from every other system."
    if len(alike) > 8:
        return f"It cannot be told from {len(alike)} of the {len(others)} other systems."
    return f"It cannot be told from {listed(alike)}."


_OF_MEANS = (("mean", "all"), ("median", "all"), ("eer", ""), ("auc", ""), ("cllr", ""))
_OF_RATES = (("eer", ""), ("auc", ""), ("cllr", ""), ("mean", "target"), ("mean", "nontarget"))


def _numbers(own: System, original: System | None, others: Sequence[System], task: str, scores: str) -> ShownTable:
    """The system beside the originals and what the other systems reach."""
    heads = (
        Head("Number", "", "what is measured"),
        Head("This system", "num", "with its interval over listeners"),
        Head("Original speech", "num", "the same of unprotected speech, where it can be had"),
        Head("Other systems", "num", "the lowest and the highest of them"),
        Head("What it is", "text", "how it is computed"),
    )
    rows = []
    for name, kind in _OF_RATES if TASKS[task].is_detection else _OF_MEANS:
        content = SUMMARY if kind else DETECTION
        column = next(one for one in content.columns if one.name == name)
        row = _row_of(own, kind)
        if row.get(name) is None:
            continue
        known = [float(value) for one in others if isinstance(value := _row_of(one, kind).get(name), (int, float))]
        reach = span(min(known), max(known), column) if known else ""
        words = f", {KINDS[kind][0].lower()}" if kind in KINDS else ""
        cells = [
            escape(f"{column.title}{words}"),
            _reading(column, row),
            _reading(column, _row_of(original, kind)) if original else "",
            escape(f"{reach} %" if reach and column.is_share else reach),
            escape(column.meaning[:1].upper() + column.meaning[1:]),
        ]
        rows.append(row_html(cells, heads))
    caption = f"{TASKS[task].title}, {SCORES[scores].lower()}"
    return ShownTable("Beside the others", caption, heads, tuple(rows))


def _row_of(one: System, kind: str) -> Record:
    """Its row of `summary` for a kind of pairs, or with none of `detection`."""
    return one.summary.get(kind, {}) if kind else one.detection


def _reading(column: Column, row: Record) -> str:
    low, high = row.get(f"{column.name}_low"), row.get(f"{column.name}_high")
    return reading_html(number(row.get(column.name), column), span(low, high, column))


def _det(results: Results, scores: str, task: str, name: str) -> DetPlot | None:
    table = results.table(scores, "det")
    by_system: dict[str, list[tuple[float, float, float | None]]] = {}
    for row in table.records(task=task) if table else ():
        miss, alarm, threshold = row["miss_rate"], row["false_alarm_rate"], row["threshold"]
        if isinstance(miss, (int, float)) and isinstance(alarm, (int, float)):
            at = float(threshold) if isinstance(threshold, (int, float)) else None
            by_system.setdefault(str(row["system"]), []).append((miss, alarm, at))
    own = by_system.pop(name, None)
    if not own:
        return None
    original = by_system.pop(ORIGINAL, None)
    others = [(other, "other", points) for other, points in list(by_system.items())[:MOST_OTHER_CURVES]]
    return det_plot(own, others + ([(ORIGINAL, "original", original)] if original else []), 2 if scores != "raw" else 0)


def _curve(results: Results, reader: Reader, task: str, name: str, shape: Shape) -> ShownTable | None:
    """The points of its curve, as numbers."""
    table = results.table(reader.scores, "det")
    of = Shape(shape.hidden | {"task", "system"}, shape.labels, shape.link, shape.words)
    caption = f"{TASKS[task].title}, {SCORES[reader.scores].lower()}: the points of the DET curve"
    records = table.records(task=task, system=name) if table else []
    return shown_table(table, caption, of, records=records, title="DET curve")


def _histograms(results: Results, scores: str, task: str, name: str, shape: Shape) -> list[Histogram]:
    table = results.table(scores, "histogram")
    if table is None:
        return []

    def bins(system: str, kind: str) -> list[tuple[float, float, float]]:
        rows = table.records(task=task, system=system, kind=kind)
        return [(float(r["lower"] or 0), float(r["upper"] or 0), float(r["share"] or 0)) for r in rows]

    label = label_of(name, shape.labels or {})
    if TASKS[task].is_detection:
        made = [
            histogram(title, [(words, role, bins(system, kind)) for kind, (words, role) in KINDS.items()])
            for system, title in ((name, label), (ORIGINAL, label_of(ORIGINAL, {})))
        ]
    else:
        both = [(label_of(ORIGINAL, {}), "original", bins(ORIGINAL, "all")), (label, "own", bins(name, "all"))]
        made = [histogram("Ratings", both)]
    return [one for one in made if one is not None]


def _comparisons(results: Results, reader: Reader, task: str, name: str, shape: Shape) -> ShownTable | None:
    """Each comparison of the system, turned so that it stands first; by rates in a task that is about one."""
    paths = ("eer_differences", "differences") if TASKS[task].is_detection else ("differences",)
    found = ((path, table) for path in paths if (table := results.table(reader.scores, path)) is not None)
    for path, table in found:
        records = [_turned(row, name) for row in table.records(task=task) if name in (row["first"], row["second"])]
        if not records:
            continue
        records.sort(key=lambda row: (row["second"] != ORIGINAL, str(row["second"])))
        hidden = shape.hidden | {"task", "first"}
        of = Shape(hidden, shape.labels, shape.link, shape.words, {"second": "Other system"})
        what = "EER" if path == "eer_differences" else "score"
        caption = f"{TASKS[task].title}, {SCORES[reader.scores].lower()}: {what} of this system less that of the other"
        return shown_table(table, caption, of, records=records, title="Compared", csv=reader.csv(reader.scores, path))
    return None


def _turned(row: dict[str, Cell], name: str) -> dict[str, Cell]:
    if row["first"] == name:
        return row
    turned = dict(row, first=row["second"], second=row["first"])
    for key in ("difference", "rank_biserial"):
        if isinstance(value := row.get(key), (int, float)):
            turned[key] = -value
    for key, opposite in (("difference_low", "difference_high"), ("difference_high", "difference_low")):
        if isinstance(value := row.get(opposite), (int, float)):
            turned[key] = -value
    return turned


# Other forms and single utterances -----------------------------------------------------------------


def _rows_of(results: Results, reader: Reader, name: str, shape: Shape) -> list[ShownTable]:
    """Its rows in the tables of boards and transcripts, beside the originals."""
    made = []
    for scores, path in ((reader.scores, "pair_detection"), ("common", "transcription")):
        table = results.table(scores, path)
        records = [row for row in table.records() if row["system"] in (name, ORIGINAL, "all")] if table else []
        if any(row["system"] == name for row in records):
            shown = shown_table(table, SCORES.get(scores, ""), shape, records=records, csv=reader.csv(scores, path))
            made += [shown] if shown else []
    return made


def _heard_table(
    rows: Sequence[Record], name: str, title: str, scores: str, heard: Mapping[str, str],
    hidden: frozenset[str] = frozenset(),
) -> ShownTable:  # fmt: skip
    """Utterances that lead to where they can be heard."""
    shape = Shape(hidden | {"system", "kind", "speaker"}, words=WORDS)
    shown = zip(*table_heads(CONTENTS[name], rows, shape), strict=True)
    columns, heads = zip(*sorted(shown, key=lambda one: one[0].name != "utterance"), strict=True)
    made = []
    for row in rows:
        cells = [cell_html(one, row, shape) for one in columns]
        if address := heard.get(str(row["utterance"]), ""):
            cells[0] = f'<a href="{escape(address)}">{cells[0]}</a>'
        made.append(row_html(cells, heads))
    return ShownTable(title, SCORES[scores], heads, tuple(made))


def heard_utterances(*tables: Table | None, name: str) -> set[str]:
    """The utterances of a system that tables name."""
    return {str(row["utterance"]) for table in tables if table for row in table.records(system=name)}
