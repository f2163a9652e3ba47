"""Systems compared two by two: within listeners, and as in 2020 by a Mann-Whitney test that pools their ratings.

Within listeners: whoever rated both systems of a pair gives one difference, mean score of the first less mean score of
the second. In the task of verifiability the mean is taken over the two classes of pairs, same speaker and different
speakers, each on its own, and a class that a listener met with one of the two systems only is left out: a listener who
met more pairs of the same speaker with one system does not thereby prefer it.

Sources: `paired_tests` and `corrections`; Mann & Whitney, Annals of Mathematical Statistics 18 (1947); Cliff,
Psychological Bulletin 114 (1993).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from listening.analysis.clustered import small_sample_stretch, stretched_interval
from listening.analysis.contents import DIFFERENCES, MANN_WHITNEY
from listening.analysis.corrections import adjusted
from listening.analysis.draws import listener_draws
from listening.analysis.inputs import Floats, Ints, Scored
from listening.analysis.paired_tests import permutation_p, rank_biserial, wilcoxon_p
from listening.analysis.settings import Settings
from listening.analysis.tables import Table

_PAIRS_AT_ONCE = 128
_DECIMALS = 10  # beyond, differences that are equal on paper differ and tests would not see their ties
_Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of systems of a task, the earlier system first: places in `systems`, shape (pairs,)."""

    task: str
    systems: list[str]
    first: Ints
    second: Ints

    def __len__(self) -> int:
        return int(self.first.size)


@dataclass(frozen=True, eq=False)
class MannWhitney:
    """Attributes, each of shape (pairs,):
    u: Mann-Whitney statistic of the first system, ties counted half.
    n_first, n_second: ratings.
    p: two-sided, normal approximation with correction for ties and continuity; NaN where all ratings are equal.
    """

    u: Floats
    n_first: Ints
    n_second: Ints
    p: Floats

    @property
    def common_language(self) -> Floats:
        """Chance that a rating of the first is above one of the second."""
        return self.u / (self.n_first * self.n_second)


def comparison_tables(scored: Scored, settings: Settings) -> list[Table]:
    """`contents.DIFFERENCES` and `contents.MANN_WHITNEY`; p-values are corrected over all pairs of a task."""
    differences, pooled = [], []
    draws = listener_draws(scored.listeners.size, settings)
    for task in scored.tasks:
        pairs = pairs_of(scored, task)
        differences.extend(_difference_rows(scored, pairs, draws, settings))
        pooled.extend(_mann_whitney_rows(scored, pairs, settings))
    return [DIFFERENCES.table(differences), MANN_WHITNEY.table(pooled)]


def pairs_of(scored: Scored, task: str) -> Pairs:
    """All pairs of the systems of a task, the original first, then by name."""
    systems = scored.systems(task)
    first, second = np.triu_indices(len(systems), k=1)
    return Pairs(task, systems, first.astype(np.int64), second.astype(np.int64))


def listener_differences(scored: Scored, pairs: Pairs) -> Floats:
    """Of each listener the mean score of the first system less that of the second.

    Returns:
        Shape (listeners, pairs), NaN where the listener did not rate both.
    """
    chosen = scored.ratings.task == pairs.task
    listener, score = scored.listener[chosen], scored.score[chosen]
    names, place = np.unique(scored.ratings.system[chosen], return_inverse=True)
    system = np.array([pairs.systems.index(name) for name in names], np.int64)[place]
    shape = (scored.listeners.size, len(pairs.systems))
    kinds = scored.ratings.is_target[chosen] if pairs.task == "verifiability" else np.zeros(score.size, np.int64)
    total, classes = np.zeros((shape[0], len(pairs))), np.zeros((shape[0], len(pairs)))
    for kind in np.unique(kinds):
        of_kind = kinds == kind
        cell = listener[of_kind] * shape[1] + system[of_kind]
        counts = np.bincount(cell, minlength=shape[0] * shape[1])
        sums = np.bincount(cell, score[of_kind], minlength=shape[0] * shape[1])
        means = np.divide(sums, counts, out=np.full(sums.size, np.nan), where=counts > 0).reshape(shape)
        difference = means[:, pairs.first] - means[:, pairs.second]
        is_both = np.isfinite(difference)
        total += np.where(is_both, difference, 0.0)
        classes += is_both
    found: Floats = np.divide(total, classes, out=np.full(total.shape, np.nan), where=classes > 0)
    return np.round(found, _DECIMALS)


