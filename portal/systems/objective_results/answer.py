"""The three sentences that open the page of a system: how private it is, how useful, and where it stands."""

from __future__ import annotations

from evaluation.formats.results import AttackModel, Speech, explain_attack
from evaluation.metrics.catalogue import Direction, find_metric
from evaluation.objective_results.leaderboard_entries import find_lower_attack, judge_average
from evaluation.objective_results.values import Number, ObjectiveValues
from evaluation.protocols.ranking.entries import Place
from evaluation.protocols.ranking.policy import LeaderboardPolicy
from evaluation.protocols.recipes import Track
from portal.core.labels import decimals
from portal.leaderboard.selectors import Leaderboard
from portal.leaderboard.tables import limit_in_words
from portal.systems.objective_results.tables import Standing


def answer(
    values: ObjectiveValues, standing: Standing, track: Track, leaderboard: Leaderboard | None, key: str
) -> list[str]:
    """Return privacy, utility and rank in sentences made from the numbers.

    Args:
        leaderboard: of the edition, where this reader sees it and it shows this submission; None otherwise.
        key: of the system there.
    """
    return [_privacy(values, standing, track), _utility(values, standing.policy), _rank(standing, leaderboard, key)]


def _privacy(values: ObjectiveValues, standing: Standing, track: Track) -> str:
    policy, privacy = standing.policy, standing.privacy
    if standing.average is None:
        return f"Its privacy is not known: the average {privacy.label} is missing."
    decides = policy.privacy
    unprotected = values.average(
        decides.metric, decides.estimator, split=policy.split, attack_model=AttackModel.UNPROTECTED
    )
    eer = _read(standing.average, "%", named="95 % interval ")
    said = f"The {policy.attack_model} attacker has an equal error rate of {eer}"
    known = f", against {_read(unprotected, '%', short=True)} on original speech" if unprotected else ""
    weak = judge_average(values, policy, track)
    doubt = "" if weak.is_reliable else f" That attack is {weak.word}: {' '.join(weak.reasons)}"
    more = f"{_turned(values, policy)}{doubt}{_lower(values, policy)}"
    lower = find_lower_attack(values, policy)
    attacks = " ".join(map(explain_attack, [policy.attack_model, *([lower[0]] if lower else [])]))
    return f"{said}{known}; 50 % would be no better than a guess.{more} {attacks}"


def _lower(values: ObjectiveValues, policy: LeaderboardPolicy) -> str:
    found = find_lower_attack(values, policy)
    if found is None:
        return ""
    attack, number = found
    reached = f" The {attack} attacker reaches {_read(number, '%')}, which is lower"
    ranks = (
        f"The rank rests on the {policy.attack_model} attacker all the same, by which the edition ranks every system."
    )
    return f"{reached}: a system is only as private as the lowest EER. {ranks}"


def _turned(values: ObjectiveValues, policy: LeaderboardPolicy) -> str:
    """Return what an attacker reaches who turns the sign, where the EER is above 50 %."""
    attack, decides = AttackModel(policy.attack_model), policy.privacy
    eer = values.average(decides.metric, decides.estimator, split=policy.split, attack_model=attack)
    turned = values.average("better_sign_eer", split=policy.split, attack_model=attack)
    if eer is None or turned is None or eer.value <= 50:
        return ""
    reached = _read(turned, "%", short=True)
    return f" With the sign of the scores reversed wherever that helps the attacker, it is {reached}."


def _utility(values: ObjectiveValues, policy: LeaderboardPolicy) -> str:
    parts, lacking = [], []
    for one in policy.utilities:
        metric = find_metric(one.metric, one.estimator)
        attack = AttackModel(policy.attack_model)
        number = values.average(one.metric, one.estimator, split=policy.split, attack_model=attack)
        if number is None:
            lacking.append(metric.label)
            continue
        original = values.average(one.metric, one.estimator, split=policy.split, speech=Speech.ORIGINAL)
        against = f", against {_read(original, metric.unit, short=True)} on original speech" if original else ""
        better = "lower" if metric.direction == Direction.LOWER else "higher"
        parts.append(f"{metric.label} is {_read(number, metric.unit)}{against} ({better} is better)")
    if lacking:
        parts.append(f"the average of {' and '.join(lacking)} is missing")
    said = "; ".join(parts) or "no utility was measured"
    return f"{said[:1].upper()}{said[1:]}."


def _rank(standing: Standing, leaderboard: Leaderboard | None, key: str) -> str:
    if standing.reasons:
        return f"It has no rank: {' '.join(standing.reasons)}"
    n_conditions = len(standing.conditions.rows)
    if not n_conditions:
        return "This edition has no conditions, so nothing is ranked."
    met = f"It meets {standing.met} of {n_conditions} conditions"
    ranks = []
    unranked: dict[str, list[str]] = {}
    for table in leaderboard.table.tables if leaderboard else ():
        row = next((row for row in table.rows if row.entry.key == key), None)
        if row is not None:
            by = f" by {find_metric(table.utility.metric, table.utility.estimator).label}"
            several = by if leaderboard and len(leaderboard.policy.utilities) > 1 else ""
            limit = f"{limit_in_words(table, standing.policy)}{several}"
            if row.place is Place.RANKED:
                ranks.append(f"{row.rank} of {len(table.ranked)} at {limit}")
            elif row.place is Place.UNRANKED:
                unranked.setdefault(" ".join(one.text for one in row.reasons), []).append(limit)
    said = f"{met} and is ranked {', '.join(ranks)}." if ranks else f"{met}."
    return " ".join([said, *(f"No rank at {', '.join(limits)}: {why}" for why, limits in unranked.items())])


def _read(number: Number, unit: str, *, short: bool = False, named: str = "") -> str:
    """Such as ``22.5 % (22.1 to 22.9)``; the first interval of a page is named."""
    text, around = number.rounded()
    if short and not around:
        text = decimals(number.value, 1)
    value = f"{text} {unit}".strip()
    return f"{value} ({named}{around})" if around and not short else value
