"""Why a system is not ranked: it came too late, failed a gate, or lacks a number that ranks rest on.

What `list_exclusion_reasons` names keeps a system out of every table; with what `list_unranked_reasons`
names it stands there without a rank. Conventions as in `ranking`.

Source: evaluation plan 2022, sections 5.2.1 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from common.rounding import format_distinct
from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.ranking.conditions import check_gate
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue, Reason
from evaluation.protocols.ranking.policy import LeaderboardPolicy
from evaluation.protocols.recipes import Gate, MetricName, Utility

SHOWN_MISSING = 3


def list_exclusion_reasons(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> tuple[Reason, ...]:
    """What forbids a place in every ranking; nothing for who may be ranked. References need the averages only."""
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
    """What keeps a system with all of its numbers from a rank in any condition."""
    if entry.kind != "system":
        return ()
    is_out = entry.is_late and policy.late == "unranked"
    late = [Reason("late", "Submitted after the deadline.")] if is_out else []
    return (*late, *_failed_gates(entry, policy))


def _failed_gates(entry: LeaderboardEntry, policy: LeaderboardPolicy) -> list[Reason]:
    """A reason for each gate that is not passed, with the lowest of its groups."""
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
    """What of a metric is missing, the first few of it."""
    said = entry.missing.get(metric, ())
    more = f"; and {len(said) - SHOWN_MISSING} more" if len(said) > SHOWN_MISSING else ""
    return f"; missing: {'; '.join(said[:SHOWN_MISSING])}{more}" if said else ""


def _names(text: str, data_set: str) -> bool:
    """Whether what is missing is a number of this data set."""
    return text == data_set or text.startswith(f"{data_set} ")


def _label(name: MetricName | Utility | Gate) -> str:
    return find_metric(name.metric, name.estimator).label
