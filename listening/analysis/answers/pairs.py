"""Two recordings compared: which is preferred, and by how much one is better.

**Preference** (`estimate_preference`): of each two conditions the share of comparisons that the first won, a tie
counting half for either. Of more than two conditions the strengths too: with worths π_i = exp(θ_i), Σ θ = 0, i wins
against j, loses and ties in the proportions (Davidson)

    π_i : π_j : ν √(π_i π_j),

without ties π_i : π_j (Bradley and Terry). θ and ln ν are of maximum likelihood, which is concave in them; they exist
where no set of conditions won all of its comparisons with the others. Intervals take V = H⁻¹ M H⁻¹, H the information
and M the scores of single answers clustered by listener and item.

**Comparison ratings** (`estimate_comparison`), CCR or CMOS: the mean rating of the first against the second condition,
its sign set right where they were heard in the other slots; and of each condition the mean rating against all others.

**Who was heard first** (`FIRST_HEARD`): the share of comparisons that the recording which was heard first won. Far from
one half, the order and not the recordings decided.

Conventions: a comparison is a session's answer to a question at one position and item, two rows, slots `A` and `B`.
A preference is ``A``, ``B`` or ``=``. A comparison rating says how much better B is than A, as the second clip is rated
against the first in ITU-T P.808. Pairs are named first against second in the order of their names. Where all conditions
were compared with one alone, that one is the second of every pair, and nothing but these pairs is estimated and tested.

Sources: Bradley & Terry, Biometrika 39 (1952); Davidson, "On extending the Bradley-Terry model to accommodate ties in
paired comparison experiments", Journal of the American Statistical Association 65 (1970); ITU-T P.808 (2021), annex C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from common.arrays import Floats, Ints
from listening.analysis.answers.estimates import (
    Clusters,
    Estimate,
    add_letters,
    count,
    decide,
    estimate_means,
    estimate_share,
    moments,
    spread_influence,
    t_test_p,
    why_no_interval,
)
from listening.analysis.models.intervals import cluster_two_way, t_limits
from listening.analysis.reading.inputs import Settings

if TYPE_CHECKING:
    from pandas import DataFrame

WINS, TIES, STRENGTH, FIRST_HEARD = "share of wins", "share of ties", "strength", "share of wins of the first heard"
MEAN_RATING, MEAN_AGAINST_ALL = "mean rating", "mean rating against all others"
TIE = "="
WON = {"A": 0.0, "B": 1.0, TIE: 0.5}  # by B
COMPARISON = ["listener", "session", "question", "position", "item"]


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Attributes:
    theta: shape (conditions,), ln of the worths, summing to 0.
    tie: ν of the model, 0 without ties.
    influence: shape (comparisons, conditions), how much each comparison moves each θ.
    """

    theta: Floats
    tie: float
    influence: Floats


def pair_up(answers: DataFrame) -> DataFrame:
    """Return a row for each comparison: `first` and `second` condition, `is_swapped`, `first_heard`.

    `is_swapped` where the first condition was in slot B. `first_heard` is the slot of the recording that was heard
    first, empty where that is not known. Comparisons of a condition with itself are left out.
    """
    import pandas as pd

    both = pd.merge(
        answers[answers["slot"] == "A"],
        answers.loc[answers["slot"] == "B", [*COMPARISON, "condition", "order"]],
        on=COMPARISON,
        suffixes=("_a", "_b"),
    )
    both = both[both["condition_a"] != both["condition_b"]].reset_index(drop=True)
    counts = pd.concat([both["condition_a"], both["condition_b"]]).value_counts()
    of_all = counts.index[counts == len(both)]
    is_star = len(of_all) == 1
    both["is_swapped"] = both["condition_a"] == of_all[0] if is_star else both["condition_b"] < both["condition_a"]
    both["first"] = both["condition_a"].where(~both["is_swapped"], both["condition_b"])
    both["second"] = both["condition_b"].where(~both["is_swapped"], both["condition_a"])
    is_known = (both["order_a"] > 0) & (both["order_b"] > 0)
    both["first_heard"] = np.where(is_known, np.where(both["order_a"] < both["order_b"], "A", "B"), "")
    both["pair"] = both["first"] + "\t" + both["second"]
    return both


def estimate_preference(answers: DataFrame, settings: Settings) -> list[Estimate]:
    """Return the share of wins of each pair, and of more than two conditions their strengths with letters.

    Args:
        answers: of one question, values ``A``, ``B`` or ``=``.
    """
    compared = pair_up(answers)
    won_by_b = compared["value"].map(WON)
    compared["score"] = won_by_b.where(compared["is_swapped"], 1 - won_by_b)
    pairs = []
    for _, of_pair in compared.groupby("pair"):
        named = {"condition": of_pair["first"].iloc[0], "against": of_pair["second"].iloc[0]}
        pairs.append(replace(estimate_share(of_pair, WINS, settings, chance=0.5), **named))
    pairs = decide(pairs, settings)
    found = [*_strengths(compared, pairs, settings), *pairs]
    if (compared["value"] == TIE).any():
        is_tie = (compared["value"] == TIE).astype(float)
        found.append(estimate_share(compared.assign(score=is_tie), TIES, settings))
    known = compared[compared["first_heard"] != ""]
    if len(known):
        won = known["value"].map(WON)
        known = known.assign(score=won.where(known["first_heard"] == "B", 1 - won))
        found.append(estimate_share(known, FIRST_HEARD, settings, chance=0.5))
    return found


