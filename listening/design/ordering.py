"""The order of every block: never more of a kind in a row, nor a speaker or system sooner again, than the rules allow.

Quarters come first; then each block is filled place by place, at random among what fits, looking ahead on
what remains, stepping back where nothing fits, and starting again with other quarters where that takes too long.

`Quarters` says which quarter of its session each trial is heard in. Every quarter gets its part of each kind and of
each class, and over all evaluators every system stands equally often in each: trials are placed block by block where
their systems have been heard least (an assignment problem), then blocks are placed again until no system is heard too
often or too seldom in a quarter. From there `shuffling` draws among all orders under the rules.

`insert_controls` adds trials that are not scored: practice before the others, gold and bridge trials among them. Every
block meets all of them. Gold and bridge trials stand among scored ones, never next to each other and about equally far
apart: one in each of equal parts of a circle, which is then cut anywhere, so that each place of a session, the first
and the last too, is as likely as any other. Of some such patterns each block takes the one whose places were taken
least before. Which control stands first differs from block to block. What is inserted parts neighbours and joins none,
so the rules of order stay met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from common.arrays import Ints
from common.errors import ProblemsError
from listening.design.order_rules import SPEAKER_GAP
from listening.design.requirements import (
    QUARTERS,
    Bounds,
    Candidate,
    Design,
    DesignRequest,
    DesignRequirements,
    Progress,
    position_bounds,
    quarter_of_place,
    quarter_sizes,
)
from listening.design.shuffling import shuffle_blocks

Cell = tuple[bool, bool]  # original, target
Table = list[tuple[Cell, tuple[int, ...]]]  # trials of each cell in each quarter
_TABLES = 8
_OTHER_CLASS = 1e6
_EXCHANGES = 6  # tried for each trial
_PATTERNS = 16  # of controls, drawn for each block
_NOISE = 0.05  # below what one trial more in a quarter of twenty places counts


class Quarters:
    """Where the systems stand so far, and what places the next block so that they stand evenly.

    Attributes:
        heard: shape (systems, quarters), how often each system is heard in each quarter.
    """

    def __init__(
        self, request: DesignRequest, needs: DesignRequirements, random: np.random.Generator, extensions: int = 0
    ) -> None:
        self.request, self.needs, self.random, self.extensions = request, needs, random, extensions
        self.sizes, self.of_place = quarter_sizes(request.trials), quarter_of_place(request.trials)
        self.number = {system: number for number, system in enumerate(request.systems)}
        self.heard: Ints = np.zeros((len(request.systems), QUARTERS), dtype=np.int64)

    def place(self, trials: Sequence[Candidate], start: int = 0) -> list[int] | None:
        """Return the quarter of each trial of a block; None where no table of classes by quarters exists.

        Args:
            start: how often this block could not be ordered so far: the more, the less counts what is heard elsewhere.
        """
        cells = [(trial.is_original, trial.is_target) for trial in trials]
        tables = _tables(tuple(sorted(Counter(cells).items(), key=str)), self.sizes)
        if not tables:
            return None
        table = self._table(tables, start)
        slots = [
            (cell, quarter) for cell, counts in table for quarter in range(QUARTERS) for _ in range(counts[quarter])
        ]
        found = [0] * len(trials)
        for original in (True, False):
            members = [index for index, cell in enumerate(cells) if cell[0] == original]
            places = [slot for slot in slots if slot[0][0] == original]
            for index, place in zip(members, self._assign([trials[i] for i in members], places, start), strict=True):
                found[index] = places[place][1]
        if start:
            self._part_crowds(trials, cells, found)
        return found

    def _part_crowds(self, trials: Sequence[Candidate], cells: Sequence[Cell], found: list[int]) -> None:
        """Exchange quarters inside a cell where that parts trials of one speaker, or of one system."""
        crowd: Counter[tuple[str, str, int]] = Counter()
        names = [(("speaker", one.speaker), ("system", one.system or one.key)) for one in trials]
        crowd.update((*name, quarter) for of, quarter in zip(names, found, strict=True) for name in of)
        for one, other in self.random.integers(0, len(trials), (_EXCHANGES * len(trials), 2)).tolist():
            here, there = found[one], found[other]
            if cells[one] != cells[other] or here == there:
                continue
            moves = [
                (name, source, target)
                for mine, others in zip(names[one], names[other], strict=True)
                if mine != others
                for name, source, target in ((mine, here, there), (others, there, here))
            ]
            if sum(crowd[*name, target] - crowd[*name, source] + 1 for name, source, target in moves) < 0:
                found[one], found[other] = there, here
                for name, source, target in moves:
                    crowd[*name, source] -= 1
                    crowd[*name, target] += 1

    def _table(self, tables: Sequence[Table], start: int) -> Table:
        """Return one of the tables; at first of some the one that evens out the quarters of anonymised trials."""
        drawn = [tables[place] for place in self.random.integers(len(tables), size=1 if start else _TABLES).tolist()]
        heard = self.heard.sum(axis=0)

        def unevenness(table: Table) -> float:
            after = heard + sum(np.array(counts) for cell, counts in table if not cell[0])
            return float((after**2 / np.maximum(1, self.sizes)).sum())

        return min(drawn, key=unevenness)

    def count(self, block: Sequence[Candidate], by: int = 1) -> None:
        """Add an ordered block to what is heard, or with -1 take it away."""
        for trial, quarter in zip(block, self.of_place, strict=True):
            if trial.system:
                self.heard[self.number[trial.system], quarter] += by

    def uneven(self) -> Ints:
        """Return how far each system is outside of what it may stand in each quarter, shape (systems, quarters)."""
        wrong = np.zeros_like(self.heard)
        for number, row in enumerate(self.heard):
            for quarter, places in enumerate(self.sizes):
                total = int(row.sum())
                bounds = position_bounds(total, places, self.request.trials, self.extensions)
                wrong[number, quarter] = max(row[quarter] - bounds.highest, 0) - max(bounds.lowest - row[quarter], 0)
        return wrong

    def order(self, block: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return the trials of a block in the order of hearing, which then count.

        Raises:
            ProblemsError: no order was found; says what would give it room.
        """
        for start in range(_STARTS):
            placed = self.place(block, start)
            if placed is None:
                break
            found = _Filling(self, block, placed).run()
            if found is not None:
                self.count(found)
                return tuple(found)
        request, needs = self.request, self.needs
        speakers = Counter(trial.speaker for trial in block).most_common(1)[0]
        raise ProblemsError(
            f"No order of {request.trials} trials was found in {_STARTS} starts: a speaker at least"
            f" {needs.speaker_gap} places apart (speaker {speakers[0]} has {speakers[1]} trials), at most"
            f" {needs.longest_run} of a kind in a row ({request.originals} originals, {request.anonymised} anonymised),"
            f" systems not next to themselves ({len(request.systems)} systems), every quarter with its part of each"
            " kind and class. More speakers,"
            " more systems, or nearly as many originals as anonymised trials would give it room."
        )

    def choose_to_redo(self, ordered: Sequence[Sequence[Candidate]], uneven: Ints) -> int:
        """Choose a block that puts a system where it is heard too often, else one with one heard too seldom there."""
        share = (np.maximum(uneven, 0) + uneven.any(axis=1, keepdims=True)).tolist()
        weight = [
            sum(
                share[self.number[trial.system]][quarter]
                for trial, quarter in zip(block, self.of_place, strict=True)
                if trial.system
            )
            for block in ordered
        ]
        chances = np.array(weight, dtype=np.float64) + 1e-3
        return int(self.random.choice(len(ordered), p=chances / chances.sum()))

    def _assign(self, trials: Sequence[Candidate], places: Sequence[tuple[Cell, int]], start: int) -> list[int]:
        """Return a place of its own class for each trial, where its system has been heard least."""
        from scipy.optimize import linear_sum_assignment

        cost = self.random.random((len(trials), len(places))) * _NOISE * 2.0 ** min(start, 8)
        for row, trial in enumerate(trials):
            if trial.system:
                heard = self.heard[self.number[trial.system]]
                cost[row] += [heard[quarter] / self.sizes[quarter] for _, quarter in places]
            cost[row] += [_OTHER_CLASS * (cell[1] != trial.is_target) for cell, _ in places]
        return [int(column) for column in linear_sum_assignment(cost)[1]]


