"""Control trials: whether their answers are right, and who fails because of too many wrong ones; who did not listen.

The page of the trials takes no answer before every recording that it is about was played to its end, and sends the
playbacks in the same request as the answer. So nothing on the way can lose one without the other, and who answers most
trials without them uses another program. That is what `cannot_have_listened` asks; that the recordings were fetched and
could be heard in the time that passed is certain of every answer that was taken (`answer_timing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MOST_UNHEARD = 0.5  # of the answered trials; far more than an honest browser can leave out
SHORT_S = 0.25
MOST_PLAYS = 200  # of a trial that are kept: of one with more nobody can say which are missing


def is_gold_missed(expected: Mapping[str, Sequence[int]], given: Mapping[str, int | None]) -> bool:
    """Whether an answer to a control trial lies outside of what everybody hears; unanswered tasks are not counted.

    Args:
        expected: by task the lowest and the highest right rating.
        given: by task the rating.
    """
    for task, (lowest, highest) in expected.items():
        rating = given.get(task)
        if rating is not None and not lowest <= rating <= highest:
            return True
    return False


def missed_of_gold(rows: Iterable[tuple[int, Mapping[str, Sequence[int]], str, int | None]]) -> list[bool]:
    """Of each answered control trial whether it was missed; `rows`: trial, its right ranges, task, rating."""
    given: dict[int, dict[str, int | None]] = {}
    expected: dict[int, Mapping[str, Sequence[int]]] = {}
    for trial, right, task, rating in rows:
        given.setdefault(trial, {})[task] = rating
        expected[trial] = right
    return [is_gold_missed(expected[trial], given[trial]) for trial in given]


def fails_attention(*, missed: int, answered: int) -> bool:
    """More than half of the answered control trials missed; one slip among two is no reason."""
    return 2 * missed > answered


def is_unheard(needed: Mapping[str, float], plays: Sequence[tuple[str, int, bool]]) -> bool:
    """Return whether a recording that an answer needs was, by what the browser reports, never played to its end.

    Args:
        needed: by slot how long its speech lasts, in s.
        plays: slot, ms that were heard, and whether that was all of it, of each playback.

    Example:
        >>> is_unheard({"a": 3.0}, [("a", 1200, False)]), is_unheard({"a": 3.0}, [("a", 3300, True)])
        (True, False)
    """
    heard = {slot for slot, ms, is_whole in plays if is_whole and ms >= 1000 * (needed.get(slot, 0.0) - SHORT_S)}
    return not needed.keys() <= heard and len(plays) < MOST_PLAYS


def cannot_have_listened(*, unheard: int, answered: int) -> bool:
    """Return whether most of the answered trials were never played."""
    return unheard > MOST_UNHEARD * answered
