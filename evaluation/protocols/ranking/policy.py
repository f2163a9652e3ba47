"""What a leaderboard ranks by: the ranking of an edition's recipe, and where an organizer decided otherwise.

`make_policy` puts both together. The organizer's part is a small JSON object (`FIELDS` names what it may hold), so that
it can be stored and compared; whatever it does not mention is as the recipe says. EERs are in
per cent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from common.errors import InputError
from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.recipes import BASES, POLICIES, Gate, MetricName, Ranking, Recipe, Track, Utility

Policy = Literal["cumulative", "interval"]
Late = Literal["ranked", "unranked"]
Basis = Literal["recomputed", "claims"]
SeveralSystems = Literal["best", "all"]
LATE: tuple[Late, ...] = ("unranked", "ranked")
SEVERAL_SYSTEMS: tuple[SeveralSystems, ...] = ("best", "all")
SEVERAL_IN_WORDS: dict[SeveralSystems, str] = {
    "best": "Of a team’s systems, primary or contrastive, the one with the best utility is ranked in each condition; "
    "the others are listed.",
    "all": "Every system of a team is ranked, primary or contrastive.",
}
MOST_CONDITIONS = 12
NOTE_WITHIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardPolicy:
    """All that decides the places of a leaderboard.

    Attributes:
        minimum_eers: the limit of each condition, ascending; empty while nothing is ranked.
        policy: ``cumulative`` (a system competes wherever it reaches the limit) or ``interval`` (in the last of these).
        inclusive: whether an average equal to a limit reaches it.
        note_within: an average this close to a limit is noted.
        gates: further minima, such as ρF0 > 0.3.
        late: whether late submissions are ranked or only listed.
        basis: ``recomputed`` ranks by recomputed numbers only, ``claims`` also by those that only a team's files state.
        several_systems: ``best`` ranks one system of a team in each condition, ``all`` each of them.
        split, attack_model, privacy, utilities: which averages count; no organizer changes them apart from the recipe.
    """

    minimum_eers: tuple[float, ...] = ()
    policy: Policy = "cumulative"
    inclusive: bool = True
    note_within: float = NOTE_WITHIN
    gates: tuple[Gate, ...] = ()
    late: Late = "unranked"
    basis: Basis = "recomputed"
    several_systems: SeveralSystems = "best"
    split: str
    attack_model: str
    privacy: MetricName
    utilities: tuple[Utility, ...]


FIELDS = ("minimum_eers", "policy", "inclusive", "note_within", "gates", "late", "basis", "several_systems")


def make_policy(recipe: Recipe, track: str = "", changes: Mapping[str, Any] | None = None) -> LeaderboardPolicy:
    """Return the policy of a recipe's track with an organizer's changes.

    Args:
        track: where the recipe has several.
        changes: any of `FIELDS`. Its ``gates`` map a metric to another minimum, or to None for no such gate.

    Raises:
        InputError: a field that is unknown or a value that it cannot have.
        ProblemsError: the recipe has several tracks and none was named.

    Example:
        >>> from evaluation.protocols.recipes import load_recipe
        >>> make_policy(load_recipe("2022"), changes={"minimum_eers": [5, 8]}).minimum_eers
        (5.0, 8.0)
    """
    chosen = recipe.tracks[track] if track else recipe.track
    base = _of_ranking(chosen.ranking) if chosen.ranking else _without_ranking(recipe, chosen)
    given = dict(changes or {})
    if unknown := [name for name in given if name not in FIELDS]:
        raise InputError(f"Expected the fields {', '.join(FIELDS)}, found “{unknown[0]}”.")
    values = {name: _CHECKS[name](value) for name, value in given.items() if name != "gates"}
    if "gates" in given:
        values["gates"] = _gates(base.gates, given["gates"])
    return replace(base, **values)


def find_changes(policy: LeaderboardPolicy, recipe: Recipe, track: str = "") -> dict[str, Any]:
    """Where a policy differs from the recipe, as `make_policy` takes it: JSON-able, empty for the recipe's own."""
    base, values = make_policy(recipe, track), policy_as_dict(policy)
    changes = {name: values[name] for name in FIELDS if getattr(policy, name) != getattr(base, name)}
    if "gates" in changes:
        minima = {gate.metric: gate.minimum for gate in policy.gates}
        changes["gates"] = {
            gate.metric: minima.get(gate.metric) for gate in base.gates if minima.get(gate.metric) != gate.minimum
        }
    return changes


