"""How soon something alike may be heard again in a session: trials of one kind in a row, and the same speaker.

A session that cannot meet a rule in full is held to what its numbers permit.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

LONGEST_RUN = 2
SPEAKER_GAP = 3


def longest_run(originals: int, anonymised: int) -> int:
    """Return two, or half a trial more than come to one of the rarer kind, rounded up; all if there is one kind.

    Less would leave hardly any order but one, in which every place tells its kind.
    """
    rarer, commoner = sorted([originals, anonymised])
    return commoner if rarer == 0 else max(LONGEST_RUN, ceil(Fraction(commoner, rarer) + Fraction(1, 2)))


def speaker_gap(trials: int, most: Mapping[str, int]) -> int:
    """Return the gap between trials of one speaker.

    At a gap of g, g - 1 speakers are barred from each place: as many again, and one, must be left to choose from.

    And all trials of each speaker, T/g of them at most, must find places that far apart.

    Args:
        trials: of a session.
        most: the most trials of each speaker in it.
    """
    gap = min(SPEAKER_GAP, (len(most) + 1) // 2)
    largest = max(most.values(), default=1)
    return max(1, min(gap, trials // max(1, largest)))