@cache
def _tables(cells: tuple[tuple[Cell, int], ...], sizes: tuple[int, ...]) -> list[Table]:
    """Return all tables of trials by cell and quarter that give every quarter its part of each kind, class and size.

    Where none gives also every cell its part (floor or ceil), those that miss it by one.
    """
    for slack in (0, 1):
        columns = [_columns(cells, size, sum(sizes), slack) for size in sizes]
        found = [
            [(cell, tuple(column[row] for column in choice)) for row, (cell, _) in enumerate(cells)]
            for choice in product(*columns)
            if all(sum(column[row] for column in choice) == count for row, (_, count) in enumerate(cells))
        ]
        if found:
            return found
    return []


def _columns(cells: tuple[tuple[Cell, int], ...], size: int, trials: int, slack: int) -> list[tuple[int, ...]]:
    """Return what one quarter of `size` places may hold of each cell."""
    ranges = []
    for _, count in cells:
        bounds = Bounds.around(Fraction(count * size, trials))
        ranges.append(range(max(0, bounds.lowest - slack), min(count, bounds.highest + slack) + 1))
    return [column for column in product(*ranges) if sum(column) == size and _is_even(cells, column, size, trials)]


def _is_even(cells: tuple[tuple[Cell, int], ...], column: tuple[int, ...], size: int, trials: int) -> bool:
    for side in (0, 1):
        total, here = Counter[object](), Counter[object]()
        for (cell, count), number in zip(cells, column, strict=True):
            total[cell[side]] += count
            here[cell[side]] += number
        if any(here[name] not in Bounds.around(Fraction(total[name] * size, trials)) for name in total):
            return False
    return True


