"""What the results page of a study shows: facts, a section for each task, comparisons, and how it all came about.

A page depends on the analysis, the kind of scores and what its reader may see, and on nothing else, so that it is made
once and kept (`result_shown`). Only what an organizer may do is asked of the database each time (`result_doings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from listening.analysis.contents import BY_SCORES, COMMON
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Results
from listening.results.result_headlines import headline, systems_of
from listening.results.result_matrices import Matrix, matrix_of
from listening.results.result_method import Formula, formulas, settings_facts, sources
from listening.results.result_shown_figures import ShownFigure
from listening.results.result_tables import Shape, ShownTable, shown_table
from listening.results.result_words import SCORES, TASKS, TaskWords, counted, label_of, percent, scores_in_words

EVERY = "all"  # in place of the name of a system
MOST_PAIRS = 120  # more are in the file, and on the page of each system
SECTIONS_OF_FORM = ("linkability", "transcription")
PAIRS = {
    "original-original": "two unprotected samples",
    "anonymised-anonymised": "two anonymised samples",
    "original-anonymised": "one unprotected, one anonymised sample",
}
WORDS = {
    "kind": {"target": "same speaker", "nontarget": "different speakers", "heard-badly": "rated badly, recognised well"}
    | {"heard-well": "rated well, recognised badly"},
    "pairs": PAIRS,
    "rule": {"standing": "all that stand"},
    "first": {name: words.title for name, words in TASKS.items()},
    "second": {name: words.title for name, words in TASKS.items()},
    "task": {name: words.title for name, words in TASKS.items()},
    "system": {EVERY: "every system"},
}


@dataclass(frozen=True)
class Reader:
    """What a page depends on besides its analysis. `csv_of`: the tables this reader may have as files."""

    study: str
    scores: str
    is_organizer: bool
    tables: frozenset[str]

    def address(self, name: str, *parts: str) -> str:
        return reverse(f"studies:{name}", args=[self.study, *parts])

    def csv(self, scores: str, table: str) -> str:
        """The address of a table as a file; empty where this reader may not have it."""
        return self.address("results-csv", scores, table) if table in self.tables else ""

    def system(self, name: str) -> str:
        """The address of a system's page, of the scores that are shown; empty where it has none.

        Imported systems are called anything: browsers resolve . and .. between slashes, so such a name has no address.
        """
        if name in (ORIGINAL, EVERY) or {".", ".."}.intersection(name.split("/")):
            return ""
        return f"{self.address('results-system', name)}?scores={self.scores}"


@dataclass(frozen=True)
class TaskSection:
    """What listeners said in a task: the headline, what it rests on, and figures."""

    name: str
    words: TaskWords
    headline: ShownTable
    finding: str
    more: tuple[ShownTable, ...]
    figures: tuple[ShownFigure, ...]


@dataclass(frozen=True)
class Comparison:
    """Systems against each other in a task."""

    name: str
    title: str
    matrix: Matrix | None
    is_of_rates: bool
    tables: tuple[ShownTable, ...]
    as_in_2020: ShownTable | None
    figures: tuple[ShownFigure, ...]
    left_out: int


@dataclass(frozen=True)
class Section:
    """Tables and figures under a heading."""

    anchor: str
    title: str
    lead: str
    tables: tuple[ShownTable, ...] = ()
    figures: tuple[ShownFigure, ...] = ()
    empty: str = ""


@dataclass(frozen=True)
class ResultsPage:
    """Everything of the page that its reader may see. `left_out`: reasons, and how many listeners."""

    scores: str
    scores_words: str
    stats: tuple[Mapping[str, str], ...]
    remarks: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    tasks: tuple[TaskSection, ...]
    comparisons: tuple[Comparison, ...]
    sections: tuple[Section, ...]
    formulas: tuple[Formula, ...]
    settings: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
    downloads: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    attribution: str = ""
    contents: tuple[tuple[str, str], ...] = field(default=())


def chosen_scores(query: Mapping[str, str]) -> str:
    """The kind of scores that an address asks for; normalised ones where it asks for none that exist."""
    wanted = query.get("scores", "")
    return wanted if wanted in SCORES else "normalised"


def results_page(
    results: Results, reader: Reader, figures: Sequence[ShownFigure], sorting: tuple[str, str]
) -> ResultsPage:  # fmt: skip
    """The whole page. Figures are those of the reader's scores that they may see."""
    scores = reader.scores
    shape = Shape(labels=results.study["labels"], link=reader.system, words=WORDS)
    tasks = tuple(
        section
        for task in tasks_of(results, scores)
        if (section := _task_section(results, reader, task, shape, figures, sorting)) is not None
    )
    comparisons = tuple(
        one for task in tasks if (one := _comparison(results, reader, task.name, shape, figures)) is not None
    )
    used = {id(one) for task in tasks for one in task.figures}
    used |= {id(one) for comparison in comparisons for one in comparison.figures}
    sections = tuple(_sections(results, reader, shape, [one for one in figures if id(one) not in used]))
    return ResultsPage(
        scores=scores,
        scores_words=scores_in_words(scores, results.settings.get("normalisation", ""), None),
        stats=tuple(_stats(results)),
        remarks=tuple(results.remarks),
        left_out=tuple(_left_out(results)),
        tasks=tasks,
        comparisons=comparisons,
        sections=sections,
        formulas=tuple(formulas(results, scores)),
        settings=tuple(settings_facts(results)),
        sources=tuple(sources(results)),
        downloads=tuple(_downloads(results, reader)),
        attribution=str(results.study.get("attribution", "")),
        contents=tuple(_contents(tasks, comparisons, sections)),
    )


