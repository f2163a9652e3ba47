"""A board as `evaluation.protocols.ranking` makes it: rankings of conditions, their rows, and who is in none of them.

Conventions: EERs and distances in per cent and percentage points; rows stand in the order of their utility.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evaluation.protocols.board_policy import BoardPolicy
from evaluation.protocols.entries import Entry, Measured, Reason
from evaluation.protocols.recipes import Utility


class Place(StrEnum):
    RANKED = "ranked"
    UNRANKED = "unranked"
    REFERENCE = "reference"  # baselines and the original speech do not compete


@dataclass(frozen=True, slots=True)
class Row:
    """An entry in one ranking. `groups`: numbers of the groups that it belongs to (`Ranking.groups`)."""

    entry: Entry
    place: Place
    rank: int | None
    privacy: Measured
    utility: Measured
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A system outside of a condition. `distance`: how far its EER is from it, in percentage points."""

    entry: Entry
    distance: float


@dataclass(frozen=True, slots=True)
class RankingTable:
    """One condition by one utility.

    Attributes:
        number: of the condition, from 1.
        upper: where the condition ends under the policy ``interval``.
        rows: ranked, unranked and reference rows, the best utility first.
        groups: keys of ranked neighbours, none of which can be told from another (`indistinguishable`).
        nearest: where nobody competes, the system that came nearest.
        just_missed: systems outside, but within the policy's `note_within` of the limit.
    """

    number: int
    minimum: float
    upper: float | None
    utility: Utility
    rows: tuple[Row, ...]
    groups: tuple[tuple[str, ...], ...]
    nearest: Miss | None
    just_missed: tuple[Miss, ...]

    @property
    def ranked(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.place is Place.RANKED)

    @property
    def competitors(self) -> tuple[Row, ...]:
        """Rows of teams: ranked or not."""
        return tuple(row for row in self.rows if row.place is not Place.REFERENCE)


@dataclass(frozen=True, slots=True)
class Unranked:
    """An entry that no ranking can hold, with its reasons."""

    entry: Entry
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class BoardTable:
    """All rankings of an edition.

    Attributes:
        unrankable: entries without the numbers that a rank rests on.
        outside: rankable entries, baselines among them, that meet no condition; the highest EER first.
    """

    policy: BoardPolicy
    tables: tuple[RankingTable, ...]
    unrankable: tuple[Unranked, ...]
    outside: tuple[Entry, ...]
