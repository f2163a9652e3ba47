"""Control trials: whether their answers are right, and who fails because of too many wrong ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


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
