"""Who moves when a board is ranked by another policy or rests on other numbers.

`moves` compares two boards condition by condition; conditions are the same where their limit and their utility are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evaluation.protocols.entries import Entry
from evaluation.protocols.ranking_tables import BoardTable, Place, RankingTable, Row


@dataclass(frozen=True, slots=True)
class Move:
    """One system before and after; None where it is not listed in the condition."""

    entry: Entry
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class ConditionMoves:
    """What happens in one condition; one of the tables is None where the condition is new or goes."""

    minimum: float
    utility: str
    before: RankingTable | None
    after: RankingTable | None
    moves: tuple[Move, ...]
    unmoved: int


def moves(before: BoardTable, after: BoardTable) -> tuple[ConditionMoves, ...]:
    """Every condition of either board, ascending, with the systems of teams whose place differs."""
    old, new = _by_condition(before.tables), _by_condition(after.tables)
    return tuple(_of_condition(key, old.get(key), new.get(key)) for key in sorted(old | new))


def _by_condition(tables: Iterable[RankingTable]) -> dict[tuple[float, str], RankingTable]:
    return {(table.minimum, table.utility.metric): table for table in tables}


def _of_condition(
    key: tuple[float, str], before: RankingTable | None, after: RankingTable | None
) -> ConditionMoves:  # fmt: skip
    old, new = _rows(before), _rows(after)
    names = [*new, *(name for name in old if name not in new)]
    every = [Move((new.get(name) or old[name]).entry, old.get(name), new.get(name)) for name in names]
    moved = tuple(move for move in every if _place(move.before) != _place(move.after))
    return ConditionMoves(*key, before, after, moved, len(every) - len(moved))


def _rows(table: RankingTable | None) -> dict[str, Row]:
    rows = table.rows if table else ()
    return {row.entry.key: row for row in rows if row.place is not Place.REFERENCE}


def _place(row: Row | None) -> tuple[bool, int | None]:
    return row is not None, row.rank if row else None
