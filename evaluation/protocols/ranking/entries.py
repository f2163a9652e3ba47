"""What a leaderboard is made from and of: systems with the numbers that decide their places, and rankings of them.

Conventions: EERs, WERs and UARs in per cent, unrounded; intervals are those of 95 %; numbers are known by their metric,
their estimator by the policy that asks for them. Rows of a ranking stand in the order of their utility.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from evaluation.protocols.ranking.policy import LeaderboardPolicy
from evaluation.protocols.recipes import Utility

Kind = Literal["system", "baseline", "original"]


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """A number with its 95 % interval where there is one; `is_reported`: only the team's files state it."""

    value: float
    low: float | None = None
    high: float | None = None
    is_reported: bool = False

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a system has no rank, or what a reader should know of it: a code for programs and a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """One system as it comes to the leaderboard.

    Attributes:
        key: unique, such as the name of the system; `label` is what readers know it by.
        team: whose system; those of one team compete for one rank. Empty for a team of its own.
        is_contrastive: of two with equal utility the primary one comes first.
        privacy: the average EER that decides the condition; None where it could not be computed.
        utilities: the averages that decide the rank, by metric.
        gate_values: of each gate's metric, the value of each data set.
        averages: further averages for the reader, by metric.
        missing: of a metric, what of it is missing, in words.
        reasons: what forbids a rank whatever the policy, such as a check that failed.
        lower_attack: another attack model whose average EER is lower than `privacy`, the lowest of them, and that EER.
        other_eers: the same average EER by other estimators, by estimator.
        weak_attack: why the attack behind `privacy` is not reliable, in sentences; it forbids nothing.
        tests: by data set, the evaluation run with the scores behind its EER, of the sets that `privacy` averages;
            of original speech those of an unprotected test.
    """

    key: str
    label: str
    team: str = ""
    team_name: str = ""
    title: str = ""
    kind: Kind = "system"
    is_late: bool = False
    is_contrastive: bool = False
    privacy: MeasuredValue | None = None
    utilities: Mapping[str, MeasuredValue] = field(default_factory=dict)
    gate_values: Mapping[str, Mapping[str, MeasuredValue]] = field(default_factory=dict)
    averages: Mapping[str, MeasuredValue] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    lower_attack: tuple[str, MeasuredValue] | None = None
    other_eers: Mapping[str, MeasuredValue] = field(default_factory=dict)
    weak_attack: tuple[str, ...] = ()
    tests: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_reported(self) -> bool:
        """Return whether a number that a rank rests on is only reported."""
        gates = (one for values in self.gate_values.values() for one in values.values())
        return any(one is not None and one.is_reported for one in (self.privacy, *self.utilities.values(), *gates))


class Place(StrEnum):
    RANKED = "ranked"
    UNRANKED = "unranked"
    REFERENCE = "reference"  # baselines and the original speech do not compete


@dataclass(frozen=True, slots=True)
class RankingRow:
    """An entry in one ranking. `groups`: numbers of the groups that it belongs to (`Ranking.groups`).

    Privacy and utility of original speech are NaN where they are not known; the entry holds the numbers that there are.
    """

    entry: LeaderboardEntry
    place: Place
    rank: int | None
    privacy: MeasuredValue
    utility: MeasuredValue
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A system outside of a condition. `distance`: how far its EER is from it, in percentage points."""

    entry: LeaderboardEntry
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
    rows: tuple[RankingRow, ...]
    groups: tuple[tuple[str, ...], ...]
    nearest: Miss | None
    just_missed: tuple[Miss, ...]

    @property
    def ranked(self) -> tuple[RankingRow, ...]:
        return tuple(row for row in self.rows if row.place is Place.RANKED)

    @property
    def competitors(self) -> tuple[RankingRow, ...]:
        """Return rows of teams: ranked or not."""
        return tuple(row for row in self.rows if row.place is not Place.REFERENCE)


@dataclass(frozen=True, slots=True)
class Unranked:
    """An entry that no ranking can hold, with its reasons."""

    entry: LeaderboardEntry
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Rankings:
    """All rankings of an edition.

    Attributes:
        unrankable: entries without the numbers that a rank rests on.
        outside: rankable entries, baselines among them, that meet no condition; the highest EER first. Original speech
            of which not all averages are known stands in every table, and here where there is none.
    """

    policy: LeaderboardPolicy
    tables: tuple[RankingTable, ...]
    unrankable: tuple[Unranked, ...]
    outside: tuple[LeaderboardEntry, ...]
