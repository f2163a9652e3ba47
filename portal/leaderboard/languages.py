"""The numbers of each language of a track with several, which its averages hide: further columns of a leaderboard.

A language has the data sets of the recipe that are spoken in it, by the weights that they have in the average; a
surprise language, which no average holds, has each of its sets alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from evaluation.formats.results import AttackModel, Speech
from evaluation.metrics.catalogue import Metric, find_metric
from evaluation.objective_results.values import ObjectiveValues
from evaluation.protocols.ranking.entries import MeasuredValue
from evaluation.protocols.ranking.policy import LeaderboardPolicy
from portal.challenges.models import Edition
from portal.core.labels import name_language

SPOKEN = ("trial", "recognition")


@dataclass(frozen=True)
class LanguageColumn:
    """One metric in one language; `weights` by data set, together 1."""

    key: str
    name: str  # of the metric
    estimator: str
    metric: Metric
    weights: Mapping[str, float]


def list_language_columns(edition: Edition, policy: LeaderboardPolicy) -> tuple[LanguageColumn, ...]:
    """What decides on a leaderboard, in each language of a track with several; else nothing."""
    track = edition.ranked_track
    languages = (*track.languages, *track.surprise_languages)
    return tuple(_columns(edition, policy, languages)) if len(languages) > 1 else ()


def _columns(edition: Edition, policy: LeaderboardPolicy, languages: Iterable[str]) -> Iterator[LanguageColumn]:
    sets, track = edition.recipe.data_sets, edition.ranked_track
    keys = [(policy.privacy.metric, policy.privacy.estimator)]
    keys += [(one.metric, one.estimator) for one in policy.utilities]
    for key in keys:
        average = next((one for one in track.averages if (one.metric, one.estimator) == key), None)
        averaged = average.weights.get(policy.split, {}) if average else {}
        roles = {sets[name].role for name in averaged} & set(SPOKEN)
        for language in languages:
            names = [
                one.name
                for one in sets.values()
                if (one.language, one.split) == (language, policy.split) and one.role in roles
            ]
            shares = {name: averaged[name] for name in names if averaged.get(name)} or dict.fromkeys(names, 1.0)
            if shares:
                metric = find_metric(*key)
                yield LanguageColumn(
                    f"{key[0]}-{language}",
                    *key,
                    replace(metric, label=f"{metric.label.partition(' (')[0]}, {name_language(language)}"),
                    {name: share / sum(shares.values()) for name, share in shares.items()},
                )


def measure_languages(
    columns: Iterable[LanguageColumn], values: ObjectiveValues, attack_model: AttackModel, speech: Speech
) -> dict[str, MeasuredValue]:
    """The numbers of a submission by the key of their column; of one data set with its interval.

    Args:
        attack_model: of metrics of speaker verification; `speech`: under test in others.
    """
    found = {}
    for column in columns:
        numbers = {
            name: values.number(column.name, column.estimator, data_set=name, attack_model=attack_model, speech=speech)
            for name in column.weights
        }
        known = {name: number for name, number in numbers.items() if number is not None}
        if len(known) < len(numbers):
            continue
        value = sum(column.weights[name] * number.value for name, number in known.items())
        [only, *others] = known.values()
        interval = (None, None) if others else (only.low, only.high)
        reported = any(not number.is_recomputed for number in known.values())
        found[column.key] = MeasuredValue(value, *interval, is_reported=reported)
    return found
