"""Which quarter of its session each trial is heard in.

Every quarter gets its part of each kind and of each class, and over all evaluators every system stands equally often
in each: trials are placed block by block where their systems have been heard least (an assignment problem), then blocks
are placed again until no system is heard too often or too seldom in a quarter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from listening.design.groups import Integers
from listening.design.plan import QUARTERS, Bounds, Candidate, DesignRequest, position_bounds, quarter_sizes

Cell = tuple[bool, bool | None]  # original, target
Table = list[tuple[Cell, tuple[int, ...]]]  # trials of each cell in each quarter
_TABLES = 8
_OTHER_CLASS = 1e6
_EXCHANGES = 6  # tried for each trial
_NOISE = 0.05  # below what one trial more in a quarter of twenty places counts


class Quarters:
    """Where the systems stand so far, and what places the next block so that they stand evenly.

    Attributes:
        heard: shape (systems, quarters), how often each system is heard in each quarter.
    """

    def __init__(self, request: DesignRequest, random: np.random.Generator, extensions: int = 0) -> None:
        self.request, self.random, self.extensions = request, random, extensions
        self.sizes = quarter_sizes(request.trials)
        self.number = {system: number for number, system in enumerate(request.systems)}
        self.heard: Integers = np.zeros((len(request.systems), QUARTERS), dtype=np.int64)

    def place(self, trials: Sequence[Candidate], start: int = 0) -> list[int] | None:
        """Quarter of each trial of a block; None where no table of classes by quarters exists.

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
        """One of the tables; at first of some the one that evens out the quarters of anonymised trials."""
        drawn = [tables[place] for place in self.random.integers(len(tables), size=1 if start else _TABLES).tolist()]
        heard = self.heard.sum(axis=0)

        def unevenness(table: Table) -> float:
            after = heard + sum(np.array(counts) for cell, counts in table if not cell[0])
            return float((after**2 / np.maximum(1, self.sizes)).sum())

        return min(drawn, key=unevenness)

    def count(self, trials: Sequence[Candidate], quarters: Sequence[int], by: int = 1) -> None:
        """Add a placed block to what is heard, or with -1 take it away."""
        for trial, quarter in zip(trials, quarters, strict=True):
            if trial.system:
                self.heard[self.number[trial.system], quarter] += by

    def uneven(self, *, is_strict: bool = False) -> Integers:
        """How far each system is outside of what it may stand in each quarter, shape (systems, quarters).

        Args:
            is_strict: aim at floor and ceil of its part, without give or take.
        """
        wrong = np.zeros_like(self.heard)
        for number, row in enumerate(self.heard):
            for quarter, places in enumerate(self.sizes):
                total = int(row.sum())
                bounds = position_bounds(total, places, self.request.trials, self.extensions)
                if is_strict:
                    bounds = Bounds.around(Fraction(total * places, self.request.trials))
                wrong[number, quarter] = max(row[quarter] - bounds.highest, 0) - max(bounds.lowest - row[quarter], 0)
        return wrong

    def _assign(self, trials: Sequence[Candidate], places: Sequence[tuple[Cell, int]], start: int) -> list[int]:
        """A place of its own class for each trial, where its system has been heard least."""
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
    """All tables of trials by cell and quarter that give every quarter its part of each kind, class and size.

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
    """What one quarter of `size` places may hold of each cell."""
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
