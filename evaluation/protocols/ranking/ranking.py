"""Ranks the systems of an edition: who competes in which condition, and who is first.

`rank` is a function of entries and policy alone; the order of the entries never matters. In each condition and for each
utility, systems that reach the limit are ordered by the utility; equal values share a rank (1, 2, 2, 4),
primary systems first, then the higher EER; whatever is not ranked is listed in its place with its reason.
Conventions: EERs, WERs, UARs in per cent, unrounded; which way is better comes from the policy. A *condition* is a
minimum EER; a *gate* is a minimum of another metric, such as ρF0, on the mean of each group of data sets.

Sources: evaluation plan 2022, sections 5.1, 5.2.1 and 7; protocol 2.10 for what the plan leaves open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from common.errors import InputError
from common.rounding import format_distinct, round_to_interval
from evaluation.metrics.averages import as_written, require_members
from evaluation.metrics.catalogue import ESTIMATORS, find_metric
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
from evaluation.protocols.ranking.policy import LeaderboardPolicy, Policy
from evaluation.protocols.recipes import Gate, MetricName, Utility

CHANCE_EER = 50.0
ABOVE_CHANCE = "An EER above 50 % usually means a broken attacker, not more privacy."
MOST_DIGITS = 3
SHOWN_MISSING = 3
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
    met = {
        entry.key: conditions(
            _privacy(entry).value,
            policy.minimum_eers,
            policy=policy.policy,
            inclusive=policy.inclusive,
            note_within=policy.note_within,
        )
        for entry in rankable
    }
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
        minimum
        for minimum in policy.minimum_eers
        if reaches(decides.value, minimum, inclusive=policy.inclusive)
        and not reaches(other.value, minimum, inclusive=policy.inclusive)
    )


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


def _table(
    number: int,
    utility: Utility,
    rankable: Sequence[LeaderboardEntry],
    in_part: Sequence[LeaderboardEntry],
    met: Mapping[str, tuple[Condition, ...]],
    against: Mapping[str, tuple[Reason, ...]],
    policy: LeaderboardPolicy,
) -> RankingTable:
    """Return the ranking of the condition `number`, from 0; `in_part`: original speech of which not all averages are
    known."""
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
    """Return what a reader of this row should know although it decides nothing."""
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
    """Return the best utility first; of equal ones the primary systems, then by higher EER, then by name."""
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
    """Return ranks by utility; equal values share one."""
    values = [row.utility.value for row in rows if row.place is Place.RANKED]
    return [
        replace(row, rank=values.index(row.utility.value) + 1) if row.place is Place.RANKED else row for row in rows
    ]


def _in_groups(row: RankingRow, groups: Sequence[Sequence[str]]) -> RankingRow:
    numbers = tuple(number for number, keys in enumerate(groups, start=1) if row.entry.key in keys)
    return replace(row, groups=numbers) if numbers else row


def _distance(eer: float, minimum: float, upper: float | None) -> float:
    """Return how far an EER lies from a condition, in percentage points."""
    return _apart(eer, upper) if upper is not None and eer >= upper else _apart(eer, minimum)


def _apart(one: float, other: float) -> float:
    """Return their difference as they are written, so that 15.05 is 0.05 from 15 and not a little more."""
    return float(abs(Fraction(str(float(one))) - Fraction(str(float(other)))))


# Conditions and gates -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition and whether a system competes in it.

    Attributes:
        minimum: its limit, in per cent.
        upper: where it ends under the policy ``interval``; None where it has no end.
        met: whether the system competes here.
        near_limit: whether the average is so close to one of its limits that rounding could decide.
    """

    minimum: float
    upper: float | None
    met: bool
    near_limit: bool


@dataclass(frozen=True, slots=True)
class GateResult:
    """The mean of one group of data sets against a minimum."""

    group: tuple[str, ...]
    value: float
    minimum: float
    passed: bool


def conditions(
    average_eer: float,
    minimum_eers: Sequence[float],
    *,
    policy: Policy = "cumulative",
    inclusive: bool = True,
    note_within: float = 0.05,
) -> tuple[Condition, ...]:
    """Return each condition and whether a system with this average EER competes in it.

    Under ``cumulative`` a system competes wherever it reaches the minimum; under ``interval`` only in the last one of
    these, so that the conditions are disjoint: [15, 20), [20, 25), … and the last one open. With `inclusive` an average
    equal to a minimum reaches it (and so leaves the interval below), else it must be above. The average is compared
    unrounded; above 50 % is allowed.

    Raises:
        InputError: an average that is not within 0 to 100, limits that do not ascend, an unknown policy.

    Source: evaluation plan 2022, sections 5.1 (cumulative) and 7 (interval).
    """
    if not 0 <= average_eer <= 100:
        raise InputError(f"Expected an average EER of 0 to 100 %, found {average_eer}.")
    if any(not low < high for low, high in itertools.pairwise(minimum_eers)):
        raise InputError(f"Expected limits that ascend, found {list(minimum_eers)}.")
    if policy not in ("cumulative", "interval"):
        raise InputError(f"Expected the policy “cumulative” or “interval”, found “{policy}”.")
    uppers = [*minimum_eers[1:], None] if policy == "interval" else [None] * len(minimum_eers)
    return tuple(
        Condition(
            minimum=minimum,
            upper=upper,
            met=reaches(average_eer, minimum, inclusive=inclusive)
            and not (upper is not None and reaches(average_eer, upper, inclusive=inclusive)),
            near_limit=any(limit is not None and abs(average_eer - limit) <= note_within for limit in (minimum, upper)),
        )
        for minimum, upper in zip(minimum_eers, uppers, strict=True)
    )


