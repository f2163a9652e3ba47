"""Systems compared two by two: within listeners, and as in 2020 by a Mann-Whitney test that pools their ratings.

**Differences within listeners** (`listener_differences`). Each listener who rated both systems of a pair gives one
difference, mean score of the first less mean score of the second. In the task of verifiability the mean is taken over
the two classes of pairs, same speaker and different speakers, each on its own, and a class that a listener met with one
of the two systems only is left out: a listener who met more pairs of the same speaker with one system does not thereby
prefer it.

**Tests within listeners** (`permutation_p`, `wilcoxon_p`): whether the differences are zero, by sign flips and by
Wilcoxon. Swapping the two labels of a listener flips the sign of the difference, so the permutation test flips signs of
whole listeners. Single ratings are not swapped: ratings of one listener are alike, and a swap of each on its own would
take them for independent. The test is not scipy's (`permutation_test`), which draws other flips for each pair and
cannot tell p-values below their number.

**A test for other utterances** (column `two_way_p`). Both tests above take the utterances that were rated as they are.
So a third one is made beside them: a t test of the two means (of pairs of voices class by class), clustered by listener
and by utterance, which asks whether other utterances would say the same. Intervals are stretched for other utterances,
too.

**The decision.** Two systems *differ significantly* where the permutation test and the t test both say so, each
corrected over all pairs: letters, figures, squares and sentences rest on this one decision. A test counts where it
rests on `least_clusters` listeners: who rated both for the permutation test, who rated each for the t test, which also
needs two utterances. Where one of the two counts it decides alone, where neither does nothing is decided.

Conventions: differences have shape (listeners, pairs), NaN where a listener did not rate both of a pair; p-values are
two-sided, shape (pairs,), NaN where nobody rated both: a test that could not be made, which no correction counts.

Sources: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979);
Benjamini & Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57 (1995); Mann
& Whitney, Annals of Mathematical Statistics 18 (1947); Cliff, Psychological Bulletin 114 (1993).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Flags, Floats, Ints
from common.tables import DataTable
from listening.analysis.models.clustering import (
    ALL,
    NONTARGET,
    TARGET,
    Clustered,
    class_strata,
    cluster_means,
    make_cells,
)
from listening.analysis.models.intervals import draw_listeners, small_sample_stretch, stretched_interval
from listening.analysis.reading.inputs import Correction, Scored, Settings
from listening.analysis.tables import Row, make_table

RESOLVED = 10  # fewer permutations than this beyond the observed sum do not tell how small a p-value is
MOST_EXACT = 50  # as in scipy: up to here the exact distribution of the signed-rank statistic
MOST_COUNTED = 14
_SLACK = 1e-9  # sums of equal numbers in another order are equal
_STEPS = 60
_MOST_PARTS = 6  # of the smallest difference: a finer lattice is as good as none
_LATTICE_SLACK = 1e-6
_PAIRS_AT_ONCE = 256


def adjust_p(p: Floats, correction: Correction) -> Floats:
    """Correct p-values over all tests of the array, in its order; shape (tests,).

    Example:
        >>> adjust_p(np.array([0.01, 0.04, np.nan, 0.03]), "bh").round(2).tolist()
        [0.03, 0.04, nan, 0.04]
    """
    from scipy.stats import false_discovery_control

    made = np.isfinite(p)
    result = np.full(p.shape, np.nan)
    if made.any():
        result[made] = _holm(p[made]) if correction == "holm" else false_discovery_control(p[made])
    return result


def _holm(p: Floats) -> Floats:
    """Correct step-down: the i-th smallest of m times m − i + 1, and no smaller than those before it."""
    order = np.argsort(p, kind="stable")
    result = np.empty(p.size)
    result[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return result


def permutation_p(differences: Floats, permutations: int, numbers: np.random.Generator) -> Floats:
    """Return the share of sign flips, the observed one included, whose sum is as far from zero: (k + 1) / (n + 1).

    A thousand flips cannot give less than 0.001, and a correction over the 91 pairs of 14 systems would lose every
    difference. So with up to `MOST_COUNTED` listeners whose difference is not zero all flips are counted out
    (`sign_flip_share`); with more, where fewer than `RESOLVED` of the drawn flips reach the observed sum, the share of
    all flips that do is computed by the saddlepoint method (`sign_flip_tail`). All pairs take the same flips, so a
    listener is flipped as a whole.
    """
    rated = np.isfinite(differences)
    sizes = np.where(rated, differences, 0.0)
    observed = np.abs(sizes.sum(axis=0))
    slack = _SLACK * np.abs(sizes).sum(axis=0)
    signs = numbers.integers(0, 2, size=(permutations, len(sizes)), dtype=np.int8) * 2.0 - 1.0
    reached = np.zeros(observed.size)
    for first in range(0, observed.size, _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        reached[part] = (np.abs(signs @ sizes[:, part]) >= observed[part] - slack[part]).sum(axis=0)
    result = (reached + 1) / (permutations + 1)
    is_few = (sizes != 0).sum(axis=0) <= MOST_COUNTED
    for all_flips, chosen in ((sign_flip_share, is_few), (sign_flip_tail, ~is_few & (reached < RESOLVED))):
        result[chosen] = all_flips(sizes[:, chosen])
    result[~rated.any(axis=0)] = np.nan
    return result


def sign_flip_share(sizes: Floats) -> Floats:
    """Count the share of all 2^n sign flips whose sum is at least as far from zero as the observed one.

    Args:
        sizes: shape (listeners, pairs), finite, at most `MOST_COUNTED` of a pair other than zero.
    """
    kept = -np.sort(-np.abs(sizes), axis=0)[:MOST_COUNTED]
    observed = np.abs(sizes.sum(axis=0)) - _SLACK * kept.sum(axis=0)
    # By symmetry the sign of the last difference stays.
    flips = np.arange(2 ** max(len(kept) - 1, 0))[:, None] >> np.arange(len(kept)) & 1
    signs = 1.0 - 2.0 * flips
    share = np.empty(observed.size)
    for first in range(0, observed.size, _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        share[part] = (np.abs(signs @ kept[:, part]) >= observed[part]).mean(axis=0)
    return share


def sign_flip_tail(sizes: Floats) -> Floats:
    """Compute the share of all 2^n sign flips with a sum at least as far from zero as observed, by saddlepoint.

    Robinson, "Saddlepoint approximations for permutation tests and confidence intervals", Journal of the Royal
    Statistical Society B 44 (1982): the sum of ±d_l has the cumulant generating function K(t) = Σ log cosh(t d_l). Its
    tail is read by the r* formula of Barndorff-Nielsen (1986), at the observed sum; where all sizes are multiples of
    one, at the sum less that one: sums then lie twice as far apart, and the value between two of them is right for such
    a lattice. Never below 2^(1 − n), the share of the flips in which all signs agree.

    Args:
        sizes: shape (listeners, pairs), finite; zeros flip nothing.
    """
    from scipy.special import ndtr

    sizes = np.abs(sizes) * np.sign(sizes * np.sign(sizes.sum(axis=0)))  # observed sums are not negative
    total, largest = sizes.sum(axis=0), np.abs(sizes).sum(axis=0)
    flipping = (sizes != 0).sum(axis=0)
    fewest = np.where(flipping > 0, 2.0 ** (1.0 - flipping), 1.0)
    all_agree = total >= largest * (1 - 1e-12)
    wanted = np.where(all_agree, 0.0, total - _lattice(np.abs(sizes)))
    place = _saddlepoint(np.abs(sizes), wanted)
    scaled = np.abs(sizes) * place
    generated = (np.logaddexp(scaled, -scaled) - np.log(2)).sum(axis=0)
    curvature = (sizes**2 / np.cosh(np.minimum(scaled, 300)) ** 2).sum(axis=0)
    root = np.sqrt(np.maximum(2 * (place * wanted - generated), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        adjusted = root + np.log(place * np.sqrt(curvature) / root) / root
    is_near_zero = root < 1e-3
    tail = np.where(is_near_zero, 0.5, ndtr(-np.where(is_near_zero, 0.0, adjusted)))
    found = np.clip(2 * tail, fewest, 1.0)
    return np.where(all_agree, fewest, np.where(wanted <= 0, 1.0, found))


def _lattice(sizes: Floats) -> Floats:
    """Return for each pair what all sizes are multiples of: the smallest, or a small part of it; 0 if nothing."""
    smallest = np.where(sizes == 0, np.inf, sizes).min(axis=0, initial=np.inf)
    found = np.zeros(smallest.size)
    for parts in range(_MOST_PARTS, 0, -1):
        unit = np.where(np.isfinite(smallest), smallest, 1.0) / parts
        multiples = sizes / unit
        is_lattice = (np.abs(multiples - np.rint(multiples)) <= _LATTICE_SLACK).all(axis=0)
        found = np.where(is_lattice & np.isfinite(smallest), unit, found)
    return found


def _saddlepoint(sizes: Floats, wanted: Floats) -> Floats:
    """Find the t ≥ 0 of each pair at which K'(t) = Σ d tanh(t d) is the wanted sum, by bisection; 0 without one."""
    has_one = (wanted > 0) & (wanted < sizes.sum(axis=0))
    scale = np.where(has_one, sizes.max(axis=0, initial=0.0), 1.0)
    low, high = np.zeros(wanted.size), np.ones(wanted.size) / scale
    for _ in range(_STEPS):
        is_short = has_one & ((sizes * np.tanh(sizes * high)).sum(axis=0) < wanted)
        if not is_short.any():
            break
        high = np.where(is_short, 2 * high, high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_short = (sizes * np.tanh(sizes * middle)).sum(axis=0) < wanted
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return np.where(has_one, (low + high) / 2, 0.0)


def wilcoxon_p(differences: Floats) -> Floats:
    """Return the p-value of Wilcoxon's signed-rank test of each pair.

    Differences of zero are dropped, as Wilcoxon did: they speak for neither of the two. Exact with up to `MOST_EXACT`
    differences that are left without ties, and with ties up to `MOST_COUNTED`, whose signed ranks are flipped in every
    way; else the normal approximation with its correction for ties. 1 where every difference is zero.
    """
    from scipy.stats import rankdata, wilcoxon

    rated = np.isfinite(differences)
    kept = np.where(rated & (differences != 0), differences, np.nan)
    left = np.isfinite(kept).sum(axis=0)
    result = np.where(rated.any(axis=0) & (left == 0), 1.0, np.nan)
    has_ties = _have_ties(kept)
    is_exact = (left > 0) & ~has_ties & (left <= MOST_EXACT)
    is_counted = (left > 0) & has_ties & (left <= MOST_COUNTED)
    for method, chosen in (("exact", is_exact), ("approx", (left > 0) & ~is_exact & ~is_counted)):
        if chosen.any():
            # Zeros are dropped by the test itself, in all pairs together; what is no number, pair by pair and slowly.
            result[chosen] = wilcoxon(np.nan_to_num(kept[:, chosen]), axis=0, method=method).pvalue
    if is_counted.any():
        sizes = kept[:, is_counted]
        ranks = rankdata(np.abs(sizes), axis=0, nan_policy="omit")
        result[is_counted] = sign_flip_share(np.nan_to_num(ranks * np.sign(sizes)))
    return np.minimum(result, 1.0)


def rank_biserial(differences: Floats) -> Floats:
    """Return the matched-pairs rank-biserial correlation: (R+ − R−) / (R+ + R−), sums of ranks by sign.

    Shape (pairs,), in [-1, 1], 1 where every listener put the first above the second; zeros are dropped, 0 where every
    difference is zero. Kerby, "The simple difference formula", Comprehensive Psychology 3 (2014).
    """
    from scipy.stats import rankdata

    kept = np.where(differences == 0, np.nan, differences)
    ranks = rankdata(np.abs(kept), axis=0, nan_policy="omit")
    balance = np.nansum(np.sign(kept) * ranks, axis=0)
    whole = np.nansum(ranks, axis=0)
    result: Floats = np.divide(balance, whole, out=np.zeros(balance.size), where=whole > 0)
    result[~np.isfinite(differences).any(axis=0)] = np.nan
    return result


def _have_ties(differences: Floats) -> Flags:
    """Return for each pair whether two differences are equal in size."""
    ordered = np.sort(np.abs(differences), axis=0)  # NaN last
    with np.errstate(invalid="ignore"):
        found: Flags = (np.diff(ordered, axis=0) == 0).any(axis=0)
    return found


_INTERVALS_AT_ONCE = 128
_NOISE = 1e-12  # relative: smaller differences are those of rounding
_DECIMALS = 10  # beyond, mathematically equal differences differ and tests would not see their ties


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of systems of a task, the earlier system first: places in `systems`, shape (pairs,)."""

    task: str
    systems: list[str]
    first: Ints
    second: Ints

    def __len__(self) -> int:
        return int(self.first.size)


def make_comparison_tables(scored: Scored, settings: Settings) -> list[DataTable]:
    """Make ``differences`` and ``mann_whitney``; p-values are corrected over all pairs of a task."""
    differences, pooled = [], []
    clustered = cluster_means(scored, make_cells(scored), settings)
    draws = draw_listeners(scored.listeners.size, settings)
    for task in scored.tasks:
        pairs = list_pairs(scored, task)
        differences.extend(_difference_rows(scored, pairs, clustered, draws, settings))
        pooled.extend(_mann_whitney_rows(scored, pairs, settings))
    return [make_table("differences", differences), make_table("mann_whitney", pooled)]


def list_pairs(scored: Scored, task: str) -> Pairs:
    """List all pairs of the systems of a task, the original first, then by name."""
    systems = scored.systems(task)
    first, second = np.triu_indices(len(systems), k=1)
    return Pairs(task, systems, first.astype(np.int64), second.astype(np.int64))


def listener_differences(scored: Scored, pairs: Pairs) -> Floats:
    """Return for each listener the mean score of the first system less that of the second.

    Returns:
        Shape (listeners, pairs), NaN where the listener did not rate both.
    """
    chosen = scored.ratings.task == pairs.task
    listener, score = scored.listener[chosen], scored.score[chosen]
    names, place = np.unique(scored.ratings.system[chosen], return_inverse=True)
    system = np.array([pairs.systems.index(name) for name in names], np.int64)[place]
    shape = (scored.listeners.size, len(pairs.systems))
    kinds = scored.ratings.is_target[chosen] if pairs.task in scored.comparing else np.zeros(score.size, np.int64)
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


def _difference_rows(
    scored: Scored, pairs: Pairs, clustered: Clustered, draws: Floats | None, settings: Settings
) -> list[Row]:
    if not len(pairs):
        return []
    differences = listener_differences(scored, pairs)
    listeners = np.isfinite(differences).sum(axis=0)
    mean = np.divide(np.nansum(differences, axis=0), listeners, out=np.full(len(pairs), np.nan), where=listeners > 0)
    between = _two_way(scored, pairs, clustered)
    low, high = _intervals(differences, mean, between, draws, settings)
    numbers = np.random.default_rng(settings.seed)
    by_wilcoxon, by_permutation = wilcoxon_p(differences), permutation_p(differences, settings.permutations, numbers)
    columns = {"listeners": listeners, "difference": mean, "difference_low": low, "difference_high": high}
    for name, p in (("wilcoxon", by_wilcoxon), ("permutation", by_permutation), ("two_way", between.p)):
        columns |= {f"{name}_p": p, f"{name}_adjusted": adjust_p(p, settings.correction)}
    decisive = _decisive_p(columns, settings.least_clusters)
    below = round(1 - settings.level, 10)
    columns |= {"decisive_p": decisive, "is_told_apart": [None if np.isnan(p) else p < below for p in decisive]}
    notes = [_note(int(count), settings, compares_voices=pairs.task in scored.comparing) for count in listeners]
    return _rows(pairs, {**columns, "rank_biserial": rank_biserial(differences), "remark": notes})


def _mann_whitney_rows(scored: Scored, pairs: Pairs, settings: Settings) -> list[Row]:
    """Return the test of all ratings of each two systems, by its normal approximation; no p where all are equal."""
    from scipy.stats import mannwhitneyu

    of_systems = [(scored.ratings.task == pairs.task) & (scored.ratings.system == name) for name in pairs.systems]
    listeners = [np.unique(scored.listener[of_system]).size for of_system in of_systems]
    rows = []
    for place in zip(pairs.first, pairs.second, strict=True):
        first, second = (scored.score[of_systems[one]] for one in place)
        u, p = mannwhitneyu(first, second, method="asymptotic")
        chance = u / (first.size * second.size)
        row = {"task": pairs.task, "first": pairs.systems[place[0]], "second": pairs.systems[place[1]], "u": u}
        row |= {"n_first": first.size, "n_second": second.size, "listeners": min(listeners[one] for one in place)}
        row["p"] = np.nan if np.ptp(np.concatenate([first, second])) == 0 else p
        rows.append(row | {"common_language": chance, "cliffs_delta": 2 * chance - 1})
    adjusted = adjust_p(np.array([row["p"] for row in rows]), settings.correction)
    return [row | {"adjusted": one} for row, one in zip(rows, adjusted, strict=True)]


def _rows(pairs: Pairs, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> list[Row]:
    """Return one row for each pair, from columns of shape (pairs,)."""
    rows = []
    for place, (first, second) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        row = {"task": pairs.task, "first": pairs.systems[first], "second": pairs.systems[second]}
        rows.append(row | {name: column[place] for name, column in columns.items()})
    return rows


@dataclass(frozen=True, eq=False)
class _TwoWay:
    """Of each pair, shape (pairs,): p of the t test, NaN where it cannot be made; stretch and degrees of freedom."""

    p: Floats
    stretch: Floats
    degrees: Ints


def _two_way(scored: Scored, pairs: Pairs, clustered: Clustered) -> _TwoWay:
    """Return the t tests of the means of each pair, for other listeners and other utterances.

    Pairs of voices are compared class by class: how many of either a system has would move its mean. Left out are
    systems of which one utterance only was rated: nothing can be said of others.
    """
    from scipy.special import stdtr

    cells = {(cell.system, cell.kind): place for place, cell in enumerate(clustered.cells) if cell.task == pairs.task}
    kinds = {name: [kind for kind in (TARGET, NONTARGET) if (name, kind) in cells] for name in pairs.systems}
    mean = {place: _mean_of_classes(scored, clustered.cells[place].rating) for place in cells.values()}
    found = _TwoWay(np.full(len(pairs), np.nan), np.ones(len(pairs)), np.full(len(pairs), np.iinfo(np.int64).max))
    for number, both in enumerate(zip(pairs.first, pairs.second, strict=True)):
        first, second = (pairs.systems[one] for one in both)
        common = [kind for kind in kinds[first] if kind in kinds[second]]
        if not common and kinds[first] != kinds[second]:
            continue
        kind = common[0] if len(common) == 1 else ALL
        known = [cells[name, kind] for name in (first, second) if (name, kind) in cells]
        if len(known) < 2 or (clustered.means.items[known] < 2).any():
            continue
        variance, found.stretch[number], found.degrees[number] = clustered.means.of_difference(*known)
        means = [mean[place] for place in known]
        difference = abs(means[0] - means[1])
        if difference <= _NOISE * max(map(abs, means)):
            found.p[number] = 1.0
        else:
            found.p[number] = 2 * stdtr(found.degrees[number], -difference / np.sqrt(variance)) if variance else 0.0
    return found


def _mean_of_classes(scored: Scored, rating: Ints) -> float:
    """Return the mean score of ratings; of pairs of voices that of the means of their classes."""
    _, number = np.unique(class_strata(scored)[rating], return_inverse=True)
    return float(np.mean(np.bincount(number, scored.score[rating]) / np.bincount(number)))


def _decisive_p(columns: Mapping[str, Any], least: int) -> Floats:
    """Return for each pair the larger corrected p of both tests, or of the one that counts; NaN where neither does."""
    within = np.where(columns["listeners"] < least, np.nan, columns["permutation_adjusted"])
    return np.asarray(np.fmax(within, columns["two_way_adjusted"]))


def _intervals(
    differences: Floats, mean: Floats, between: _TwoWay, draws: Floats | None, settings: Settings
) -> tuple[Floats, Floats]:
    """Return limits of the mean of each pair; NaN where too few listeners rated both."""
    low, high = np.full(differences.shape[1], np.nan), np.full(differences.shape[1], np.nan)
    if draws is None:
        return low, high
    rated = np.isfinite(differences)
    is_enough = rated.sum(axis=0) >= settings.least_clusters
    for start in range(0, differences.shape[1], _INTERVALS_AT_ONCE):
        part = slice(start, start + _INTERVALS_AT_ONCE)
        sums = draws @ np.where(rated[:, part], differences[:, part], 0.0)
        counts = draws @ rated[:, part].astype(np.float64)
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        for place in np.flatnonzero(is_enough[part]):
            pair, clusters = start + place, int(rated[:, start + place].sum())
            degrees = min(clusters - 1, int(between.degrees[pair]))
            stretch = small_sample_stretch(clusters, degrees, settings.level) * float(between.stretch[pair])
            low[pair], high[pair] = stretched_interval(
                float(mean[pair]), means[:, place], stretch, settings.level, (-np.inf, np.inf)
            )
    return low, high


def _note(listeners: int, settings: Settings, *, compares_voices: bool) -> str:
    both = "both in one class (same or different speakers)" if compares_voices else "both"
    if not listeners:
        return f"No listener rated {both}."
    if listeners < settings.least_clusters:
        return f"Only {listeners} listeners rated {both}: no interval under {settings.least_clusters}."
    return ""
