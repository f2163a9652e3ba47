"""The constraints on one session as groups of candidates, each with a lowest and a highest number of trials.

A design fills every session within all of these bounds; what is over or under is its *excess*, which dealing and
swapping bring to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from listening.design.plan import Bounds, DesignRequest, Half, Requirements

Integers = NDArray[np.int64]
SYSTEM, CLASS, SEX, SPEAKER, SOURCE, ENROLMENT, CANDIDATE = range(7)
FAMILIES = 7


@dataclass(frozen=True, eq=False)
class Groups:
    """Attributes:
    member: shape (candidates, families), number of the group that a candidate belongs to in each family.
    lowest, highest: shape (groups,), bounds of one session.
    names: what each group is, in words.
    """

    member: Integers
    lowest: Integers
    highest: Integers
    names: Sequence[str]


def groups_of(request: DesignRequest, needs: Requirements) -> Groups:
    """Every constraint of `needs` that binds a session, whatever its order."""
    numbers: dict[str, int] = {}
    bounds: list[Bounds] = []

    def number(name: str, bound: Bounds) -> int:
        if name not in numbers:
            numbers[name] = len(bounds)
            bounds.append(bound)
        return numbers[name]

    any_number = Bounds(0, request.trials)
    words = {True: "target", False: "non-target", None: "unpaired", "f": "female", "m": "male"}
    rows = []
    for candidate in request.candidates:
        original = candidate.is_original
        half: Half = needs.originals if original else needs.anonymised
        kind = "originals" if original else "anonymised trials"
        of_class = any_number if candidate.is_target is None else half.classes[candidate.is_target]
        enrolment = Bounds(0, needs.enrolment) if candidate.enrolment else any_number
        rows.append(
            [
                number(f"system {candidate.system}", any_number if original else needs.system),
                number(f"{words[candidate.is_target]} {kind}", of_class),
                number(f"{words[candidate.sex]} {kind}", half.sexes[candidate.sex]),
                number(f"{kind} of speaker {candidate.speaker}", Bounds(0, half.speakers[candidate.speaker])),
                number(f"trial utterance {candidate.source}", Bounds(0, needs.source)),
                number(f"enrolment utterance {candidate.enrolment}", enrolment),
                number(f"trial {candidate.key}", Bounds(0, 1)),
            ]
        )
    return Groups(
        np.array(rows, dtype=np.int64).reshape(-1, FAMILIES),
        np.array([bound.lowest for bound in bounds], dtype=np.int64),
        np.array([bound.highest for bound in bounds], dtype=np.int64),
        list(numbers),
    )


def excess(counts: Integers, lowest: Integers, highest: Integers) -> Integers:
    """How far each count is outside of its bounds; shapes that broadcast."""
    return np.asarray(np.maximum(counts - highest, 0) + np.maximum(lowest - counts, 0), dtype=np.int64)