def estimate_comparison(answers: DataFrame, settings: Settings, most: float = 3.0) -> list[Estimate]:
    """Return the mean rating of each pair, the first against the second, and of each condition against all others.

    Args:
        answers: of one question, with the column `score`: how much better B is than A.
        most: the end of the scale.
    """
    import pandas as pd

    compared = pair_up(answers)
    compared["score"] = compared["score"].where(compared["is_swapped"], -compared["score"])
    of_pairs, means = estimate_means(compared, "pair", MEAN_RATING, settings, (-most, most))
    pairs = []
    for place, one in enumerate(of_pairs):
        first, second = one.condition.split("\t")
        p = None if one.low is None else t_test_p(float(one.value or 0), *moments(means, place))
        pairs.append(replace(one, condition=first, against=second, p=p))
    pairs = decide(pairs, settings)
    if len(pairs) > 1 and compared["second"].nunique() == 1:
        return pairs
    either = pd.concat(
        [
            compared.assign(condition=compared["first"]),
            compared.assign(condition=compared["second"], score=-compared["score"]),
        ],
        ignore_index=True,
    )
    of_all, _ = estimate_means(either, "condition", MEAN_AGAINST_ALL, settings, (-most, most))
    return [*add_letters(of_all, pairs, settings), *pairs]


def fit_strengths(first: Ints, second: Ints, outcome: Floats, conditions: int) -> Strengths | None:
    """Return the strengths by maximum likelihood; None where there are none, see the module.

    Args:
        first, second: shape (comparisons,), numbers of the conditions.
        outcome: shape (comparisons,), 1 where the first won, 0 where the second, 0.5 for a tie.
    """
    from scipy.linalg import null_space
    from scipy.optimize import minimize

    if not _is_connected(first, second, outcome, conditions):
        return None
    has_ties = bool((outcome == 0.5).any())
    basis = null_space(np.ones((1, conditions)))  # θ = basis @ φ sums to 0
    half = (basis[first] - basis[second]) / 2
    alternatives = np.zeros((outcome.size, 3 if has_ties else 2, conditions - 1 + has_ties))
    alternatives[:, 0, : conditions - 1], alternatives[:, 1, : conditions - 1] = half, -half
    if has_ties:
        alternatives[:, 2, -1] = 1.0
    chosen = alternatives[np.arange(outcome.size), np.where(outcome == 1, 0, np.where(outcome == 0, 1, 2))]

    def chances(parameters: Floats) -> Floats:
        from scipy.special import softmax

        return np.asarray(softmax(alternatives @ parameters, axis=1))

    def loss(parameters: Floats) -> float:
        from scipy.special import logsumexp

        return float(logsumexp(alternatives @ parameters, axis=1).sum() - (chosen @ parameters).sum())

    def scores(parameters: Floats) -> Floats:
        return np.asarray(chosen - np.einsum("na,nap->np", chances(parameters), alternatives))

    def information(parameters: Floats) -> Floats:
        share = chances(parameters)
        mean = np.einsum("na,nap->np", share, alternatives)
        square = np.einsum("na,nap,naq->pq", share, alternatives, alternatives, optimize=True)
        return np.asarray(square - mean.T @ mean)

    start = np.zeros(alternatives.shape[2])
    found = minimize(loss, start, jac=lambda at: -scores(at).sum(axis=0), hess=information, method="trust-exact").x
    found = found + np.linalg.solve(information(found), scores(found).sum(axis=0))  # to the last digits
    moved = np.linalg.solve(information(found), scores(found).T).T[:, : conditions - 1] @ basis.T
    return Strengths(basis @ found[: conditions - 1], float(np.exp(found[-1])) if has_ties else 0.0, moved)


def _is_connected(first: Ints, second: Ints, outcome: Floats, conditions: int) -> bool:
    """Return whether each won against each other one, directly or by way of others, a tie counting for both."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    by_first, by_second = outcome > 0, outcome < 1
    winner = np.concatenate([first[by_first], second[by_second]])
    loser = np.concatenate([second[by_first], first[by_second]])
    won = csr_array((np.ones(winner.size), (winner, loser)), shape=(conditions, conditions))
    return bool(connected_components(won, connection="strong")[0] == 1)


def _strengths(compared: DataFrame, pairs: Sequence[Estimate], settings: Settings) -> list[Estimate]:
    """Return the strength of each of more than two conditions, letters by the decision on pairs."""
    names = sorted({*compared["first"], *compared["second"]})
    if len(names) < 3 or compared["second"].nunique() == 1:
        return []
    number = {name: place for place, name in enumerate(names)}
    first, second = (compared[side].map(number).to_numpy(np.int64) for side in ("first", "second"))
    fit = fit_strengths(first, second, compared["score"].to_numpy(np.float64), len(names))
    question, clusters = str(compared["question"].iloc[0]), Clusters.of(compared)
    estimates = []
    if fit is not None:
        influences = [spread_influence(column, clusters) for column in fit.influence.T]
        clustered = cluster_two_way(influences, clusters.listener, clusters.item)
    for place, name in enumerate(names):
        counts = count(compared[(first == place) | (second == place)])
        remark = why_no_interval(counts["listeners"], settings)
        value = low = high = None
        if fit is None:
            remark = "No strength: some conditions won, or lost, all comparisons with the others."
        else:
            value = float(fit.theta[place])
            if not remark:
                low, high = t_limits(value, *moments(clustered, place), settings.level)
        estimates.append(Estimate(question, name, STRENGTH, **counts, value=value, low=low, high=high, remark=remark))
    return add_letters(estimates, pairs, settings)
