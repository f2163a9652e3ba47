"""Weighted averages over data sets, and which conditions of a challenge a system meets.

The official script adds weight times value for each line that matches: a missing set silently lowers the average and a
repeated one raises it. Here both are refused by name. Conventions: EERs in per cent; a *condition* is a minimum EER.

Per-utterance measures of a set in a few numbers: its summary and its distribution over bins.

Pages, tables and figures read the same frozen results, so that a figure and the numbers beside it
cannot differ.

Conventions: standard deviations are of the population (ddof 0), as the official 2022 script prints
them; bins are closed on the left and open on the right, the last one closed on both sides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.errors import MetricInputError

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


def check_gate(
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


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, population standard deviation and number of values of a set, in their own unit."""

    mean: float
    std: float
    n: int


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a distribution: its edges and the count of each group, in the groups' order."""

    lower: float
    upper: float
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values of one measure by group, counted in common bins.

    Attributes:
        groups: labels in the order given; groups without a value are left out.
        summaries: one for each group.
        bins: rows of a table, from the lowest bin to the highest.
    """

    groups: tuple[str, ...]
    summaries: tuple[Summary, ...]
    bins: tuple[Bin, ...]


def summarise(values: Iterable[float]) -> Summary:
    """Mean and population standard deviation of a measure over a set.

    Raises:
        MetricInputError: no value, or one that is not finite.
    """
    array = _validate(values)
    if array.size == 0:
        raise MetricInputError("A set without utterances has no mean: expected at least one value, found none.")
    return Summary(float(array.mean()), float(array.std()), int(array.size))


def pool(summaries: Iterable[Summary]) -> Summary:
    """The summary of all values of several sets together, from the summaries of the sets alone.

    Raises:
        MetricInputError: no summary.
    """
    parts = list(summaries)
    n = sum(part.n for part in parts)
    if n == 0:
        raise MetricInputError("Sets without utterances have no mean: expected at least one value, found none.")
    mean = sum(part.n * part.mean for part in parts) / n
    variance = sum(part.n * (part.std**2 + (part.mean - mean) ** 2) for part in parts) / n
    return Summary(mean, math.sqrt(variance), n)


def distribute(
    values_by_group: Mapping[str, Iterable[float]],
    *,
    bins_per_unit: int = 20,
    lower: float = 0.0,
    upper: float = 1.0,
) -> Distribution:
    """Count the values of each group in bins of a width of ``1 / bins_per_unit``.

    The range is the given one, widened by whole bins where values lie outside of it.

    Raises:
        MetricInputError: no value at all, or one that is not finite.
    """
    arrays = {group: _validate(values) for group, values in values_by_group.items()}
    arrays = {group: array for group, array in arrays.items() if array.size}
    if not arrays:
        raise MetricInputError("A distribution needs at least one value, found none in any group.")
    everything = np.concatenate(list(arrays.values()))
    first = math.floor(min(lower, float(everything.min())) * bins_per_unit)
    last = math.ceil(max(upper, float(everything.max())) * bins_per_unit)
    edges = np.arange(first, last + 1) / bins_per_unit
    counts = [np.histogram(array, bins=edges)[0].tolist() for array in arrays.values()]
    return Distribution(
        groups=tuple(arrays),
        summaries=tuple(summarise(array) for array in arrays.values()),
        bins=tuple(
            Bin(float(edges[i]), float(edges[i + 1]), tuple(group[i] for group in counts))
            for i in range(edges.size - 1)
        ),
    )


def _validate(values: Iterable[float]) -> NDArray[np.float64]:
    array = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    wrong = int(np.count_nonzero(~np.isfinite(array)))
    if wrong:
        raise MetricInputError(f"Expected finite values, found {wrong} of {array.size} that are NaN or infinite.")
    return array
