"""Numbers that papers and challenges published of systems which nobody measured here: `published/EDITION.csv`.

Each row is one number as printed, with its source and where it stands in it. Where sources disagree, each has its row,
and both say so. Correlations of listeners' ratings stand in `published/correlations/EDITION.csv`.
Conventions: EERs, WERs, UARs and recalls in per cent; what was measured of an attacker has the attack model that its
source says: the directory or the section of the result files that it stands in, which the averages printed beside it
confirm; the system `ORIGINAL` is unprotected speech; `AVERAGE_TEST` as a data set is the printed average of the test
sets. Of 2022, numbers of an evaluator trained on anonymised speech with original enrolment are left out: they belong to
no attack model.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from evaluation.metrics.averages import weighted_average
from evaluation.protocols.ranking.policy import LeaderboardPolicy
from evaluation.protocols.recipes import Average, Recipe, Track, load_recipe, shipped_editions
from evaluation.protocols.tracks import narrow_to_track

ORIGINAL = "Original"
AVERAGE_TEST = "average_test"
_FOLDER = Path(__file__).with_name("published")


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """A printed number.

    `gender`: ``f``, ``m`` or empty for both; `attack_model`: of an attacker's numbers, empty where their source does
    not say it; `note`: that and how its sources disagree.
    """

    system: str
    data_set: str
    gender: str
    metric: str
    estimator: str
    attack_model: str
    value: str
    source: str
    table: str
    note: str


@dataclass(frozen=True, slots=True)
class PublishedSystem:
    """A system with the averages that its published numbers give, by metric, and where they were published.

    `missing`: metrics that conditions and ranks rest on, and of which too few numbers were printed for an average.
    """

    name: str
    averages: Mapping[str, float]
    missing: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class PublishedCorrelation:
    """A printed correlation (Pearson) of two measures over utterances of so many anonymisation systems.

    `first`, `second`: measures as an analysis of a listening test calls them, such as ``naturalness`` and ``1 − WER``.
    """

    first: str
    second: str
    systems: int
    pearson: float
    source: str
    table: str

    @property
    def pair(self) -> frozenset[str]:
        return frozenset({self.first, self.second})


@cache
def load_published_correlations(edition: str) -> tuple[PublishedCorrelation, ...]:
    """Return what the results of a shipped edition print of ratings and recognition; none of one that has no file."""
    path = _FOLDER / "correlations" / f"{edition}.csv"
    if edition not in shipped_editions() or not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedCorrelation(
                **row | {"systems": int(row["systems"]), "pearson": float(row["pearson"])}  # type: ignore[arg-type]
            )
            for row in csv.DictReader(file)
        )


@cache
def load_published(edition: str) -> tuple[PublishedNumber, ...]:
    """Return the published numbers of a shipped edition, such as ``2022``; none of one that has no file.

    Example:
        >>> load_published("2022")[0].system
        'B1.a'
    """
    path = _FOLDER / f"{edition}.csv"
    if edition not in shipped_editions() or not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(PublishedNumber(**row) for row in csv.DictReader(file))


def is_as_shipped(recipe: Recipe) -> bool:
    """Return whether a recipe, or its part of one track, measures what the shipped one of its edition does, so that
    published numbers compare; it may rank otherwise.
    """
    if recipe.edition not in shipped_editions():
        return False
    shipped = load_recipe(recipe.edition)
    tracks, others = (
        {name: replace(one, ranking=None) for name, one in each.tracks.items()} for each in (recipe, shipped)
    )
    if (tracks, recipe.metrics, recipe.attack_models) != (others, shipped.metrics, shipped.attack_models):
        return False
    return any(_same_sets(recipe, narrow_to_track(shipped, one)) for one in ("", *shipped.tracks))


def _same_sets(recipe: Recipe, shipped: Recipe) -> bool:
    """Return whether the data sets are the same, but for numbers of original speech that the recipe does not state."""
    known = shipped.data_sets
    stated = {
        name: replace(one, original_value=known[name].original_value)
        if one.original_value is None and name in known
        else one
        for name, one in recipe.data_sets.items()
    }
    return stated == known


def published_systems(recipe: Recipe, track: Track, policy: LeaderboardPolicy) -> list[PublishedSystem]:
    """Return the systems of which the average of privacy, and one of utility, can be made from published numbers.

    None where the recipe is not the shipped one, or averages less.
    """
    decide = {(policy.privacy.metric, policy.privacy.estimator)}
    decide |= {(one.metric, one.estimator) for one in policy.utilities}
    wanted = [one for one in track.averages if (one.metric, one.estimator) in decide]
    if len(wanted) < len(decide) or not is_as_shipped(recipe):
        return []
    by_system: dict[str, list[PublishedNumber]] = {}
    for number in load_published(recipe.edition):
        if number.attack_model in ("", policy.attack_model):
            by_system.setdefault(number.system, []).append(number)
    found = []
    for name, numbers in by_system.items():
        if name == ORIGINAL:
            continue
        made = {average.metric: _average(numbers, average, policy.split) for average in wanted}
        known = {metric: value for metric, value in made.items() if value is not None}
        if policy.privacy.metric in known and len(known) > 1:
            missing = tuple(metric for metric in made if metric not in known)
            found.append(PublishedSystem(name, known, missing, numbers[0].source))
    return found


def _average(numbers: Iterable[PublishedNumber], average: Average, split: str) -> float | None:
    """None where a data set has no number. Of several for one set the first counts."""
    weights = average.weights.get(split, {})
    values: dict[str, float] = {}
    for one in numbers:
        if (one.metric, one.estimator) == (average.metric, average.estimator) and one.data_set in weights:
            values.setdefault(one.data_set, float(one.value))
    return weighted_average(list(values.items()), weights).value if weights and len(values) == len(weights) else None
