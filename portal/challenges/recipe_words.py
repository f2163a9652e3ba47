"""A recipe as a page tells it: its data sets, metrics, averages and conditions in tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.board_policy import BoardPolicy, policy_of
from evaluation.protocols.recipes import Average, DataSet, Gate, Ranking, Recipe, Track

POLICIES = {
    "cumulative": "A system competes in every condition whose limit it meets.",
    "interval": "A system competes only in the highest condition whose limit it meets.",
}

SEVERAL_SYSTEMS = {
    "best": "Of several systems of a team, the best one is ranked in each condition.",
    "all": "Every system of a team is ranked.",
}


@dataclass(frozen=True)
class MetricLine:
    label: str
    estimator: str
    decides: bool
    definition: str


@dataclass(frozen=True)
class AverageLine:
    """One average over one split; `terms` are weight and data set."""

    label: str
    split: str
    terms: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Rules:
    """What holds in one track; `conditions` and `sentences` tell of the ranking, by `policy` where there is one."""

    recipe: Recipe
    track: Track
    data_sets: tuple[DataSet, ...]
    metrics: tuple[MetricLine, ...]
    averages: tuple[AverageLine, ...]
    conditions: tuple[str, ...]
    sentences: tuple[str, ...]
    policy: BoardPolicy | None
    uncertain: tuple[str, ...]


def rules_of(recipe: Recipe, track: str, changes: Mapping[str, Any] | None = None) -> Rules:
    """The rules of a track, of the only one where `track` is empty.

    Args:
        changes: where the organizer's live policy differs from the recipe (`board_policy.FIELDS`).

    Raises:
        RecipeError: the recipe has several tracks and none is named.
        KeyError: it has no such track.
        PolicyError: the changes are none of a policy.
    """
    chosen = recipe.tracks[track] if track else recipe.track
    policy = policy_of(recipe, track, changes) if chosen.ranking or changes else None
    return Rules(
        recipe=recipe,
        track=chosen,
        data_sets=tuple(one for one in recipe.data_sets.values() if one.role != "joint"),
        metrics=tuple(_metric_lines(recipe)),
        averages=tuple(line for average in chosen.averages for line in _average_lines(average)),
        conditions=tuple(_conditions(policy)) if policy else (),
        sentences=tuple(_sentences(policy, chosen.ranking, changes or {})) if policy else (),
        policy=policy,
        uncertain=recipe.uncertain,
    )


def _metric_lines(recipe: Recipe) -> Iterator[MetricLine]:
    for rule in recipe.metrics:
        metric = find_metric(rule.key, rule.estimator)
        yield MetricLine(metric.label, rule.estimator, rule.primary, metric.definition)


def _average_lines(average: Average) -> Iterator[AverageLine]:
    for split, weights in average.weights.items():
        terms = tuple((100 * weight, name) for name, weight in weights.items())
        yield AverageLine(average.label, split, terms)


def _conditions(policy: BoardPolicy) -> Iterator[str]:
    privacy = find_metric(policy.privacy.metric, policy.privacy.estimator)
    words = "at least" if policy.inclusive else "above"
    for number, limit in enumerate(policy.minimum_eers, start=1):
        yield f"Condition {number}: {privacy.label} {words} {limit:g} %."


def _sentences(policy: BoardPolicy, ranking: Ranking | None, changes: Mapping[str, Any]) -> Iterator[str]:
    if not policy.minimum_eers:
        yield "The recipe states no limits: the organizer sets them on the board."
    yield f"Privacy: the weighted average of the {policy.split} sets under the {policy.attack_model} attack model."
    yield POLICIES[policy.policy]
    for utility in policy.utilities:
        label = find_metric(utility.metric, utility.estimator).label
        yield f"Within a condition, systems are ranked by {label}: {utility.better} is better."
    yield from (_gate_sentence(gate) for gate in policy.gates)
    if ranking is None or "several_systems" in changes:
        yield SEVERAL_SYSTEMS[policy.several_systems]
    else:
        yield f"Of several systems of a team, {ranking.several_systems}."
    if ranking is not None:
        yield f"Ties: {ranking.ties}."
    words = policy.late if ranking is None or "late" in changes else ranking.late
    yield f"Late submissions: {words}."
    if policy.basis == "claims":
        yield "Numbers that only a team's own files state count too, and are marked."


def _gate_sentence(gate: Gate) -> str:
    label = find_metric(gate.metric, gate.estimator).label
    words = "of at least" if gate.inclusive else "above"
    groups = "; ".join(" and ".join(group) for group in gate.groups)
    return f"To be ranked, a system needs a mean of {label} {words} {gate.minimum:g} in each of: {groups}."
