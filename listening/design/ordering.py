"""The order of every block: never more of a kind in a row, nor a speaker or system sooner again, than the rules allow.

Quarters come first (`quarters`); then each block is filled place by place, at random among what fits, looking ahead on
what remains, stepping back where nothing fits, and starting again with other quarters where that takes too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from listening.design.plan import (
    QUARTERS,
    SPEAKER_GAP,
    Candidate,
    DesignError,
    DesignRequest,
    Requirements,
    quarter_of_place,
)
from listening.design.quarters import Quarters

Progress = Callable[[int, int, str], None]
_STARTS = 150
_LOOKS_PER_PLACE = 20
_EVENING_ROUNDS = 40  # for each block
_STRICT_ROUNDS = 60


def order_blocks(
    request: DesignRequest,
    needs: Requirements,
    blocks: Sequence[Sequence[Candidate]],
    earlier: Sequence[Sequence[Candidate]],
    random: np.random.Generator,
    progress: Progress | None = None,
    extensions: int = 0,
) -> list[tuple[Candidate, ...]]:
    """The trials of each block in the order of hearing.

    Args:
        earlier: ordered blocks that are there already and count for where the systems stand.
        extensions: how many there are, this one included.

    Raises:
        DesignError: a block cannot be ordered, or the systems cannot stand evenly; says which rule is in the way.
    """
    quarters = Quarters(request, random, extensions)
    of_place = quarter_of_place(request.trials)
    for block in earlier:
        quarters.count(block, of_place)
    ordered = []
    for number, block in enumerate(blocks):
        ordered.append(_order_block(request, needs, block, quarters, random))
        if progress is not None:
            progress(number + 1, len(blocks), "ordering")
    rounds = _EVENING_ROUNDS * len(blocks)
    for redone in range(rounds + 1):
        uneven = quarters.uneven(is_strict=redone < min(_STRICT_ROUNDS, rounds // 2))
        if not uneven.any():
            return ordered
        if redone == rounds:
            break
        number = _block_to_redo(ordered, uneven, quarters, of_place, random)
        quarters.count(ordered[number], of_place, -1)
        ordered[number] = _order_block(request, needs, ordered[number], quarters, random)
    raise DesignError([_uneven_systems(request, quarters)])


def _order_block(
    request: DesignRequest,
    needs: Requirements,
    block: Sequence[Candidate],
    quarters: Quarters,
    random: np.random.Generator,
) -> tuple[Candidate, ...]:
    for start in range(_STARTS):
        placed = quarters.place(block, start)
        if placed is None:
            break
        found = _Filling(request, needs, block, placed, random).run()
        if found is not None:
            quarters.count(found, quarter_of_place(request.trials))
            return tuple(found)
    speakers = Counter(trial.speaker for trial in block).most_common(1)[0]
    raise DesignError(
        [
            f"No order of {request.trials} trials was found in {_STARTS} starts: a speaker at least {needs.speaker_gap}"
            f" places apart (speaker {speakers[0]} has {speakers[1]} trials), at most {needs.longest_run} of a kind in"
            f" a row ({request.originals} originals, {request.anonymised} anonymised), systems not next to themselves"
            f" ({len(request.systems)} systems), every quarter with its part of each kind and class. More speakers,"
            " more systems, or nearly as many originals as anonymised trials would give it room."
        ]
    )


def _block_to_redo(
    ordered: Sequence[Sequence[Candidate]],
    uneven: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    quarters: Quarters,
    of_place: Sequence[int],
    random: np.random.Generator,
) -> int:
    """A block that puts a system where it is heard too often, or else one that has a system heard too seldom there."""
    weight = [
        sum(
            max(0, int(uneven[quarters.number[trial.system], quarter]))
            + bool(uneven[quarters.number[trial.system]].any())
            for trial, quarter in zip(block, of_place, strict=True)
            if trial.system
        )
        for block in ordered
    ]
    chances = np.array(weight, dtype=np.float64) + 1e-3
    return int(random.choice(len(ordered), p=chances / chances.sum()))


def _uneven_systems(request: DesignRequest, quarters: Quarters) -> str:
    names = [request.systems[number] for number in np.flatnonzero(quarters.uneven().any(axis=1))]
    return (
        f"Expected every system as often in each quarter of the sessions, found no order in which {', '.join(names)}"
        f" is, for {request.evaluators} evaluators with {request.anonymised} anonymised trials each. More evaluators"
        " or fewer systems would do."
    )


class _Filling:
    """One block that is filled from the first place to the last."""

    def __init__(
        self,
        request: DesignRequest,
        needs: Requirements,
        block: Sequence[Candidate],
        placed: Sequence[int],
        random: np.random.Generator,
    ) -> None:
        self.needs, self.random, self.trials = needs, random, request.trials
        self.waiting: list[list[Candidate]] = [[] for _ in range(QUARTERS)]
        for trial, quarter in zip(block, placed, strict=True):
            self.waiting[quarter].append(trial)
        self.of_place = quarter_of_place(request.trials)
        self.order: list[Candidate] = []
        self.last: dict[str, int] = {}
        self.speakers = Counter(trial.speaker for trial in block)
        self.kinds = Counter(trial.is_original for trial in block)
        self.looks = _LOOKS_PER_PLACE * request.trials

    def run(self) -> list[Candidate] | None:
        """The order, or None where none was found with the looks that there are."""
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
        """What fits here, at random, but first what has most of its speaker or its system still to come."""
        last = self.order[-1] if self.order else None
        run = self._run()
        systems = Counter(trial.system for trial in waiting if trial.system)
        speakers = Counter(trial.speaker for trial in waiting)
        rated: list[tuple[float, int, Candidate]] = []
        for trial, chance in zip(waiting, self.random.random(len(waiting)), strict=True):
            is_same_system = last is not None and trial.system and trial.system == last.system
            if self.needs.systems_apart and is_same_system:
                continue
            if last is not None and trial.is_original == last.is_original and run >= self.needs.longest_run:
                continue
            if place - self.last.get(trial.speaker, -SPEAKER_GAP) < self.needs.speaker_gap:
                continue
            urgency = speakers[trial.speaker] + 0.5 * systems[trial.system] + 0.2 * self.speakers[trial.speaker]
            rated.append((-2 * chance - urgency, len(rated), trial))
        return [trial for _, _, trial in sorted(rated)]

    def _run(self) -> int:
        """How many of one kind stand at the end."""
        run = 0
        for trial in reversed(self.order):
            if trial.is_original != self.order[-1].is_original:
                break
            run += 1
        return run

    def _has_way_on(self, waiting: Sequence[Candidate], place: int) -> bool:
        """Whether what remains, of the session and of the quarter, can still be parted and still finds its places."""
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
