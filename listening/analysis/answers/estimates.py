"""One number about answers, its interval, and which conditions differ: what all kinds of answers share.

**Means** (`estimate_means`) have intervals for other listeners and other items: mean ± t · √V, V clustered both ways
(`listening.analysis.models.intervals`), t on the smaller number of clusters less 1.

**Shares** (`limit_share`) have the limits of Clopper and Pearson for as many independent answers as would tell as much,

    n* = min(n, s² / V · (z / t)²) · p (1 − p) / s²,       s² the variance of a single answer,

so that a share near 0 or 1 has a proper interval, and the exact one where each listener answered once. Answers without
any variance tell as much as their listeners would with one answer each.

**The decision** (`decide`). The p-values of all pairs of conditions are corrected once, by Holm; letters rest on this
alone.

Conventions: answers are a table (pandas) with the columns of `reading.inputs.Answers`; `score` is what is averaged.

Sources: Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29 (2011) (V); Korn & Graubard,
"Confidence intervals for proportions with small expected number of positive counts estimated from survey data",
Survey Methodology 24 (1998) (n*); Clopper & Pearson, Biometrika 26 (1934); Holm, Scandinavian Journal of Statistics 6
(1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from common.arrays import Floats, Ints
from common.wording import counted
from listening.analysis.models.comparisons import adjust_p
from listening.analysis.models.grouping import assign_letters
from listening.analysis.models.intervals import Influence, TwoWay, cluster_two_way, mean_influence, t_limits
from listening.analysis.reading.inputs import Settings
from listening.analysis.tables import Row

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class Estimate:
    """Attributes:
    question, condition: what was asked about what; no condition where the number is of all of them.
    against: the other condition of a pair.
    measure: what the value is.
    n, listeners, items: answers, and by and about how many.
    low, high: limits of the interval; None where there is none, see `remark`.
    p, adjusted: of no difference, and corrected over all pairs of the question; None where nothing is tested.
    letters: conditions of a question that share one do not differ significantly.
    """

    question: str
    condition: str
    measure: str
    n: int
    listeners: int
    items: int
    value: float | None
    low: float | None = None
    high: float | None = None
    against: str = ""
    p: float | None = None
    adjusted: float | None = None
    letters: str = ""
    remark: str = ""

    def as_row(self) -> Row:
        """Return the row of the table ``estimates``."""
        row = asdict(self)
        return row | {"value_low": row.pop("low"), "value_high": row.pop("high")}


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Who answered about what, by number; shape (answers,) each."""

    listener: Ints
    item: Ints

    @classmethod
    def of(cls, answers: DataFrame) -> Clusters:
        return cls(*(answers.groupby(name, sort=True).ngroup().to_numpy(np.int64) for name in ("listener", "item")))


def count(answers: DataFrame) -> dict[str, Any]:
    """Return answers, listeners and items, as `Estimate` names them."""
    return {"n": len(answers), "listeners": answers["listener"].nunique(), "items": answers["item"].nunique()}


def why_no_interval(listeners: int, settings: Settings) -> str:
    """Return why there is no interval; empty where there is one."""
    least = settings.least_clusters
    return "" if listeners >= least else f"No interval: {counted(listeners, 'listener')}, {least} are needed."


def estimate_means(
    answers: DataFrame, by: str, measure: str, settings: Settings, limits: tuple[float, float]
) -> tuple[list[Estimate], TwoWay]:
    """Return the mean score of each group of answers, and the clustering of these means in the same order.

    Args:
        answers: with the column `score`; groups are named in their column `by` and stand in the order of their names.
        limits: lowest and highest score.
    """
    clusters = Clusters.of(answers)
    score = answers["score"].to_numpy(np.float64)
    groups = {str(name): np.sort(rows) for name, rows in sorted(answers.groupby(by).indices.items())}
    influences = [mean_influence(rows, score, clusters.listener, clusters.item) for rows in groups.values()]
    means = cluster_two_way(influences, clusters.listener, clusters.item)
    question = str(answers["question"].iloc[0])
    found = []
    for place, (name, rows) in enumerate(groups.items()):
        value = float(score[rows].mean())
        counts = count(answers.iloc[rows])
        why = why_no_interval(counts["listeners"], settings)
        estimate = Estimate(question, name, measure, **counts, value=value, remark=why)
        if not why:
            low, high = np.clip(t_limits(value, *moments(means, place), settings.level), *limits)
            estimate = replace(estimate, low=float(low), high=float(high))
        found.append(estimate)
    return found, means


def moments(means: TwoWay, place: int) -> tuple[float, int]:
    """Return the variance of a statistic, at least the part of listeners, and its degrees of freedom."""
    return float(max(means.variances()[place], means.listener[place, place])), int(means.degrees()[place])


def t_test_p(value: float, variance: float, degrees: int) -> float:
    """Return the two-sided p of a value that is 0."""
    from scipy.special import stdtr

    return 2 * float(stdtr(degrees, -abs(value) / sqrt(variance))) if variance else float(value == 0)


