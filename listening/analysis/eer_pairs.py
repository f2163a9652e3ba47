"""Which equal error rates differ: every pair of systems, with the resamples that all of them share.

The interval of a difference is that of one pair alone. Whether a pair is told apart is decided over all pairs at once:
the difference is divided by its bootstrap standard error, and the limit is the quantile, over resamples, of the largest
such deviation of any pair (one-step max-t), stretched like every interval. With hundreds of pairs a Bonferroni
correction would ask for quantiles that no number of resamples can give.

Conventions: rates in [0, 1]; differences are first minus second.
Source: Romano & Wolf, "Exact and approximate stepdown methods for multiple hypothesis testing", JASA 100 (2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from listening.analysis.clustered import TwoWay, small_sample_stretch, stretched_interval
from listening.analysis.grouping import groups_of
from listening.analysis.inputs import Floats
from listening.analysis.settings import Settings

_DECIMALS = 12  # what differs beyond was computed in another order


@dataclass(frozen=True, slots=True, eq=False)
class Rate:
    """The rate of a system with its resamples, empty where it has no interval."""

    system: str
    value: float
    resampled: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """The differences of one system from each later one.

    Attributes:
        value, error, stretch: shape (later,), the bootstrap standard error, and by how much an interval is stretched.
        resampled: shape (resamples, later).
    """

    value: Floats
    resampled: Floats
    error: Floats
    stretch: Floats


def compare_rates(
    rates: Sequence[Rate], clustering: TwoWay, settings: Settings
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Letters of systems that cannot be told apart, the highest rate first, and the rows of ``eer_differences``.

    Args:
        rates: resampled with the same draws.
        clustering: of these rates, in their order.

    Returns:
        Without any interval no letters, and differences alone.
    """
    known = [place for place, rate in enumerate(rates) if rate.resampled.size]
    if not known:
        return {}, [_row(first, second) for place, first in enumerate(rates) for second in rates[place + 1 :]]
    limit = _limit(rates, known, clustering, settings)
    rows: list[dict[str, Any]] = []
    apart: set[frozenset[str]] = set()
    for place, first in enumerate(rates):
        is_known = bool(first.resampled.size) and place + 1 < len(rates)
        pairs = _against_later(rates, place, clustering, settings) if is_known else None
        for number, second in enumerate(rates[place + 1 :]):
            row = _row(first, second)
            if pairs is None or not second.resampled.size:
                row["remark"] = "No interval: one of the two has none."
            else:
                row |= _interval(pairs, number, limit, settings.level)
                if row["is_told_apart"]:
                    apart.add(frozenset((first.system, second.system)))
            rows.append(row)
    ordered = sorted(rates, key=lambda rate: (-rate.value, rate.system))
    return groups_of([rate.system for rate in ordered], lambda a, b: frozenset((a, b)) in apart), rows


def _limit(rates: Sequence[Rate], known: Sequence[int], clustering: TwoWay, settings: Settings) -> float:
    """Quantile of the largest studentised deviation of any pair."""
    largest = np.zeros(rates[known[0]].resampled.size)
    for place in known[:-1]:  # the last has none after it
        pairs = _against_later(rates, place, clustering, settings)
        with np.errstate(invalid="ignore", divide="ignore"):
            deviation = np.abs(pairs.resampled - pairs.value) / pairs.error
        deviation[~np.isfinite(deviation)] = 0.0  # not defined in this resample, or a pair that never varies
        largest = np.maximum(largest, deviation.max(axis=1))
    return float(np.quantile(largest, settings.level))


def _against_later(rates: Sequence[Rate], place: int, clustering: TwoWay, settings: Settings) -> _Pair:
    """The differences of a rate from the later ones; NaN where one of them has no resamples."""
    first, later = rates[place], rates[place + 1 :]
    missing = np.full(first.resampled.size, np.nan)
    others = np.stack([rate.resampled if rate.resampled.size else missing for rate in later], axis=1)
    resampled = np.round(first.resampled[:, None] - others, _DECIMALS)
    stretches, degrees = clustering.of_differences(place)
    small = [
        small_sample_stretch(int(min(clustering.listeners[place], clusters)), int(degree), settings.level)
        for clusters, degree in zip(clustering.listeners[place + 1 :], degrees, strict=True)
    ]
    defined = np.isfinite(resampled)
    number = defined.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.where(defined, resampled, 0).sum(axis=0) / number
        error = np.sqrt(np.where(defined, (resampled - centre) ** 2, 0).sum(axis=0) / (number - 1))
    values = np.round([first.value - rate.value for rate in later], _DECIMALS)
    return _Pair(values, resampled, error, stretches * np.array(small))


def _row(first: Rate, second: Rate) -> dict[str, Any]:
    return {"first": first.system, "second": second.system, "difference": round(first.value - second.value, _DECIMALS)}


def _interval(pairs: _Pair, number: int, limit: float, level: float) -> dict[str, Any]:
    value, stretch = float(pairs.value[number]), float(pairs.stretch[number])
    low, high = stretched_interval(value, pairs.resampled[:, number], stretch, level, (-1.0, 1.0))
    is_apart = abs(value) > limit * stretch * float(pairs.error[number])
    return {"difference_low": low, "difference_high": high, "is_told_apart": int(is_apart)}
