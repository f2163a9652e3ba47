"""Objective numbers of systems beside what listeners said of them: one table for each study, for page, JSON and CSV.

What stands beside what follows from the form of the study: the attacker's EER beside that of listeners, the
recogniser's word errors beside intelligibility or the words that listeners wrote down. Numbers of listeners come from
the tables of an analysis, objective ones from the board; nothing is computed here.
Public: `Quantity`, `Measured`, `Row`, `Beside`, `beside_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.protocols import entries
from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Cell, Results, Table
from listening.results.result_words import ORIGINAL_LABEL
from portal.core.wording import decimals
from portal.results.board import Column
from portal.results.board_pages import measured_of

LISTENERS, OBJECTIVE = "listeners", "objective"
CSV_COLUMNS = (
    "study", "is_simulated", "scores", "system", "label", "by", "measure", "unit", "value", "low", "high", "group",
)  # fmt: skip


PERCENT_DIGITS, DIGITS = 1, 3
BOARD_LEVEL = 0.95  # of the intervals on boards
EARLIER = "An earlier version of it was heard."


@dataclass(frozen=True)
class Quantity:
    """A column. `by`: `OBJECTIVE` or `LISTENERS`; `unit`: of its values, such as ``%``; `how`: its estimator."""

    key: str
    title: str
    by: str
    unit: str = ""
    how: str = ""

    @property
    def heading(self) -> str:
        """Such as ``EER of listeners, %``."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def digits(self) -> int:
        return PERCENT_DIGITS if self.unit == "%" else DIGITS


@dataclass(frozen=True)
class Measured:
    """A number with its interval, in the unit of its quantity. `group`: letters of systems that are alike."""

    quantity: Quantity
    value: float | None = None
    low: float | None = None
    high: float | None = None
    group: str = ""
    is_claimed: bool = False

    @property
    def text(self) -> str:
        return "" if self.value is None else decimals(self.value, self.quantity.digits)

    @property
    def interval(self) -> str:
        if self.low is None or self.high is None:
            return ""
        return f"{decimals(self.low, self.quantity.digits)} to {decimals(self.high, self.quantity.digits)}"


@dataclass(frozen=True)
class Row:
    """A system. `heard`: its name in the study, `key`: on the board, empty for original speech.

    `remark`: what keeps the two from being about the same thing.
    """

    heard: str
    key: str
    label: str
    numbers: tuple[Measured, ...]
    remark: str = ""


@dataclass(frozen=True)
class Heard:
    """A system of a study that stands on the board. `is_outdated`: the board shows a later version of it."""

    heard: str
    entry: entries.Entry
    is_outdated: bool = False


@dataclass(frozen=True)
class Beside:
    """The table of one study. `scores`: kind of the scores that listeners' numbers rest on; empty of no kind. `level`:
    of the intervals of listeners' numbers; objective ones are those of the board.
    """

    scores: str
    quantities: tuple[Quantity, ...]
    rows: tuple[Row, ...]
    level: float = BOARD_LEVEL

    @property
    def intervals(self) -> str:
        """What stands beneath a number, such as ``95 % interval``."""
        if self.level == BOARD_LEVEL:
            return f"{100 * BOARD_LEVEL:g} % interval"
        return f"interval ({100 * BOARD_LEVEL:g} % of what is computed, {100 * self.level:g} % of listeners’ numbers)"

    @property
    def has_remarks(self) -> bool:
        return any(row.remark for row in self.rows)

    @property
    def has_groups(self) -> bool:
        return any(one.group for row in self.rows for one in row.numbers)

    def as_data(self) -> list[dict[str, Any]]:
        """Each system with its numbers by measure, for JSON."""
        return [
            {
                "system": row.key or None,
                "label": row.label,
                "remark": row.remark,
                "numbers": {
                    one.quantity.key: {
                        "by": one.quantity.by, "unit": one.quantity.unit, "value": one.value, "low": one.low,
                        "high": one.high, "group": one.group,
                    }
                    for one in row.numbers
                    if one.value is not None
                },
            }
            for row in self.rows
        ]  # fmt: skip

    def csv_rows(self, study: str, is_simulated: bool) -> Iterator[tuple[Any, ...]]:
        """One row for each number, below `CSV_COLUMNS`."""
        for row in self.rows:
            for one in row.numbers:
                if one.value is not None:
                    what = one.quantity
                    yield (
                        study, "yes" if is_simulated else "no", self.scores if what.by == LISTENERS else "",
                        row.key or ORIGINAL, row.label, what.by, what.key, what.unit,
                        one.value, one.low, one.high, one.group,
                    )  # fmt: skip


