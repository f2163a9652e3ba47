"""From ratings to log-likelihood ratios, and what they cost: C_llr of listeners, cross-validated.

A rating is no likelihood ratio. It becomes one by logistic regression, l = a + b x with b ≥ 0, both classes weighing
the same so that l does not hold the proportion of targets. What it is fitted on decides what C_llr means:

* verifiability: on the pairs of *original* speech. A listener who does not know that voices were changed reads the
  ratings of changed voices as if they were original; C_llr above 1 means that this misleads.
* naturalness, intelligibility: originals are one class only, so nothing can be fitted on them. Here it is fitted on
  the originals against the *system's own* utterances: what a listener learns who knows how this system is rated. It
  depends on no other system of the study; 1 means nothing, slightly more only the price of fitting.

Both are cross-validated: listeners are dealt into folds, and the ratings of a fold are read with what the others gave.
One pseudo-count of each class (Platt's targets) keeps l finite where classes are separate, and l is kept within what
the fit could know: at most ln(nontargets + 1), at least −ln(targets + 1). Resamples move the fit by one Newton step
from the fit of all (k-step bootstrap).

**The best calibration** (`best_cost`). min C_llr and the convex-hull EER pool adjacent violators over distinct scores,
tied ones together; both are optimistic on so few ratings.

Conventions: scores of any scale, higher says "target"; natural logarithms; costs in bits.

Sources: Brümmer & du Preez, Computer Speech & Language 20 (2006), C_llr; Platt, "Probabilistic outputs for support
vector machines", in Advances in Large Margin Classifiers (1999); Andrews, "Higher-order improvements of a
computationally attractive k-step bootstrap", Econometrica 70 (2002).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

import numpy as np

from common.arrays import Flags, Floats, Ints
from evaluation.metrics.calibration import compute_rocch_eer, pool_histograms
from listening.analysis.scoring.resampled import count_by_class, split_resamples

FOLDS = 10
_NEWTON_STEPS = 50
_TOLERANCE = 1e-10
_LONGEST_STEP = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Ratings of one detection task.

    Attributes:
        score: shape (n,).
        is_target: shape (n,).
        listener: shape (n,), numbers among all listeners of the study.
    """

    score: Floats
    is_target: Flags
    listener: Ints

    def rows(self, chosen: Flags) -> Judgements:
        return Judgements(self.score[chosen], self.is_target[chosen], self.listener[chosen])

    @property
    def has_both(self) -> bool:
        return bool(self.is_target.any() and not self.is_target.all())


@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """C_llr and its resamples.

    Attributes:
        value: in bits.
        resampled: shape (resamples,), empty without draws; NaN where a class was not drawn.
        each: shape (n,), cost of each judgement, in bits.
    """

    value: float
    resampled: Floats
    each: Floats


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationFit:
    """l = offset + slope · (score − centre) / spread, within [lowest, highest].

    Attributes:
        offset, slope: as fitted, the slope of any sign; where it is not positive, ratings say nothing and l is 0.
    """

    offset: float
    slope: float
    centre: float
    spread: float
    lowest: float
    highest: float

    def llr(self, score: Floats, offset: Floats | None = None, slope: Floats | None = None) -> Floats:
        """Return log-likelihood ratios of scores; with other parameters of shape (resamples, 1), for each of them."""
        offsets = np.array([self.offset]) if offset is None else offset
        slopes = np.array([self.slope]) if slope is None else slope
        standard = (score - self.centre) / self.spread
        return np.clip(np.where(slopes > 0, offsets + slopes * standard, 0.0), self.lowest, self.highest)


def deal_folds(listeners: int, seed: int) -> Ints:
    """Return the fold of each listener, at random: `FOLDS` of equal size, or as many as there are listeners."""
    order = np.random.default_rng([seed, FOLDS]).permutation(listeners)
    folds = np.empty(listeners, np.int64)
    folds[order] = np.arange(listeners) % min(FOLDS, max(listeners, 1))
    return folds


def cross_validated_cost(
    training: Judgements, judged: Judgements, folds: Ints, draws: Floats | None = None
) -> Cost | None:
    """Return C_llr of judgements that are read with a fit on the training judgements of other listeners.

    Args:
        training: what the fit rests on; may be `judged` itself.
        folds: shape (listeners,), as `deal_folds` deals them.
        draws: shape (resamples, listeners), how often each listener occurs.

    Returns:
        None where a class is missing in `judged`, or in what is left of `training` without some fold.
    """
    if not judged.has_both:
        return None
    each = np.zeros(judged.score.size)
    sums = np.zeros((2, 0 if draws is None else len(draws)))
    for fold in np.unique(folds[judged.listener]):
        others = training.rows(folds[training.listener] != fold)
        if not others.has_both:
            return None
        fitted = fit(others)
        own = folds[judged.listener] == fold
        chosen = judged.rows(own)
        llr = fitted.llr(chosen.score)
        each[own] = np.logaddexp2(0, np.where(chosen.is_target, -llr, llr) / log(2))
        if draws is not None:
            sums += _resampled_sums(fitted, _refitted(fitted, others, draws), chosen, draws)
    value = 0.5 * float(each[judged.is_target].mean() + each[~judged.is_target].mean())
    if draws is None:
        return Cost(value, np.empty(0), each)
    sides = (judged.listener[judged.is_target], judged.listener[~judged.is_target])
    with np.errstate(invalid="ignore", divide="ignore"):
        target, nontarget = sums / [draws @ np.bincount(side, minlength=folds.size) for side in sides]
    return Cost(value, 0.5 * (target + nontarget), each)


