"""Detection metrics of a speaker verification test: three equal error rates, AUC, minDCF and the DET curve.

No number here is called just "EER": the challenges of 2020 and 2022 rank by Kaldi's, that of 2024 by SpeechBrain's, and
both print the ROCCH-EER of `calibration` beside it. `detection_metrics` computes them all, with C_llr, min C_llr, D_sys
and ZEBRA, from one sort.

Conventions: a higher score says "same speaker"; rates are shares in [0, 1]; a higher equal error rate means that an
attacker fails more often.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Floats
from evaluation.formats.equal_scores import describe_open_eer, note_few_trials
from evaluation.metrics import calibration
from evaluation.metrics.calibration import (
    Compatibility,
    SortedScores,
    compute_min_cllr,
    compute_rocch_eer,
    is_official,
    pool_adjacent_violators,
    single_precision,
    sort_scores,
    tie_starts,
)
from evaluation.metrics.catalogue import DETECTION_METRICS, format_heading
from evaluation.metrics.linkability import compute_linkability, note_few_targets
from evaluation.metrics.zebra import Zebra, compute_zebra

Estimator = Literal["kaldi", "rocch", "speechbrain"]


@dataclass(frozen=True, slots=True)
class EqualErrorRate:
    """An equal error rate by a named estimator.

    Attributes:
        estimator: whose definition it is.
        rate: in [0, 1].
        threshold: score at which it was read, in single precision as the official tools hold scores; None for
            ``rocch``, which lies between two thresholds.
    """

    estimator: Estimator
    rate: float
    threshold: float | None


@dataclass(frozen=True, slots=True, eq=False)
class DetCurve:
    """Detection error trade-off: one point for each distinct score, from accepting all trials to accepting none.

    Attributes:
        thresholds: shape (points,), ascending, the last one inf; scores at or above it are accepted.
        miss_rate: shape (points,), share of targets below the threshold, from 0 to 1.
        false_alarm_rate: shape (points,), share of nontargets at or above it, from 1 to 0.
    """

    thresholds: Floats
    miss_rate: Floats
    false_alarm_rate: Floats

    def corners(self) -> DetCurve:
        """Return the same line with the fewest points, for drawing: no point between two of equal rate."""
        kept = np.ones(self.thresholds.size, dtype=np.bool_)
        straight_down = np.diff(self.miss_rate) == 0
        straight_on = np.diff(self.false_alarm_rate) == 0
        kept[1:-1] = ~(straight_down[:-1] & straight_down[1:]) & ~(straight_on[:-1] & straight_on[1:])
        return DetCurve(self.thresholds[kept], self.miss_rate[kept], self.false_alarm_rate[kept])


@dataclass(frozen=True, slots=True)
class DetectionMetrics:
    """Everything that the challenges say about the scores of one test.

    Attributes:
        n_target, n_nontarget: trials.
        kaldi_eer, rocch_eer, speechbrain_eer: equal error rates, shares in [0, 1].
        kaldi_threshold, speechbrain_threshold: scores at which they were read, single precision.
        cllr, min_cllr: bits.
        linkability: D_sys, in [0, 1].
        zebra: population, individual, category.
        auc: area under the ROC curve, in [0, 1].
        min_dcf_01, min_dcf_001: normalised minimum detection cost at target priors of 0.01 and 0.001.
        open_eer: what equal scores leave open of the equal error rates, in words; empty where that is next to nothing.
        loose_eer: the same where it is more than a percent, however few the trials.
        det: the whole curve; no part of equality.
    """

    n_target: int
    n_nontarget: int
    kaldi_eer: float
    kaldi_threshold: float
    rocch_eer: float
    speechbrain_eer: float
    speechbrain_threshold: float
    cllr: float
    min_cllr: float
    linkability: float
    zebra: Zebra
    auc: float
    min_dcf_01: float
    min_dcf_001: float
    open_eer: str
    loose_eer: str
    det: DetCurve = field(compare=False, repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what limits the numbers, in words, to be read beside them."""
        few = note_few_targets(self.n_target)
        few_trials = note_few_trials(self.n_target, self.n_nontarget)
        found = (self.loose_eer, few_trials and f"the EER is {few_trials}", few and f"linkability is {few}")
        return tuple(filter(None, found))

    def values(self) -> Mapping[str, float]:
        """Return the numbers by their key in the catalogue and in its units: equal error rates in percent."""
        return {
            "kaldi_eer": 100 * self.kaldi_eer,
            "rocch_eer": 100 * self.rocch_eer,
            "speechbrain_eer": 100 * self.speechbrain_eer,
            "cllr": self.cllr,
            "min_cllr": self.min_cllr,
            "linkability": self.linkability,
            "zebra_population": self.zebra.population_bit,
            "zebra_individual": self.zebra.individual_log10,
            "auc": self.auc,
            "min_dcf_01": self.min_dcf_01,
            "min_dcf_001": self.min_dcf_001,
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the numbers with their units, and what limits them."""
        headings = {key: format_heading(metric) for key, metric in DETECTION_METRICS.items()}
        rows = (f"<tr><th>{headings[key]}</th><td>{value:.6g}</td></tr>" for key, value in self.values().items())
        return f"<table>{''.join(rows)}</table>" + "".join(f"<p>{note}.</p>" for note in self.notes)


def detection_metrics(
    target: ArrayLike, nontarget: ArrayLike, *, compatibility: Compatibility = "documented"
) -> DetectionMetrics:
    """Return all detection metrics of a test from one sort of its scores.

    Args:
        target: shape (targets,), scores of same-speaker trials; natural log-likelihood ratios for C_llr, else of any
            scale.
        nontarget: shape (nontargets,), scores of different-speaker trials.
        compatibility: ``official`` gives what the official code gives where it overflows (C_llr inf) or returns NaN
            (D_sys), and raises where it stops with an error.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.

    Example:
        >>> detection_metrics([1.0, 3.0], [0.0, 2.0]).kaldi_eer
        0.5
    """
    scores = sort_scores(target, nontarget)
    pools = pool_adjacent_violators(scores.is_target)
    if is_official(compatibility):
        calibration.refuse_single_pools(pools)
    kaldi, speechbrain = compute_kaldi_eer(scores), compute_speechbrain_eer(scores)
    det = trace_det_curve(scores)
    loose = describe_open_eer(scores.targets, scores.nontargets, steps=0)
    return DetectionMetrics(
        n_target=scores.n_target,
        n_nontarget=scores.n_nontarget,
        kaldi_eer=kaldi.rate,
        kaldi_threshold=_threshold(kaldi),
        rocch_eer=compute_rocch_eer(pools),
        speechbrain_eer=speechbrain.rate,
        speechbrain_threshold=_threshold(speechbrain),
        cllr=calibration.cllr(scores.targets, scores.nontargets, compatibility=compatibility),
        min_cllr=compute_min_cllr(pools, scores.is_target),
        linkability=compute_linkability(scores, compatibility=compatibility),
        zebra=compute_zebra(scores, pools, compatibility=compatibility),
        auc=_area(det),
        min_dcf_01=_least_cost(det, 0.01),
        min_dcf_001=_least_cost(det, 0.001),
        open_eer=loose and describe_open_eer(scores.targets, scores.nontargets),
        loose_eer=loose,
        det=det,
    )


def kaldi_eer(target: ArrayLike, nontarget: ArrayLike) -> float:
    """Return equal error rate as Kaldi's ``compute-eer``, by which 2020 and 2022 rank: k/T at the first crossing.

    Neither interpolated nor on the convex hull; a multiple of 1 / targets up to (T - 1) / T; above 0.5 where targets
    score lower than nontargets. Ties count against the system: all scores tied give (T - 1) / T. A single target always
    gives 0.

    Args:
        target, nontarget: shape (trials,), scores of any scale, rounded to single precision as Kaldi reads them.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.
    """
    return compute_kaldi_eer(sort_scores(target, nontarget)).rate


def speechbrain_eer(target: ArrayLike, nontarget: ArrayLike) -> float:
    """Return equal error rate as SpeechBrain's ``EER``, by which 2024 ranks: (P_fa + P_miss) / 2 where they are
    closest.

    The definition of the 2020 evaluation plan; treats ties evenly, so it suits ratings of listeners: all scores tied
    give 0.5. Inverted scores give up to 1.

    Args:
        target, nontarget: shape (trials,), scores of any scale, rounded to single precision as SpeechBrain holds them.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.
    """
    return compute_speechbrain_eer(sort_scores(target, nontarget)).rate


def interpolated_eers(target: Floats, nontarget: Floats) -> Floats:
    """Where misses and false alarms are equal on the polygon of the DET curve of each test, by linear interpolation.

    For many tests at once whose scores take few values, such as ratings.

    The polygon has a point for each distinct value, where scores at or above it are accepted, and its two ends; values
    that targets and nontargets share are one straight segment. Not on the convex hull: it goes up to 1, and is not
    biased near 0.5. All values tied give 0.5.

    Args:
        target, nontarget: shape (tests, values), how many trials have each distinct score, ascending.

    Returns:
        Shape (tests,), shares in [0, 1]; NaN for a test that lacks targets or nontargets.

    Example:
        >>> interpolated_eers(np.array([[0.0, 1, 3]]), np.array([[2.0, 2, 0]]))
        array([0.16666667])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        missed = target / target.sum(1, keepdims=True)
        rejected = nontarget / nontarget.sum(1, keepdims=True)
    # Misses minus false alarms rise from -1 to 1; `crossed` is the first value after which they are not negative.
    rise = np.cumsum(missed + rejected, axis=1) - 1
    crossed = np.argmax(rise >= 0, axis=1)
    rows = np.arange(len(target))
    step = missed[rows, crossed] + rejected[rows, crossed]
    below = np.where(np.arange(target.shape[1]) < crossed[:, None], missed, 0.0).sum(1)
    with np.errstate(invalid="ignore"):
        part = (step - rise[rows, crossed]) / step
    return np.asarray(below + part * missed[rows, crossed])


def auc(target: ArrayLike, nontarget: ArrayLike) -> float:
    """Area under the ROC curve: the chance that a target scores above a nontarget, ties counted half.

    1 for separable scores, 0 for inverted ones, 0.5 where all are tied.
    Source: Hanley & McNeil, "The meaning and use of the area under a ROC curve", Radiology 143 (1982).

    Args:
        target, nontarget: shape (trials,), scores of any scale.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.
    """
    return _area(det_curve(target, nontarget))


def det_curve(target: ArrayLike, nontarget: ArrayLike) -> DetCurve:
    """Return the detection error trade-off of a test at each distinct score; all scores tied leave its two ends.

    Source: Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997.

    Args:
        target, nontarget: shape (trials,), scores of any scale.

    Raises:
        InputError: a side that is empty, not one-dimensional, not of real numbers or not finite.
    """
    return trace_det_curve(sort_scores(target, nontarget))


def compute_kaldi_eer(scores: SortedScores) -> EqualErrorRate:
    """Return Kaldi's equal error rate of sorted scores."""
    targets, nontargets = single_precision(scores.targets), single_precision(scores.nontargets)

    def is_crossed(k: int) -> bool:
        last = max(0, nontargets.size - 1 - nontargets.size * k // targets.size)
        return bool(nontargets[last] < targets[k])

    # Targets rise and nontargets fall with k: once crossed, always crossed.
    crossing = bisect_left(range(targets.size - 1), True, key=is_crossed)
    return EqualErrorRate("kaldi", crossing / targets.size, float(targets[crossing]))


def compute_speechbrain_eer(scores: SortedScores) -> EqualErrorRate:
    """Return SpeechBrain's equal error rate of sorted scores.

    Its thresholds between two scores are left out: the rates there are those at the lower one, and the first counts.
    """
    values = single_precision(scores.values)
    lasts = np.append(tie_starts(values)[1:], values.size) - 1
    rejected_targets = np.cumsum(scores.is_target)[lasts]
    miss_rate = rejected_targets / scores.n_target
    false_alarm_rate = (scores.n_nontarget - (lasts + 1 - rejected_targets)) / scores.n_nontarget
    best = int(np.argmin(np.abs(false_alarm_rate - miss_rate)))
    rate = float(false_alarm_rate[best] + miss_rate[best]) / 2
    return EqualErrorRate("speechbrain", rate, float(values[lasts[best]]))


def trace_det_curve(scores: SortedScores) -> DetCurve:
    """Return the curve of sorted scores."""
    starts = tie_starts(scores.values)
    targets_below = np.concatenate([[0], np.cumsum(scores.is_target)])[np.append(starts, scores.values.size)]
    nontargets_below = np.append(starts, scores.values.size) - targets_below
    return DetCurve(
        np.append(scores.values[starts], np.inf),
        targets_below / scores.n_target,
        (scores.n_nontarget - nontargets_below) / scores.n_nontarget,
    )


def _area(det: DetCurve) -> float:
    hits = 1 - det.miss_rate
    return float(0.5 * (hits[:-1] + hits[1:]) @ -np.diff(det.false_alarm_rate))


def _least_cost(det: DetCurve, p_target: float) -> float:
    """Least detection cost over all thresholds, divided by that of deciding without scores; in [0, 1].

    Misses and false alarms cost 1 each. Tied scores share one threshold. (Kaldi's script puts one between them, so that
    it may find less.) Source: NIST Speaker Recognition Evaluation plans; Kaldi ``compute_min_dcf.py``.
    """
    costs = p_target * det.miss_rate + (1 - p_target) * det.false_alarm_rate
    return float(costs.min()) / min(p_target, 1 - p_target)


def _threshold(rate: EqualErrorRate) -> float:
    return float("nan") if rate.threshold is None else rate.threshold
