"""How often each candidate is rated: as evenly as whole numbers allow, and so that sessions can be made of the ratings.

Inside a system counts differ by at most 1 and the totals of the systems differ by at most 1. Which candidates get the
one rating more is a choice: it is made evenly over classes, sexes, speakers and utterances, then repaired until the
blocks together have room for every group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from listening.design.division import choose
from listening.design.groups import CANDIDATE, CLASS, ENROLMENT, SEX, SOURCE, SPEAKER, SYSTEM, Groups, Integers, excess
from listening.design.plan import DesignRequest

_STEPS = 1500
_COUNTED = [CLASS, SEX, SPEAKER, SOURCE, ENROLMENT, CANDIDATE]


def deal_ratings(
    request: DesignRequest, groups: Groups, blocks: int, already: Integers, random: np.random.Generator
) -> Integers | str:
    """Ratings of each candidate in `blocks` new sessions, shape (candidates,), or what was in the way of a choice.

    Args:
        already: shape (candidates,), ratings in earlier blocks.
    """
    system = groups.member[:, SYSTEM]
    is_original = np.array([candidate.is_original for candidate in request.candidates], dtype=np.bool_)
    fixed = np.zeros(system.size, dtype=np.int64)
    shares = np.zeros(system.size)
    for members, ratings in _totals(system, is_original, request, blocks, already, random):
        level = (int(already[members].sum()) + ratings) // members.size
        fixed[members] = np.maximum(level - already[members], 0)
        more = ratings - int(fixed[members].sum())
        open_to_more = members[already[members] == level]  # who gets nothing so far comes first
        if open_to_more.size < more:
            open_to_more = members[already[members] <= level]
        shares[open_to_more] = more / max(1, open_to_more.size)
    has_more = np.zeros(system.size, dtype=np.bool_)
    for half in (is_original, ~is_original):
        if half.any():
            has_more[half] = _more_of(groups.member[half], shares[half], random, is_original=bool(is_original[half][0]))
    return _repaired(groups, fixed, has_more, shares > 0, blocks, random)


def _totals(
    system: Integers,
    is_original: NDArray[np.bool_],
    request: DesignRequest,
    blocks: int,
    already: Integers,
    random: np.random.Generator,
) -> list[tuple[Integers, int]]:
    """The candidates of each system with the ratings that they get; the least rated system gets the next one."""
    found = []
    for half, ratings in ((is_original, request.originals), (~is_original, request.anonymised)):
        names = random.permutation(np.unique(system[half]))
        before = np.array([already[system == name].sum() for name in names], dtype=np.int64)
        for name, count in zip(names, _levelled(before, blocks * ratings), strict=True):
            found.append((np.flatnonzero(system == name), int(count)))
    return found


def _levelled(before: Integers, ratings: int) -> Integers:
    """What each system gets, so that in the end all have the same number, or some one more."""
    after = before.copy()
    order = np.argsort(before, kind="stable")
    for rank in range(1, before.size + 1):
        level, more = divmod(int(before[order[:rank]].sum()) + ratings, rank)
        if rank == before.size or level + (more > 0) <= before[order[rank]]:
            after[order[:rank]] = level
            after[order[rank - more : rank]] += 1  # the fullest, so that nobody gets two more than another
            break
    return after - before


def _more_of(
    member: Integers, shares: NDArray[np.float64], random: np.random.Generator, *, is_original: bool
) -> NDArray[np.bool_]:
    left = [CLASS, ENROLMENT] if is_original else [SYSTEM, CLASS]
    return choose([member[:, k] for k in left], [member[:, k] for k in (SEX, SPEAKER, SOURCE)], shares, random)


def _repaired(
    groups: Groups,
    fixed: Integers,
    more: NDArray[np.bool_],
    is_open: NDArray[np.bool_],
    blocks: int,
    random: np.random.Generator,
) -> Integers | str:
    """Exchange a candidate with one rating more for one without, inside a system, until every group fits."""
    member = groups.member[:, _COUNTED]
    lowest, highest = groups.lowest * blocks, groups.highest * blocks
    counts = np.zeros(lowest.size, dtype=np.int64)
    np.add.at(counts, member, (fixed + more)[:, None])
    cost = excess(counts, lowest, highest)
    cost[~np.isin(np.arange(cost.size), member)] = 0
    more = more.copy()
    for _ in range(_STEPS):
        if not cost.any():
            return fixed + more
        given = np.flatnonzero(more)
        if not given.size:
            break
        over = counts[member[given]] > highest[member[given]]
        worst = given[over.any(axis=1)]
        out = random.choice(worst if worst.size and random.random() < 0.9 else given)
        others = np.flatnonzero(~more & is_open & (groups.member[:, SYSTEM] == groups.member[out, SYSTEM]))
        if not others.size:
            continue
        differs = member[others] != member[out]
        up = excess(counts[member[others]] + 1, lowest[member[others]], highest[member[others]]) - cost[member[others]]
        down = excess(counts[member[out]] - 1, lowest[member[out]], highest[member[out]]) - cost[member[out]]
        change = ((up + down) * differs).sum(axis=1)
        least = change.min()
        if least > 0 and random.random() > 0.1:
            continue
        into = random.choice(others[change == least])
        more[out], more[into] = False, True
        counts[member[out]] -= 1
        counts[member[into]] += 1
        touched = np.concatenate([member[out], member[into]])
        cost[touched] = excess(counts[touched], lowest[touched], highest[touched])
    at_fault = int(cost.argmax())
    room = f"{lowest[at_fault]} to {highest[at_fault]}" if lowest[at_fault] else f"at most {highest[at_fault]}"
    return f"{groups.names[at_fault]} would be met {counts[at_fault]} times in {blocks} sessions, expected {room}"
