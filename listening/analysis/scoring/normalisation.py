"""Which ratings count, and what they score: raw ratings, or ranks normalised within each listener and task.

Only ratings of purpose ``scored`` count: practice, control and bridge trials never enter scores. Sessions that a
standing rule leaves out do not count unless asked for. A session that was not finished enters *normalised* scores only
where it holds enough ratings of a task (`Settings.partial_trials`, and `partial_of_each_kind` of original and of
anonymised speech): a listener who quits after the easy half would get inflated low ranks. Raw scores keep it.

Rank normalisation says what a rating tells within its listener and task, in [0, 1], whatever part of the scale was
used. Over the ratings x_1 … x_n of one listener in one task, with average ranks r_i (ties share the mean of their
ranks)::

    rank01/avg   z_i = (r_i − 1) / (n − 1)     the usual one
    midrank      z_i = (r_i − 1/2) / n

Both have the mean 1/2. With ties the ends are not 0 and 1, which is as it should be: nothing is stretched. A single
rating, or ratings that are all equal, say nothing about order: they become 1/2 and are flagged. Published results give
only the range (0 lowest, 1 highest), so the formula is named in every file; a changed formula gets a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Flags, Floats, Ints, Texts
from common.wording import counted
from listening.analysis.reading.inputs import (
    BRIDGE,
    COMPARING,
    GOLD,
    NORMALISED,
    ORIGINAL,
    PRACTICE,
    RAW,
    SCORED,
    Ratings,
    Scale,
    Scored,
    Settings,
)

FORMULAS: Mapping[str, Callable[[Floats, Ints], Floats]] = {
    "rank01/avg": lambda rank, count: (rank - 1) / (count - 1),
    "midrank": lambda rank, count: (rank - 0.5) / count,
}


@dataclass(frozen=True, eq=False)
class NormalisedRanks:
    """Attributes:
    score: shape (ratings,), in [0, 1].
    is_flat: shape (ratings,), whether the group of the rating holds one rating, or equal ones only.
    """

    score: Floats
    is_flat: Flags


def normalise_ranks(rating: Floats, group: Ints, formula: str) -> NormalisedRanks:
    """Normalise ranks of ratings within their groups.

    Args:
        rating: shape (ratings,), finite.
        group: shape (ratings,), from 0: the listener and task to which a rating belongs.
        formula: a name in `FORMULAS`.

    Raises:
        KeyError: there is no such formula.

    Example:
        >>> normalise_ranks(np.array([1.0, 5.0, 5.0, 10.0]), np.zeros(4, int), "rank01/avg").score.tolist()
        [0.0, 0.5, 0.5, 1.0]
    """
    of = FORMULAS[formula]
    _, group, size = np.unique(group, return_inverse=True, return_counts=True)
    values, value = np.unique(rating, return_inverse=True)
    _, tie, ties = np.unique(group * values.size + value, return_inverse=True, return_counts=True)
    before, count = np.cumsum(size) - size, size[group]
    rank = (np.cumsum(ties) - (ties - 1) / 2)[tie] - before[group]
    is_flat = ties[tie] == count
    score = np.full(rating.size, 0.5)
    score[~is_flat] = of(rank[~is_flat], count[~is_flat])
    return NormalisedRanks(score, is_flat)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What did not count, and who was flagged: numbers by name, and sentences for readers of the results."""

    counts: Mapping[str, int]
    notes: tuple[str, ...]


