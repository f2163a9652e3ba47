"""Who hears which item in which conditions, where every condition has every item: recordings of one's own, or systems.

A *version* is what a trial plays of an item: one condition (screens `single` and `reference`), two of them (`pair`,
`triple`) or all (`many`). Items are dealt in one endless row: item after item, each time in its next version, so many
for each evaluator. So every item is heard in every version equally often, give or take one, whenever dealing stops, and
a longer row begins like a shorter one: blocks that are added later leave those before them as they are. An evaluator
meets an item again only after all others, and in another version.

Then each evaluator's trials get their places: each version where it has stood least so far, ties at random, and no item
next to itself. Finally each trial gets the order that its conditions had least often so far: which of two is A, and in
a triple which is X; which number each of all has. The trials of a session get their orders one after another at random,
so that the last one does not follow from those before.

What the rules of other designs need is not known here: whose voice it is, of which sex, whether two are the same. The
certificate says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import gcd
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from common.errors import ProblemsError
from listening.design.certificate import (
    Certificate,
    Check,
    check_counts,
    check_problems,
    list_neighbours,
    list_repeats,
    make_certificate,
)
from listening.design.places import bound_by_chance
from listening.design.requirements import Bounds, PoolUtterance
from listening.questions import COMPARING, MOST_AT_ONCE, NEEDS_REFERENCE, PAIRED, REFERENCE, Screen, list_slots

CROSSED_VERSION = "2"
_NO_SPEAKERS = "Speakers and their sexes need not be known: there is no rule about them."
_ORDERS = 20  # tried for a block
_ITEMS = (0, 1)  # after the seed: other draws than those of the blocks
Version = tuple[str, ...]  # conditions, in the order of the request
PlannedTrial = tuple[tuple[str, ...], str]  # conditions in the order of slots, without the reference; and the item
_Dealt = tuple[Version, str]  # version, item
Blocks = Sequence[Sequence[_Dealt]]


class _Words(NamedTuple):
    """Says what is heard, what a trial plays, which version that is, and how many of these there are."""

    heard: str
    played: str
    version: str
    versions: str


_SINGLE = _Words("Every recording is heard alone and no voices are compared", "recording", "condition", "{} conditions")
_TWO = _Words(
    "Two conditions of one recording are compared, and no voices",
    *("pair of recordings", "pair of conditions", "{} pairs of conditions"),
)
_WORDS = {
    Screen.SINGLE: _SINGLE,
    Screen.REFERENCE: _SINGLE._replace(
        heard="Every recording is compared with its own reference and with no other voice"
    ),
    Screen.PAIR: _TWO,
    Screen.TRIPLE: _TWO,
    Screen.MANY: _Words(
        "All conditions of one recording are compared, and no voices", "item", "set of conditions", "all conditions"
    ),
}


@dataclass(frozen=True, slots=True)
class CrossedRequest:
    """What is asked for.

    Attributes:
        conditions: the original is the empty text.
        items: those that every condition has.
        has_items_once: whether nobody hears an item twice, not even in another version.
        against: the condition with which alone each other one is compared; None for each with each other.
        original: what the original is called.
    """

    evaluators: int
    trials: int
    conditions: tuple[str, ...]
    items: tuple[str, ...]
    seed: int
    screen: Screen = Screen.SINGLE
    has_items_once: bool = False
    against: str | None = None
    original: str = "the original"

    @property
    def versions(self) -> tuple[Version, ...]:
        return list_versions(self.screen, self.conditions, self.against)

    @property
    def different_trials(self) -> int:
        """Return how many trials there are: each item in each version."""
        return len(self.versions) * len(self.items)

    @property
    def most_trials(self) -> int:
        """Return how many of them one evaluator can hear."""
        return len(self.items) if self.has_items_once else self.different_trials

    def join(self, conditions: Iterable[str]) -> str:
        """Return conditions by their names."""
        return " and ".join(one or self.original for one in conditions)

    def name(self, trial: PlannedTrial) -> str:
        """Return what a trial plays."""
        return f"{trial[1]} in {self.join(trial[0])}"


@dataclass(frozen=True, slots=True)
class CrossedPlan:
    """For every evaluator the trials in the order of hearing."""

    version: str
    seed: int
    blocks: tuple[tuple[PlannedTrial, ...], ...]


def list_versions(screen: Screen, conditions: Sequence[str], against: str | None = None) -> tuple[Version, ...]:
    """Return the sets of conditions in which an item is heard on a screen; of pairs those with one condition alone."""
    if screen == Screen.MANY:
        return (tuple(conditions),) if conditions else ()
    versions = combinations(conditions, 2 if screen in PAIRED else 1)
    return tuple(version for version in versions if against is None or against in version)


def list_orders(screen: Screen, version: Version) -> tuple[tuple[str, ...], ...]:
    """Return the orders in which a version can be heard, but of `MANY`, of which there are too many."""
    if screen == Screen.PAIR:
        return version, version[::-1]
    if screen == Screen.TRIPLE:
        return tuple((x, *sides) for sides in (version, version[::-1]) for x in version)
    return (version,)


def draw_of_each_text(utterances: Iterable[PoolUtterance], texts: Mapping[str, str], seed: int) -> list[PoolUtterance]:
    """Return one utterance of each text, by lot and as evenly over sexes and speakers as they are there.

    Args:
        texts: what is said by name of the utterance, written alike where the words are alike; those without words are
            left out.
    """
    pool = list(utterances)
    chosen: dict[str, str] = {}
    for one in _shuffle_evenly(pool, seed):
        if text := texts[one.key].strip():
            chosen.setdefault(text, one.key)
    kept = set(chosen.values())
    return [one for one in pool if one.key in kept]


def draw_items(utterances: Iterable[PoolUtterance], most: int | None, seed: int) -> tuple[str, ...]:
    """Return the names of at most so many utterances, by lot and as evenly over sexes and speakers as they are there.

    Args:
        most: None for all of them.
    """
    pool = list(utterances)
    if most is None or most >= len(pool):
        return tuple(one.key for one in pool)
    chosen = {one.key for one in _shuffle_evenly(pool, seed)[:most]}
    return tuple(one.key for one in pool if one.key in chosen)


def _shuffle_evenly(pool: Sequence[PoolUtterance], seed: int) -> list[PoolUtterance]:
    """Return utterances in random order, in which speakers and then sexes take turns."""
    drawn = [pool[place] for place in np.random.default_rng([seed, *_ITEMS]).permutation(len(pool))]
    for group in (attrgetter("speaker"), attrgetter("sex")):
        drawn = _take_turns(drawn, group)
    return drawn


def _take_turns(utterances: Sequence[PoolUtterance], group: Callable[[PoolUtterance], str]) -> list[PoolUtterance]:
    """Return the first one of every group, then the second of every group, and so on."""
    seen: Counter[str] = Counter()
    turns = []
    for one in utterances:
        turns.append(seen[group(one)])
        seen[group(one)] += 1
    return [utterances[place] for place in np.argsort(turns, kind="stable")]


def find_crossed_problems(request: CrossedRequest) -> list[str]:
    """Return what keeps a design from being made, as sentences."""
    conditions, items, words = len(request.conditions), len(request.items), _WORDS[request.screen]
    if not conditions or not items:
        sentence = "There is no recording that every condition has"
        if request.has_items_once:
            return [f"{sentence} and whose words are known. Add transcripts, or choose other conditions."]
        return [f"{sentence}. Choose conditions with recordings of the same names."]
    problems = []
    if request.screen in NEEDS_REFERENCE and "" not in request.conditions:
        problems.append("Every trial plays a reference, and no condition is the original. Say which one it is.")
    if request.screen in COMPARING and conditions < 2:
        problems.append(f"Conditions are compared with each other: expected at least 2, found {conditions}.")
    against = request.against or request.original
    if request.against is not None and request.screen not in PAIRED:
        problems.append(f"Only AB, CCR and ABX compare with one condition alone: leave out {against}.")
    elif request.against is not None and request.against not in request.conditions:
        named = ", ".join(one or request.original for one in request.conditions)
        problems.append(f"Every condition is compared with one alone: expected one of {named}, found {against}.")
    if request.screen == Screen.MANY and conditions > MOST_AT_ONCE:
        problems.append(
            f"All conditions are heard at once: expected at most {MOST_AT_ONCE}, found {conditions}. Leave some out."
        )
    if not problems and (request.evaluators < 1 or not 1 <= request.trials <= request.most_trials):
        problems.append(
            f"No evaluator hears the same {'item' if request.has_items_once else words.played} twice: "
            f"{words.versions.format(len(request.versions))} of {items} recordings give "
            f"at most {request.most_trials} trials for each evaluator, found {request.trials}."
        )
    return problems


def plan_crossed(request: CrossedRequest) -> CrossedPlan:
    """Return who hears what, in which order; the same for the same request.

    Raises:
        ProblemsError: the numbers do not allow it.
    """
    if problems := find_crossed_problems(request):
        raise ProblemsError(problems)
    versions = request.versions
    rng = np.random.default_rng(request.seed)
    row = _Row(
        [versions[place] for place in rng.permutation(len(versions))],
        [request.items[place] for place in rng.permutation(len(request.items))],
    )
    place_counts = _PlaceCounts(versions, request.trials)
    orders = _Orders(request)
    blocks = []
    for block in range(request.evaluators):
        dealt = [row.deal(number) for number in range(block * request.trials, (block + 1) * request.trials)]
        rng = np.random.default_rng([request.seed, block])
        placed = _place(dealt, place_counts, rng)
        place_counts.add(placed)
        blocks.append(tuple(orders.choose(placed, rng)))
    return CrossedPlan(CROSSED_VERSION, request.seed, tuple(blocks))


@dataclass(frozen=True, slots=True)
class _Row:
    versions: Sequence[Version]
    items: Sequence[str]

    def deal(self, number: int) -> _Dealt:
        """Return what comes at a place of the row: in as many rounds as versions, each item in each of them once."""
        kinds = len(self.versions)
        turn, place = divmod(number, len(self.items))
        turn %= kinds
        # Versions take turns; where rounds end with them, each round but one would be like the one before.
        shift = turn * len(self.items) + turn * gcd(kinds, len(self.items)) // kinds
        return self.versions[(place + shift) % kinds], self.items[place]


class _PlaceCounts:
    """How often each version has been at each place so far."""

    def __init__(self, versions: Sequence[Version], trials: int) -> None:
        self.columns = {version: column for column, version in enumerate(versions)}
        self.counts = np.zeros((trials, len(versions)))

    def add(self, placed: Sequence[_Dealt]) -> None:
        for place, (version, _) in enumerate(placed):
            self.counts[place, self.columns[version]] += 1

    def of(self, dealt: Sequence[_Dealt]) -> np.ndarray:
        """Return the counts of these trials, shape (places, trials)."""
        return self.counts[:, [self.columns[version] for version, _ in dealt]]


def _place(dealt: Sequence[_Dealt], place_counts: _PlaceCounts, rng: np.random.Generator) -> list[_Dealt]:
    from scipy.optimize import linear_sum_assignment

    counts = place_counts.of(dealt)
    for _ in range(_ORDERS):
        placed = [dealt[column] for column in linear_sum_assignment(counts + rng.random(counts.shape))[1]]
        _part(placed, rng)
        if not _touching(placed):
            return placed
    return _fill(dealt, place_counts, rng)


def _fill(dealt: Sequence[_Dealt], place_counts: _PlaceCounts, rng: np.random.Generator) -> list[_Dealt]:
    """Return trials place by place, which never leaves an item next to itself where that can be helped."""
    left, placed = list(dealt), list[_Dealt]()
    while left:
        said = Counter(item for _, item in left)
        [(commonest, most)] = said.most_common(1)
        fits = [one for one in left if not placed or one[1] != placed[-1][1]] or left
        if 2 * most > len(left):
            fits = [one for one in fits if one[1] == commonest] or fits
        costs = place_counts.of(fits)[len(placed)] + rng.random(len(fits))
        chosen = fits[int(costs.argmin())]
        left.remove(chosen)
        placed.append(chosen)
    return placed


def _touching(placed: Sequence[_Dealt]) -> int:
    return sum(before[1] == after[1] for before, after in pairwise(placed))


def _part(placed: list[_Dealt], rng: np.random.Generator) -> None:
    """Exchange trials of one version until no item stands next to itself, as far as that goes."""
    for place in range(1, len(placed)):
        if placed[place][1] != placed[place - 1][1]:
            continue
        now = _touching(placed)
        others = [at for at, one in enumerate(placed) if one[0] == placed[place][0] and at != place]
        for at in rng.permutation(others).tolist():
            placed[place], placed[at] = placed[at], placed[place]
            if _touching(placed) < now:
                break
            placed[place], placed[at] = placed[at], placed[place]


class _Orders:
    """The orders that versions had so far."""

    def __init__(self, request: CrossedRequest) -> None:
        self.request = request
        self.used: Counter[tuple[str, ...]] = Counter()
        self.numbered = np.zeros((len(request.conditions), len(request.conditions)))  # slots, conditions

    def choose(self, placed: Sequence[_Dealt], rng: np.random.Generator) -> list[PlannedTrial]:
        """Return the trials of a session with their conditions in the order of slots."""
        if self.request.screen == Screen.MANY:
            return [(self._number(rng), item) for _, item in placed]
        if self.request.screen not in PAIRED:
            return list(placed)
        trials = list[PlannedTrial](placed)
        a_minus_b: Counter[str] = Counter()  # of this session: how much more often a condition was A than B
        is_a: Counter[bool] = Counter()  # and whether A is X
        for place in rng.permutation(len(placed)).tolist():
            version, item = placed[place]
            chosen = min(
                list_orders(self.request.screen, version),
                key=lambda order: (
                    self.used[order],
                    is_a[order[0] == order[-2]],
                    a_minus_b[order[-2]] - a_minus_b[order[-1]],
                    rng.random(),
                ),
            )
            self.used[chosen] += 1
            is_a[chosen[0] == chosen[-2]] += 1
            a_minus_b[chosen[-2]] += 1
            a_minus_b[chosen[-1]] -= 1
            trials[place] = chosen, item
        return trials

    def _number(self, rng: np.random.Generator) -> tuple[str, ...]:
        from scipy.optimize import linear_sum_assignment

        size = len(self.request.conditions)
        # What chance adds never outweighs a count. Rows and columns have equal sums, so that a matching of the lowest
        # counts alone exists (Hall): they never differ by more than one.
        slots, columns = linear_sum_assignment(size * self.numbered + rng.random((size, size)))
        self.numbered[slots, columns] += 1
        return tuple(self.request.conditions[column] for column in columns)


# The certificate -----------------------------------------------------------------------------------


def certify_crossed(request: CrossedRequest, plan: CrossedPlan) -> Certificate:
    """Check a design on the request and the blocks alone; never raises."""
    problems = find_crossed_problems(request)
    conditions, items = len(request.conditions), len(request.items)
    numbers = {"evaluators": request.evaluators, "trials": request.trials, "conditions": conditions, "items": items}
    found = f"{conditions} conditions of {items} recordings"
    asked = _AskedTrials(request)
    checks = [check_problems("request", "numbers that can be", found, problems), *_form(asked, plan)]
    if not problems:
        blocks = [asked.read(block) for block in plan.blocks]
        checks += [_evenness(request, blocks), *_sessions(request, blocks), _apart(request, plan)]
        checks += [*_places(request, blocks), *_orders(request, plan)]
    not_asked = f"{_WORDS[request.screen].heard}: there is no rule about targets and non-targets.", _NO_SPEAKERS
    return make_certificate(request, plan, numbers, not_asked, checks)


class _AskedTrials:
    """The trials that a request allows."""

    def __init__(self, request: CrossedRequest) -> None:
        self.request = request
        self.items, self.versions = set(request.items), set(request.versions)
        self.slots = [slot for slot in list_slots(request.screen, len(request.conditions)) if slot != REFERENCE]

    def read(self, block: Iterable[PlannedTrial]) -> list[_Dealt]:
        """Return what a session plays, without what was not asked for."""
        found = [(self._find_version(conditions), item) for conditions, item in block]
        return [(version, item) for version, item in found if version and item in self.items]

    def _find_version(self, conditions: tuple[str, ...]) -> Version | None:
        """Return the version that is heard in these slots; None where it is none that was asked for."""
        version = tuple(one for one in self.request.conditions if one in conditions)
        is_known = len(conditions) == len(self.slots) and set(conditions) == set(version) and version in self.versions
        if self.request.screen == Screen.TRIPLE:
            is_known = is_known and conditions[1] != conditions[2]
        return version if is_known else None


def _form(asked: _AskedTrials, plan: CrossedPlan) -> Iterable[Check]:
    request, played = asked.request, _WORDS[asked.request.screen].played
    blocks = list(enumerate(plan.blocks, 1))
    found = f"{len(blocks)} blocks"
    problems = [found] if len(blocks) != request.evaluators else []
    problems += [f"evaluator {n} has {len(block)} trials" for n, block in blocks if len(block) != request.trials]
    problems += [
        f"evaluator {n} meets {request.name(one)}, which is not asked for"
        for n, block in blocks
        for one in block
        if not asked.read([one])
    ]
    each = f"{request.evaluators} blocks of {request.trials} trials each, all of them known"
    each += "" if request.against is None else f" and with {request.join([request.against])}"
    yield check_problems("blocks", each, found, problems)
    twice = list_repeats([list(map(request.name, asked.read(block))) for _, block in blocks], "hears {}")
    yield check_problems(f"{played} once", f"no {played} twice in a session", f"{len(blocks)} sessions", twice)


def _evenness(request: CrossedRequest, blocks: Blocks) -> Check:
    heard = Counter(one for block in blocks for one in block)
    asked = [(version, item) for version in request.versions for item in request.items]
    bounds = Bounds.around(Fraction(request.evaluators * request.trials, len(asked)))
    rows = [(request.name(one), heard[one], bounds) for one in asked]
    what = f"how often each {_WORDS[request.screen].played} is heard over all evaluators"
    return check_counts("evenness", what, rows)


def _sessions(request: CrossedRequest, blocks: Blocks) -> Iterable[Check]:
    of_item = Bounds.around(Fraction(request.trials, len(request.items)))
    share = Bounds.around(Fraction(request.trials, len(request.versions)))
    # Where the row of versions begins anew in a session, it may give one of them once more.
    more = -(-request.trials // len(request.items)) if len(request.versions) > 1 else 0
    of_version = Bounds(max(0, share.lowest - more), share.highest + more)
    items, versions = [], []
    for number, block in enumerate(blocks, 1):
        said = Counter(item for _, item in block)
        by = Counter(version for version, _ in block)
        items += [(f"evaluator {number}, {item}", said[item], of_item) for item in request.items]
        versions += [(f"evaluator {number}, {request.join(one)}", by[one], of_version) for one in request.versions]
    yield check_counts("items", "how often a session has each item", items)
    if request.screen != Screen.MANY:
        what = f"trials of each {_WORDS[request.screen].version} in each session"
        yield check_counts("conditions", what, versions)


def _apart(request: CrossedRequest, plan: CrossedPlan) -> Check:
    beside = list_neighbours([[item for _, item in block] for block in plan.blocks], " meets {}")
    rule = "an item never next to itself" if len(request.items) > 1 else "no rule for one item alone"
    return check_problems("neighbours", rule, f"{len(beside)} such places", beside if len(request.items) > 1 else [])


def _places(request: CrossedRequest, blocks: Blocks) -> Iterable[Check]:
    if request.screen == Screen.MANY:  # where every place has all conditions
        return
    bounds = bound_by_chance(len(blocks), 1 / len(request.versions))
    rows = [
        (f"place {place + 1}, {request.join(version)}", here[version], bounds)
        for place in range(request.trials)
        for here in [Counter(block[place][0] for block in blocks if place < len(block))]
        for version in request.versions
    ]
    what = f"how often each {_WORDS[request.screen].version} stands at each place over all evaluators"
    yield check_counts("places", what, rows)


def _orders(request: CrossedRequest, plan: CrossedPlan) -> Iterable[Check]:
    """Yield whether sides, X and numbers tell nothing of the conditions."""
    heard = [conditions for block in plan.blocks for conditions, _ in block]
    if request.screen == Screen.MANY:
        size = len(request.conditions)
        counts = Counter((number, one) for conditions in heard for number, one in enumerate(conditions, 1))
        bounds = Bounds.around(Fraction(len(heard), size))
        rows = [
            (f"{request.join([one])} as {number}", counts[number, one], bounds)
            for one in request.conditions
            for number in range(1, size + 1)
        ]
        yield check_counts("numbers", "how often each condition has each number over all evaluators", rows)
    if request.screen not in PAIRED:
        return
    used, rows = Counter(heard), []
    slots = list_slots(request.screen)
    for version in request.versions:
        orders = list_orders(request.screen, version)
        bounds = Bounds.around(Fraction(sum(used[order] for order in orders), len(orders)))
        for order in orders:
            words = ", ".join(f"{slot.upper()} {request.join([one])}" for slot, one in zip(slots, order, strict=True))
            rows.append((words, used[order], bounds))
    if request.screen == Screen.PAIR:
        yield check_counts(
            "sides", "how often each condition of a pair is A, and how often B, over all evaluators", rows
        )
        return
    what = "how often each pair of conditions is heard in each order of X, A and B over all evaluators"
    yield check_counts("sides", what, rows)
    bounds = bound_by_chance(request.trials, 1 / 2)
    rows = [
        (f"evaluator {number}", sum(conditions[0] == conditions[1] for conditions, _ in block), bounds)
        for number, block in enumerate(plan.blocks, 1)
    ]
    yield check_counts("right answers", "in how many trials of a session A is X", rows)
