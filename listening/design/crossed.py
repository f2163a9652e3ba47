"""Who hears which item in which condition, where a trial is one recording and every condition has every item.

Recordings are dealt in one endless row: item after item, each time in its next condition, so many for each evaluator.
So every stimulus is heard equally often, give or take one, whenever dealing stops, and a longer row begins like a
shorter one: blocks that are added later leave those before them as they are. An evaluator meets an item again only
after all others, and in another condition. Then each evaluator's trials get their places: each condition where it has
stood least so far, ties at random, and no item next to itself.

What the rules of other designs need is not known here: whose voice it is, of which sex, whether two are the same. The
certificate says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd

import numpy as np

from common.errors import ProblemsError
from listening.design.certificate import (
    Certificate,
    Check,
    check_counts,
    check_problems,
    list_neighbours,
    make_certificate,
)
from listening.design.places import bound_by_chance
from listening.design.requirements import Bounds

CROSSED_VERSION = "1"
NOT_ASKED = (
    "Every recording is heard alone and no voices are compared: there is no rule about targets and non-targets.",
    "Speakers and their sexes need not be known: there is no rule about them.",
)
_ORDERS = 20  # tried for a block
Heard = tuple[str, str]  # condition, item


@dataclass(frozen=True, slots=True)
class CrossedRequest:
    """What is asked for. `items`: those that every condition has."""

    evaluators: int
    trials: int
    conditions: tuple[str, ...]
    items: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class CrossedPlan:
    """For every evaluator the stimuli in the order of hearing."""

    version: str
    seed: int
    blocks: tuple[tuple[Heard, ...], ...]


def find_crossed_problems(request: CrossedRequest) -> list[str]:
    """Return what keeps a design from being made, as sentences."""
    stimuli = len(request.conditions) * len(request.items)
    if not stimuli:
        return ["There is no recording that every condition has. Upload recordings whose names are the same."]
    if request.evaluators < 1 or not 1 <= request.trials <= stimuli:
        return [
            f"Nobody hears a recording twice: {len(request.conditions)} conditions of {len(request.items)} recordings "
            f"give at most {stimuli} trials for each evaluator, found {request.trials}."
        ]
    return []


def plan_crossed(request: CrossedRequest) -> CrossedPlan:
    """Return who hears what, in which order; the same for the same request.

    Raises:
        ProblemsError: the numbers do not allow it.
    """
    if problems := find_crossed_problems(request):
        raise ProblemsError(problems)
    rng = np.random.default_rng(request.seed)
    row = _Row(
        [request.conditions[place] for place in rng.permutation(len(request.conditions))],
        [request.items[place] for place in rng.permutation(len(request.items))],
    )
    stood = np.zeros((request.trials, len(request.conditions)))
    blocks = []
    for block in range(request.evaluators):
        dealt = [row.deal(number) for number in range(block * request.trials, (block + 1) * request.trials)]
        order = _order(dealt, stood, request, np.random.default_rng([request.seed, block]))
        for place, (condition, _) in enumerate(order):
            stood[place, request.conditions.index(condition)] += 1
        blocks.append(tuple(order))
    return CrossedPlan(CROSSED_VERSION, request.seed, tuple(blocks))


@dataclass(frozen=True, slots=True)
class _Row:
    conditions: Sequence[str]
    items: Sequence[str]

    def deal(self, number: int) -> Heard:
        """Return what comes at a place of the row: in as many rounds as conditions, each item in each of them once."""
        kinds = len(self.conditions)
        turn, place = divmod(number, len(self.items))
        turn %= kinds
        # Conditions take turns; where rounds end with them, each round but one would be like the one before.
        shift = turn * len(self.items) + turn * gcd(kinds, len(self.items)) // kinds
        return self.conditions[(place + shift) % kinds], self.items[place]


def _order(dealt: Sequence[Heard], stood: np.ndarray, request: CrossedRequest, rng: np.random.Generator) -> list[Heard]:
    from scipy.optimize import linear_sum_assignment

    columns = [request.conditions.index(condition) for condition, _ in dealt]
    for _ in range(_ORDERS):
        cost = stood[:, columns] + rng.random((len(dealt), len(dealt)))
        order = [dealt[column] for column in linear_sum_assignment(cost)[1]]
        _part(order, rng)
        if not _touching(order):
            return order
    return _fill(dealt, stood, request, rng)


def _fill(dealt: Sequence[Heard], stood: np.ndarray, request: CrossedRequest, rng: np.random.Generator) -> list[Heard]:
    """Return an order place by place, which never leaves an item next to itself where that can be helped."""
    left, order = list(dealt), list[Heard]()
    while left:
        said = Counter(item for _, item in left)
        [(commonest, most)] = said.most_common(1)
        fits = [one for one in left if not order or one[1] != order[-1][1]] or left
        if 2 * most > len(left):
            fits = [one for one in fits if one[1] == commonest] or fits
        place = len(order)
        chosen = min(fits, key=lambda one: stood[place, request.conditions.index(one[0])] + rng.random())
        left.remove(chosen)
        order.append(chosen)
    return order


def _touching(order: Sequence[Heard]) -> int:
    return sum(before[1] == after[1] for before, after in pairwise(order))


def _part(order: list[Heard], rng: np.random.Generator) -> None:
    """Exchange trials of one condition until no item stands next to itself, as far as that goes."""
    for place in range(1, len(order)):
        if order[place][1] != order[place - 1][1]:
            continue
        now = _touching(order)
        others = [at for at, one in enumerate(order) if one[0] == order[place][0] and at != place]
        for at in rng.permutation(others).tolist():
            order[place], order[at] = order[at], order[place]
            if _touching(order) < now:
                break
            order[place], order[at] = order[at], order[place]


# The certificate -----------------------------------------------------------------------------------


def certify_crossed(request: CrossedRequest, plan: CrossedPlan) -> Certificate:
    """Check a design on the request and the blocks alone; never raises."""
    problems = find_crossed_problems(request)
    numbers = {
        "evaluators": request.evaluators,
        "trials": request.trials,
        "conditions": len(request.conditions),
        "items": len(request.items),
    }
    found = f"{len(request.conditions)} conditions of {len(request.items)} recordings"
    checks = [check_problems("request", "numbers that can be", found, problems), *_form(request, plan)]
    if not problems:
        checks += [_evenness(request, plan), *_sessions(request, plan), _apart(request, plan), _places(request, plan)]
    return make_certificate(request, plan, numbers, NOT_ASKED, checks)


def _form(request: CrossedRequest, plan: CrossedPlan) -> Iterable[Check]:
    known = {(condition, item) for condition in request.conditions for item in request.items}
    blocks = list(enumerate(plan.blocks, 1))
    found = f"{len(blocks)} blocks"
    problems = [found] if len(blocks) != request.evaluators else []
    problems += [f"evaluator {n} has {len(block)} trials" for n, block in blocks if len(block) != request.trials]
    problems += [
        f"evaluator {n} meets {_name(one)}, which is not asked for"
        for n, block in blocks
        for one in block
        if one not in known
    ]
    each = f"{request.evaluators} blocks of {request.trials} trials each, all of them known"
    yield check_problems("blocks", each, found, problems)
    twice = [
        f"evaluator {n} hears {_name(one)} {count} times"
        for n, block in blocks
        for one, count in Counter(block).items()
        if count > 1
    ]
    yield check_problems("recording once", "no recording twice in a session", f"{len(blocks)} sessions", twice)


def _evenness(request: CrossedRequest, plan: CrossedPlan) -> Check:
    heard = Counter(one for block in plan.blocks for one in block)
    stimuli = [(condition, item) for condition in request.conditions for item in request.items]
    bounds = Bounds.around(Fraction(request.evaluators * request.trials, len(stimuli)))
    rows = [(_name(one), heard[one], bounds) for one in stimuli]
    return check_counts("evenness", "how often each recording is heard over all evaluators", rows)


def _sessions(request: CrossedRequest, plan: CrossedPlan) -> Iterable[Check]:
    of_item = Bounds.around(Fraction(request.trials, len(request.items)))
    share = Bounds.around(Fraction(request.trials, len(request.conditions)))
    # Where the row of conditions begins anew in a session, it may give one of them once more.
    more = -(-request.trials // len(request.items)) if len(request.conditions) > 1 else 0
    of_condition = Bounds(max(0, share.lowest - more), share.highest + more)
    items, conditions = [], []
    for number, block in enumerate(plan.blocks, 1):
        said = Counter(item for _, item in block)
        by = Counter(condition for condition, _ in block)
        items += [(f"evaluator {number}, {item}", said[item], of_item) for item in request.items]
        conditions += [
            (f"evaluator {number}, {condition or 'original'}", by[condition], of_condition)
            for condition in request.conditions
        ]
    yield check_counts("items", "in how many conditions a session has each item", items)
    yield check_counts("conditions", "trials of each condition in each session", conditions)


def _apart(request: CrossedRequest, plan: CrossedPlan) -> Check:
    beside = list_neighbours([[item for _, item in block] for block in plan.blocks], " meets {}")
    rule = "an item never next to itself" if len(request.items) > 1 else "no rule for one item alone"
    return check_problems("neighbours", rule, f"{len(beside)} such places", beside if len(request.items) > 1 else [])


def _places(request: CrossedRequest, plan: CrossedPlan) -> Check:
    bounds = bound_by_chance(len(plan.blocks), 1 / len(request.conditions))
    rows = [
        (f"place {place + 1}, {condition or 'original'}", count, bounds)
        for place in range(request.trials)
        for here in [Counter(block[place][0] for block in plan.blocks if place < len(block))]
        for condition in request.conditions
        for count in [here[condition]]
    ]
    return check_counts("places", "how often each condition stands at each place over all evaluators", rows)


def _name(one: Heard) -> str:
    return f"{one[1]} in {one[0] or 'the original'}"
