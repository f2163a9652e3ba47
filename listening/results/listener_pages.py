"""What the page of listeners shows, to organizers alone: each of them, and whom each screening rule would leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from listening.analysis.tables import Cell, Results
from listening.results.result_pages import WORDS, Reader, of_task
from listening.results.result_shown_figures import ShownFigure
from listening.results.result_tables import Shape, ShownTable, shown_table
from listening.results.result_words import SCORES, TASKS
from listening.results.screening_flags import FLAG_OF_RULE

Record = Mapping[str, Cell]


@dataclass(frozen=True)
class Rule:
    """A screening rule.

    Attributes:
        words: what it looks at, from where it catches, and where it is from.
        may_leave_out: whether sessions can be left out by it.
        caught: how many listeners it would leave out, of how many it looked at.
        sessions: as the analysis calls those it would leave out.
        found: the listeners that it catches.
        effect: every system before and after.
    """

    name: str
    title: str
    words: str
    may_leave_out: bool
    caught: int
    looked_at: int
    sessions: tuple[str, ...]
    found: ShownTable | None
    effect: ShownTable | None

    @property
    def anchor(self) -> str:
        return f"rule-{self.name}"


@dataclass(frozen=True)
class ListenersPage:
    tables: tuple[tuple[str, ShownTable], ...]
    rules: tuple[Rule, ...]
    figures: tuple[ShownFigure, ...]
    n: int


def listeners_page(results: Results, reader: Reader, figures: Sequence[ShownFigure]) -> ListenersPage:
    shape = Shape(labels=results.study["labels"], link=reader.system, words=WORDS)
    table = results.table(reader.scores, "listeners")
    tasks = [str(task) for task in table.values("task")] if table else []
    tables = tuple(
        (TASKS[task].title, shown)
        for task in tasks
        if task in TASKS and (shown := of_task(results, reader, "listeners", task, shape)) is not None
    )
    screening = results.table("common", "screening")
    rules = [str(rule) for rule in screening.values("rule")] if screening else []
    return ListenersPage(
        tables=tables,
        rules=tuple(_rule(results, reader, rule, shape) for rule in rules),
        figures=tuple(one for one in figures if one.is_about_listeners),
        n=len(table.values("listener")) if table else 0,
    )


def _rule(results: Results, reader: Reader, name: str, shape: Shape) -> Rule:
    screening = results.table("common", "screening")
    records = screening.records(rule=name) if screening else []
    caught = [row for row in records if row["is_caught"]]
    sessions = dict.fromkeys(one for row in caught for one in str(row["session"] or "").split())
    of = Shape(shape.hidden | {"rule", "is_caught", "session"}, shape.labels, shape.link, shape.words)
    title, words = _words(name)
    found = shown_table(screening, f"{title}: whom it would leave out", of, records=caught, title="Caught")
    return Rule(
        name=name,
        title=title,
        words=words,
        may_leave_out=name in FLAG_OF_RULE,
        caught=len({row["listener"] for row in caught}),
        looked_at=len({row["listener"] for row in records}),
        sessions=tuple(sessions),
        found=found,
        effect=_effect(results, reader, name, title, of),
    )


def _words(name: str) -> tuple[str, str]:
    """Title and description of a rule; its name where it is none of today's."""
    from listening.analysis.screening import RULES

    rule = next((one for one in RULES if one.name == name), None)
    if rule is None:
        return name.replace("-", " ").capitalize(), ""
    return rule.title, f"Looks at {rule.looks_at}; catches {rule.threshold} ({rule.source})."


def _effect(results: Results, reader: Reader, rule: str, title: str, shape: Shape) -> ShownTable | None:
    table = results.table(reader.scores, "exclusion_effect")
    records = [row for row in table.records(rule=rule) if row["n_before"] != row["n_after"]] if table else []
    caption = f"{title}: every system before and after, {SCORES[reader.scores].lower()}"
    return shown_table(table, caption, shape, records=records, title="Before and after")
