"""How utterances move a mean of normalised ranks, their own and those that they were ranked against.

A normalised rank compares a rating with all others of its listener and task. So an utterance that is easy to like
raises the ranks of its own ratings and lowers all others of those who rated it: of a study in which half of all ratings
are of originals, the mean rank of the originals says as much about the utterances of the systems as about their own.
Clustering ratings by their own utterance, as for raw scores, leaves that out.

With c(x, y) = 1, 1/2, 0 for x above, equal to and below y, the mean of the ranks of cell S is, but for a constant,

    1/n_S · Σ_l 1/(n_l − 1) · Σ_{j in S} Σ_{k not in S} c(x_j, x_k)        (sums over ratings of listener l),

a sum over listeners of functions of the utterances that each heard. Two listeners covary through the utterances they
share: the product of what such an utterance adds to either (Hájek projection), summed over pairs of listeners, is the
variance that clustering by listener misses. For raw scores it is V_I − V_LI of `clustered`.
Source: van der Vaart, "Asymptotic Statistics" (1998), chapters 11 and 12 (projections, U-statistics).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from listening.analysis.inputs import Flags, Floats, Ints, Scored

_DENOMINATOR_LESS = {"rank01/avg": 1, "midrank": 0}


def missed_by_listeners(scored: Scored, members: Sequence[Ints], item: Ints, normalisation: str) -> Floats:
    """Variances and covariances of the means of cells that clustering by listener misses; they may be negative.

    Args:
        scored: normalised scores.
        members: of each cell, numbers of its ratings, all of one task.
        item: shape (ratings,), numbers of the utterances.
        normalisation: formula by which ranks were normalised.

    Returns:
        Shape (cells, cells); 0 between cells of different tasks, which are not compared.
    """
    missed = np.zeros((len(members), len(members)))
    tasks = [str(scored.ratings.task[rating[0]]) for rating in members]
    for task in dict.fromkeys(tasks):
        cells = [place for place, name in enumerate(tasks) if name == task]
        rating = np.flatnonzero(scored.ratings.task == task)
        is_member = np.zeros((rating.size, len(cells)), dtype=np.bool_)
        for column, cell in enumerate(cells):
            is_member[np.searchsorted(rating, members[cell]), column] = True
        added = _added(scored.score[rating], scored.listener[rating], is_member, less=_DENOMINATOR_LESS[normalisation])
        added -= _expected(added, scored, rating)
        missed[np.ix_(cells, cells)] = _between_listeners(added, scored.listener[rating], item[rating])
    return missed


def _added(score: Floats, listener: Ints, is_member: Flags, less: int) -> Floats:
    """What each rating adds to the mean of each cell, by winning or losing against ratings on the other side."""
    added = np.zeros(is_member.shape)
    for one in np.unique(listener):
        own = np.flatnonzero(listener == one)
        inside = is_member[own].astype(np.float64)
        beats = np.greater.outer(score[own], score[own]) + 0.5 * np.equal.outer(score[own], score[own])
        against = beats @ inside
        won = beats.sum(axis=1, keepdims=True) - against
        lost = inside.sum(axis=0) - against
        added[own] = np.where(inside > 0, won, lost) / max(own.size - less, 1)
    return np.asarray(added / is_member.sum(axis=0))


def _expected(added: Floats, scored: Scored, rating: Ints) -> Floats:
    """The mean over ratings of the same system and class: what is no matter of the utterance."""
    names, system = np.unique(scored.ratings.system[rating], return_inverse=True)
    group = system + names.size * (scored.ratings.is_target[rating] > 0)
    count = np.maximum(np.bincount(group), 1)
    means = [np.bincount(group, column)[group] / count[group] for column in added.T]
    return np.stack(means, axis=1)


def _between_listeners(added: Floats, listener: Ints, item: Ints) -> Floats:
    """Σ over utterances of the products of what two different listeners got from them, shape (cells, cells)."""
    _, both = np.unique(item * (int(listener.max()) + 1) + listener, return_inverse=True)
    found = np.zeros((added.shape[1], added.shape[1]))
    for cluster, sign in ((item, 1), (both, -1)):
        count = np.unique(cluster).size
        sums = np.stack([np.bincount(cluster, one) for one in added.T], axis=1)
        found += sign * count / max(count - 1, 1) * (sums.T @ sums)
    return found
