"""Which conditions of a challenge a system meets, and whether it passes a gate.

Conventions: EERs in per cent; a *condition* is a minimum EER; a *gate* is a minimum of another metric, such as ρF0, on
the mean of each group of data sets.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from common.errors import InputError
from evaluation.metrics.averages import as_written, require_members

Policy = Literal["cumulative", "interval"]


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
        InputError: an average that is not within 0 to 100, limits that do not ascend, an unknown policy.

    Source: evaluation plan 2022, sections 5.1 (cumulative) and 7 (interval).
    """
    if not 0 <= average_eer <= 100:
        raise InputError(f"Expected an average EER of 0 to 100 %, found {average_eer}.")
    if any(not low < high for low, high in itertools.pairwise(minimum_eers)):
        raise InputError(f"Expected limits that ascend, found {list(minimum_eers)}.")
    if policy not in ("cumulative", "interval"):
        raise InputError(f"Expected the policy “cumulative” or “interval”, found “{policy}”.")
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


def check_gate(
    values: Mapping[str, float], groups: Iterable[Sequence[str]], minimum: float, *, inclusive: bool = False
) -> tuple[GateResult, ...]:
    """The mean of each group of data sets against a minimum, such as ρF0 > 0.3 on each set (both genders together).

    Raises:
        InputError: a group with a value that is missing or not finite; all are named.

    Source: evaluation plan 2022, section 5.2.1.
    """
    every = [tuple(group) for group in groups]
    if not all(every):
        raise InputError("Expected at least one data set in each group, found an empty group.")
    members = dict.fromkeys(name for group in every for name in group)
    require_members([(name, values[name]) for name in members if name in values], members)
    means = [float(sum(as_written(values[name]) for name in group) / len(group)) for group in every]
    return tuple(
        GateResult(group, mean, minimum, _reaches(mean, minimum, inclusive))
        for group, mean in zip(every, means, strict=True)
    )


def _reaches(value: float, minimum: float, inclusive: bool) -> bool:
    return value >= minimum if inclusive else value > minimum