# Parts ---------------------------------------------------------------------------------------------


def tasks_of(results: Results, scores: str) -> list[str]:
    """Those that were rated, in the order of asking."""
    summary = results.table(scores, "summary")
    rated = set(summary.values("task")) if summary else set()
    return [task for task in results.study["tasks"] if task in rated and task in TASKS]


def _task_section(
    results: Results, reader: Reader, task: str, shape: Shape, figures: Sequence[ShownFigure], sorting: tuple[str, str]
) -> TaskSection | None:  # fmt: skip
    table = headline(results, reader.scores, task, shape, sorting, reader.csv(reader.scores, "summary"))
    if table is None:
        return None
    more = tuple(
        shown
        for name in ("summary", "detection", "model_effects", "model_variance")
        if (shown := of_task(results, reader, name, task, shape)) is not None
    )
    drawn = tuple(one for one in figures if one.task == task and not one.is_comparison and one.place == "task")
    return TaskSection(task, TASKS[task], table, _finding(results, reader.scores, task, shape), more, drawn)


def of_task(results: Results, reader: Reader, name: str, task: str, shape: Shape, **more: Any) -> ShownTable | None:
    """The rows of a task in a table of the reader's scores."""
    table = results.table(reader.scores, name)
    if table is None:
        return None
    caption = f"{TASKS[task].title}, {SCORES[reader.scores].lower()}"
    of = Shape(shape.hidden | {"task"}, shape.labels, shape.link, shape.words)
    return shown_table(
        table, caption, of, records=table.records(task=task), csv=reader.csv(reader.scores, name), **more
    )


def _finding(results: Results, scores: str, task: str, shape: Shape) -> str:
    """The task in a sentence: the widest statement that its groups allow."""
    systems = [one for one in systems_of(results, scores, task) if one.name != ORIGINAL]
    is_rate = TASKS[task].is_detection
    known = [
        (float(value), one)
        for one in systems
        if isinstance(value := (one.detection.get("eer") if is_rate else one.all.get("mean")), (int, float))
    ]
    if not known:
        return ""
    known.sort(key=lambda pair: -pair[0])
    (best, first), (least, last) = known[0], known[-1]
    show = percent if is_rate else (lambda value: f"{value:.2f}")
    label = lambda one: label_of(one.name, shape.labels or {})  # noqa: E731
    if len(known) == 1:
        what = "equal error rate" if is_rate else "mean score"
        return f"One system was rated: {label(first)}, {what} {show(best)}."
    what = "Equal error rates" if is_rate else "Mean scores"
    return f"{what} of {len(known)} systems reach from {show(least)} ({label(last)}) to {show(best)} ({label(first)})."


def _comparison(
    results: Results, reader: Reader, task: str, shape: Shape, figures: Sequence[ShownFigure]
) -> Comparison | None:  # fmt: skip
    by_rate = _pairs(results, reader.scores, "eer_differences", task) if TASKS[task].is_detection else []
    records = by_rate or _pairs(results, reader.scores, "differences", task)
    if not records:
        return None
    few = len(records) <= MOST_PAIRS
    names = ("differences", "eer_differences")
    tables = tuple(
        shown for name in names if few and (shown := of_task(results, reader, name, task, shape)) is not None
    )
    return Comparison(
        name=task,
        title=TASKS[task].title,
        matrix=matrix_of(records, shape, results.settings.get("level", 0.95), is_rate=bool(by_rate)),
        is_of_rates=bool(by_rate),
        tables=tables,
        as_in_2020=of_task(results, reader, "mann_whitney", task, shape) if few else None,
        figures=tuple(one for one in figures if one.task == task and one.is_comparison),
        left_out=0 if few else len(records),
    )


def _pairs(results: Results, scores: str, name: str, task: str) -> list[dict[str, Any]]:
    table = results.table(scores, name)
    return table.records(task=task) if table else []


def _sections(results: Results, reader: Reader, shape: Shape, figures: Sequence[ShownFigure]) -> list[Section]:
    """Everything after the tasks that this study has."""
    made: list[Section] = []
    for anchor, title, lead, names, empty in PARTS:
        tables = tuple(shown for path in names for shown in _all_of(results, reader, path, shape))
        drawn = tuple(one for one in figures if one.place == anchor)
        if tables or drawn or (empty and results.table(reader.scores, "summary") is not None):
            made.append(Section(anchor, title, lead, tables, drawn, "" if tables or drawn else empty))
    rest = tuple(one for one in figures if one.place not in {part[0] for part in PARTS} | {"task"})
    if rest:
        made.append(Section("figures", "Further figures", "", (), rest))
    return made