_STARTS = 150
_LOOKS_PER_PLACE = 20
_EVENING_ROUNDS = 40  # for each block


def order_blocks(
    request: DesignRequest,
    needs: DesignRequirements,
    blocks: Sequence[Sequence[Candidate]],
    earlier: Sequence[Sequence[Candidate]],
    random: np.random.Generator,
    progress: Progress | None = None,
    extensions: int = 0,
    *,
    shuffles: bool = True,
) -> list[tuple[Candidate, ...]]:
    """Return the trials of each block in the order of hearing.

    Args:
        earlier: ordered blocks that are there already and count for where the systems stand.
        extensions: how many there are, this one included.
        shuffles: whether the orders that were found are then drawn among all that keep the rules.

    Raises:
        ProblemsError: a block cannot be ordered, or the systems cannot stand evenly; says which rule is in the way.
    """
    quarters = Quarters(request, needs, random, extensions)
    for block in earlier:
        quarters.count(block)
    ordered = []
    for number, block in enumerate(blocks):
        ordered.append(quarters.order(block))
        if progress is not None:
            progress(number + 1, len(blocks), "ordering")
    rounds = _EVENING_ROUNDS * len(blocks)
    for redone in range(rounds + 1):
        uneven = quarters.uneven()
        if not uneven.any():
            if not shuffles:
                return [tuple(block) for block in ordered]
            return shuffle_blocks(request, needs, ordered, quarters.heard, random, extensions, progress)
        if redone < rounds:
            if progress is not None:
                progress(len(blocks) - 1, len(blocks), "ordering")
            number = quarters.choose_to_redo(ordered, uneven)
            quarters.count(ordered[number], -1)
            ordered[number] = quarters.order(ordered[number])
    names = [request.systems[number] for number in np.flatnonzero(quarters.uneven().any(axis=1))]
    raise ProblemsError(
        "Expected every system as often in each quarter of the sessions, found no order in which"
        f" {', '.join(names)} is, for {request.evaluators} evaluators with {request.anonymised} anonymised trials"
        " each. More evaluators or fewer systems would do."
    )


