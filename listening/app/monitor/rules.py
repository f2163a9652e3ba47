"""Rules that look at what one session did and say what an organizer should look at.

Pure functions of a `Record`: nothing here reads the database, and of all flags but the last nothing follows by itself.
Each rule of patterns needs enough to look at (`enough`), so that nobody is flagged for their first few ratings. Ratings
are whole numbers from 1 to the points of the scale, in the order in which they were given, without practice trials;
durations in s.

Thresholds and where they come from:

- straight-lining: the same rating of one task for half the session, at least `LEAST` times in a row;
- low variance: the P.808 toolkit leaves out who varies by less than 0.1 on five points; here that limit is carried to
  the study's scale, so 0.506 on ten points;
- alternating: a pattern of two to four ratings, repeated for half the session;
- too fast: a median time per trial under 60 % of the length of its speech;
- control trials: one outside of its right range; listening checks: no attempt passed, once they are over;
- playback: muted, sped up or skipped ahead in one trial, or in the background in `HIDDEN_TRIALS` of them; what ended
  there does not count as heard, and its page asks for it again;
- not heard: more than half of the trials answered without a playback to the end (`listening.app.sessions.attention`);
  the only flag from which something follows by itself: a rule that leaves these sessions out, until it is revoked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import median, pvariance
from typing import Any

from listening.app.sessions.attention import cannot_have_listened

LEAST = 8
SHARE_OF_SESSION = 0.5
VARIANCE_ON_FIVE_POINTS = 0.1
PERIODS = (2, 3, 4)
FAST_SHARE = 0.6
GOLD_MISSES = 1
TAMPERED = frozenset({"muted", "volume", "rate", "seek"})
HIDDEN = "hidden"
HIDDEN_TRIALS = 3


@dataclass(frozen=True)
class Timing:
    """How long somebody spent on a trial and how long its speech is, both in s."""

    spent_s: float
    speech_s: float


@dataclass(frozen=True)
class Record:
    """What the rules look at.

    Attributes:
        points: of the scale of each question; a choice has none, since its numbers are no order.
        planned: trials of the session without practice.
        unheard: of each answered trial whether one of its recordings was never played to its end.
        ratings: by task, in the order of answering.
        gold: of each answered control trial whether every rating was in its right range.
        checks: by check of headphones, bandwidth or environment that is over, whether an attempt passed.
        notes: what was noted about the playbacks of each trial that has such notes.
    """

    points: Mapping[str, int]
    planned: int
    ratings: Mapping[str, Sequence[int]] = field(default_factory=dict)
    timings: Sequence[Timing] = ()
    gold: Sequence[bool] = ()
    checks: Mapping[str, bool] = field(default_factory=dict)
    notes: Sequence[frozenset[str]] = ()
    unheard: Sequence[bool] = ()

    @property
    def enough(self) -> int:
        """Return how many answers a pattern must hold for before it says anything."""
        return max(LEAST, ceil(SHARE_OF_SESSION * self.planned))


def findings(record: Record) -> dict[str, dict[str, Any]]:
    """Return by kind of `Flag` the numbers on which what a rule found rests, never the ratings themselves."""
    return {kind: data for kind, rule in RULES.items() if (data := rule(record))}


def straight_lining(record: Record) -> dict[str, Any]:
    """Return the question with the longest stretch of one and the same rating."""
    lengths = {task: longest_repeat(ratings, 1) for task, ratings in record.ratings.items()}
    return _longest(lengths, record)


def low_variance(record: Record) -> dict[str, Any]:
    """Return the question whose ratings vary least on its scale, where they do vary; equal ones are straight-lining."""
    rated = {task: record.ratings[task] for task in record.points if len(record.ratings.get(task, ())) >= record.enough}
    limits = {task: variance_limit(record.points[task]) for task in rated}
    low = {task: variance for task, ratings in rated.items() if 0 < (variance := pvariance(ratings)) < limits[task]}
    if not low:
        return {}
    task = min(low, key=lambda one: low[one] / limits[one])
    return {"task": task, "variance": round(low[task], 3), "limit": round(limits[task], 3), "of": len(rated[task])}


def alternating(record: Record) -> dict[str, Any]:
    """Return the question with the longest stretch of a repeated pattern of two to four ratings.

    Not of choices: among so few answers patterns come by chance.
    """
    lengths = {
        task: max(longest_repeat(ratings, period) for period in PERIODS)
        for task, ratings in record.ratings.items()
        if task in record.points
    }
    return _longest(lengths, record)


def too_fast(record: Record) -> dict[str, Any]:
    """Return the median over the trials of the time spent, as a share of the length of the speech."""
    shares = [one.spent_s / one.speech_s for one in record.timings if one.speech_s > 0]
    if len(shares) < record.enough or median(shares) >= FAST_SHARE:
        return {}
    return {"median_share": round(median(shares), 3), "limit": FAST_SHARE, "of": len(shares)}


def gold_missed(record: Record) -> dict[str, Any]:
    missed = sum(not is_right for is_right in record.gold)
    return {"missed": missed, "of": len(record.gold)} if missed >= GOLD_MISSES else {}


def check_failed(record: Record) -> dict[str, Any]:
    failed = sorted(kind for kind, has_passed in record.checks.items() if not has_passed)
    return {"checks": failed} if failed else {}


def playback(record: Record) -> dict[str, Any]:
    tampered = sum(bool(noted & TAMPERED) for noted in record.notes)
    hidden = sum(HIDDEN in noted for noted in record.notes)
    if not tampered and hidden < HIDDEN_TRIALS:
        return {}
    return {"tampered": tampered, "hidden": hidden}


def not_heard(record: Record) -> dict[str, Any]:
    unheard, answered = sum(record.unheard), len(record.unheard)
    return {"unheard": unheard, "of": answered} if cannot_have_listened(unheard=unheard, answered=answered) else {}


RULES: dict[str, Callable[[Record], dict[str, Any]]] = {
    "straight-lining": straight_lining,
    "low-variance": low_variance,
    "alternating": alternating,
    "too-fast": too_fast,
    "gold-missed": gold_missed,
    "headphones": check_failed,
    "playback": playback,
    "not-heard": not_heard,
}


def variance_limit(points: int) -> float:
    """Return the limit of five points, carried to another scale by the square of its range."""
    return VARIANCE_ON_FIVE_POINTS * ((points - 1) / 4) ** 2


def longest_repeat(ratings: Sequence[int], period: int) -> int:
    """Return how long the longest stretch is in which each rating equals the one `period` before; 0 where none repeats.

    With a period above 1, a stretch of equal ratings is no pattern and does not count.

    Example:
        >>> longest_repeat([3, 3, 3, 5], 1), longest_repeat([1, 9, 1, 9, 1, 4], 2), longest_repeat([3, 3, 3], 2)
        (3, 5, 0)
    """
    return max((last - first for first, last in _stretches(ratings, period)), default=0)


def _stretches(ratings: Sequence[int], period: int) -> Iterator[tuple[int, int]]:
    """Yield first and last + 1 of each stretch that repeats with this period, of plain repetitions only if it is 1."""
    first = 0
    for place in range(period, len(ratings) + 1):
        if place < len(ratings) and ratings[place] == ratings[place - period]:
            continue
        if place - first > period and (period == 1 or len(set(ratings[first:place])) > 1):
            yield first, place
        first = place - period + 1


def _longest(lengths: Mapping[str, int], record: Record) -> dict[str, Any]:
    if not lengths:
        return {}
    task = max(lengths, key=lambda one: lengths[one])
    if lengths[task] < record.enough:
        return {}
    return {"task": task, "length": lengths[task], "of": len(record.ratings[task])}
