"""The whole design of a request: which trials every evaluator meets, and in which order.

**A design** (`allocate`) is made of a request that was checked: the trials are dealt and ordered (`ordering`).
Everything is drawn from the request's seed, so the same request gives the same design.
`listening.design.certificate` checks it on its own. `extend` adds blocks to a design: what was rated least comes first,
so that all blocks together stay balanced.

**How often each candidate is rated** comes first: as evenly as whole numbers allow, and so that sessions can be made of
the ratings. Inside a system counts differ by at most 1 and the totals of the systems differ by at most 1. Which
candidates get the one rating more is a choice: it is made evenly over classes, sexes, speakers and utterances, then
repaired until the blocks together have room for every group.

**Sessions** (`fill_blocks`) are dealt evenly by flow, then repaired by swaps. The constraints on one session are groups
of candidates (`Groups`), each with a lowest and a highest number of trials; what is over or under is its *excess*,
which dealing and swapping bring to zero. The flow meets every bound of systems, sexes, speakers and utterances of a
half exactly, and those of classes except where an odd number of trials of a system comes to an evaluator; swaps bring
these right, and utterances across halves.

**Swaps** (`swap_until_right`): two sessions exchange a trial of the same half until no session is outside of any of its
bounds. A step takes a session that is, a trial of it that has a share in that, and the best of some random exchanges,
every other time with sessions that are outside, too. One that makes nothing worse is always done, a worse one seldom,
so that the search leaves dead ends.

**Flows** (`choose`, `divide`) divide items that belong to two nested families of groups at once. `choose` takes items
such that every group, in both families, gives the floor or the ceil of what its items' shares sum to; `divide` deals
items to parts such that every part gets the floor or the ceil of its share of every group. Both are always possible:
the groups of two nested families are the arcs of a network whose flow of all the shares is feasible, and a network with
whole bounds that has a feasible flow has a whole one.

Conventions: a family is a sequence of integer arrays of shape (items,), from the coarsest level to the finest; a group
is all items that are equal in a level and in those before it.

Source of the flows: de Werra, "Balanced schedules", INFOR 1971.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from common.arrays import Flags, Floats, Ints
from common.errors import ProblemsError
from listening.design.ordering import order_blocks
from listening.design.requirements import (
    VERSION,
    Bounds,
    Design,
    DesignRequest,
    DesignRequirements,
    Extension,
    Half,
    Progress,
    compute_requirements,
    validate_request,
)

SYSTEM, CLASS, SYSTEM_CLASS, SEX, SPEAKER, SOURCE, ENROLMENT, CANDIDATE = range(8)
FAMILIES = 8


@dataclass(frozen=True, eq=False)
class Groups:
    """Attributes:
    member: shape (candidates, families), number of the group that a candidate belongs to in each family.
    lowest, highest: shape (groups,), bounds of one session.
    names: what each group is, in words.
    """

    member: Ints
    lowest: Ints
    highest: Ints
    names: Sequence[str]


def make_groups(request: DesignRequest, needs: DesignRequirements) -> Groups:
    """Return every constraint of `needs` that binds a session, whatever its order."""
    numbers: dict[str, int] = {}
    bounds: list[Bounds] = []

    def number(name: str, bound: Bounds) -> int:
        if name not in numbers:
            numbers[name] = len(bounds)
            bounds.append(bound)
        return numbers[name]

    any_number = Bounds(0, request.trials)
    words = {True: "target", False: "non-target", "f": "female", "m": "male"}
    rows = []
    for candidate in request.candidates:
        original = candidate.is_original
        half: Half = needs.originals if original else needs.anonymised
        kind = "originals" if original else "anonymised trials"
        both = needs.system_classes.get((candidate.system, candidate.is_target), any_number)
        rows.append(
            [
                number(f"system {candidate.system}", any_number if original else needs.system),
                number(f"{words[candidate.is_target]} {kind}", half.classes[candidate.is_target]),
                number(f"{words[candidate.is_target]} trials of {candidate.system or 'the originals'}", both),
                number(f"{words[candidate.sex]} {kind}", half.sexes[candidate.sex]),
                number(f"{kind} of speaker {candidate.speaker}", Bounds(0, half.speakers[candidate.speaker])),
                number(f"trial utterance {candidate.source}", Bounds(0, needs.source)),
                number(f"enrolment utterance {candidate.enrolment}", Bounds(0, needs.enrolment)),
                number(f"trial {candidate.key}", Bounds(0, 1)),
            ]
        )
    return Groups(
        np.array(rows, dtype=np.int64).reshape(-1, FAMILIES),
        np.array([bound.lowest for bound in bounds], dtype=np.int64),
        np.array([bound.highest for bound in bounds], dtype=np.int64),
        list(numbers),
    )


def count_excess(counts: Ints, lowest: Ints, highest: Ints) -> Ints:
    """Return how far each count is outside of its bounds; shapes that broadcast."""
    return np.asarray(np.maximum(counts - highest, 0) + np.maximum(lowest - counts, 0), dtype=np.int64)


Family = Sequence[Ints]
_ROUNDING = 1e-6  # far above the error of a sum of shares, far below the smallest part of one


def divide(left: Family, right: Family, parts: int, random: np.random.Generator) -> Ints:
    """Divide the items: the part of each, 0 to parts - 1, in equal shares.

    Args:
        left, right: the two families; the items as a whole are a group of both.
        parts: how many; at least 1.
        random: decides among all even divisions.
    """
    size = left[0].size
    left, right = _nested(left), _nested(right)
    found = np.zeros(size, dtype=np.int64)
    waiting = [(np.arange(size), 0, parts)]
    while waiting:
        items, first, count = waiting.pop()
        if count == 1:
            found[items] = first
            continue
        near = count // 2
        taken = choose(
            [level[items] for level in left],
            [level[items] for level in right],
            np.full(items.size, near / count),
            random,
        )
        waiting += [(items[taken], first, near), (items[~taken], first + near, count - near)]
    return found


def choose(left: Family, right: Family, shares: Floats, random: np.random.Generator) -> Flags:
    """Return which items are taken; shares of shape (items,) in [0, 1] say how much of each should be."""
    network = _Network()
    from_tree, from_leaf = network.add_tree(_nested(left), shares, is_left=True)
    to_tree, to_leaf = network.add_tree(_nested(right), shares, is_left=False)
    pairs, pair = np.unique(from_leaf * network.nodes + to_leaf, return_inverse=True)
    sums = np.bincount(pair, weights=shares).astype(np.float64)
    arcs = network.add_arcs(*np.divmod(pairs, network.nodes), sums)
    network.add_arcs(np.array([to_tree]), np.array([from_tree]), np.array([shares.sum()]))
    flow = network.solve(random)[arcs]
    taken = np.zeros(shares.size, dtype=np.bool_)
    order = np.lexsort(
        (random.random(shares.size), shares == 0, pair)
    )  # inside a pair any item, but none without share
    rank = np.arange(order.size) - np.concatenate([[0], np.cumsum(np.bincount(pair))])[pair[order]]
    taken[order] = rank < flow[pair[order]]
    return taken


def _nested(family: Family) -> list[Ints]:
    """Return the same groups with numbers from 0 that no other group of their level has."""
    levels: list[Ints] = []
    for level in family:
        number = level - level.min(initial=0)
        if levels:
            number = levels[-1] * (number.max(initial=0) + 1) + number
        levels.append(np.unique(number, return_inverse=True)[1].astype(np.int64))
    return levels


class _Network:
    """Arcs with whole bounds around a fractional flow that is feasible."""

    def __init__(self) -> None:
        self.nodes = 0
        self.tails: list[Ints] = []
        self.heads: list[Ints] = []
        self.lows: list[Ints] = []
        self.spans: list[Ints] = []

    def add_tree(self, family: Family, shares: Floats, *, is_left: bool) -> tuple[int, Ints]:
        """Add a node for the whole and each group; return the root and for each item the node of its finest group."""
        root = self.nodes
        self.nodes += 1
        above = np.full(shares.size, root, dtype=np.int64)
        for level in family:
            here = level + self.nodes
            count = int(level.max()) + 1
            first = np.zeros(count, dtype=np.int64)
            first[level] = np.arange(level.size)
            nodes, parents = np.arange(count) + self.nodes, above[first]
            sums = np.bincount(level, weights=shares, minlength=count).astype(np.float64)
            tails, heads = (parents, nodes) if is_left else (nodes, parents)
            self.add_arcs(tails, heads, sums)
            self.nodes += count
            above = here
        return root, above

    def add_arcs(self, tails: Ints, heads: Ints, sums: Floats) -> slice:
        """Add arcs that must carry the floor or the ceil of a sum; return where their flow will stand."""
        start = sum(part.size for part in self.tails)
        low = np.floor(sums + _ROUNDING).astype(np.int64)
        self.tails.append(tails.astype(np.int64))
        self.heads.append(heads.astype(np.int64))
        self.lows.append(low)
        self.spans.append(np.ceil(sums - _ROUNDING).astype(np.int64) - low)
        return slice(start, start + tails.size)

    def solve(self, random: np.random.Generator) -> Ints:
        """Find a whole flow within all bounds: a maximum flow from where lower bounds bring too much to too little."""
        from scipy.sparse import coo_array, csr_array
        from scipy.sparse.csgraph import maximum_flow

        tails, heads, lows, spans = (np.concatenate(x) for x in (self.tails, self.heads, self.lows, self.spans))
        excess = np.zeros(self.nodes, dtype=np.int64)
        np.add.at(excess, heads, lows)
        np.add.at(excess, tails, -lows)
        giving, taking = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
        name = random.permutation(self.nodes + 2)  # the order of the nodes decides which of many flows is found
        origin, sink = self.nodes, self.nodes + 1
        rows = name[np.concatenate([tails, np.full(giving.size, origin), taking])]
        columns = name[np.concatenate([heads, giving, np.full(taking.size, sink)])]
        capacities = np.concatenate([spans, excess[giving], -excess[taking]]).astype(np.int32)
        shape = (self.nodes + 2, self.nodes + 2)
        graph = csr_array(coo_array((capacities, (rows, columns)), shape=shape))
        result = maximum_flow(graph, int(name[origin]), int(name[sink]))
        if result.flow_value != excess[giving].sum():
            message = "No even division was found, although there always is one."
            raise AssertionError(message)
        free = np.asarray(csr_array(result.flow)[name[tails], name[heads]]).ravel()
        return np.asarray(lows + np.maximum(free, 0), dtype=np.int64)


_REPAIR_STEPS = 1500
_WEIGHTS = np.array([1, 1, 3, 1, 1, 1, 1, 1])  # of an excess; one of a system's class is the hardest to put right
_COUNTED = [CLASS, SYSTEM_CLASS, SEX, SPEAKER, SOURCE, ENROLMENT, CANDIDATE]


class _Dealing:
    """What is dealt to whom in `blocks` new blocks; `already`: shape (candidates,), ratings in earlier ones."""

    def __init__(
        self, request: DesignRequest, groups: Groups, blocks: int, already: Ints, random: np.random.Generator
    ) -> None:
        self.groups, self.blocks, self.already, self.random = groups, blocks, already, random
        is_original = np.array([candidate.is_original for candidate in request.candidates], dtype=np.bool_)
        # Of each half of a session its candidates, its trials, and what they are dealt evenly by besides the speakers.
        self.halves = (
            (np.flatnonzero(is_original), request.originals, (CLASS, ENROLMENT)),
            (np.flatnonzero(~is_original), request.anonymised, (SYSTEM, CLASS)),
        )

    def deal_ratings(self) -> Ints | str:
        """Return the ratings of each candidate in the new blocks, shape (candidates,), or what prevented a choice."""
        already = self.already
        fixed, shares = np.zeros(already.size, dtype=np.int64), np.zeros(already.size)
        for members, ratings in self._totals():
            level = (int(already[members].sum()) + ratings) // members.size
            fixed[members] = np.maximum(level - already[members], 0)
            more = ratings - int(fixed[members].sum())
            open_to_more = members[already[members] == level]  # who gets nothing so far comes first
            if open_to_more.size < more:
                open_to_more = members[already[members] <= level]
            shares[open_to_more] = more / max(1, open_to_more.size)
        has_more = np.zeros(already.size, dtype=np.bool_)
        for half, _, evenly in self.halves:
            if half.size:
                has_more[half] = choose(*self._families(half, evenly), shares[half], self.random)
        return self._repaired(fixed, has_more, shares > 0)

    def deal_sessions(self, ratings: Ints) -> Ints:
        """Return candidates by number in each block, shape (blocks, trials), the originals first."""
        parts = []
        for half, trials, evenly in self.halves:
            rated = np.repeat(half, ratings[half])
            of_block = divide(*self._families(rated, evenly), self.blocks, self.random) if trials else rated
            parts.append(rated[np.argsort(of_block, kind="stable")].reshape(self.blocks, trials))
        return np.concatenate(parts, axis=1)

    def _families(self, candidates: Ints, evenly: Sequence[int]) -> tuple[Family, Family]:
        member = self.groups.member[candidates]
        return [member[:, k] for k in evenly], [member[:, k] for k in (SEX, SPEAKER, SOURCE)]

    def _totals(self) -> list[tuple[Ints, int]]:
        """Return candidates of each system with their number of ratings; the least rated system gets the next one."""
        found = []
        system = self.groups.member[:, SYSTEM]
        for half, trials, _ in self.halves:
            names = self.random.permutation(np.unique(system[half]))
            before = np.array([self.already[system == name].sum() for name in names], dtype=np.int64)
            for name, count in zip(names, _levelled(before, self.blocks * trials), strict=True):
                found.append((np.flatnonzero(system == name), int(count)))
        return found

    def _repaired(self, fixed: Ints, more: Flags, is_open: Flags) -> Ints | str:
        """Exchange a candidate with one rating more for one without, inside a system, until every group fits."""
        random, groups, system = self.random, self.groups, self.groups.member[:, SYSTEM]
        member = groups.member[:, _COUNTED]
        lowest, highest = groups.lowest * self.blocks, groups.highest * self.blocks
        counts = np.zeros(lowest.size, dtype=np.int64)
        np.add.at(counts, member, (fixed + more)[:, None])
        cost = count_excess(counts, lowest, highest)
        cost[~np.isin(np.arange(cost.size), member)] = 0
        more = more.copy()
        for _ in range(_REPAIR_STEPS):
            if not cost.any():
                return fixed + more
            given = np.flatnonzero(more)
            if not given.size:
                break
            over = counts[member[given]] > highest[member[given]]
            worst = given[over.any(axis=1)]
            out = random.choice(worst if worst.size and random.random() < 0.9 else given)
            others = np.flatnonzero(~more & is_open & (system == system[out]))
            if not others.size:
                continue
            into, away = member[others], member[out]
            differs = into != away
            up = count_excess(counts[into] + 1, lowest[into], highest[into]) - cost[into]
            down = count_excess(counts[away] - 1, lowest[away], highest[away]) - cost[away]
            change = ((up + down) * differs).sum(axis=1)
            least = change.min()
            if least > 0 and random.random() > 0.1:
                continue
            taken = random.choice(others[change == least])
            more[out], more[taken] = False, True
            counts[away] -= 1
            counts[member[taken]] += 1
            touched = np.concatenate([away, member[taken]])
            cost[touched] = count_excess(counts[touched], lowest[touched], highest[touched])
        at_fault = int(cost.argmax())
        room = f"{lowest[at_fault]} to {highest[at_fault]}" if lowest[at_fault] else f"at most {highest[at_fault]}"
        met = f"{counts[at_fault]} times in {self.blocks} sessions"
        return f"{groups.names[at_fault]} would be met {met}, expected {room}"


def _levelled(before: Ints, ratings: int) -> Ints:
    """Return what each system gets, so that in the end all have the same number, or some one more."""
    after = before.copy()
    order = np.argsort(before, kind="stable")
    for rank in range(1, before.size + 1):
        level, more = divmod(int(before[order[:rank]].sum()) + ratings, rank)
        if rank == before.size or level + (more > 0) <= before[order[rank]]:
            after[order[:rank]] = level
            after[order[rank - more : rank]] += 1  # the fullest, so that nobody gets two more than another
            break
    return after - before


_STEPS = 2000  # and as many as there are trials, twice
_TOLD_EVERY = 50
_TRIED, _TRIED_WRONG = 200, 1000
_ANY_TRIAL = 0.1
_BOTH_WRONG = 0.5
_WORSE = 0.02


def swap_until_right(
    sessions: Ints, originals: int, groups: Groups, random: np.random.Generator, progress: Progress | None = None
) -> str:
    """Change sessions in place; returns the first bound that is not met in words, empty where all are.

    Args:
        sessions: shape (blocks, trials), candidates by number, the originals first.
        originals: how many these are.
        progress: called with how many sessions are right.
    """
    search = _Search(sessions, originals, groups)
    if len(sessions) > 1:
        for step in range(_STEPS + 2 * sessions.size):
            if not search.wrong.any():
                break
            if progress is not None and step % _TOLD_EVERY == 0:
                progress(int((search.wrong == 0).sum()), len(sessions), "allocation")
            search.step(random)
    return search.first_problem()


class _Search:
    """Sessions with the counts of their groups, shape (blocks, groups), and the excess of each, shape (blocks,)."""

    def __init__(self, sessions: Ints, originals: int, groups: Groups) -> None:
        self.sessions, self.originals, self.groups = sessions, originals, groups
        self.counts = np.zeros((len(sessions), groups.lowest.size), dtype=np.int64)
        self.wrong = np.zeros(len(sessions), dtype=np.int64)
        weight = np.ones(groups.lowest.size, dtype=np.int64)
        weight[groups.member] = _WEIGHTS
        for block, session in enumerate(sessions):
            np.add.at(self.counts[block], groups.member[session], 1)
            self.wrong[block] = count_excess(self.counts[block], groups.lowest, groups.highest) @ weight

    def step(self, random: np.random.Generator) -> None:
        """Do the best of some exchanges for one session that is wrong."""
        blocks, trials = self.sessions.shape
        one = int(random.choice(np.flatnonzero(self.wrong)))
        of_trial = self.groups.member[self.sessions[one]]
        over = np.flatnonzero((self.counts[one][of_trial] > self.groups.highest[of_trial]).any(axis=1))
        is_any = not over.size or random.random() < _ANY_TRIAL
        place = int(random.integers(trials) if is_any else random.choice(over))
        first, stop = (0, self.originals) if place < self.originals else (self.originals, trials)
        others = (one + random.integers(1, blocks, _TRIED)) % blocks
        wrong = np.flatnonzero(self.wrong)
        if wrong.size > 1 and random.random() < _BOTH_WRONG:  # each may lack what the other has too often
            others = random.choice(wrong[wrong != one], _TRIED_WRONG)
        places = random.integers(first, stop, others.size)
        to_one, to_other = self._changes(one, place, others, places)
        best = int((to_one + to_other).argmin())
        if to_one[best] + to_other[best] > 0 and random.random() > _WORSE:
            return
        other, at = int(others[best]), int(places[best])
        self.wrong[one] += to_one[best]
        self.wrong[other] += to_other[best]
        given, taken = self.sessions[one, place], self.sessions[other, at]
        self.sessions[one, place], self.sessions[other, at] = taken, given
        for block, less, more in ((one, given, taken), (other, taken, given)):
            self.counts[block, self.groups.member[less]] -= 1
            self.counts[block, self.groups.member[more]] += 1

    def first_problem(self) -> str:
        """Return what is wrong with the first session that is wrong."""
        for counts in self.counts[self.wrong > 0]:
            group = int(count_excess(counts, self.groups.lowest, self.groups.highest).argmax())
            room = Bounds(int(self.groups.lowest[group]), int(self.groups.highest[group]))
            return f"{self.groups.names[group]} would be met {counts[group]} times in a session, expected {room}"
        return ""

    def _changes(self, one: int, place: int, others: Ints, places: Ints) -> tuple[Ints, Ints]:
        """Return what each exchange adds to the excess of the one session and of the other, shapes (exchanges,)."""
        given = self.groups.member[self.sessions[one, place]][None]
        taken = self.groups.member[self.sessions[others, places]]
        differs = given != taken
        own, theirs = self.counts[one], self.counts
        rows = others[:, None]
        to_one = self._added(own[given], given, -1) + self._added(own[taken], taken, 1)
        to_other = self._added(theirs[rows, taken], taken, -1) + self._added(theirs[rows, given], given, 1)
        return (to_one * differs) @ _WEIGHTS, (to_other * differs) @ _WEIGHTS

    def _added(self, counts: Ints, of: Ints, by: int) -> Ints:
        """Return what one more or one less (`by`) adds to the excess of counts."""
        low, high = self.groups.lowest[of], self.groups.highest[of]
        if by == 1:
            return np.asarray(np.subtract(counts >= high, counts < low, dtype=np.int64))
        return np.asarray(np.subtract(counts <= low, counts > high, dtype=np.int64))


_ATTEMPTS, _LARGE = 8, 1000  # trials; from there on a third of the attempts, which take seconds each


def fill_blocks(
    request: DesignRequest,
    groups: Groups,
    blocks: int,
    already: Ints,
    random: np.random.Generator,
    progress: Progress | None = None,
) -> Ints:
    """Fill `blocks` new blocks with candidates by number, shape (blocks, trials), the originals first.

    Args:
        already: shape (candidates,), how often each is rated in earlier blocks.
        progress: called with how many blocks are right.

    Raises:
        ProblemsError: no way was found; says what would give it more room.
    """
    found, dealing = "", _Dealing(request, groups, blocks, already, random)
    attempts = _ATTEMPTS if blocks * request.trials < _LARGE else _ATTEMPTS // 3
    for _ in range(attempts):
        ratings = dealing.deal_ratings()
        if isinstance(ratings, str):
            found = found or ratings
            continue
        sessions = dealing.deal_sessions(ratings)
        wrong = swap_until_right(sessions, request.originals, groups, random, progress)
        if not wrong:
            return sessions
        found = wrong
    raise ProblemsError(_nothing_found(request, blocks, attempts, found))


def _nothing_found(request: DesignRequest, blocks: int, attempts: int, found: str) -> str:
    """Return what is known of a request that passes every count but for which the search ended without a design."""
    return (
        f"No allocation was found in {attempts} attempts for {blocks} sessions of {request.trials} trials: in the best"
        f" one {found}. The rules that a session meets no utterance twice and has its share of systems, classes, sexes"
        f" and speakers leave too little room together. More utterances of each speaker, fewer than {request.trials}"
        " trials for each evaluator, more evaluators, or a relaxed rule (utterances may repeat, sexes as in the pool)"
        " would help. Another seed may help, too."
    )


def allocate(request: DesignRequest, *, progress: Progress | None = None, shuffles: bool = True) -> Design:
    """Return a design that meets every constraint at the head of `listening.design.requirements`.

    Args:
        progress: called with how many are done, of how many, and of what; what it raises ends the search.
        shuffles: False to check only whether a design exists, in less than half of the time: shuffling always succeeds.

    Raises:
        ProblemsError: the request cannot be met; every reason, with the numbers that would do.
    """
    validate_request(request)
    needs = compute_requirements(request)
    random = np.random.default_rng(request.seed)
    if progress is not None:
        progress(0, request.evaluators, "allocation")
    nothing = np.zeros(len(request.candidates), dtype=np.int64)
    filled = fill_blocks(request, make_groups(request, needs), request.evaluators, nothing, random, progress)
    blocks = [[request.candidates[number] for number in session] for session in random.permutation(filled)]
    ordered = order_blocks(request, needs, blocks, [], random, progress, shuffles=shuffles)
    return Design(VERSION, request.seed, tuple(tuple(trial.key for trial in block) for block in ordered))


FEW_TRIALS = 500  # of the added blocks together: looking for a way costs little
BEGINNINGS = 5


def extend(request: DesignRequest, design: Design, *, blocks: int, seed: int) -> Design:
    """Return the whole design with `blocks` more: the old blocks first, as they were, then the new ones.

    Args:
        request: of the design as it was launched; earlier extensions stand in the design.
        seed: of the added blocks; kept in the design's extensions.

    Raises:
        ProblemsError: fewer than one block, a design of other trials, or no allocation that stays balanced.
    """
    validate_request(request)
    known = {candidate.key: candidate for candidate in request.candidates}
    strange = sorted({key for block in design.blocks for key in block} - set(known))
    if blocks < 1 or strange:
        problems = [f"Expected at least 1 block to add, found {blocks}."] if blocks < 1 else []
        problems += [f"Expected a design of the trials asked for, found {', '.join(strange[:3])}."] if strange else []
        raise ProblemsError(problems)
    earlier = [[known[key] for key in block] for block in design.blocks]
    rated = Counter(key for block in design.blocks for key in block)
    already = np.array([rated[candidate.key] for candidate in request.candidates], dtype=np.int64)
    whole = replace(request, evaluators=len(design.blocks) + blocks)
    needs = compute_requirements(whole)
    filled, random = _filled(whole, needs, blocks, already, seed)
    new = [[request.candidates[number] for number in session] for session in random.permutation(filled)]
    ordered = order_blocks(whole, needs, new, earlier, random, extensions=len(design.extensions) + 1)
    return replace(
        design,
        blocks=(*design.blocks, *(tuple(trial.key for trial in block) for block in ordered)),
        extensions=(*design.extensions, Extension(blocks, seed)),
    )


def _filled(
    whole: DesignRequest, needs: DesignRequirements, blocks: int, already: Ints, seed: int
) -> tuple[Ints, np.random.Generator]:
    """Return the new blocks and the generator that goes on; where few have no way, other beginnings are tried."""
    beginnings = BEGINNINGS if blocks * whole.trials <= FEW_TRIALS else 1
    for beginning in range(beginnings):
        random = np.random.default_rng([seed, beginning] if beginning else seed)
        try:
            return fill_blocks(whole, make_groups(whole, needs), blocks, already, random), random
        except ProblemsError:
            if beginning == beginnings - 1:
                raise
    raise AssertionError("There is always a first beginning.")
