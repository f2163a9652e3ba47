"""Even division of items that belong to two nested families of groups at once, by maximum flow.

`choose` takes items such that every group, in both families, gives the floor or the ceil of what its items' shares sum
to; `divide` deals items to parts such that every part gets the floor or the ceil of its share of every group. Both are
always possible: the groups of two nested families are the arcs of a network whose flow of all the shares is feasible,
and a network with whole bounds that has a feasible flow has a whole one (de Werra, "Balanced schedules", INFOR 1971).

Conventions: a family is a sequence of integer arrays of shape (items,), from the coarsest level to the finest; a group
is all items that are equal in a level and in those before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Family = Sequence[Integers]
_ROUNDING = 1e-6  # far above the error of a sum of shares, far below the smallest part of one


def divide(left: Family, right: Family, parts: int, random: np.random.Generator) -> Integers:
    """Part of each item, 0 to parts - 1: parts of equal shares.

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


def choose(left: Family, right: Family, shares: Floats, random: np.random.Generator) -> NDArray[np.bool_]:
    """Which items are taken; shares of shape (items,) in [0, 1] say how much of each should be."""
    network = _Network()
    from_tree, from_leaf = network.add_tree(_nested(left), shares, is_left=True)
    to_tree, to_leaf = network.add_tree(_nested(right), shares, is_left=False)
    pairs, pair = np.unique(np.stack([from_leaf, to_leaf]), axis=1, return_inverse=True)
    pair = pair.ravel()
    sums = np.bincount(pair, weights=shares).astype(np.float64)
    arcs = network.add_arcs(pairs[0], pairs[1], sums)
    network.add_arcs(np.array([to_tree]), np.array([from_tree]), np.array([shares.sum()]))
    flow = network.solve(random)[arcs]
    taken = np.zeros(shares.size, dtype=np.bool_)
    order = np.lexsort(
        (random.random(shares.size), shares == 0, pair)
    )  # inside a pair any item, but none without share
    rank = np.arange(order.size) - np.concatenate([[0], np.cumsum(np.bincount(pair))])[pair[order]]
    taken[order] = rank < flow[pair[order]]
    return taken


def _nested(family: Family) -> list[Integers]:
    """The same groups with numbers from 0 that no other group of their level has."""
    levels: list[Integers] = []
    for level in family:
        stacked = np.stack([levels[-1], level]) if levels else level[None]
        levels.append(np.unique(stacked, axis=1, return_inverse=True)[1].ravel().astype(np.int64))
    return levels


class _Network:
    """Arcs with whole bounds around a fractional flow that is feasible."""

    def __init__(self) -> None:
        self.nodes = 0
        self.tails: list[Integers] = []
        self.heads: list[Integers] = []
        self.lows: list[Integers] = []
        self.spans: list[Integers] = []

    def add_tree(self, family: Family, shares: Floats, *, is_left: bool) -> tuple[int, Integers]:
        """A node for the whole and for each group; returns the root and for each item the node of its finest group."""
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

    def add_arcs(self, tails: Integers, heads: Integers, sums: Floats) -> slice:
        """Arcs that must carry the floor or the ceil of a sum; returns where their flow will stand."""
        start = sum(part.size for part in self.tails)
        low = np.floor(sums + _ROUNDING).astype(np.int64)
        self.tails.append(tails.astype(np.int64))
        self.heads.append(heads.astype(np.int64))
        self.lows.append(low)
        self.spans.append(np.ceil(sums - _ROUNDING).astype(np.int64) - low)
        return slice(start, start + tails.size)

    def solve(self, random: np.random.Generator) -> Integers:
        """A whole flow within all bounds: a maximum flow from where the lower bounds bring too much to too little."""
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