def mann_whitney(counts: Floats, first: Ints, second: Ints) -> MannWhitney:
    """The test of all pairs at once, from how often each distinct score was given.

    With A_v and B_v ratings of score v: U = Σ_v A_v (Σ_{w<v} B_w + B_v / 2), and the variance under no difference is
    mn/12 · (N + 1 − Σ_v (t_v³ − t_v) / (N (N − 1))), t_v = A_v + B_v, N = m + n.

    Args:
        counts: shape (systems, distinct scores), scores ascending.
        first, second: rows of `counts`, shape (pairs,).
    """
    from scipy.special import ndtr

    sizes = counts.sum(axis=1)
    below = np.cumsum(counts, axis=1) - counts / 2
    u = (counts @ below.T)[first, second]
    m, n = sizes[first], sizes[second]
    square, cube = counts**2, (counts**3).sum(axis=1)
    mixed = square @ counts.T  # Σ A² B
    tied = cube[first] + cube[second] + 3 * (mixed[first, second] + mixed[second, first])
    total = m + n
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = m * n / 12 * (total + 1 - (tied - total) / (total * (total - 1)))
        is_flat = variance <= 1e-9 * m * n
        z = (np.abs(u - m * n / 2) - 0.5) / np.sqrt(np.where(is_flat, np.nan, variance))
    p = np.clip(2 * ndtr(-z), 0.0, 1.0)
    return MannWhitney(u, m.astype(np.int64), n.astype(np.int64), p)


def _difference_rows(scored: Scored, pairs: Pairs, draws: Ints | None, settings: Settings) -> list[_Row]:
    if not len(pairs):
        return []
    differences = listener_differences(scored, pairs)
    listeners = np.isfinite(differences).sum(axis=0)
    mean = np.divide(np.nansum(differences, axis=0), listeners, out=np.full(len(pairs), np.nan), where=listeners > 0)
    low, high = _intervals(differences, mean, draws, settings)
    numbers = np.random.default_rng(settings.seed)
    by_wilcoxon, by_permutation = wilcoxon_p(differences), permutation_p(differences, settings.permutations, numbers)
    columns = {
        "listeners": listeners, "difference": mean, "difference_low": low, "difference_high": high,
        "wilcoxon_p": by_wilcoxon, "wilcoxon_adjusted": adjusted(by_wilcoxon, settings.correction),
        "permutation_p": by_permutation, "permutation_adjusted": adjusted(by_permutation, settings.correction),
        "rank_biserial": rank_biserial(differences),
        "remark": [_remark(int(count), settings) for count in listeners],
    }  # fmt: skip
    return _rows(pairs, columns)


def _mann_whitney_rows(scored: Scored, pairs: Pairs, settings: Settings) -> list[_Row]:
    if not len(pairs):
        return []
    chosen = scored.ratings.task == pairs.task
    values, level = np.unique(scored.score[chosen], return_inverse=True)
    counts = np.zeros((len(pairs.systems), values.size))
    for place, system in enumerate(pairs.systems):
        counts[place] = np.bincount(level[scored.ratings.system[chosen] == system], minlength=values.size)
    tested = mann_whitney(counts, pairs.first, pairs.second)
    columns = {
        "n_first": tested.n_first, "n_second": tested.n_second, "u": tested.u,
        "common_language": tested.common_language, "cliffs_delta": 2 * tested.common_language - 1,
        "p": tested.p, "adjusted": adjusted(tested.p, settings.correction),
    }  # fmt: skip
    return _rows(pairs, columns)


def _rows(pairs: Pairs, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> list[_Row]:
    """One row for each pair, from columns of shape (pairs,)."""
    rows = []
    for place, (first, second) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        row = {"task": pairs.task, "first": pairs.systems[first], "second": pairs.systems[second]}
        rows.append(row | {name: column[place] for name, column in columns.items()})
    return rows


def _intervals(
    differences: Floats, mean: Floats, draws: Ints | None, settings: Settings
) -> tuple[Floats, Floats]:  # fmt: skip
    """Limits of the mean of each pair; NaN where too few listeners rated both."""
    low, high = np.full(differences.shape[1], np.nan), np.full(differences.shape[1], np.nan)
    if draws is None:
        return low, high
    rated = np.isfinite(differences)
    weights = draws.astype(np.float64)
    is_enough = rated.sum(axis=0) >= settings.least_clusters
    for start in range(0, differences.shape[1], _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        sums = weights @ np.where(rated[:, part], differences[:, part], 0.0)
        counts = weights @ rated[:, part].astype(np.float64)
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        for place in np.flatnonzero(is_enough[part]):
            pair, clusters = start + place, int(rated[:, start + place].sum())
            stretch = small_sample_stretch(clusters, clusters - 1, settings.level)
            low[pair], high[pair] = stretched_interval(
                float(mean[pair]), means[:, place], stretch, settings.level, (-np.inf, np.inf)
            )
    return low, high


def _remark(listeners: int, settings: Settings) -> str:
    if not listeners:
        return "No listener rated both."
    if listeners < settings.least_clusters:
        return f"Only {listeners} listeners rated both: no interval under {settings.least_clusters}."
    return ""
