"""Weighted averages over data sets, and which conditions of a challenge a system meets.

The official script adds weight times value for each line that matches: a missing set silently lowers the average and a
repeated one raises it. Here both are refused by name. Conventions: EERs in per cent; a *condition* is a minimum EER.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from evaluation.metrics.errors import MetricInputError

Policy = Literal["cumulative", "interval"]
WEIGHT_TOLERANCE = 1e-9


class AverageError(MetricInputError):
    """An average that is not defined: names the members that are missing, repeated, unknown or not finite."""

    def __init__(
        self,
        *,
        missing: Sequence[str] = (),
        repeated: Sequence[str] = (),
        unknown: Sequence[str] = (),
        not_finite: Sequence[str] = (),
    ) -> None:
        self.missing, self.repeated = tuple(missing), tuple(repeated)
        self.unknown, self.not_finite = tuple(unknown), tuple(not_finite)
        named = {"missing": missing, "given more than once": repeated, "without a weight": unknown}
        named["not finite"] = not_finite
        found = "; ".join(f"{what}: {', '.join(map(str, who))}" for what, who in named.items() if who)
        super().__init__(f"Expected one finite value of each member of the average, found {found}.")


@dataclass(frozen=True, slots=True)
class WeightedAverage:
    """A weighted mean: its value in the unit of the values, and of how many values."""

    value: float
    n: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition and whether a system competes in it.

    Attributes:
        minimum: its limit, in per cent.
        upper: where it ends under the policy ``interval``; None where it has no end.
        met: whether the system competes here.
        near_limit: whether the average is so close to one of its limits that rounding could decide.
    """

    minimum: float
    upper: float | None
    met: bool
    near_limit: bool


@dataclass(frozen=True, slots=True)
class GateResult:
    """The mean of one group of data sets against a minimum."""

    group: tuple[str, ...]
    value: float
    minimum: float
    passed: bool


def weighted_average(values: Iterable[tuple[str, float]], weights: Mapping[str, float]) -> WeightedAverage:
    """The sum of weight times value; every weight must meet exactly one value.

    Args:
        values: name and value of each member, in any order, for example of each data set.
        weights: weight of each member, together 1.

    Raises:
        AverageError: members that are missing, repeated, without a weight or not finite: all are named.
        MetricInputError: weights that are negative, not finite or do not add up to 1.

    Source: evaluation plan 2022, section 5.1; protocol 2.9.
    """
    if any(not weight >= 0 for weight in weights.values()) or abs(sum(weights.values()) - 1) > WEIGHT_TOLERANCE:
        raise MetricInputError(f"Expected weights of 0 or more that add up to 1, found {dict(weights)}.")
    given = list(values)
    names = [name for name, _ in given]
    missing = [name for name in weights if name not in names]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    unknown = [name for name in dict.fromkeys(names) if name not in weights]
    not_finite = [name for name, value in given if not math.isfinite(value)]
    if missing or repeated or unknown or not_finite:
        raise AverageError(missing=missing, repeated=repeated, unknown=unknown, not_finite=not_finite)
    value_of = dict(given)
    total = sum(_decimal(weight) * _decimal(value_of[name]) for name, weight in weights.items())
    return WeightedAverage(float(total), len(given))


def conditions(
    average_eer: float,
    minimum_eers: Sequence[float],
    *,
    policy: Policy = "cumulative",
    inclusive: bool = True,
    note_within: float = 0.05,
) -> tuple[Condition, ...]:
    """Each condition and whether a system with this average EER competes in it.

    Under ``cumulative`` a system competes wherever it reaches the minimum; under ``interval`` only in the last one of
    these, so that the conditions are disjoint: [15, 20), [20, 25), … and the last one open. With `inclusive` an average
    equal to a minimum reaches it (and so leaves the interval below), else it must be above. The average is compared
    unrounded; above 50 % is allowed.

    Raises:
        MetricInputError: an average that is not within 0 to 100, limits that do not ascend, an unknown policy.

    Source: evaluation plan 2022, sections 5.1 (cumulative) and 7 (interval).
    """
    if not 0 <= average_eer <= 100:
        raise MetricInputError(f"Expected an average EER of 0 to 100 %, found {average_eer}.")
    if any(not low < high for low, high in itertools.pairwise(minimum_eers)):
        raise MetricInputError(f"Expected limits that ascend, found {list(minimum_eers)}.")
    if policy not in ("cumulative", "interval"):
        raise MetricInputError(f"Expected the policy “cumulative” or “interval”, found “{policy}”.")
    uppers = [*minimum_eers[1:], None] if policy == "interval" else [None] * len(minimum_eers)
    return tuple(
        Condition(
            minimum=minimum,
            upper=upper,
            met=_reaches(average_eer, minimum, inclusive)
            and not (upper is not None and _reaches(average_eer, upper, inclusive)),
            near_limit=any(limit is not None and abs(average_eer - limit) <= note_within for limit in (minimum, upper)),
        )
        for minimum, upper in zip(minimum_eers, uppers, strict=True)
    )


def gate(
    values: Mapping[str, float], groups: Iterable[Sequence[str]], minimum: float, *, inclusive: bool = False
) -> tuple[GateResult, ...]:
    """The mean of each group of data sets against a minimum, such as ρF0 > 0.3 on each set (both genders together).

    Raises:
        AverageError: a group with a value that is missing or not finite; all are named.

    Source: evaluation plan 2022, section 5.2.1.
    """
    every = [tuple(group) for group in groups]
    if not all(every):
        raise MetricInputError("Expected at least one data set in each group, found an empty group.")
    members = dict.fromkeys(name for group in every for name in group)
    missing = [name for name in members if name not in values]
    not_finite = [name for name in members if name in values and not math.isfinite(values[name])]
    if missing or not_finite:
        raise AverageError(missing=missing, not_finite=not_finite)
    means = [float(sum(_decimal(values[name]) for name in group) / len(group)) for group in every]
    return tuple(
        GateResult(group, mean, minimum, _reaches(mean, minimum, inclusive))
        for group, mean in zip(every, means, strict=True)
    )


def _decimal(value: float) -> Fraction:
    """The number as it is written, so that six sets at 15 % average 15 % and not a little less."""
    return Fraction(str(float(value)))


def _reaches(value: float, minimum: float, inclusive: bool) -> bool:
    return value >= minimum if inclusive else value > minimum
