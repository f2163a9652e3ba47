"""Checks of the order of trials: runs, distances, neighbours, quarters, and where the systems stand over all blocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import groupby, pairwise

from listening.design.plan import QUARTERS, Bounds, Candidate, DesignRequest, Requirements, position_bounds
from listening.design.reports import Check, check_counts, check_faults

Blocks = Sequence[Sequence[Candidate]]


def check_order(request: DesignRequest, needs: Requirements, blocks: Blocks, extensions: int) -> Iterable[Check]:
    """All constraints on the order within sessions, and on the places of systems over sessions."""
    yield _runs(needs, blocks)
    yield _distances(needs, blocks)
    yield _neighbours(needs, blocks)
    yield _quarters("quarters by kind", "originals and anonymised trials in each quarter", blocks, _kind)
    yield _quarters("quarters by class", "targets and non-targets in each quarter", blocks, _class)
    yield _positions(request, blocks, extensions)


def _runs(needs: Requirements, blocks: Blocks) -> Check:
    faults, longest = [], 0
    for number, block in enumerate(blocks, 1):
        for kind, run in groupby(block, key=_kind):
            length = sum(1 for _ in run)
            longest = max(longest, length)
            if length > needs.longest_run:
                faults.append(f"evaluator {number} meets {length} {kind} trials in a row")
    return check_faults("runs", f"at most {needs.longest_run} of a kind in a row", f"at most {longest}", faults)


def _distances(needs: Requirements, blocks: Blocks) -> Check:
    faults, least = [], 0
    for number, block in enumerate(blocks, 1):
        last: dict[str, int] = {}
        for place, trial in enumerate(block, 1):
            if trial.speaker in last:
                distance = place - last[trial.speaker]
                least = min(least or distance, distance)
                if distance < needs.speaker_gap:
                    faults.append(
                        f"evaluator {number} meets speaker {trial.speaker} at {last[trial.speaker]} and {place}"
                    )
            last[trial.speaker] = place
    found = f"at least {least}" if least else "no speaker twice"
    return check_faults("speaker distance", f"a speaker at least {needs.speaker_gap} places apart", found, faults)


def _neighbours(needs: Requirements, blocks: Blocks) -> Check:
    beside = [
        f"evaluator {number} meets system {after.system} at {place} and {place + 1}"
        for number, block in enumerate(blocks, 1)
        for place, (before, after) in enumerate(pairwise(block), 1)
        if before.system and before.system == after.system
    ]
    rule = "a system never next to itself" if needs.systems_apart else "no rule for one system alone"
    return check_faults("neighbours", rule, f"{len(beside)} such places", beside if needs.systems_apart else [])


def _quarters(name: str, what: str, blocks: Blocks, group_of: Callable[[Candidate], str]) -> Check:
    rows = []
    for number, block in enumerate(blocks, 1):
        total = Counter(group_of(trial) for trial in block)
        for quarter in range(QUARTERS):
            part = block[quarter * len(block) // QUARTERS : (quarter + 1) * len(block) // QUARTERS]
            here = Counter(group_of(trial) for trial in part)
            rows += [
                (
                    f"evaluator {number}, quarter {quarter + 1}, {group}",
                    here[group],
                    Bounds.around(Fraction(count * len(part), len(block))),
                )
                for group, count in total.items()
                if group
            ]
    return check_counts(name, what, rows)


def _positions(request: DesignRequest, blocks: Blocks, extensions: int) -> Check:
    heard: dict[str, list[int]] = defaultdict(lambda: [0] * QUARTERS)
    for block in blocks:
        for quarter in range(QUARTERS):
            for trial in block[quarter * len(block) // QUARTERS : (quarter + 1) * len(block) // QUARTERS]:
                heard[trial.system][quarter] += 1
    rows = []
    for system in request.systems:
        for quarter, count in enumerate(heard[system]):
            places = (quarter + 1) * request.trials // QUARTERS - quarter * request.trials // QUARTERS
            bounds = position_bounds(sum(heard[system]), places, request.trials, extensions)
            rows.append((f"{system}, quarter {quarter + 1}", count, bounds))
    return check_counts("positions", "how often each system stands in each quarter over all evaluators", rows)


def _kind(trial: Candidate) -> str:
    return "anonymised" if trial.system else "original"


def _class(trial: Candidate) -> str:
    return {True: "target", False: "non-target", None: ""}[trial.is_target]