def check_gate(
    values: Mapping[str, float], groups: Iterable[Sequence[str]], minimum: float, *, inclusive: bool = False
) -> tuple[GateResult, ...]:
    """Compare the mean of each group of data sets with a minimum, such as ρF0 > 0.3 on each set (both genders).

    Raises:
        InputError: a group with a value that is missing or not finite; all are named.

    Source: evaluation plan 2022, section 5.2.1.
    """
    every = [tuple(group) for group in groups]
    if not all(every):
        raise InputError("Expected at least one data set in each group, found an empty group.")
    members = dict.fromkeys(name for group in every for name in group)
    require_members([(name, values[name]) for name in members if name in values], members)
    means = [float(sum(as_written(values[name]) for name in group) / len(group)) for group in every]
    return tuple(
        GateResult(group, mean, minimum, reaches(mean, minimum, inclusive=inclusive))
        for group, mean in zip(every, means, strict=True)
    )


def reaches(value: float, minimum: float, *, inclusive: bool) -> bool:
    """Return whether a value meets a minimum; one that is equal to it does where that is `inclusive`."""
    return value >= minimum if inclusive else value > minimum


# Why a system is not ranked -------------------------------------------------------------------------


def list_exclusion_reasons(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> tuple[Reason, ...]:
    """Return what forbids a place in every ranking: nothing for who may be ranked. References need averages only."""
    averages: list[tuple[MetricName | Utility, MeasuredValue | None]] = [(policy.privacy, entry.privacy)]
    averages += [(utility, entry.utilities.get(utility.metric)) for utility in policy.utilities]
    found = list(entry.reasons)
    for name, measured in averages:
        label, most = _label(name), 100 if name is policy.privacy else math.inf
        if measured is None:
            found.append(Reason("missing", f"There is no average {label}{_why(entry, name.metric)}."))
        elif not 0 <= measured.value <= most or math.isinf(measured.value):
            wanted = "0 % or more" if math.isinf(most) else f"0 to {most} %"
            found.append(Reason("impossible", f"The average {label} must be {wanted}; it is {measured.value:g} %."))
    if entry.kind == "system":
        found += _missing_gates(entry, policy)
        if policy.basis == "recomputed":
            found += _explain_reported(entry, policy, averages)
    return tuple(found)


def list_unranked_reasons(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> tuple[Reason, ...]:
    """Return what keeps a system with all of its numbers from a rank in any condition."""
    if entry.kind != "system":
        return ()
    is_out = entry.is_late and policy.late == "unranked"
    late = [Reason("late", "Submitted after the deadline.")] if is_out else []
    return (*late, *_failed_gates(entry, policy))


def _failed_gates(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> list[Reason]:
    """Return a reason for each gate that is not passed, with the lowest of its groups."""
    reasons = []
    for one in policy.gates:
        values = {name: found.value for name, found in entry.gate_values[one.metric].items()}
        results = check_gate(values, one.groups, one.minimum, inclusive=one.inclusive)
        failed = sorted((found for found in results if not found.passed), key=lambda found: found.value)
        if failed:
            metric, needed = find_metric(one.metric, one.estimator), "reach" if one.inclusive else "exceed"
            shown = format_distinct(failed[0].value, one.minimum, metric.decimals)
            more = f", and too little on {len(failed) - 1} more" if len(failed) > 1 else ""
            where = " and ".join(failed[0].group)
            text = f"{metric.label} must {needed} {one.minimum:g} on each data set; it is {shown} on {where}{more}."
            reasons.append(Reason("gate", text))
    return reasons


def _missing_gates(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> list[Reason]:
    reasons = []
    for one in policy.gates:
        values = entry.gate_values.get(one.metric, {})
        names = [name for group in one.groups for name in group]
        lacking = [name for name in names if name not in values or not math.isfinite(values[name].value)]
        if lacking:
            said = [
                next((text for text in entry.missing.get(one.metric, ()) if _names(text, name)), name)
                for name in lacking
            ]
            reasons.append(Reason("missing", f"{_label(one)} is missing for {', '.join(said)}."))
    return reasons


def _explain_reported(
    entry: LeaderboardEntry,
    policy: LeaderboardPolicy,
    averages: Sequence[tuple[MetricName | Utility, MeasuredValue | None]],
) -> list[Reason]:
    labels = [f"average {_label(name)}" for name, found in averages if found is not None and found.is_reported]
    for one in policy.gates:
        names = {name for group in one.groups for name in group}
        if any(found.is_reported for name, found in entry.gate_values.get(one.metric, {}).items() if name in names):
            labels.append(_label(one))
    if not labels:
        return []
    return [Reason("reported", f"Only recomputed numbers are ranked; only reported: {', '.join(labels)}.")]


def _why(entry: LeaderboardEntry, metric: str) -> str:
    """Say what of a metric is missing, the first few of it."""
    said = entry.missing.get(metric, ())
    more = f"; and {len(said) - SHOWN_MISSING} more" if len(said) > SHOWN_MISSING else ""
    return f"; missing: {'; '.join(said[:SHOWN_MISSING])}{more}" if said else ""


def _names(text: str, data_set: str) -> bool:
    """Return whether what is missing is a number of this data set."""
    return text == data_set or text.startswith(f"{data_set} ")


def _label(name: MetricName | Utility | Gate) -> str:
    return find_metric(name.metric, name.estimator).label
