"""What an organizer may choose of an analysis; stored with it and written into its bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from listening.analysis.errors import AnalysisInputError

Normalisation = Literal["rank01/avg", "midrank"]
Correction = Literal["holm", "bh"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Attributes:
    normalisation: named and versioned formula of `normalisation`.
    resamples: draws of the listener-cluster bootstrap.
    permutations: of permutation tests and chance lines.
    level: nominal coverage of intervals.
    correction: of p-values over all pairs of systems.
    seed: of every draw.
    least_clusters: with fewer listeners there are points and no interval.
    partial_trials, partial_of_each_kind: scored trials, and of them of original and of anonymised speech, that a
        session which was not finished needs to enter normalised scores; below it counts for raw scores only.
    """

    normalisation: Normalisation = "rank01/avg"
    resamples: int = 2000
    permutations: int = 1000
    level: float = 0.95
    correction: Correction = "holm"
    seed: int = 2022
    least_clusters: int = 10
    partial_trials: int = 20
    partial_of_each_kind: int = 8

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def settings_from(given: Mapping[str, Any]) -> Settings:
    """Settings from data, with the usual value where nothing is given.

    Raises:
        AnalysisInputError: names everything that is unknown or out of range.
    """
    known = {one.name for one in fields(Settings)}
    problems = [
        f"There is no setting named {name!r}; there are {', '.join(sorted(known))}."
        for name in given
        if name not in known
    ]
    values = {name: value for name, value in given.items() if name in known}
    usual = Settings().as_data()
    for name, value in values.items():
        kind = type(usual[name])
        is_right = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
        if not is_right:
            problems.append(f"Expected {name} to be like {usual[name]!r}, found {value!r}.")
    if not problems:
        problems = _out_of_range(Settings(**values))
    if problems:
        raise AnalysisInputError(problems)
    return Settings(**values)


def _out_of_range(chosen: Settings) -> list[str]:
    ranges: dict[str, bool] = {
        "normalisation as rank01/avg or midrank": chosen.normalisation in ("rank01/avg", "midrank"),
        "correction as holm or bh": chosen.correction in ("holm", "bh"),
        "resamples from 200 to 20000": 200 <= chosen.resamples <= 20_000,
        "permutations from 200 to 20000": 200 <= chosen.permutations <= 20_000,
        "level from 0.5 to 0.999": 0.5 <= chosen.level <= 0.999,
        "seed from 0 to 2147483647": 0 <= chosen.seed < 2**31,
        "least_clusters from 2 to 1000": 2 <= chosen.least_clusters <= 1000,
        "partial_trials from 0 to 10000": 0 <= chosen.partial_trials <= 10_000,
        "partial_of_each_kind from 0 to 10000": 0 <= chosen.partial_of_each_kind <= 10_000,
    }
    return [f"Expected {words}." for words, holds in ranges.items() if not holds]