def estimate_share(answers: DataFrame, measure: str, settings: Settings, *, chance: float | None = None) -> Estimate:
    """Return the mean score of all these answers as a share, with its p of `chance` where that is given.

    Args:
        answers: of one question, with the column `score` in [0, 1].
    """
    [share], means = estimate_means(answers, "question", measure, settings, (0.0, 1.0))
    share = replace(share, condition="")
    if share.low is None:
        return share
    score = answers["score"].to_numpy(np.float64)
    given = score, *moments(means, 0), share.listeners, settings.level
    low, high = limit_share(*given)
    return replace(share, low=low, high=high, p=None if chance is None else share_p(*given, chance))


def compare_means(estimates: Sequence[Estimate], means: TwoWay, measure: str, settings: Settings) -> list[Estimate]:
    """Return the difference of each two of the estimates: the first less the second, with interval and p.

    A t test of the means that knows which listeners and items both conditions share; its variance is at least that of
    listeners alone.
    """
    found = []
    for first in range(len(estimates)):
        for second in range(first + 1, len(estimates)):
            a, b = estimates[first], estimates[second]
            fewest = {name: min(getattr(a, name), getattr(b, name)) for name in ("n", "listeners", "items")}
            value = float(a.value or 0) - float(b.value or 0)
            why = why_no_interval(fewest["listeners"], settings)
            pair = Estimate(a.question, a.condition, measure, **fewest, value=value, against=b.condition, remark=why)
            if not why:
                variance, _, degrees = means.of_difference(first, second)
                low, high = t_limits(value, variance, degrees, settings.level)
                pair = replace(pair, low=low, high=high, p=t_test_p(value, variance, degrees))
            found.append(pair)
    return found


def limit_share(score: Floats, variance: float, degrees: int, listeners: int, level: float) -> tuple[float, float]:
    """Return the limits of a share, see the module.

    Args:
        score: shape (answers,), 1 where an answer counts, 0 where not, between them where it counts in part.
        variance: of the share, clustered.
    """
    from scipy.stats import beta

    share, of_all = float(score.mean()), effective_answers(score, variance, degrees, listeners, level)
    hits = share * of_all
    tail = (1 - level) / 2
    low = 0.0 if hits <= 0 else float(beta.ppf(tail, hits, of_all - hits + 1))
    high = 1.0 if hits >= of_all else float(beta.ppf(1 - tail, hits + 1, of_all - hits))
    return low, high


def share_p(score: Floats, variance: float, degrees: int, listeners: int, level: float, chance: float) -> float:
    """Return the two-sided p of a share that is `chance`: of the binomial test of as many answers as `limit_share`."""
    from scipy.stats import beta

    share, of_all = float(score.mean()), effective_answers(score, variance, degrees, listeners, level)
    hits = share * of_all
    as_many = 1.0 if hits <= 0 else float(beta.cdf(chance, hits, of_all - hits + 1))
    as_few = 1.0 if hits >= of_all else float(beta.sf(chance, hits + 1, of_all - hits))
    return min(1.0, 2 * min(as_many, as_few))


def effective_answers(score: Floats, variance: float, degrees: int, listeners: int, level: float) -> float:
    """Return n* of the module: how many independent answers tell as much about a share."""
    from scipy.special import ndtri, stdtrit

    share, spread = float(score.mean()), float(score.var())
    if not spread or not variance:
        return float(listeners)
    if listeners == score.size:
        return score.size * share * (1 - share) / spread
    upper = (1 + level) / 2
    informative = spread / variance * float(ndtri(upper) / stdtrit(degrees, upper)) ** 2
    return min(float(score.size), informative) * share * (1 - share) / spread


def decide(pairs: Sequence[Estimate], settings: Settings) -> list[Estimate]:
    """Return the same pairs with their p-values corrected over all of them."""
    adjusted = adjust_p(np.array([np.nan if one.p is None else one.p for one in pairs]), settings.correction)
    told = [None if np.isnan(p) else float(p) for p in adjusted]
    return [replace(one, adjusted=p) for one, p in zip(pairs, told, strict=True)]


def add_letters(estimates: Sequence[Estimate], decided: Sequence[Estimate], settings: Settings) -> list[Estimate]:
    """Return the estimates of conditions with letters, the highest value first; none where no pair was tested.

    Pairs that nobody compared count as not different.
    """
    below = round(1 - settings.level, 10)
    apart: Mapping[frozenset[str], bool] = {
        frozenset((one.condition, one.against)): one.adjusted < below for one in decided if one.adjusted is not None
    }
    tested = frozenset[str]().union(*apart) if apart else frozenset[str]()
    ordered = sorted(
        (one for one in estimates if one.condition in tested), key=lambda one: (-float(one.value or 0), one.condition)
    )
    letters = assign_letters(
        [one.condition for one in ordered], lambda first, second: apart.get(frozenset((first, second)), False)
    )
    return [replace(one, letters=letters.get(one.condition, "")) for one in estimates]


def spread_influence(value: Floats, clusters: Clusters) -> Influence:
    """Return how much each answer moves a statistic, where all answers do; `value` sums to 0."""
    sizes = np.unique(clusters.listener).size, np.unique(clusters.item).size
    return Influence(np.arange(value.size), value, *sizes)
