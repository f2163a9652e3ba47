"""Control trials: whether their answers are right, and who fails because of too many wrong ones; who did not listen.

The page of the trials takes no answer before every recording that it is about was heard as far as `seconds_to_hear`
says, and sends the playbacks in the same request as the answer. So nothing on the way can lose one without the other,
and who answers most trials without them uses another program. That is what `cannot_have_listened` asks; that the
recordings were fetched and could be heard in the time that passed is certain of every answer that was taken
(`answer_timing`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from listening.questions import PART_S, AskedQuestion, Screen

MOST_UNHEARD = 0.5  # of the answered trials; far more than an honest browser can leave out
SHORT_S = 0.25
MOST_PLAYS = 200  # of a trial that are kept: of one with more nobody can say which are missing


def is_gold_missed(expected: Mapping[str, Sequence[int]], given: Mapping[str, int | None]) -> bool:
    """Return whether an answer to a control trial is outside of what everybody hears; unanswered tasks do not count.

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
    """Return of each answered control trial whether it was missed; `rows`: trial, its right ranges, task, rating."""
    given: dict[int, dict[str, int | None]] = {}
    expected: dict[int, Mapping[str, Sequence[int]]] = {}
    for trial, right, task, rating in rows:
        given.setdefault(trial, {})[task] = rating
        expected[trial] = right
    return [is_gold_missed(expected[trial], given[trial]) for trial in given]


def fails_attention(*, missed: int, answered: int) -> bool:
    """Return whether more than half of the answered control trials were missed; one slip among two is no reason."""
    return 2 * missed > answered


def seconds_to_hear(asked: Collection[AskedQuestion], samples: Mapping[str, float]) -> dict[str, float]:
    """Return how much of the samples of a trial has to be heard for these questions; nothing for no question.

    Args:
        samples: by slot how long each lasts, in s.

    Returns:
        By slot the seconds of each that has to be heard: of a question about sample A alone of no other, on screens
        where one is changed for another `PART_S` at most.
    """
    is_alone = all(one.screen == Screen.SINGLE for one in asked)
    in_parts = any(one.is_heard_in_parts for one in asked)
    return {
        slot: min(seconds, PART_S) if in_parts else seconds
        for slot, seconds in samples.items()
        if asked and (slot == "a" or not is_alone)
    }


def is_unheard(
    asked: Collection[AskedQuestion], samples: Mapping[str, float], plays: Sequence[tuple[str, int, bool]]
) -> bool:
    """Return whether the browser reports less of a recording than an answer needs.

    It has to be played to its end at once; on screens where one is changed for another, all plays of it are added up.

    Args:
        asked: the questions that were answered.
        samples: by slot how long the speech of each sample lasts, in s.
        plays: slot, ms that were heard, and whether that was all of it, of each playback.

    Example:
        >>> from listening.questions import load_preset
        >>> asked, samples = load_preset("mos").questions, {"a": 3.0}
        >>> is_unheard(asked, samples, [("a", 1200, False)]), is_unheard(asked, samples, [("a", 3300, True)])
        (True, False)
    """
    in_parts = any(one.is_heard_in_parts for one in asked)
    heard_ms: dict[str, int] = {}
    for slot, ms, is_whole in plays:
        if in_parts:
            heard_ms[slot] = heard_ms.get(slot, 0) + ms
        elif is_whole:
            heard_ms[slot] = max(heard_ms.get(slot, 0), ms)
    needed = seconds_to_hear(asked, samples)
    is_short = any(
        slot not in heard_ms or heard_ms[slot] < 1000 * (seconds - SHORT_S) for slot, seconds in needed.items()
    )
    return is_short and len(plays) < MOST_PLAYS


def cannot_have_listened(*, unheard: int, answered: int) -> bool:
    """Return whether most of the answered trials were never played."""
    return unheard > MOST_UNHEARD * answered