def write_policy(recipe: Recipe, track: str = "", changes: Mapping[str, Any] | None = None) -> Recipe:
    """Return the recipe whose track ranks by the organizer's changes, so that they are changes no more.

    Args: as `make_policy`.

    Example:
        >>> from evaluation.protocols.recipes import load_recipe
        >>> write_policy(load_recipe("2022"), changes={"minimum_eers": [5, 8]}).track.ranking.minimum_eers
        (5.0, 8.0)
    """
    policy, base = make_policy(recipe, track, changes), make_policy(recipe, track)
    values = {name: getattr(policy, name) for name in FIELDS if getattr(policy, name) != getattr(base, name)}
    if not values:
        return recipe
    chosen = recipe.tracks[track] if track else recipe.track
    if chosen.ranking:
        ranking = replace(chosen.ranking, **values)
    else:
        every = {one.name: getattr(policy, one.name) for one in fields(policy)}
        ranking = Ranking(**every, ties="equal rank, in the order of higher EER")
    return replace(recipe, tracks={**recipe.tracks, chosen.name: replace(chosen, ranking=ranking)})


def policy_as_dict(policy: LeaderboardPolicy) -> dict[str, Any]:
    """Return the whole policy as JSON holds it."""
    found = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return found | {
        "minimum_eers": list(policy.minimum_eers),
        "gates": [
            {"metric": gate.metric, "minimum": gate.minimum, "inclusive": gate.inclusive} for gate in policy.gates
        ],
        "privacy": {"metric": policy.privacy.metric, "estimator": policy.privacy.estimator},
        "utilities": [
            {"metric": one.metric, "estimator": one.estimator, "better": one.better} for one in policy.utilities
        ],
    }


def policy_in_words(policy: LeaderboardPolicy) -> list[str]:
    """Return the policy as sentences, wherever one stands: in the rules, on the leaderboard and on its policy page."""
    reach = "at least" if policy.inclusive else "more than"
    limits = ", ".join(f"{limit:g}" for limit in policy.minimum_eers)
    sentences = (
        [_conditions_in_words(policy, reach, limits)] if limits else ["No condition is set, so nothing is ranked."]
    )
    for utility in policy.utilities:
        label = find_metric(utility.metric, utility.estimator).label
        sentences.append(
            f"Within a condition the {utility.better} average {label} of the {policy.split} sets is better; equal "
            "values share a rank, primary systems first, then the higher EER."
        )
    sentences += map(gate_in_words, policy.gates)
    sentences.append(SEVERAL_IN_WORDS[policy.several_systems])
    sentences.append(
        "Late submissions are listed without a rank." if policy.late == "unranked" else "Late submissions are ranked."
    )
    sentences.append(
        "Only numbers that the portal recomputed are ranked."
        if policy.basis == "recomputed"
        else "Numbers that only a team’s files state are ranked too, and marked “reported”."
    )
    return sentences


def condition_in_words(minimum: float, upper: float | None, policy: LeaderboardPolicy) -> str:
    """Such as ``EER of at least 15 %`` or ``EER from 15 % to below 20 %``."""
    if policy.inclusive:
        return f"EER of at least {minimum:g} %" if upper is None else f"EER from {minimum:g} % to below {upper:g} %"
    return f"EER above {minimum:g} %" if upper is None else f"EER above {minimum:g} % and up to {upper:g} %"


def gate_in_words(gate: Gate) -> str:
    """Such as ``Pitch correlation ρF0 must exceed 0.3 on the mean of a and b.``"""
    sign = "reach" if gate.inclusive else "exceed"
    return f"{find_metric(gate.metric, gate.estimator).label} must {sign} {gate.minimum:g} {_groups_in_words(gate)}."


def _groups_in_words(gate: Gate) -> str:
    """Such as ``on a``, ``on the mean of each of these: a and b; c and d`` or ``on a; on the mean of b and c``."""
    if all(len(group) == 1 for group in gate.groups):
        names = [group[0] for group in gate.groups]
        return f"on {names[0]}" if len(names) == 1 else f"on each of {', '.join(names)}"
    if any(len(group) == 1 for group in gate.groups):
        return "; ".join(f"on {'the mean of ' if len(group) > 1 else ''}{' and '.join(group)}" for group in gate.groups)
    groups = "; ".join(" and ".join(group) for group in gate.groups)
    return f"on the mean of {groups}" if len(gate.groups) == 1 else f"on the mean of each of these: {groups}"


def _conditions_in_words(policy: LeaderboardPolicy, reach: str, limits: str) -> str:
    start = (
        f"A condition requires an average EER of {reach} its limit ({limits} %), unrounded, on the {policy.split} sets "
        f"under the {policy.attack_model} attack model"
    )
    if policy.policy == "cumulative":
        return f"{start}; a system competes in every condition that it meets."
    return f"{start}, and ends where the next begins; a system competes in one condition only."


def _of_ranking(ranking: Ranking) -> LeaderboardPolicy:
    same = ("split", "attack_model", "privacy", "utilities", "inclusive", "note_within", "gates")
    return LeaderboardPolicy(
        **{name: getattr(ranking, name) for name in same},
        minimum_eers=tuple(float(limit) for limit in ranking.minimum_eers),
        policy="interval" if ranking.policy == "interval" else "cumulative",
        late="ranked" if ranking.late == "ranked" else "unranked",
        basis="claims" if ranking.basis == "claims" else "recomputed",
        several_systems="all" if ranking.several_systems == "all" else "best",
    )


