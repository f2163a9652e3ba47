"""What comes to a board: a system with the numbers that decide its place, and whatever forbids one.

Conventions: EERs, WERs and UARs in per cent, unrounded; intervals are those of 95 %; numbers are known by their metric,
their estimator by the policy that asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["system", "baseline", "original"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A number with its 95 % interval where there is one; `is_claimed`: only the team's files state it."""

    value: float
    low: float | None = None
    high: float | None = None
    is_claimed: bool = False

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a system has no rank, or what a reader should know of it: a code for programs and a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One system as it comes to the board.

    Attributes:
        key: unique, such as the name of the system; `label` is what readers know it by.
        team: whose system; those of one team compete for one rank. Empty for a team of its own.
        privacy: the average EER that decides the condition; None where it could not be computed.
        utilities: the averages that decide the rank, by metric.
        gate_values: of each gate's metric, the value of each data set.
        averages: further averages for the reader, by metric.
        missing: of a metric, what of it is missing, in words.
        reasons: what forbids a rank whatever the policy, such as a check that failed.
    """

    key: str
    label: str
    team: str = ""
    team_name: str = ""
    title: str = ""
    kind: Kind = "system"
    is_late: bool = False
    privacy: Measured | None = None
    utilities: Mapping[str, Measured] = field(default_factory=dict)
    gate_values: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    averages: Mapping[str, Measured] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()

    @property
    def is_claimed(self) -> bool:
        """Whether a number that a rank rests on is only claimed."""
        gates = (one for values in self.gate_values.values() for one in values.values())
        return any(one is not None and one.is_claimed for one in (self.privacy, *self.utilities.values(), *gates))