# Anchor, title, lead, tables, and what is said where there is nothing.
PARTS: tuple[tuple[str, str, str, tuple[str, ...], str], ...] = (
    (
        "linkability",
        "Linkability",
        "Listeners placed voices on a board, near to each other where they sound alike. How well does closeness tell "
        "samples of one speaker? Near 50 % it does not. The pairs of an unprotected and an anonymised sample are those "
        "that an attacker would look at.",
        ("pair_detection", "grouping", "map_fit"),
        "",
    ),
    (
        "transcription",
        "Words understood",
        "Listeners wrote down what they heard. A lower word error rate is easier to understand; the recogniser’s is "
        "that of the same recordings.",
        ("transcription",),
        "",
    ),
    (
        "objective",
        "Objective beside subjective",
        "Do the recogniser and the pitch tracker say what listeners say? Each correlation is over anonymised "
        "utterances, with an interval over listeners: near 0 the two have little to do with each other.",
        ("correlations",),
        "No objective measure of these utterances is stored, so ratings stand alone.",
    ),
    (
        "reliability",
        "Do listeners agree?",
        "1 is full agreement and 0 what chance would give. It can be computed only on what several people rated.",
        ("reliability",),
        "No item was rated by several listeners: without a bridge set, no index of agreement can be computed.",
    ),
    (
        "exclusions",
        "What leaving sessions out changes",
        "Each number with everybody, and after the standing rules left sessions out. Nothing is deleted.",
        ("exclusion_effect",),
        "",
    ),
)  # fmt: skip


def _all_of(results: Results, reader: Reader, name: str, shape: Shape) -> list[ShownTable]:
    """A table of the reader's scores, or of neither; the effect of rules is that of the standing ones."""
    scores = "common" if name in {one.name for one in COMMON} else reader.scores
    table = results.table(scores, name)
    if table is None:
        return []
    records = table.records()
    hidden = shape.hidden
    if name == "exclusion_effect":
        records = [row for row in table.records(rule="standing") if row["n_before"] != row["n_after"]]
        hidden |= {"rule"}
    caption = SCORES.get(scores, "")
    link = None if name == "correlations" else shape.link  # what it compares are no systems
    of = Shape(hidden, shape.labels, link, shape.words)
    shown = shown_table(table, caption, of, records=records, csv=reader.csv(scores, name))
    return [shown] if shown else []


def _stats(results: Results) -> list[dict[str, str]]:
    """What was asked of whom, in numbers."""
    counts = results.counts
    systems = {
        name for table in results.tables.values() if "system" in table.columns for name in table.values("system")
    }
    said = [
        ("listeners", "Listeners", "whose answers count"),
        ("sessions", "Sessions", ""),
        ("ratings", "Ratings", "that count"),
        ("placements", "Placements", "that count"),
        ("transcripts", "Transcripts", "that count"),
        ("excluded_sessions", "Sessions left out", "by standing rules"),
    ]
    found = [{"label": label, "value": f"{counts[key]:,}", "note": note} for key, label, note in said if key in counts]
    return [*found, {"label": "Systems", "value": str(len(systems - {ORIGINAL, EVERY})), "note": "beside the original"}]


def _left_out(results: Results) -> list[tuple[str, str]]:
    """Why listeners are left out, and how many for each reason; who they are is not told."""
    table = results.table("raw", "listeners")
    reasons: dict[str, set[str]] = {}
    for row in table.records() if table else ():
        if row["excluded"]:
            reasons.setdefault(str(row["excluded"]), set()).add(str(row["listener"]))
    ordered = sorted(reasons.items(), key=lambda one: (-len(one[1]), one[0]))
    return [(reason, counted(len(people), "listener")) for reason, people in ordered]


def _downloads(results: Results, reader: Reader) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """The tables that this reader may have, by kind of scores."""
    found = []
    for scores, title, contents in (
        ("normalised", "Tables of normalised ranks", BY_SCORES),
        ("raw", "Tables of raw ratings", BY_SCORES),
        ("common", "Tables of neither", COMMON),
    ):
        links = tuple(
            (one.title, reader.csv(scores, one.name))
            for one in contents
            if one.name in reader.tables and (table := results.table(scores, one.name)) is not None and table.rows
        )
        if links:
            found.append((title, links))
    return found


def _contents(
    tasks: Sequence[TaskSection], comparisons: Sequence[Comparison], sections: Sequence[Section]
) -> list[tuple[str, str]]:  # fmt: skip
    """Anchors and titles of the page."""
    found = [(one.name, one.words.title) for one in tasks]
    if comparisons:
        found.append(("comparisons", "Comparisons"))
    return [*found, *((one.anchor, one.title) for one in sections), ("method", "Method"), ("downloads", "Downloads")]


def listeners_in_words(results: Results) -> str:
    """Such as ``52 listeners, 2,704 ratings``."""
    parts = [
        counted(results.counts[key], one)
        for key, one in (
            ("listeners", "listener"),
            ("ratings", "rating"),
            ("placements", "placement"),
            ("transcripts", "transcript"),
        )
        if results.counts.get(key)
    ]  # fmt: skip
    return ", ".join(parts)