def _without_ranking(recipe: Recipe, track: Track) -> LeaderboardPolicy:
    """Of an edition that ranks nothing, such as 2020: the averages it prints, of its strongest attacker."""
    estimators = {rule.key: rule.estimator for rule in recipe.metrics if rule.primary}
    estimators |= {average.metric: average.estimator for average in track.averages}
    utilities = tuple(
        Utility(metric, better, estimators[metric])
        for metric, better in (("wer", "lower"), ("uar", "higher"))
        if metric in estimators
    )
    privacy = MetricName("eer", estimators.get("eer", "kaldi"))
    attack_model = recipe.attack_models[-1]
    return LeaderboardPolicy(split="test", attack_model=attack_model, privacy=privacy, utilities=utilities)


def _gates(known: tuple[Gate, ...], given: Any) -> tuple[Gate, ...]:
    if not isinstance(given, Mapping):
        raise InputError(f"gates: expected a minimum for each metric, found “{given}”.")
    names = [gate.metric for gate in known]
    if unknown := [metric for metric in given if metric not in names]:
        raise InputError(f"gates: the recipe has {', '.join(names) or 'none'}; found “{unknown[0]}”.")
    changed = (gate if gate.metric not in given else _gate(gate, given[gate.metric]) for gate in known)
    return tuple(gate for gate in changed if gate is not None)


def _gate(gate: Gate, minimum: Any) -> Gate | None:
    return None if minimum is None else replace(gate, minimum=_number(f"gates.{gate.metric}", minimum))


def _number(field: str, found: Any) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise InputError(f"{field}: expected a number, found “{found}”.")
    return float(found)


def _limits(found: Any) -> tuple[float, ...]:
    if not isinstance(found, list | tuple):
        raise InputError(f"minimum_eers: expected a list of limits in per cent, found “{found}”.")
    limits = tuple(_number("minimum_eers", one) for one in found)
    if len(limits) > MOST_CONDITIONS:
        raise InputError(f"minimum_eers: expected at most {MOST_CONDITIONS} limits, found {len(limits)}.")
    if any(not 0 <= limit <= 100 for limit in limits) or any(
        not low < high for low, high in itertools.pairwise(limits)
    ):
        shown = ", ".join(f"{limit:g}" for limit in limits)
        raise InputError(f"minimum_eers: expected limits from 0 to 100 % that ascend, found {shown}.")
    return limits


def _note_within(found: Any) -> float:
    number = _number("note_within", found)
    if not 0 <= number <= 100:
        raise InputError(f"note_within: expected 0 to 100 percentage points, found {number:g}.")
    return number


def _flag(found: Any) -> bool:
    if not isinstance(found, bool):
        raise InputError(f"inclusive: expected true or false, found “{found}”.")
    return found


def _one_of(field: str, allowed: tuple[str, ...]) -> Callable[[Any], str]:
    def check(found: Any) -> str:
        if found not in allowed:
            raise InputError(f"{field}: expected one of {', '.join(allowed)}, found “{found}”.")
        return str(found)

    return check


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "minimum_eers": _limits,
    "policy": _one_of("policy", POLICIES),
    "inclusive": _flag,
    "note_within": _note_within,
    "late": _one_of("late", LATE),
    "basis": _one_of("basis", BASES),
    "several_systems": _one_of("several_systems", SEVERAL_SYSTEMS),
}


SPEECH, RESULTS, SCORES, SIMILARITY = "speech", "results", "scores", "similarity"
_SOURCES = {
    "eer": SCORES,
    "cllr": SCORES,
    "min_cllr": SCORES,
    "linkability": SCORES,
    "pitch_correlation": SPEECH,
    "gain_of_voice_distinctiveness": SIMILARITY,
}


def needed_to_rank(
    recipe: Recipe, track: str = "", changes: Mapping[str, Any] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the kinds of files of which a leaderboard needs one for its conditions and gates, by the label of the
    number.

    Files that only report a number serve where the policy ranks by reported numbers. Nothing is needed where nothing
    is ranked.

    Args:
        track: where the recipe has several.
        changes: of the policy, as `make_policy` takes them.

    Raises:
        InputError: as `make_policy`.

    Example:
        >>> from evaluation.protocols.recipes import load_recipe
        >>> needed_to_rank(load_recipe("2022"))["EER"]
        ('scores',)
    """
    policy = make_policy(recipe, track, changes)
    chosen = recipe.tracks[track] if track else recipe.track
    if chosen.ranking is None and not policy.minimum_eers:
        return {}
    deciding = [(policy.privacy.metric, policy.privacy.estimator)]
    deciding += [(gate.metric, gate.estimator) for gate in policy.gates]
    reported_numbers = (RESULTS,) if policy.basis == "claims" else ()
    return {
        find_metric(metric, estimator).label: (_SOURCES[metric], *reported_numbers)
        for metric, estimator in deciding
        if metric in _SOURCES
    }
