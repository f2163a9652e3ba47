"""Ranks the systems of an edition: who competes in which condition, and who is first.

`rank` is a function of entries and policy alone; the order of the entries never matters. In each condition and for each
utility, systems that reach the limit are ordered by the utility; equal values share a rank (1, 2, 2, 4),
primary systems first, then the higher EER; whatever is not ranked is listed in its place with its reason (`unranked`).
Conventions: EERs, WERs, UARs in per cent, unrounded; which way is better comes from the policy.

Sources: evaluation plan 2022, sections 5.1, 5.2.1 and 7; protocol 2.10 for what the plan leaves open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from common.errors import InputError
from common.rounding import format_distinct, round_to_interval
from evaluation.metrics.catalogue import ESTIMATORS, find_metric
from evaluation.protocols.ranking.conditions import Condition, conditions
from evaluation.protocols.ranking.entries import (
    LeaderboardEntry,
    MeasuredValue,
    Miss,
    Place,
    RankingRow,
    Rankings,
    RankingTable,
    Reason,
    Unranked,
)
from evaluation.protocols.ranking.policy import LeaderboardPolicy
from evaluation.protocols.ranking.unranked import list_exclusion_reasons, list_unranked_reasons
from evaluation.protocols.recipes import Utility

CHANCE_EER = 50.0
ABOVE_CHANCE = "An EER above 50 % usually means a broken attacker, not more privacy."
MOST_DIGITS = 3
UNKNOWN = MeasuredValue(math.nan)


def rank(entries: Iterable[LeaderboardEntry], policy: LeaderboardPolicy) -> Rankings:
    """Rank entries in every condition of a policy, for each of its utilities.

    Raises:
        InputError: two entries of one key.
    """
    every = sorted(entries, key=lambda entry: (entry.label, entry.key))
    twice = next((a.key for a, b in itertools.pairwise(sorted(every, key=lambda one: one.key)) if a.key == b.key), None)
    if twice is not None:
        raise InputError(f"Expected each system once, found “{twice}” again.")
    reasons = {entry.key: list_exclusion_reasons(entry, policy) for entry in every}
    rankable = [entry for entry in every if not reasons[entry.key]]
    in_part = [entry for entry in every if entry.kind == "original" and reasons[entry.key]]
    met = {entry.key: _find_conditions(entry, policy) for entry in rankable}
    against = {entry.key: list_unranked_reasons(entry, policy) for entry in rankable}
    tables = tuple(
        _table(number, utility, rankable, in_part, met, against, policy)
        for number in range(len(policy.minimum_eers))
        for utility in policy.utilities
    )
    outside = [entry for entry in rankable if not any(one.met for one in met[entry.key])]
    return Rankings(
        policy=policy,
        tables=tables,
        unrankable=tuple(
            Unranked(entry, found) for entry in every if (found := reasons[entry.key]) and entry.kind != "original"
        ),
        outside=(*sorted(outside, key=lambda entry: -_privacy(entry).value), *(() if tables else in_part)),
    )


def indistinguishable(rows: Sequence[RankingRow]) -> tuple[tuple[str, ...], ...]:
    """The largest runs of neighbours in which the 95 % interval of each utility overlaps that of every other.

    Overlap is a cautious test: systems of one run may still differ, those of different runs that share no other do.
    A row without an interval belongs to no run. Runs may share members, as letters do in a table of mean separations.

    Args:
        rows: in the order of their rank.
    """
    runs: list[range] = []
    for start in range(len(rows)):
        stop = start
        while stop < len(rows) and all(_overlap(rows[stop], rows[other]) for other in range(start, stop + 1)):
            stop += 1
        if stop - start > 1 and (not runs or stop > runs[-1].stop):
            runs.append(range(start, stop))
    return tuple(tuple(rows[place].entry.key for place in run) for run in runs)


def is_above_chance(eer: float, interval: tuple[float, float] | None) -> bool:
    """Return whether an EER lies above 50 %, with its whole interval where it has one.

    Example:
        >>> is_above_chance(53.0, (48.0, 58.0)), is_above_chance(53.0, None)
        (False, True)
    """
    return (interval[0] if interval else eer) > CHANCE_EER


def find_missed_by_lower(
    entry: LeaderboardEntry, policy: LeaderboardPolicy
) -> tuple[str, str, tuple[float, ...]] | None:
    """Another attack whose EER misses limits that the entry reaches: attack model, EER as it is read, limits."""
    if entry.kind == "original" or entry.privacy is None or entry.lower_attack is None:
        return None
    attack, lowest = entry.lower_attack
    missed = _list_missed(entry.privacy, lowest, policy)
    if not missed:
        return None
    return attack, round_to_interval(lowest.value, lowest.low, lowest.high, MOST_DIGITS, "%")[0], missed


def _list_missed(decides: MeasuredValue, other: MeasuredValue, policy: LeaderboardPolicy) -> tuple[float, ...]:
    """Return the limits that the EER that decides reaches, and another one misses."""
    return tuple(
        one for one in policy.minimum_eers if _reaches(decides, one, policy) and not _reaches(other, one, policy)
    )


def _reaches(eer: MeasuredValue, minimum: float, policy: LeaderboardPolicy) -> bool:
    return eer.value >= minimum if policy.inclusive else eer.value > minimum


def missed_limit_notes(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> list[Reason]:
    """Return notes on limits that the attack and the estimator that decide reach, and another one misses."""
    notes = []
    if found := find_missed_by_lower(entry, policy):
        attack, eer, missed = found
        below = "just below " if float(eer) >= missed[0] else ""
        text = f"The {attack} attack already gives a lower EER, {below}{eer} %, which misses {_name_limits(missed)}; "
        notes.append(Reason("lower-attack", f"{text}ranks rest on the {policy.attack_model} attack only."))
    for estimator, other in entry.other_eers.items() if entry.kind != "original" and entry.privacy else ():
        if entry.privacy and (missed := _list_missed(entry.privacy, other, policy)):
            eer = round_to_interval(other.value, other.low, other.high, MOST_DIGITS, "%")[0]
            below = "just below " if float(eer) >= missed[0] else ""
            text = f"By the estimator {ESTIMATORS[estimator]} its EER is {below}{eer} %, "
            text += f"which misses {_name_limits(missed)}; "
            text += f"ranks rest on the estimator {ESTIMATORS[policy.privacy.estimator]} only."
            notes.append(Reason("other-estimator", text))
    return notes


def _name_limits(limits: Sequence[float]) -> str:
    words = " and ".join(filter(None, [", ".join(f"{one:g}" for one in limits[:-1]), f"{limits[-1]:g}"]))
    return f"the limit{'s' * (len(limits) > 1)} of {words} %"


def _overlap(one: RankingRow, other: RankingRow) -> bool:
    first, second = one.utility.interval, other.utility.interval
    return first is not None and second is not None and first[0] <= second[1] and second[0] <= first[1]


def _privacy(entry: LeaderboardEntry) -> MeasuredValue:
    if entry.privacy is None:
        raise InputError(f"{entry.label}: expected an average EER, found none.")
    return entry.privacy


def _find_conditions(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> tuple[Condition, ...]:
    return conditions(
        _privacy(entry).value,
        policy.minimum_eers,
        policy=policy.policy,
        inclusive=policy.inclusive,
        note_within=policy.note_within,
    )


def _table(
    number: int,
    utility: Utility,
    rankable: Sequence[LeaderboardEntry],
    in_part: Sequence[LeaderboardEntry],
    met: Mapping[str, tuple[Condition, ...]],
    against: Mapping[str, tuple[Reason, ...]],
    policy: LeaderboardPolicy,
) -> RankingTable:
    """The ranking of the condition `number`, from 0; `in_part`: original speech of which not all averages are known."""
    minimum = policy.minimum_eers[number]
    is_last = policy.policy == "cumulative" or number + 1 == len(policy.minimum_eers)
    upper = None if is_last else policy.minimum_eers[number + 1]
    present = [entry for entry in rankable if met[entry.key][number].met or entry.kind == "original"]
    rows = _ordered([_row(one, utility, minimum, upper, against[one.key], policy) for one in present], utility)
    rows = _ranked(_one_for_each_team(rows, utility, policy))
    groups = indistinguishable([row for row in rows if row.place is Place.RANKED])
    shown = {entry.key for entry in present}
    absent = [entry for entry in rankable if entry.key not in shown]
    misses = sorted(
        (Miss(entry, _distance(_privacy(entry).value, minimum, upper)) for entry in absent),
        key=lambda miss: (miss.distance, miss.entry.kind != "system"),
    )
    is_empty = all(row.place is Place.REFERENCE for row in rows)
    return RankingTable(
        number=number + 1,
        minimum=minimum,
        upper=upper,
        utility=utility,
        rows=(*(_in_groups(row, groups) for row in rows), *(_reference(one, utility) for one in in_part)),
        groups=groups,
        nearest=misses[0] if is_empty and misses else None,
        just_missed=tuple(
            miss for miss in misses if miss.entry.kind == "system" and miss.distance <= policy.note_within
        ),
    )


def _row(
    entry: LeaderboardEntry,
    utility: Utility,
    minimum: float,
    upper: float | None,
    reasons: tuple[Reason, ...],
    policy: LeaderboardPolicy,
) -> RankingRow:
    """An entry before it has a rank; a system without a reason against it may get one."""
    return RankingRow(
        entry=entry,
        place=Place.REFERENCE if entry.kind != "system" else Place.UNRANKED if reasons else Place.RANKED,
        rank=None,
        privacy=_privacy(entry),
        utility=entry.utilities[utility.metric],
        reasons=reasons,
        notes=tuple(_notes(entry, minimum, upper, policy)),
    )


def _reference(entry: LeaderboardEntry, utility: Utility) -> RankingRow:
    """Original speech with the averages that there are."""
    privacy, found = entry.privacy or UNKNOWN, entry.utilities.get(utility.metric, UNKNOWN)
    return RankingRow(entry, Place.REFERENCE, None, privacy, found)


def _notes(entry: LeaderboardEntry, minimum: float, upper: float | None, policy: LeaderboardPolicy) -> list[Reason]:
    """What a reader of this row should know although it decides nothing."""
    if entry.kind == "original":
        return []
    notes: list[Reason] = []
    eer = _privacy(entry)
    digits = find_metric(policy.privacy.metric, policy.privacy.estimator).decimals
    for limit in (minimum, upper):
        if limit is not None and _apart(eer.value, limit) <= policy.note_within:
            shown = format_distinct(eer.value, limit, digits)
            notes.append(Reason("near-limit", f"Its EER of {shown} % is within {policy.note_within:g} of {limit:g} %."))
        elif limit is not None and eer.interval and eer.interval[0] < limit < eer.interval[1]:
            notes.append(Reason("interval-at-limit", f"The interval of its EER includes the limit of {limit:g} %."))
    if is_above_chance(eer.value, eer.interval):
        notes.append(Reason("above-chance", ABOVE_CHANCE))
    notes += missed_limit_notes(entry, policy)
    if entry.is_reported:
        notes.append(Reason("reported", "Reported: some of its numbers could not be recomputed."))
    if entry.is_late and policy.late == "ranked":
        notes.append(Reason("late", "Submitted after the deadline."))
    return notes


def _ordered(rows: Sequence[RankingRow], utility: Utility) -> list[RankingRow]:
    """The best utility first; of equal ones the primary systems, then by higher EER, then by name."""
    sign = 1 if utility.better == "lower" else -1

    def place(row: RankingRow) -> tuple[float, bool, float, str, str]:
        return sign * row.utility.value, row.entry.is_contrastive, -row.privacy.value, row.entry.label, row.entry.key

    return sorted(rows, key=place)


def _one_for_each_team(rows: Sequence[RankingRow], utility: Utility, policy: LeaderboardPolicy) -> list[RankingRow]:
    """Only the first of a team's systems that may be ranked keeps its place."""
    if policy.several_systems == "all":
        return list(rows)
    first: dict[str, RankingRow] = {}
    kept = []
    for row in rows:
        team = row.entry.team
        if row.place is Place.RANKED and team:
            best = first.setdefault(team, row)
            if best is not row:
                label = find_metric(utility.metric, utility.estimator).label
                better = "an equal" if best.utility.value == row.utility.value else f"the {utility.better}"
                text = f"Of this team {best.entry.label} is ranked, which has {better} {label}"
                text += " and comes first." if better == "an equal" else "."
                row = replace(row, place=Place.UNRANKED, reasons=(Reason("another-system", text),))
        kept.append(row)
    return kept


def _ranked(rows: Sequence[RankingRow]) -> list[RankingRow]:
    """Ranks by utility; equal values share one."""
    values = [row.utility.value for row in rows if row.place is Place.RANKED]
    return [
        replace(row, rank=values.index(row.utility.value) + 1) if row.place is Place.RANKED else row for row in rows
    ]


def _in_groups(row: RankingRow, groups: Sequence[Sequence[str]]) -> RankingRow:
    numbers = tuple(number for number, keys in enumerate(groups, start=1) if row.entry.key in keys)
    return replace(row, groups=numbers) if numbers else row


def _distance(eer: float, minimum: float, upper: float | None) -> float:
    """How far an EER lies from a condition, in percentage points."""
    return _apart(eer, upper) if upper is not None and eer >= upper else _apart(eer, minimum)


def _apart(one: float, other: float) -> float:
    """Their difference as they are written, so that 15.05 is 0.05 from 15 and not a little more."""
    return float(abs(Fraction(str(float(one))) - Fraction(str(float(other)))))
