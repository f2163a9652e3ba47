"""How sure the means of systems are, for other listeners and other utterances: what intervals and verdicts rest on.

**Normalised ranks** (`estimate_missed`). Utterances move a mean of normalised ranks in two ways. A normalised rank
compares a rating with all others of its listener and task. So an utterance that is easy to like raises the ranks of its
own ratings and lowers all others of those who rated it: of a study in which half of all ratings are of originals, the
mean rank of the originals says as much about the utterances of the systems as about their own. Clustering ratings by
their own utterance, as for raw scores, leaves that out.

With c(x, y) = 1, 1/2, 0 for x above, equal to and below y, the mean of the ranks of cell S is, but for a constant,

    1/n_S · Σ_l 1/(n_l − 1) · Σ_{j in S} Σ_{k not in S} c(x_j, x_k)        (sums over ratings of listener l),

a sum over listeners of functions of the utterances that each heard. Two listeners covary through the utterances they
share: the product of what such an utterance adds to either (Hájek projection), summed over pairs of listeners, is the
variance that clustering by listener misses. For raw scores it is V_I − V_LI of `intervals`.

Conventions: a *cell* is a system in a task with one kind of pairs; its ratings are told by their numbers.

Source: van der Vaart, "Asymptotic Statistics" (1998), chapters 11 and 12 (projections, U-statistics).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Floats, Ints
from listening.analysis.models.intervals import TwoWay, cluster_two_way, mean_influence, number_items
from listening.analysis.reading.inputs import NORMALISED, Scored, Settings
from listening.analysis.tables import Row

ALL, TARGET, NONTARGET = "all", "target", "nontarget"
_DENOMINATOR_LESS = {"rank01/avg": 1, "midrank": 0}


def estimate_missed(scored: Scored, members: Sequence[Ints], item: Ints, normalisation: str) -> Floats:
    """Estimate variances and covariances of means of cells that clustering by listener misses; they may be negative.

    Args:
        scored: normalised scores.
        members: of each cell, numbers of its ratings, all of one task; classes of pairs of voices weigh alike.
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
        weight, stratum = np.zeros((rating.size, len(cells))), class_strata(scored)
        for column, cell in enumerate(cells):
            _, number = np.unique(stratum[members[cell]], return_inverse=True)
            sizes = np.bincount(number)
            weight[np.searchsorted(rating, members[cell]), column] = 1 / (sizes.size * sizes[number])
        added = _added(scored.score[rating], scored.listener[rating], weight, less=_DENOMINATOR_LESS[normalisation])
        names, system = np.unique(scored.ratings.system[rating], return_inverse=True)
        group = system + names.size * (scored.ratings.is_target[rating] > 0)
        added -= _expected(added, group)
        clusters = scored.listener[rating], item[rating]
        found = _between_listeners(added, *clusters) + _lost_by_centring(added, *clusters, group)
        missed[np.ix_(cells, cells)] = found
    return missed


def _added(score: Floats, listener: Ints, weight: Floats, less: int) -> Floats:
    """Return what each rating adds to the mean of each cell, by winning or losing against others of another weight.

    Args:
        weight: shape (ratings, cells), of each rating in the mean; 0 outside of the cell.
    """
    added = np.zeros(weight.shape)
    for one in np.unique(listener):
        own = np.flatnonzero(listener == one)
        inside = weight[own]
        beats = np.greater.outer(score[own], score[own]) + 0.5 * np.equal.outer(score[own], score[own])
        won = inside * beats.sum(axis=1, keepdims=True) - beats @ inside
        added[own] = (won + _lacking(inside)) / max(own.size - less, 1)
    return added


def _lacking(weight: Floats) -> Floats:
    """Return for each weight how much all higher ones of its column exceed it, summed.

    Args:
        weight: shape (ratings, cells), not negative.
    """
    by_cell = np.ascontiguousarray(weight.T)
    # Most cells have one weight, and ratings outside of it, which lack all of that.
    lacking = np.where(by_cell == 0, by_cell.sum(axis=1, keepdims=True), 0.0)
    for cell in np.flatnonzero(((by_cell > 0) & (by_cell < by_cell.max(axis=1, keepdims=True))).any(axis=1)):
        values, number = np.unique(by_cell[cell], return_inverse=True)
        lacking[cell] = np.maximum(by_cell[cell] - values[:, None], 0).sum(axis=1)[number]
    return np.asarray(lacking.T)


