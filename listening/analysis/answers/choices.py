"""Answers that are right or wrong: discrimination of two recordings, and choices among labels whose truth is known.

**ABX** (`estimate_discrimination`): the share of trials in which X was identified, and d′, how many standard deviations
apart the two are perceived. A listener who decides by which of A and B differs less from X is right with the chance

    P = Φ(d′/√2) Φ(d′/√6) + Φ(−d′/√2) Φ(−d′/√6),

for A − B has the variance 2, A + B − 2 X the variance 6, and the two are uncorrelated (differencing model). With too
few listeners for an interval that holds for others, the exact one of these trials is given, and a remark says so.

**Choices with known truth** (`estimate_choices`): how often each label was given for each true one, the recall of each
label, and unweighted average recall, the mean of the recalls: a label that is rare counts as much as a frequent one.
How many trials of a label there are is a matter of the design, so recalls are strata of one mean.

**Choices without a truth**: of each condition the share of answers that each label has.

Conventions: an answer is right where `value` is `truth`.

Sources: Macmillan & Creelman, "Detection theory: a user's guide" (2005), chapter 9; Schuller, Steidl & Batliner, "The
Interspeech 2009 emotion challenge" (unweighted average recall).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from listening.analysis.answers.estimates import (
    Clusters,
    Estimate,
    count,
    decide,
    estimate_share,
    limit_share,
    moments,
    share_p,
    why_no_interval,
)
from listening.analysis.answers.pairs import pair_up
from listening.analysis.models.intervals import cluster_two_way, mean_influence, t_limits
from listening.analysis.reading.inputs import Settings
from listening.analysis.tables import Row

if TYPE_CHECKING:
    from pandas import DataFrame

RIGHT, D_PRIME, RECALL, AVERAGE_RECALL = "share right", "d′", "recall", "unweighted average recall"
GIVEN = "share of answers"
CHANCE_OF_ABX = 0.5
_MOST_D_PRIME = 20.0


def abx_share(d_prime: float) -> float:
    """Return the share of right answers of a listener with that d′, by the differencing model.

    Example:
        >>> round(abx_share(0.0), 3), round(abx_share(2.0), 3)
        (0.5, 0.747)
    """
    from scipy.special import ndtr

    apart, nearer = ndtr(d_prime / np.sqrt(2)), ndtr(d_prime / np.sqrt(6))
    return float(apart * nearer + (1 - apart) * (1 - nearer))


def abx_d_prime(share: float) -> float | None:
    """Return the d′ of a share of right answers: 0 at chance and below, None where all are right.

    Example:
        >>> round(abx_d_prime(0.75), 2)
        2.02
    """
    from scipy.optimize import brentq

    if share <= CHANCE_OF_ABX:
        return 0.0
    if share >= abx_share(_MOST_D_PRIME):
        return None
    return float(brentq(lambda d_prime: abx_share(d_prime) - share, 0.0, _MOST_D_PRIME, xtol=1e-10))


def estimate_discrimination(answers: DataFrame, settings: Settings) -> list[Estimate]:
    """Return share right and d′ of each two conditions, and of all where there are several pairs.

    Args:
        answers: of one question; rows of A and B, which say the same value and truth, and perhaps of X.
    """
    trials = pair_up(answers)
    trials["score"] = (trials["value"] == trials["truth"]).astype(float)
    pairs = []
    for _, of_pair in trials.groupby("pair"):
        first, second = of_pair["first"].iloc[0], of_pair["second"].iloc[0]
        pairs.append(replace(_share_right(of_pair, settings), condition=first, against=second))
    shares = decide(pairs, settings)
    if len(pairs) > 1:
        shares.append(_share_right(trials, settings))
    return [*shares, *map(_as_d_prime, shares)]


def _share_right(trials: DataFrame, settings: Settings) -> Estimate:
    found = estimate_share(trials, RIGHT, settings, chance=CHANCE_OF_ABX)
    if found.low is not None:
        return found
    independent = trials["score"].to_numpy(float), 0.25, found.n, found.n, settings.level
    low, high = limit_share(*independent)
    remark = f"{found.listeners} listeners: the interval takes trials for independent and holds for these listeners."
    return replace(found, low=low, high=high, p=share_p(*independent, CHANCE_OF_ABX), remark=remark)


def _as_d_prime(share: Estimate) -> Estimate:
    value, low, high = (None if one is None else abx_d_prime(one) for one in (share.value, share.low, share.high))
    remark = share.remark
    if low is not None and high is None:
        remark, low = f"No upper limit; d′ is at least {low:.2f}. {remark}".strip(), None
    return replace(share, measure=D_PRIME, value=value, low=low, high=high, p=None, adjusted=None, remark=remark)


def estimate_choices(answers: DataFrame, settings: Settings) -> list[Estimate]:
    """Return of each condition, and of all, unweighted average recall and the recall of each label.

    Of answers without a truth the share of each label, of each condition.
    """
    known = answers[answers["truth"] != ""]
    known = known.assign(score=(known["value"] == known["truth"]).astype(float))
    groups = [(str(name), of_one) for name, of_one in known.groupby("condition")]
    if len(groups) > 1:
        groups.append(("", known))
    found = []
    for condition, of_one in groups:
        recalls = [
            replace(estimate_share(of_label, RECALL, settings), condition=condition, against=str(label))
            for label, of_label in of_one.groupby("truth")
        ]
        found += [replace(_average_recall(of_one, settings), condition=condition), *recalls]
    unknown = answers[answers["truth"] == ""]
    for condition, of_one in unknown.groupby("condition"):
        for label in sorted(unknown["value"].unique()):
            is_given = of_one.assign(score=(of_one["value"] == label).astype(float))
            given = estimate_share(is_given, GIVEN, settings)
            found.append(replace(given, condition=str(condition), against=label))
    return found


def _average_recall(answers: DataFrame, settings: Settings) -> Estimate:
    recalls = answers.groupby("truth")["score"].mean()
    counts, value = count(answers), float(recalls.mean())
    remark = why_no_interval(counts["listeners"], settings)
    found = Estimate(str(answers["question"].iloc[0]), "", AVERAGE_RECALL, **counts, value=value, remark=remark)
    if remark:
        return found
    clusters, label = Clusters.of(answers), answers.groupby("truth").ngroup().to_numpy(np.int64)
    by = clusters.listener, clusters.item
    influence = mean_influence(np.arange(len(answers)), answers["score"].to_numpy(float), *by, label)
    low, high = np.clip(t_limits(value, *moments(cluster_two_way([influence], *by), 0), settings.level), 0, 1)
    return replace(found, low=float(low), high=float(high))


def confusion(answers: DataFrame) -> list[Row]:
    """Return of each condition how often each label was given for each true one, and its share of the true one's."""
    import pandas as pd

    known = answers[answers["truth"] != ""]
    rows = []
    for condition, of_one in known.groupby("condition"):
        counts = pd.crosstab(of_one["truth"], of_one["value"]).stack()
        shares = counts / counts.groupby(level="truth").transform("sum")
        question = str(of_one["question"].iloc[0])
        for (truth, value), number in counts.items():
            row: Row = {"question": question, "condition": str(condition), "truth": str(truth), "answer": str(value)}
            rows.append(row | {"count": int(number), "share": float(shares[truth, value])})
    return rows
