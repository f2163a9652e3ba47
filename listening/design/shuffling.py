"""Orders that tell nothing but the rules: pairs of trials change places, at random, wherever every rule stays met.

What was filled place by place leans towards what fits most easily. From there a Markov chain goes on: in each step two
places of every session are drawn, and their trials change places if the session still keeps the rules of order and the
systems still stand in the quarters as often as they may. A step is as likely as its reverse, so after many of them all
orders that can be reached are equally likely (Metropolis et al., J. Chem. Phys. 21, 1953).

Arrays are of shape (sessions, places) unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from common.arrays import Flags, Ints
from listening.design.requirements import (
    QUARTERS,
    Bounds,
    Candidate,
    DesignRequest,
    DesignRequirements,
    Progress,
    position_bounds,
    quarter_of_place,
    quarter_sizes,
)

SWEEPS = 60  # so many exchanges are tried for each place


def shuffle_blocks(
    request: DesignRequest,
    needs: DesignRequirements,
    blocks: Sequence[Sequence[Candidate]],
    heard: Ints,
    random: np.random.Generator,
    extensions: int = 0,
    progress: Progress | None = None,
) -> list[tuple[Candidate, ...]]:
    """Return the same sessions in other orders.

    Args:
        blocks: ordered, and within all rules.
        heard: shape (systems, quarters), how often each system stands in each quarter, earlier blocks included.
        extensions: how many there are, this one included.
        progress: called with how many of the sweeps are done.
    """
    shuffling = _Shuffling(request, needs, blocks, heard, extensions)
    shuffling.run(random, progress)
    return [tuple(block[number] for number in row) for block, row in zip(blocks, shuffling.order.tolist(), strict=True)]


class _Shuffling:
    """Sessions whose order changes in place.

    Attributes:
        order: which trial of its session, as it was given, stands at each place.
    """

    def __init__(
        self,
        request: DesignRequest,
        needs: DesignRequirements,
        blocks: Sequence[Sequence[Candidate]],
        heard: Ints,
        extensions: int,
    ) -> None:
        self.needs, self.sizes = needs, quarter_sizes(request.trials)
        self.quarter = np.array(quarter_of_place(request.trials))
        self.in_quarter = np.eye(QUARTERS, dtype=np.float32)[self.quarter]
        system = {name: number for number, name in enumerate(("", *request.systems))}
        speaker = {
            name: number for number, name in enumerate({**needs.originals.speakers, **needs.anonymised.speakers})
        }
        # One table of four, which an exchange changes at once; the others are what it shows of each.
        self.kept = np.array(
            [
                [range(request.trials)] * len(blocks),
                [[speaker[one.speaker] for one in block] for block in blocks],
                [[system[one.system] for one in block] for block in blocks],
                [[bool(one.is_target) for one in block] for block in blocks],
            ],
            dtype=np.int32,
        )
        self.order, self.speaker, self.system, self.target = self.kept
        self.parts = [self._parts(groups) for groups in (self.system == 0, self.target)]
        self.heard = heard.tolist()
        self.may_stand = [
            [position_bounds(sum(row), size, request.trials, extensions) for size in self.sizes] for row in self.heard
        ]

    def run(self, random: np.random.Generator, progress: Progress | None = None) -> None:
        """Run all steps."""
        sessions, trials = self.order.shape
        for step in range(SWEEPS * trials):
            if progress is not None and step % trials == 0:
                progress(step // trials, SWEEPS, "shuffling")
            self._step(*random.integers(0, trials, (2, sessions)))

    def _step(self, one: Ints, other: Ints) -> None:
        rows = np.arange(len(self.order))
        self._exchange(rows, one, other)
        is_right = self._keeps_rules()
        systems = self.system[rows, one], self.system[rows, other]
        asked = np.flatnonzero(is_right & (self.quarter[one] != self.quarter[other]) & (systems[0] != systems[1]))
        moved = [asked, *(part[asked] for part in (*systems, self.quarter[one], self.quarter[other]))]
        for row, *move in zip(*(part.tolist() for part in moved), strict=True):
            is_right[row] = self._may_move(*move)
        undone = np.flatnonzero(~is_right)
        self._exchange(undone, one[undone], other[undone])

    def _exchange(self, rows: Ints, one: Ints, other: Ints) -> None:
        self.kept[:, rows, one], self.kept[:, rows, other] = self.kept[:, rows, other], self.kept[:, rows, one]

    def _keeps_rules(self) -> Flags:
        """Return which sessions keep every rule within a session."""
        is_original = self.system == 0
        found = np.ones(len(self.order), dtype=np.bool_)
        for groups, (low, high) in zip((is_original, self.target), self.parts, strict=True):
            counts = groups.astype(np.float32) @ self.in_quarter
            found &= ((counts >= low) & (counts <= high)).all(axis=1)
        longest = self.needs.longest_run
        if longest < is_original.shape[1]:
            is_same = is_original[:, 1:] == is_original[:, :-1]
            in_a_row = is_same[:, longest - 1 :].copy()
            for back in range(1, longest):
                in_a_row &= is_same[:, longest - 1 - back : -back]
            found &= ~in_a_row.any(axis=1)
        for distance in range(1, self.needs.speaker_gap):
            found &= (self.speaker[:, distance:] != self.speaker[:, :-distance]).all(axis=1)
        if self.needs.systems_apart:
            found &= ((self.system[:, 1:] != self.system[:, :-1]) | is_original[:, 1:]).all(axis=1)
        return found

    def _may_move(self, system: int, other: int, here: int, there: int) -> bool:
        """Count two systems in the quarters that they have now, if they may stand there as often; 0 for an original."""
        moves = [(system - 1, here, 1), (system - 1, there, -1)] if system else []
        moves += [(other - 1, there, 1), (other - 1, here, -1)] if other else []
        if any(self.heard[row][quarter] + by not in self.may_stand[row][quarter] for row, quarter, by in moves):
            return False
        for row, quarter, by in moves:
            self.heard[row][quarter] += by
        return True

    def _parts(self, groups: Flags) -> tuple[Ints, Ints]:
        """Return the fewest and the most of a group in each quarter, shapes (sessions, quarters)."""
        trials = groups.shape[1]
        bounds = [
            [Bounds.around(Fraction(count * size, trials)) for size in self.sizes]
            for count in groups.sum(axis=1).tolist()
        ]
        low, high = ([[getattr(one, end) for one in row] for row in bounds] for end in ("lowest", "highest"))
        return np.array(low), np.array(high)