def _expected(added: Floats, group: Ints) -> Floats:
    """Return the mean over ratings of the same system and class: what is no matter of the utterance."""
    count = np.maximum(np.bincount(group), 1)
    means = [np.bincount(group, column)[group] / count[group] for column in added.T]
    return np.stack(means, axis=1)


def _between_listeners(added: Floats, listener: Ints, item: Ints) -> Floats:
    """Return Σ over utterances of the products of what two different listeners got from them, shape (cells, cells)."""
    _, both = np.unique(item * (int(listener.max()) + 1) + listener, return_inverse=True)
    found = np.zeros((added.shape[1], added.shape[1]))
    for cluster, sign in ((item, 1), (both, -1)):
        count = np.unique(cluster).size
        sums = np.stack([np.bincount(cluster, one) for one in added.T], axis=1)
        found += sign * count / max(count - 1, 1) * (sums.T @ sums)
    return found


def _lost_by_centring(added: Floats, listener: Ints, item: Ints, group: Ints) -> Floats:
    """Return what `_between_listeners` lacks because the means of systems were estimated from the same listeners.

    An estimated mean makes any two listeners covary by minus its own variance. This is the variance by listener, for
    each two ratings of one utterance by two listeners; shape (cells, cells).
    """
    _, group = np.unique(group, return_inverse=True)
    groups, listeners = int(group.max()) + 1, int(listener.max()) + 1
    heard = np.bincount(item * groups + group, minlength=(int(item.max()) + 1) * groups).reshape(-1, groups)
    _, both = np.unique(item * listeners + listener, return_inverse=True)
    by_one = np.bincount(both * groups + group, minlength=(int(both.max()) + 1) * groups).reshape(-1, groups)
    of_all, of_one = heard.astype(np.float64), by_one.astype(np.float64)  # faster than integers, as exact
    pairs = of_all.T @ of_all - of_one.T @ of_one
    place = listener * groups + group
    sums = np.stack([np.bincount(place, one, listeners * groups) for one in added.T], axis=1)
    moved = sums.reshape(listeners, groups, -1) / np.bincount(group)[:, None]
    return np.asarray(np.einsum("lga,gh,lhb->ab", moved, pairs, moved, optimize=True))


@dataclass(frozen=True, slots=True, eq=False)
class RatedCell:
    """The ratings of a system in a task, of one kind of pairs: their numbers."""

    task: str
    system: str
    kind: str
    rating: Ints

    @property
    def names(self) -> Row:
        """Return the first columns of each row about it."""
        return {"task": self.task, "system": self.system, "kind": self.kind}


def make_cells(scored: Scored) -> list[RatedCell]:
    """Make cells of all ratings of each task and system; where voices are compared, of targets and nontargets too."""
    ratings = scored.ratings
    cells = []
    for task in scored.tasks:
        of_task = ratings.task == task
        for system in scored.systems(task):
            chosen = of_task & (ratings.system == system)
            cells.append(RatedCell(task, system, ALL, np.flatnonzero(chosen)))
            if task in scored.comparing:
                for kind, is_target in ((TARGET, 1), (NONTARGET, 0)):
                    rating = np.flatnonzero(chosen & (ratings.is_target == is_target))
                    if rating.size:
                        cells.append(RatedCell(task, system, kind, rating))
    return cells


@dataclass(frozen=True, slots=True, eq=False)
class Clustered:
    """Cells whose ratings come from listeners enough, and the clustering of their means, in the same order."""

    cells: list[RatedCell]
    means: TwoWay


def cluster_means(scored: Scored, cells: Sequence[RatedCell], settings: Settings) -> Clustered:
    """Return the variances and covariances of the means of all cells that have `least_clusters` listeners."""
    kept = [one for one in cells if np.unique(scored.listener[one.rating]).size >= settings.least_clusters]
    by = scored.listener, number_items(scored.ratings.utterance)
    ratings = scored.score, *by, class_strata(scored)
    means = cluster_two_way([mean_influence(cell.rating, *ratings) for cell in kept], *by)
    if scored.kind == NORMALISED and kept:
        missed = estimate_missed(scored, [cell.rating for cell in kept], by[1], settings.normalisation)
        means = means.with_missed(missed)
    return Clustered(kept, means)


def class_strata(scored: Scored) -> Ints:
    """Return the stratum of each rating: of pairs of voices their class, as the numbers of both were chosen."""
    return np.where(np.isin(scored.ratings.task, sorted(scored.comparing)), scored.ratings.is_target, 0)