# What stands beside what ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """Where listeners' numbers of a quantity stand in an analysis: table, column, and its rows by other columns.

    `of_original`: the row of unprotected speech, where it is not the one of that name; `factor`: into the unit.
    """

    table: str
    column: str
    quantity: Quantity
    rows: Mapping[str, str] = field(default_factory=dict)
    of_original: Mapping[str, str] = field(default_factory=dict)
    is_common: bool = False
    factor: float = 1.0


def _percent(table: str, column: str, key: str, title: str, **more: Any) -> _Source:
    return _Source(table, column, Quantity(key, title, LISTENERS, "%"), factor=100.0, **more)


def _mean(task: str, title: str) -> _Source:
    return _Source("summary", "mean", Quantity(task, title, LISTENERS), {"task": task, "kind": "all"})


# In the order of the columns; a word alone is an objective average of the board, left out where the board has none.
FORMS: Mapping[str, tuple[str | _Source, ...]] = {
    "rating": (
        "eer",
        _percent("detection", "eer", "verifiability_eer", "EER of listeners", rows={"task": "verifiability"}),
        "wer",
        _mean("intelligibility", "Intelligibility"),
        _mean("naturalness", "Naturalness"),
        "pitch_correlation",
    ),
    "linkability": (
        "eer",
        _percent(
            "pair_detection", "eer", "linkability_eer", "EER of linking by ear",
            rows={"pairs": "original-anonymised"}, of_original={"pairs": "original-original", "system": "all"},
        ),
    ),
    "transcription": (
        "wer",
        _percent("transcription", "wer", "listeners_wer", "WER of listeners", is_common=True),
        _percent("transcription", "keyword_accuracy", "keyword_accuracy", "Keywords understood", is_common=True),
        "pitch_correlation",
    ),
}  # fmt: skip
TITLES = {"eer": "EER of the attacker", "wer": "WER of the recogniser"}


def beside_of(
    results: Results, scores: str, columns: Sequence[Column], heard: Iterable[Heard],
    original: entries.Entry | None = None,
) -> Beside:  # fmt: skip
    """The systems of a study that stand on a board, the original first, then by the attacker's EER.

    Args:
        scores: ``raw`` or ``normalised``.
        columns: the averages of the board.
        original: unprotected speech as the board has it.
    """
    form = str(results.study["form"])
    parts = [part for one in FORMS[form] if (part := _part(one, results, scores, columns)) is not None]
    systems = sorted(heard, key=lambda one: -(one.entry.privacy.value if one.entry.privacy else -1.0))
    rows = [Row(ORIGINAL, "", ORIGINAL_LABEL, tuple(part(ORIGINAL, original) for part in parts))]
    rows += [
        Row(one.heard, one.entry.key, one.entry.label, tuple(part(one.heard, one.entry) for part in parts),
            EARLIER if one.is_outdated else "")
        for one in systems
    ]  # fmt: skip
    is_scored = any(isinstance(one, _Source) and not one.is_common for one in FORMS[form])
    quantities = tuple(part.quantity for part in parts)
    filled = [row for row in rows if any(one.value is not None for one in row.numbers)]
    return Beside(
        scores if is_scored else "", quantities, tuple(filled), float(results.settings.get("level", BOARD_LEVEL))
    )


class _Objective:
    """An average of the board, by entry."""

    def __init__(self, column: Column) -> None:
        self.column = column
        title = TITLES.get(column.key, column.metric.label)
        self.quantity = Quantity(column.key, title, OBJECTIVE, column.metric.unit, column.estimator)

    def __call__(self, heard: str, entry: entries.Entry | None) -> Measured:  # noqa: ARG002
        found = measured_of(entry, self.column) if entry else None
        if found is None:
            return Measured(self.quantity)
        return Measured(self.quantity, found.value, found.low, found.high, is_claimed=found.is_claimed)


class _Subjective:
    """A column of a table of the analysis, by system."""

    def __init__(self, source: _Source, table: Table) -> None:
        self.source, self.quantity = source, source.quantity
        self.by_system = {row["system"]: row for row in table.records(**source.rows)}
        if source.of_original and (rows := table.records(**source.of_original)):
            self.by_system[ORIGINAL] = rows[0]

    def __call__(self, heard: str, entry: entries.Entry | None) -> Measured:  # noqa: ARG002
        row = self.by_system.get(heard, {})
        column = self.source.column
        value, low, high = (self._number(row.get(f"{column}{end}")) for end in ("", "_low", "_high"))
        # Letters stand for the headline of their table alone.
        group = row.get("group") if column in ("mean", "eer") else None
        return Measured(self.quantity, value, low, high, str(group or ""))

    def _number(self, cell: Cell) -> float | None:
        return self.source.factor * cell if isinstance(cell, (int, float)) else None


def _part(
    one: str | _Source, results: Results, scores: str, columns: Sequence[Column]
) -> _Objective | _Subjective | None:
    """Reads one column; None where the board or the analysis has none."""
    if isinstance(one, str):
        column = next((column for column in columns if column.key == one), None)
        return _Objective(column) if column else None
    table = results.table("common" if one.is_common else scores, one.table)
    return _Subjective(one, table) if table and table.records(**one.rows) else None


# Utterance by utterance ----------------------------------------------------------------------------


CORRELATED = {"naturalness", "intelligibility", "1 − WER"}


def correlations_in_words(results: Results, scores: str) -> str:
    """How ratings go with what a recogniser understood, and with each other, in one line; empty where unknown."""
    table = results.table(scores, "correlations")
    known = [row for row in table.records() if row["pearson"] is not None] if table else []
    rows = [row for row in known if {row["first"], row["second"]} <= CORRELATED]
    said = []
    for row in rows:
        low, high = row["pearson_low"], row["pearson_high"]
        has_interval = isinstance(low, float) and isinstance(high, float)
        span = f" ({decimals(low, 2)} to {decimals(high, 2)})" if has_interval else ""  # type: ignore[arg-type]
        said.append(f"{row['first']} and {row['second']} {decimals(float(row['pearson'] or 0), 2)}{span}")
    if not said:
        return ""
    most = max(int(row["utterances"] or 0) for row in rows)
    return f"Correlation (Pearson) over {most} anonymised utterances: {', '.join(said)}."