class _Filling:
    """One block that is filled from the first place to the last."""

    def __init__(self, quarters: Quarters, block: Sequence[Candidate], placed: Sequence[int]) -> None:
        self.needs, self.random, self.trials = quarters.needs, quarters.random, len(block)
        self.waiting: list[list[Candidate]] = [[] for _ in range(QUARTERS)]
        for trial, quarter in zip(block, placed, strict=True):
            self.waiting[quarter].append(trial)
        self.of_place = quarters.of_place
        self.order: list[Candidate] = []
        self.last: dict[str, int] = {}
        self.speakers = Counter(trial.speaker for trial in block)
        self.kinds = Counter(trial.is_original for trial in block)
        self.looks = _LOOKS_PER_PLACE * self.trials

    def run(self) -> list[Candidate] | None:
        """Return the order, or None where none was found with the looks that there are."""
        if len(self.order) == self.trials:
            return self.order
        place = len(self.order)
        waiting = self.waiting[self.of_place[place]]
        for trial in self._choices(waiting, place):
            self.looks -= 1
            if self.looks < 0:
                return None
            before = self._put(trial, waiting, place)
            if self._has_way_on(waiting, place) and self.run() is not None:
                return self.order
            self._take_back(trial, waiting, before)
        return None

    def _choices(self, waiting: Sequence[Candidate], place: int) -> list[Candidate]:
        """Return what fits here, at random, but first what has most of its speaker or its system still to come."""
        last = self.order[-1] if self.order else None
        run = self._run()
        systems = Counter(trial.system for trial in waiting if trial.system)
        speakers = Counter(trial.speaker for trial in waiting)
        is_original_first = self.random.random() * len(waiting) < sum(trial.is_original for trial in waiting)
        rated: list[tuple[bool, float, int, Candidate]] = []
        for trial, chance in zip(waiting, self.random.random(len(waiting)), strict=True):
            is_same_system = last is not None and trial.system and trial.system == last.system
            if self.needs.systems_apart and is_same_system:
                continue
            if last is not None and trial.is_original == last.is_original and run >= self.needs.longest_run:
                continue
            if place - self.last.get(trial.speaker, -SPEAKER_GAP) < self.needs.speaker_gap:
                continue
            urgency = speakers[trial.speaker] + 0.5 * systems[trial.system] + 0.2 * self.speakers[trial.speaker]
            is_later = trial.is_original != is_original_first
            rated.append((is_later, -2 * chance - urgency, len(rated), trial))
        return [trial for *_, trial in sorted(rated)]

    def _run(self) -> int:
        """Return how many of one kind stand at the end."""
        run = 0
        for trial in reversed(self.order):
            if trial.is_original != self.order[-1].is_original:
                break
            run += 1
        return run

    def _has_way_on(self, waiting: Sequence[Candidate], place: int) -> bool:
        """Return whether what remains, of session and quarter, can still be parted and still finds its places."""
        run, last = self._run(), self.order[-1].is_original
        longest, gap = self.needs.longest_run, self.needs.speaker_gap
        here = sum(trial.is_original == last for trial in waiting)
        for same, other in ((self.kinds[last], self.kinds[not last]), (here, len(waiting) - here)):
            if same > longest * (other + 1) - run or other > longest * (same + 1):
                return False
        end = place + len(waiting)  # the last place of the quarter
        left = Counter(trial.speaker for trial in waiting)
        return all(
            max(place + 1, self.last.get(speaker, -gap) + gap) + (count - 1) * gap <= end
            for speaker, count in left.items()
        )

    def _put(self, trial: Candidate, waiting: list[Candidate], place: int) -> int | None:
        waiting.remove(trial)
        self.order.append(trial)
        self.speakers[trial.speaker] -= 1
        self.kinds[trial.is_original] -= 1
        before = self.last.get(trial.speaker)
        self.last[trial.speaker] = place
        return before

    def _take_back(self, trial: Candidate, waiting: list[Candidate], before: int | None) -> None:
        self.order.pop()
        waiting.append(trial)
        self.speakers[trial.speaker] += 1
        self.kinds[trial.is_original] += 1
        if before is None:
            del self.last[trial.speaker]
        else:
            self.last[trial.speaker] = before


def insert_controls(
    design: Design, *, practice: Sequence[str], gold: Sequence[str], bridge: Sequence[str], seed: int
) -> tuple[tuple[str, ...], ...]:
    """Return all keys of each block in the order of hearing.

    Raises:
        ProblemsError: a key occurs twice, or the blocks are too short to keep gold and bridge trials apart.
    """
    _validate(design, [*practice, *gold, *bridge], len(gold) + len(bridge))
    random = np.random.default_rng(seed)
    controls = [str(key) for key in random.permutation(np.array([*gold, *bridge], dtype=object))]
    cycle = random.permutation(max(1, len(controls)))
    taken: Counter[int] = Counter()
    found = []
    for number, block in enumerate(design.blocks):
        shift = int(cycle[number % cycle.size])
        patterns = [_draw_places(len(block), len(controls), random) for _ in range(_PATTERNS)]
        places = min(patterns, key=lambda pattern: sum(taken[place] for place in pattern))
        taken.update(places)
        order = list(block)
        for place, key in zip(places, [*controls[shift:], *controls[:shift]], strict=True):
            order.insert(place, key)
        found.append((*practice, *order))
    return tuple(found)


def _draw_places(scored: int, controls: int, random: np.random.Generator) -> list[int]:
    """Return the places of controls in a session, from 0, ascending and never side by side; each place is as likely."""
    if not controls:
        return []
    parts = np.array_split(np.arange(scored), controls)  # of the gaps between scored trials around the circle
    circle = [int(random.choice(part)) + before for before, part in enumerate(parts)]
    cut = int(random.integers(scored + controls))
    return sorted((place + cut) % (scored + controls) for place in circle)


def _validate(design: Design, keys: Sequence[str], inserted: int) -> None:
    problems = []
    scored = {key for block in design.blocks for key in block}
    twice = [key for key, count in Counter(keys).items() if count > 1 or key in scored]
    if twice:
        problems.append(
            f"Expected practice, control and bridge trials that occur once and are not scored,"
            f" found {', '.join(twice[:3])}."
        )
    shortest = min((len(block) for block in design.blocks), default=0)
    if inserted > max(0, shortest - 1):
        problems.append(
            f"Expected room between {shortest} scored trials for {inserted} control and bridge trials that are never"
            f" next to each other, found {max(0, shortest - 1)} places. {max(0, shortest - 1)} of them, or"
            f" {inserted + 1} scored trials, would do."
        )
    if problems:
        raise ProblemsError(problems)
