"""Which ratings count, and what they score: raw ratings, or ranks normalised within each listener and task.

Only ratings of purpose ``scored`` count: practice, control and bridge trials never enter scores. Sessions that a
standing rule leaves out do not count unless asked for. A session that was not finished enters *normalised* scores only
where it holds enough ratings of a task (`Settings.partial_trials`, and `partial_of_each_kind` of original and of
anonymised speech): whoever quits after the easy half would get inflated low ranks. Raw scores keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from listening.analysis.inputs import (
    BRIDGE,
    GOLD,
    ORIGINAL,
    PRACTICE,
    RATED,
    SCORED,
    Flags,
    Ints,
    Ratings,
    Scored,
    Texts,
)
from listening.analysis.normalisation import normalised_ranks
from listening.analysis.settings import Settings

RAW, NORMALISED = "raw", "normalised"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What did not count, and who was flagged: numbers by name, and sentences for readers of the results."""

    counts: Mapping[str, int]
    remarks: tuple[str, ...]


def scored_ratings(
    ratings: Ratings,
    scale: Mapping[str, tuple[float, float]],
    settings: Settings,
    kind: str,
    *,
    with_excluded: bool = False,
) -> Scored:
    """The ratings that count for a kind of scores, with their scores.

    Args:
        ratings: all that were read.
        scale: lowest and highest rating by task.
        kind: ``raw`` or ``normalised``.
        with_excluded: keep the sessions that a standing rule leaves out.
    """
    counting = ratings.purpose == SCORED
    if not with_excluded:
        counting &= ratings.excluded == ""
    chosen: Ratings = ratings.rows(counting)
    if kind == NORMALISED:
        chosen = chosen.rows(~_in_short_session(chosen, settings))
    listeners, listener = np.unique(chosen.listener, return_inverse=True)
    listener = listener.astype(np.int64)
    if kind == RAW:
        return Scored(RAW, chosen, chosen.rating.astype(np.float64), listener, listeners, dict(scale))
    ranks = normalised_ranks(chosen.rating, _listener_and_task(chosen, listener), settings.normalisation)
    return Scored(NORMALISED, chosen, ranks.score, listener, listeners, dict.fromkeys(scale, (0.0, 1.0)))


def left_out(ratings: Ratings, settings: Settings) -> LeftOut:
    """What `scored_ratings` leaves out of raw and of normalised scores, and which listeners are flagged."""
    is_scored, stands = ratings.purpose == SCORED, ratings.excluded == ""
    counting: Ratings = ratings.rows(is_scored & stands)
    short = _in_short_session(counting, settings)
    normalised: Ratings = counting.rows(~short)
    excluded: Ratings = ratings.rows(~stands)
    counts = {
        "ratings_read": len(ratings),
        "sessions_read": _sessions(ratings),
        "listeners_read": _different(ratings.listener),
        "ratings": len(counting),
        "sessions": _sessions(counting),
        "listeners": _different(counting.listener),
        "left_out": len(excluded),
        "excluded_sessions": _sessions(excluded),
        "excluded_listeners": _different(excluded.listener),
        "practice_ratings": int((ratings.purpose == PRACTICE).sum()),
        "gold_ratings": int((ratings.purpose == GOLD).sum()),
        "bridge_ratings": int((ratings.purpose == BRIDGE).sum()),
        "partial_sessions": _sessions(counting.rows(~counting.is_finished)),
        "short_sessions": _sessions(counting.rows(short)),
        "short_ratings": int(short.sum()),
        "ratings_normalised": len(normalised),
        "flat_listeners": _different(_flat_listeners(normalised, settings)),
    }
    return LeftOut(counts, tuple(_remarks(counts, normalised, settings)))


def _in_short_session(ratings: Ratings, settings: Settings) -> Flags:
    """Whether a rating is of a session that was not finished and holds too few ratings of its task."""
    if not len(ratings) or ratings.is_finished.all():
        return np.zeros(len(ratings), np.bool_)
    task = _task_numbers(ratings)
    _, part = np.unique(_session_numbers(ratings) * len(RATED) + task, return_inverse=True)
    is_original = ratings.system == ORIGINAL
    enough = np.bincount(part) >= settings.partial_trials
    for of_kind in (is_original, ~is_original):
        # Where a task has no originals at all, nobody can have rated enough of them.
        is_asked = np.bincount(task, of_kind, len(RATED)) > 0
        has_enough = np.bincount(part, of_kind) >= settings.partial_of_each_kind
        asked_of_part = np.zeros(enough.size, np.bool_)
        asked_of_part[part] = is_asked[task]
        enough &= has_enough | ~asked_of_part
    return ~ratings.is_finished & ~enough[part]


def _flat_listeners(ratings: Ratings, settings: Settings) -> Texts:
    """Listeners with one rating in a task, or equal ones only; once for each such rating."""
    if not len(ratings):
        return ratings.listener
    _, listener = np.unique(ratings.listener, return_inverse=True)
    ranks = normalised_ranks(ratings.rating, _listener_and_task(ratings, listener), settings.normalisation)
    return ratings.listener[ranks.is_flat]


def _remarks(counts: Mapping[str, int], normalised: Ratings, settings: Settings) -> list[str]:
    """Sentences for what is not nothing."""
    said = []
    if counts["left_out"]:
        said.append(
            f"{_number(counts['excluded_sessions'], 'session')} of {_number(counts['excluded_listeners'], 'listener')} "
            f"with {_number(counts['left_out'], 'rating')} {_are(counts['excluded_sessions'])} left out by standing "
            "rules."
        )
    if aside := counts["practice_ratings"] + counts["gold_ratings"] + counts["bridge_ratings"]:
        said.append(
            f"{_number(aside, 'rating')} of practice ({counts['practice_ratings']:,}), control "
            f"({counts['gold_ratings']:,}) and bridge trials ({counts['bridge_ratings']:,}) enter no scores."
        )
    if counts["short_ratings"]:
        said.append(
            f"{_number(counts['short_ratings'], 'rating')} of "
            f"{_number(counts['short_sessions'], 'unfinished session')} count for raw scores only: normalised ones "
            f"need {settings.partial_trials} ratings of a task, {settings.partial_of_each_kind} each of original and "
            "of anonymised speech."
        )
    if flat := sorted(set(_flat_listeners(normalised, settings).tolist())):
        named = ", ".join(flat[:5]) + (", …" if len(flat) > 5 else "")
        said.append(
            f"{_number(len(flat), 'listener')} gave one rating, or equal ones only, in a task; normalised they are "
            f"all 0.5: {named}."
        )
    return said


def _number(count: int, of: str) -> str:
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _task_numbers(ratings: Ratings) -> Ints:
    numbers = np.zeros(len(ratings), np.int64)
    for number, task in enumerate(RATED):
        numbers[ratings.task == task] = number
    return numbers


def _listener_and_task(ratings: Ratings, listener: Ints) -> Ints:
    return listener * len(RATED) + _task_numbers(ratings)


def _session_numbers(ratings: Ratings) -> Ints:
    """Equal for equal sessions of one listener; some tools number the sessions of each listener from 1."""
    _, listener = np.unique(ratings.listener, return_inverse=True)
    names, session = np.unique(ratings.session, return_inverse=True)
    return (listener.astype(np.int64) * max(names.size, 1) + session).astype(np.int64)


def _sessions(ratings: Ratings) -> int:
    return _different(_session_numbers(ratings))


def _different(values: Texts | Ints) -> int:
    return int(np.unique(values).size)