def fit(training: Judgements) -> CalibrationFit:
    """Fit a logistic regression with classes of equal weight and one pseudo-count of each.

    Args:
        training: both classes occur.
    """
    targets = int(training.is_target.sum())
    nontargets = training.is_target.size - targets
    aims = np.where(training.is_target, (targets + 1) / (targets + 2), 1 / (nontargets + 2))
    weights = np.where(training.is_target, 1 / targets, 1 / nontargets)
    spread = float(training.score.std())
    limits = -log(targets + 1), log(nontargets + 1)
    base = CalibrationFit(0.0, 0.0, float(training.score.mean()), spread or 1.0, *limits)
    if spread == 0:
        return base
    design = np.stack([np.ones(training.score.size), (training.score - base.centre) / base.spread], axis=1)
    parameters = np.zeros(2)
    for _ in range(_NEWTON_STEPS):
        chance = _sigmoid(design @ parameters)
        gradient = design.T @ (weights * (chance - aims))
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design
        step = np.linalg.solve(curvature, gradient)
        # Far from the solution the curvature is too flat to trust: no step is longer than a few units of l.
        step = step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), _TOLERANCE))
        parameters = parameters - step
        if np.abs(step).max() < _TOLERANCE:
            break
    return replace(base, offset=float(parameters[0]), slope=float(parameters[1]))


def best_cost(target: Floats, nontarget: Floats) -> dict[str, float]:
    """Return what a monotone calibration fitted on the very scores reaches: `min_cllr` in bits, and `rocch_eer`.

    All tied give 1 bit and 0.5.

    Args:
        target, nontarget: shape (values,), ratings of each distinct score, ascending; both have some.
    """
    pools = pool_histograms(target, nontarget)
    targets, nontargets = pools.targets / pools.targets.sum(), pools.nontargets / pools.nontargets.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.nansum(targets * np.log2(1 + nontargets / targets)) + np.nansum(
            nontargets * np.log2(1 + targets / nontargets)
        )
    return {"min_cllr": 0.5 * float(cost), "rocch_eer": compute_rocch_eer(pools)}


def _refitted(fitted: CalibrationFit, training: Judgements, draws: Floats) -> tuple[Floats, Floats]:
    """Return the offset and slope of each resample, shape (resamples, 1): one Newton step from those of all."""
    standard = (training.score - fitted.centre) / fitted.spread
    chance = _sigmoid(fitted.offset + fitted.slope * standard)
    targets = int(training.is_target.sum())
    aims = np.where(training.is_target, (targets + 1) / (targets + 2), 1 / (chance.size - targets + 2))
    residual, weight = chance - aims, chance * (1 - chance)
    parts = [residual, residual * standard, weight, weight * standard, weight * standard**2]
    totals = np.zeros((5, len(draws)))
    for side in (training.is_target, ~training.is_target):
        listener = training.listener[side]
        sums = np.stack([np.bincount(listener, part[side], draws.shape[1]) for part in parts], axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            totals += (draws @ sums).T / (draws @ np.bincount(listener, minlength=draws.shape[1]))
    first, second, a, b, c = totals
    with np.errstate(invalid="ignore", divide="ignore"):
        determinant = a * c - b * b
        offset = fitted.offset - (c * first - b * second) / determinant
        slope = fitted.slope - (a * second - b * first) / determinant
    # Without spread, or a class, there is nothing to move: the fit of all stays.
    defined = np.isfinite(offset) & np.isfinite(slope)
    return (np.where(defined, offset, fitted.offset)[:, None], np.where(defined, slope, fitted.slope)[:, None])


def _resampled_sums(
    fitted: CalibrationFit, parameters: tuple[Floats, Floats], judged: Judgements, draws: Floats
) -> Floats:
    """Return the sum of the costs of targets and of nontargets in each resample, shape (2, resamples)."""
    people, person = np.unique(judged.listener, return_inverse=True)
    values, target, nontarget = count_by_class(judged.score, judged.is_target, person, people.size)
    drawn = draws[:, people]
    sums = np.empty((2, len(draws)))
    for part in split_resamples(len(draws), values.size):
        llr = fitted.llr(values, parameters[0][part], parameters[1][part])
        cost = np.logaddexp2(0, llr / log(2))
        sums[0, part] = ((drawn[part] @ target) * (cost - llr / log(2))).sum(1)
        sums[1, part] = ((drawn[part] @ nontarget) * cost).sum(1)
    return sums


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))