def score_ratings(
    ratings: Ratings,
    scale: Scale,
    settings: Settings,
    kind: str,
    *,
    comparing: frozenset[str] = COMPARING,
    with_excluded: bool = False,
) -> Scored:
    """Return the ratings that count for a kind of scores, with their scores.

    Args:
        ratings: all that were read.
        scale: lowest and highest rating by task, in the order of asking.
        kind: ``raw`` or ``normalised``.
        comparing: tasks in which voices are compared.
        with_excluded: keep the sessions that a rule in force leaves out.
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
        return Scored(RAW, chosen, chosen.rating.astype(np.float64), listener, listeners, dict(scale), comparing)
    ranks = normalise_ranks(chosen.rating, _listener_and_task(chosen, listener), settings.normalisation)
    ends = dict.fromkeys(scale, (0.0, 1.0))
    return Scored(NORMALISED, chosen, ranks.score, listener, listeners, ends, comparing)


def count_left_out(ratings: Ratings, settings: Settings) -> LeftOut:
    """Return what `score_ratings` leaves out of raw and of normalised scores, and which listeners are flagged."""
    is_scored, stands = ratings.purpose == SCORED, ratings.excluded == ""
    counting: Ratings = ratings.rows(is_scored & stands)
    short = _in_short_session(counting, settings)
    normalised: Ratings = counting.rows(~short)
    excluded: Ratings = ratings.rows(~stands)
    counts = {"left_out": len(excluded), "short_ratings": int(short.sum()), "ratings_normalised": len(normalised)}
    for name, part in (("{}_read", ratings), ("{}", counting), ("excluded_{}", excluded)):
        counts |= {name.format("sessions"): _sessions(part), name.format("listeners"): _different(part.listener)}
    counts |= {"ratings_read": len(ratings), "ratings": len(counting)}
    for purpose in (PRACTICE, GOLD, BRIDGE):
        counts[f"{purpose}_ratings"] = int((ratings.purpose == purpose).sum())
    if not counts[f"{PRACTICE}_ratings"]:
        del counts[f"{PRACTICE}_ratings"]  # a study of the portal never analyses these
    counts["partial_sessions"] = _sessions(counting.rows(~counting.is_finished))
    counts["short_sessions"] = _sessions(counting.rows(short))
    flat = sorted(set(_flat_listeners(normalised, settings).tolist()))
    counts["flat_listeners"] = len(flat)
    return LeftOut(counts, tuple(_notes(counts, flat, settings)))


def _in_short_session(ratings: Ratings, settings: Settings) -> Flags:
    """Return whether a rating is of a session that was not finished and holds too few ratings of its task."""
    if not len(ratings) or ratings.is_finished.all():
        return np.zeros(len(ratings), np.bool_)
    tasks, task = np.unique(ratings.task, return_inverse=True)
    _, part = np.unique(_session_numbers(ratings) * tasks.size + task, return_inverse=True)
    is_original = ratings.system == ORIGINAL
    enough = np.bincount(part) >= settings.partial_trials
    for of_kind in (is_original, ~is_original):
        # Where a task has no originals at all, nobody can have rated enough of them.
        is_asked = np.bincount(task, of_kind, tasks.size) > 0
        has_enough = np.bincount(part, of_kind) >= settings.partial_of_each_kind
        asked_of_part = np.zeros(enough.size, np.bool_)
        asked_of_part[part] = is_asked[task]
        enough &= has_enough | ~asked_of_part
    return ~ratings.is_finished & ~enough[part]


def _flat_listeners(ratings: Ratings, settings: Settings) -> Texts:
    """Return listeners with one rating in a task, or equal ones only; once for each such rating."""
    if not len(ratings):
        return ratings.listener
    _, listener = np.unique(ratings.listener, return_inverse=True)
    ranks = normalise_ranks(ratings.rating, _listener_and_task(ratings, listener), settings.normalisation)
    return ratings.listener[ranks.is_flat]


def _notes(counts: Mapping[str, int], flat: Sequence[str], settings: Settings) -> list[str]:
    """Write sentences for what is not nothing."""
    said = []
    if counts["left_out"]:
        said.append(
            f"{counted(counts['excluded_sessions'], 'session')} of {counted(counts['excluded_listeners'], 'listener')} "
            f"with {counted(counts['left_out'], 'rating')} {'is' if counts['excluded_sessions'] == 1 else 'are'} left "
            "out by rules in force."
        )
    kinds = {"practice": "practice_ratings", "control": "gold_ratings", "bridge": "bridge_ratings"}
    asides = {kind: counts.get(key, 0) for kind, key in kinds.items()}
    if aside := [f"{counted(count, 'rating')} of {kind} trials" for kind, count in asides.items() if count]:
        said.append(f"{', '.join(aside)}: not in the scores.")
    if counts["short_ratings"]:
        said.append(
            f"{counted(counts['short_ratings'], 'rating')} of "
            f"{counted(counts['short_sessions'], 'unfinished session')} count for raw scores only: normalised ones "
            f"need {settings.partial_trials} ratings of a task, {settings.partial_of_each_kind} each of original and "
            "of anonymised speech."
        )
    if flat:
        named = ", ".join(flat[:5]) + (", …" if len(flat) > 5 else "")
        said.append(
            f"{counted(len(flat), 'listener')} gave one rating, or equal ones only, in a task; normalised they are "
            f"all 0.5: {named}."
        )
    return said


def _listener_and_task(ratings: Ratings, listener: Ints) -> Ints:
    tasks, task = np.unique(ratings.task, return_inverse=True)
    return np.asarray(listener * max(tasks.size, 1) + task, np.int64)


def _session_numbers(ratings: Ratings) -> Ints:
    """Return equal numbers for equal sessions of one listener; some tools number those of each from 1."""
    _, listener = np.unique(ratings.listener, return_inverse=True)
    names, session = np.unique(ratings.session, return_inverse=True)
    return (listener.astype(np.int64) * max(names.size, 1) + session).astype(np.int64)


def _sessions(ratings: Ratings) -> int:
    return _different(_session_numbers(ratings))


def _different(values: Texts | Ints) -> int:
    return int(np.unique(values).size)
