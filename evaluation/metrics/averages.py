"""Measures in a few numbers: weighted averages over data sets, summaries and distributions of utterances.

**Averages over data sets** (`weighted_average`). The official script adds weight times value for each line that
matches: a missing set silently lowers the average and a repeated one raises it. Here both are refused by name.

**Measures of utterances** (`summarise`, `pool`, `distribute`). Pages, tables and figures read the same frozen results,
so that a figure and the numbers beside it cannot differ.

Conventions: values keep their unit; standard deviations are of the population (ddof 0), as the official 2022 script
prints them; bins are closed on the left and open on the right, the last one closed on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError

WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class WeightedAverage:
    """A weighted mean: its value in the unit of the values, and of how many values."""

    value: float
    n: int


def weighted_average(values: Iterable[tuple[str, float]], weights: Mapping[str, float]) -> WeightedAverage:
    """Return the sum of weight times value; every weight must meet exactly one value.

    Args:
        values: name and value of each member, in any order, for example of each data set.
        weights: weight of each member, together 1.

    Raises:
        InputError: members that are missing, repeated, without a weight or not finite: all are named.
        InputError: weights that are negative, not finite or do not add up to 1.

    Source: evaluation plan 2022, section 5.1; protocol 2.9.
    """
    if any(not weight >= 0 for weight in weights.values()) or abs(sum(weights.values()) - 1) > WEIGHT_TOLERANCE:
        raise InputError(f"Expected weights of 0 or more that add up to 1, found {dict(weights)}.")
    given = list(values)
    require_members(given, weights)
    value_of = dict(given)
    total = sum(as_written(weight) * as_written(value_of[name]) for name, weight in weights.items())
    return WeightedAverage(float(total), len(given))


def require_members(values: Sequence[tuple[str, float]], members: Collection[str]) -> None:
    """Refuse an average that is not defined.

    Raises:
        InputError: names the members that are missing, repeated, unknown or not finite.
    """
    if faults := find_faults(values, members):
        found = "; ".join(f"{what}: {', '.join(names)}" for what, names in faults.items())
        raise InputError(f"Expected one finite value of each member of the average, found {found}.")


def find_faults(values: Sequence[tuple[str, float]], members: Collection[str]) -> dict[str, list[str]]:
    """Return the members for which an average is not defined, by what is wrong with them; empty where it is."""
    names = [name for name, _ in values]
    faults = {
        "missing": [name for name in members if name not in names],
        "given more than once": [name for name in dict.fromkeys(names) if names.count(name) > 1],
        "without a weight": [name for name in dict.fromkeys(names) if name not in members],
        "not finite": [name for name, value in values if not math.isfinite(value)],
    }
    return {what: found for what, found in faults.items() if found}


def as_written(value: float) -> Fraction:
    """Return the number as it is written, so that six sets at 15 % average 15 % and not a little less."""
    return Fraction(str(float(value)))


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
    """Return mean and population standard deviation of a measure over a set.

    Raises:
        InputError: no value, or one that is not finite.
    """
    array = _validate(values)
    if array.size == 0:
        raise InputError("A set without utterances has no mean: expected at least one value, found none.")
    return Summary(float(array.mean()), float(array.std()), int(array.size))


def pool(summaries: Iterable[Summary]) -> Summary:
    """Return the summary of all values of several sets together, from the summaries of the sets alone.

    Raises:
        InputError: no summary.
    """
    parts = list(summaries)
    n = sum(part.n for part in parts)
    if n == 0:
        raise InputError("Sets without utterances have no mean: expected at least one value, found none.")
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
        InputError: no value at all, or one that is not finite.
    """
    arrays = {group: _validate(values) for group, values in values_by_group.items()}
    arrays = {group: array for group, array in arrays.items() if array.size}
    if not arrays:
        raise InputError("A distribution needs at least one value, found none in any group.")
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
        raise InputError(f"Expected finite values, found {wrong} of {array.size} that are NaN or infinite.")
    return array
