"""Swap repair: two sessions exchange a trial of the same half until no session is outside of any of its bounds.

A step takes a session that is, a trial of it that has a share in that, and the best of some random exchanges. One that
makes nothing worse is always done, a worse one seldom, so that the search leaves dead ends.
"""

from __future__ import annotations

import numpy as np

from listening.design.groups import Groups, Integers, excess
from listening.design.plan import Bounds

_STEPS = 2000  # and as many as there are trials, twice
_TRIED = 200
_ANY_TRIAL = 0.1
_WORSE = 0.02


def swap_until_right(sessions: Integers, originals: int, groups: Groups, random: np.random.Generator) -> str:
    """Change sessions in place; returns the first bound that is not met in words, empty where all are.

    Args:
        sessions: shape (blocks, trials), candidates by number, the originals first.
        originals: how many these are.
    """
    search = _Search(sessions, originals, groups)
    if len(sessions) > 1:
        for _ in range(_STEPS + 2 * sessions.size):
            if not search.wrong.any():
                break
            search.step(random)
    return search.first_fault()


class _Search:
    """Sessions with the counts of their groups, shape (blocks, groups), and the excess of each, shape (blocks,)."""

    def __init__(self, sessions: Integers, originals: int, groups: Groups) -> None:
        self.sessions, self.originals, self.groups = sessions, originals, groups
        self.counts = np.zeros((len(sessions), groups.lowest.size), dtype=np.int64)
        self.wrong = np.zeros(len(sessions), dtype=np.int64)
        for block, session in enumerate(sessions):
            np.add.at(self.counts[block], groups.member[session], 1)
            self.wrong[block] = excess(self.counts[block], groups.lowest, groups.highest).sum()

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
        places = random.integers(first, stop, _TRIED)
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

    def first_fault(self) -> str:
        """What is wrong with the first session that is wrong."""
        for counts in self.counts[self.wrong > 0]:
            group = int(excess(counts, self.groups.lowest, self.groups.highest).argmax())
            room = Bounds(int(self.groups.lowest[group]), int(self.groups.highest[group]))
            return f"{self.groups.names[group]} would be met {counts[group]} times in a session, expected {room}"
        return ""

    def _changes(self, one: int, place: int, others: Integers, places: Integers) -> tuple[Integers, Integers]:
        """What each exchange adds to the excess of the one session and of the other, shapes (exchanges,)."""
        given = self.groups.member[self.sessions[one, place]][None]
        taken = self.groups.member[self.sessions[others, places]]
        differs = given != taken
        own, theirs = self.counts[one], self.counts
        rows = others[:, None]
        to_one = self._added(own[given], given, -1) + self._added(own[taken], taken, 1)
        to_other = self._added(theirs[rows, taken], taken, -1) + self._added(theirs[rows, given], given, 1)
        return (to_one * differs).sum(axis=1), (to_other * differs).sum(axis=1)

    def _added(self, counts: Integers, of: Integers, by: int) -> Integers:
        low, high = self.groups.lowest[of], self.groups.highest[of]
        return excess(counts + by, low, high) - excess(counts, low, high)
