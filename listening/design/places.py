"""What the place of a trial tells of it, and what it would tell in any order under the same rules.

The rules of order alone let a listener guess: after two originals comes no third. `find_kinds_by_place` says how often
each kind would stand at each place, after each two kinds before, if all orders of kinds that keep the rules were
equally likely: every order is counted from both of its ends. `guess_held_out` is the listener who knows of other
evaluators what they heard at each place, and of this one the two kinds before. `bound_by_chance` says how often
something may stand at a place before chance does not explain it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import exp, lgamma, log, sqrt

from listening.design.requirements import Bounds, quarter_of_place, quarter_sizes

Kinds = tuple[bool, ...]  # True for an original
CUES = 2  # kinds before that a listener remembers
_FOLDS = 4
_CHANCE = 1e-8  # a design has some thousands of counts
_MORE = 0.02
_DEVIATIONS = 8  # of independent guesses: those of one place hang together


@dataclass(frozen=True, slots=True)
class KindsByPlace:
    """Attributes:
    originals: how likely one stands at each place.
    guessed: the part of all trials whose kind is guessed right from its place; from that and the two kinds before.
    """

    originals: tuple[float, ...]
    guessed: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _State:
    """How an order of kinds begins: its last kinds, those alike at its end, its originals, those of this quarter."""

    last: Kinds = ()
    run: int = 0
    originals: int = 0
    here: int = 0


@cache
def find_kinds_by_place(trials: int, originals: int, longest_run: int) -> KindsByPlace | None:
    """Return what all orders of kinds under the rules have in common; None where there is no such order."""
    sizes, of_place = quarter_sizes(trials), quarter_of_place(trials)

    def go_on(state: _State, place: int) -> Iterator[_State]:
        quarter = of_place[place]
        is_end = place == trials - 1 or of_place[place + 1] != quarter
        for kind in (True, False):
            run = state.run + 1 if state.last[-1:] == (kind,) else 1
            total, here = state.originals + kind, state.here + kind
            if run > longest_run or (
                is_end and here not in Bounds.around(Fraction(originals * sizes[quarter], trials))
            ):
                continue
            if total <= originals and (place < trials - 1 or total == originals):
                yield _State((*state.last, kind)[-CUES:], run, total, 0 if is_end else here)

    beginnings = [Counter({_State(): 1})]
    for place in range(trials):
        found: Counter[_State] = Counter()
        for state, ways in beginnings[-1].items():
            for after in go_on(state, place):
                found[after] += ways
        beginnings.append(found)
    orders = beginnings[-1].total()
    if not orders:
        return None
    ends: Counter[_State] = Counter(dict.fromkeys(beginnings[-1], 1))
    shares, guessed = [0.0] * trials, 0.0
    for place in reversed(range(trials)):
        before: Counter[_State] = Counter()
        ways_of: dict[Kinds, Counter[bool]] = {}
        for state, ways in beginnings[place].items():
            for after in go_on(state, place):
                before[state] += ends[after]
                ways_of.setdefault(state.last, Counter())[after.last[-1]] += ways * ends[after]
        shares[place] = sum(ways[True] for ways in ways_of.values()) / orders
        guessed += sum(max(ways.values()) for ways in ways_of.values()) / orders
        ends = before
    alone = sum(max(share, 1 - share) for share in shares)
    return KindsByPlace(tuple(shares), (alone / trials, guessed / trials))


def guess_held_out(sessions: Sequence[Sequence[tuple[object, str]]]) -> tuple[int, int]:
    """Return how many labels are guessed right, of how many: each from other sessions where the cue is the same.

    Args:
        sessions: of each evaluator a cue and a label for each trial; a quarter of the evaluators is held out at a time.
    """
    parts = [Counter(one for session in sessions[fold::_FOLDS] for one in session) for fold in range(_FOLDS)]
    right, total = 0, sum(map(Counter.total, parts))
    for part in parts:
        others = sum((one for one in parts if one is not part), Counter[tuple[object, str]]())
        guess: dict[object, tuple[int, str]] = {}
        labels: Counter[str] = Counter()
        for (cue, label), count in others.items():
            guess[cue] = max(guess.get(cue, (0, "")), (count, label))
            labels[label] += count
        usual = max(labels.items(), key=lambda one: one[::-1], default=("", 0))
        right += sum(count for (cue, label), count in part.items() if guess.get(cue, usual[::-1])[1] == label)
    return right, total


def bound_guesses(share: float, trials: int) -> float:
    """Return the part of so many trials that may be guessed right where any order gives a share.

    Two points and noise more.
    """
    return min(1.0, share + _MORE + _DEVIATIONS * sqrt(share * (1 - share) / max(1, trials)))


@cache
def bound_by_chance(number: int, share: float) -> Bounds:
    """Return between which counts so many independent draws lie.

    All but one in a hundred million do, on either side.
    """
    if not 0 < share < 1:
        return Bounds(round(number * share), round(number * share))
    ways = (lgamma(number + 1) - lgamma(count + 1) - lgamma(number - count + 1) for count in range(number + 1))
    chances = [exp(way + count * log(share) + (number - count) * log(1 - share)) for count, way in enumerate(ways)]
    below = sum(chance < _CHANCE for chance in accumulate(chances))
    above = sum(chance < _CHANCE for chance in accumulate(reversed(chances)))
    return Bounds(below, number - above)
