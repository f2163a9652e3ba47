"""Makes the entries of a leaderboard from the numbers of submissions: pure functions of values, columns and policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from common.errors import InputError
from evaluation.formats.results import AttackModel, Speech
from evaluation.metrics.averages import weighted_average
from evaluation.metrics.catalogue import Metric, find_metric
from evaluation.objective_results.attack_strength import Reliability
from evaluation.objective_results.track_averages import PHONES
from evaluation.objective_results.values import (
    AVERAGE,
    AVERAGED_BEYOND,
    MEASURES,
    PREDICTED,
    Number,
    ObjectiveValues,
    list_averaged_sets,
)
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue
from evaluation.protocols.ranking.policy import LeaderboardPolicy
from evaluation.protocols.recipes import Average, Recipe, Track

ORIGINAL = "original speech"  # no system can have this name
ORIGINAL_LABEL = "Original"
SPOKEN = ("trial", "recognition")


@dataclass(frozen=True)
class ShownAverage:
    """A column of a leaderboard.

    Attributes:
        key: the metric as recipes name it; that of a second column of a metric goes on with a hyphen.
        switch: what of an address shows it; empty of an average of the edition.
        weights: of the data sets of one language, together 1; empty of an average over all.
    """

    key: str
    metric: Metric
    estimator: str = ""
    is_privacy: bool = False
    is_utility: bool = False
    switch: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def metric_name(self) -> str:
        """Return the metric as recipes and stored numbers name it."""
        return self.key.partition("-")[0]

    @cached_property
    def heading(self) -> str:
        """Return label and unit, such as ``WER, %``."""
        return f"{self.metric.label}, {self.metric.unit}" if self.metric.unit else self.metric.label


# What a reader may ask for in every edition, of systems that have it.
FURTHER = (
    *(ShownAverage(key, find_metric(key), switch="privacy") for key in AVERAGED_BEYOND),
    *(
        ShownAverage(row, replace(find_metric(PHONES), label=f"PER, {row}"), switch="words")
        for row in ("retrained", "frozen")
    ),
    ShownAverage(PREDICTED[0], find_metric(PREDICTED[0]), PREDICTED[1], switch="naturalness"),
)


def list_columns(
    recipe: Recipe, track: Track, policy: LeaderboardPolicy, languages: Mapping[str, str]
) -> tuple[ShownAverage, ...]:
    """Return every column that a leaderboard can have.

    Privacy, the utilities and every other average of the track, such as a ranking metric's second one; then what a
    reader may ask for, first what decides in each language of a track with several.

    Args:
        languages: their names by their codes.
    """
    decide = [(policy.privacy.metric, policy.privacy.estimator)]
    decide += [(one.metric, one.estimator) for one in policy.utilities]
    found: dict[tuple[str, str], ShownAverage] = {}
    for name in [*decide, *((one.metric, one.estimator) for one in track.averages)]:
        metric, estimator = name
        key = f"{metric}-{estimator}" if any(known == metric for known, _ in found) else metric
        column = ShownAverage(key, find_metric(*name), estimator, name == decide[0], name in decide[1:])
        found.setdefault(name, column)
    by_language = [
        column
        for name in decide
        for column in _list_languages(found[name], recipe, track, policy.split, languages)
        if len(languages) > 1
    ]
    return (*found.values(), *by_language, *FURTHER)


def _list_languages(
    column: ShownAverage, recipe: Recipe, track: Track, split: str, languages: Mapping[str, str]
) -> Iterator[ShownAverage]:
    """Yield a column for each language, of the data sets that are spoken in it by their weights in the average.

    A surprise language, which no average holds, has each of its sets alike.
    """
    metric, estimator = column.metric_name, column.estimator
    average = next((one for one in track.averages if (one.metric, one.estimator) == (metric, estimator)), None)
    averaged = average.weights.get(split, {}) if average else {}
    roles = {recipe.data_sets[name].role for name in averaged} & set(SPOKEN)
    for code, language in languages.items():
        of_split = (one for one in recipe.data_sets.values() if (one.language, one.split) == (code, split))
        names = [one.name for one in of_split if one.role in roles]
        shares = {name: averaged[name] for name in names if averaged.get(name)} or dict.fromkeys(names, 1.0)
        if shares:
            label = f"{column.metric.label.partition(' (')[0]}, {language}"
            weights = {name: share / sum(shares.values()) for name, share in shares.items()}
            described = replace(column.metric, label=label)
            yield ShownAverage(f"{metric}-{code}", described, estimator, switch="languages", weights=weights)


def select_shown(columns: Iterable[ShownAverage], entries: Iterable[LeaderboardEntry]) -> tuple[ShownAverage, ...]:
    """Return the averages of the edition, and of the others those that a system or a baseline has."""
    known = {key for entry in entries if entry.kind != "original" for key in entry.averages}
    return tuple(one for one in columns if not one.switch or one.key in known)


# Entries -------------------------------------------------------------------------------------------


def make_entry(
    values: ObjectiveValues, columns: Sequence[ShownAverage], policy: LeaderboardPolicy, track: Track, **system: Any
) -> LeaderboardEntry:
    """Return a system with the averages that a leaderboard shows of it.

    Args:
        system: what it is called and whose it is, fields of the entry.
    """
    attack, decides = AttackModel(policy.attack_model), policy.privacy
    found = _measure(values, columns, policy.split, attack, Speech.ANONYMISED)
    utilities = {utility.metric for utility in policy.utilities}
    others = sorted({estimator for metric, estimator in MEASURES if metric == "eer"} - {decides.estimator})
    of_others = ((one, values.average("eer", one, split=policy.split, attack_model=attack)) for one in others)
    lower = find_lower_attack(values, policy)
    return LeaderboardEntry(
        privacy=found.pop(decides.metric, None),
        utilities={key: found.pop(key) for key in list(found) if key in utilities},
        averages=found,
        gate_values={
            gate.metric: {name: one.measured for name, one in values.gate_numbers(gate, attack).items()}
            for gate in policy.gates
        },
        missing={one.key: _list_missing(values, one.metric) for one in columns if not one.switch},
        lower_attack=(lower[0], MeasuredValue(lower[1].value, lower[1].low, lower[1].high)) if lower else None,
        other_eers={estimator: one.measured for estimator, one in of_others if one},
        weak_attack=judge_average(values, policy, track).reasons,
        tests=_find_tests(values, track, policy, attack),
        **system,
    )


def make_original_entry(
    known: Sequence[ObjectiveValues],
    columns: Sequence[ShownAverage],
    policy: LeaderboardPolicy,
    recipe: Recipe,
    track: Track,
    evaluated: Mapping[tuple[str, str, str], MeasuredValue],
) -> LeaderboardEntry | None:
    """Return the speech before anonymisation: as published with the recipe, as a submission's own test found it, or by
    itself.

    Numbers of one source where one has all of them; else each that is known from the first that has it.

    Args:
        known: of the submissions on the leaderboard.
        evaluated: what the portal found of the originals before any system, by metric, estimator and data set.
    """
    split, attack = policy.split, AttackModel.UNPROTECTED
    deciding = [one for one in columns if one.is_privacy or one.is_utility]
    printed = () if recipe.evaluation.by_portal else track.averages  # of other evaluators than the portal's
    sources: list[Mapping[str, MeasuredValue | None]] = [
        {average.metric: _average_published(average, recipe, split) for average in printed}
    ]
    sources += [_measure(one, deciding, split, attack, Speech.ORIGINAL) for one in known]
    sources.append({one.key: evaluated.get((one.metric_name, one.estimator, f"{AVERAGE}{split}")) for one in deciding})
    sources.sort(key=lambda source: any(source.get(one.key) is None for one in deciding))  # whole ones first
    found = {
        column.key: number
        for column in deciding
        if (number := next((measured for source in sources if (measured := source.get(column.key))), None))
    }
    if not found:
        return None
    averages: dict[str, MeasuredValue] = {}
    for switch in ("naturalness", "languages"):
        asked = [one for one in columns if one.switch == switch]
        averages |= next(filter(None, (_measure(one, asked, split, attack, Speech.ORIGINAL) for one in known)), {})
    if ceiling := next((one.retrained["ceiling"] for one in known if "ceiling" in one.retrained), None):
        averages |= {one.key: ceiling.measured for one in columns if one.switch == "words"}
    tests: dict[str, int] = {}
    for one in known:  # the first that has it
        tests = _find_tests(one, track, policy, attack) | tests
    return LeaderboardEntry(
        ORIGINAL,
        ORIGINAL_LABEL,
        title="Speech before anonymisation",
        kind="original",
        privacy=found.pop(policy.privacy.metric, None),
        utilities=found,
        averages=averages,
        tests=tests,
    )


def _measure(
    values: ObjectiveValues, columns: Iterable[ShownAverage], split: str, attack: AttackModel, speech: Speech
) -> dict[str, MeasuredValue]:
    """Return the numbers of columns by their keys.

    Args:
        attack: of metrics of speaker verification; `speech`: under test in others.
    """
    found = {}
    for column in columns:
        name = (column.metric_name, column.estimator)
        if column.weights:
            by_set = {
                one: values.number(*name, data_set=one, attack_model=attack, speech=speech) for one in column.weights
            }
            measured = _average_language(by_set, column.weights)
        else:
            number = values.retrained.get(column.key)
            number = number or values.average(*name, split=split, attack_model=attack, speech=speech)
            measured = number.measured if number else None
        if measured:
            found[column.key] = measured
    return found


def _average_language(by_set: Mapping[str, Number | None], weights: Mapping[str, float]) -> MeasuredValue | None:
    """Return the average over the data sets of a language; that of a single one has its interval."""
    numbers = [number for number in by_set.values() if number is not None]
    if len(numbers) < len(by_set):
        return None
    value = sum(weights[number.identity.data_set] * number.value for number in numbers)
    interval = (numbers[0].low, numbers[0].high) if len(numbers) == 1 else (None, None)
    return MeasuredValue(value, *interval, is_reported=any(not one.is_recomputed for one in numbers))


def _average_published(average: Average, recipe: Recipe, split: str) -> MeasuredValue | None:
    """Return an average of original speech as the recipe prints it."""
    weights = average.weights.get(split, {})
    values = [(name, value) for name in weights if (value := recipe.data_sets[name].original_value) is not None]
    try:
        return MeasuredValue(weighted_average(values, weights).value) if values else None
    except InputError:
        return None


def _list_missing(values: ObjectiveValues, metric: Metric) -> tuple[str, ...]:
    """Return what of a metric is missing, and how much of its set. In which files is between team and organizers."""
    start = f"{metric.label} of "
    return tuple(
        one.what.removeprefix(start) + (f" ({one.cause})" if one.cause else "")
        for one in values.missing
        if one.what.startswith(start)
    )


def _find_tests(
    values: ObjectiveValues, track: Track, policy: LeaderboardPolicy, attack: AttackModel
) -> dict[str, int]:
    """Return by data set the run with the scores behind each EER that the average rests on."""
    metric, estimator = policy.privacy.metric, policy.privacy.estimator
    sets = list_averaged_sets(track, metric, policy.split) if values.run else []
    found = ((name, values.number(metric, estimator, data_set=name, attack_model=attack)) for name in sets)
    return {name: values.run or 0 for name, number in found if number is not None and number.is_recomputed}


def find_lower_attack(values: ObjectiveValues, policy: LeaderboardPolicy) -> tuple[str, Number] | None:
    """Return the attack model with the lowest average EER, where that is lower than the one that decides."""
    decides, ranked = policy.privacy, AttackModel(policy.attack_model)
    found = [
        (number.value, str(attack), number)
        for attack in set(AttackModel) - {AttackModel.UNPROTECTED}
        if (number := values.average(decides.metric, decides.estimator, split=policy.split, attack_model=attack))
    ]
    of = {attack: value for value, attack, _ in found}
    if ranked not in of or min(of.values()) >= of[ranked]:
        return None
    _, attack, number = min(found)
    return attack, number


def judge_average(values: ObjectiveValues, policy: LeaderboardPolicy, track: Track) -> Reliability:
    """Return whether the attacks behind the average EER that decides are strong enough.

    Nothing speaks against attacks that were not trained on anonymised speech.
    """
    if AttackModel(policy.attack_model) is not AttackModel.SEMI_INFORMED:
        return Reliability((), ())
    decides = policy.privacy
    return values.judge_average(decides.metric, decides.estimator, policy.split, track)
