"""How precise a study will be, how long it takes and what it costs, before anybody has listened.

The interval of an equal error rate comes from a simulation of ratings: both classes normal with one deviation, cut into
ten levels between -2 and 2 deviations, EER by linear interpolation on the DET polygon; the half-width is
1.96 standard deviations over 5,000 repetitions with a fixed seed (itself good to 2 %). For large numbers it comes near
1.96 sqrt(EER (1 - EER) (1/m + 1/n) / 4), which is a few per cent wider because it knows no levels.

Ratings of one listener are alike, and so are those of one utterance: intervals are widened by a factor. Its defaults
are what two-way standard errors (listener and utterance) were above naive ones in the public ratings of the Voice
Conversion Challenge 2020: 1.9 for raw ratings, 1.3 for rank-normalised ones (median over systems).

Conventions: rates and half-widths are shares in [0, 1]; normalised ratings lie in [0, 1]; confidence is 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan, sqrt

import numpy as np

from common.errors import ProblemsError
from evaluation.metrics.detection import interpolated_eers
from listening.questions import AskedQuestion

RAW_INFLATION = 1.9
NORMALISED_INFLATION = 1.3
TYPICAL_EER = 0.45
OTHER_MINUTES = 6.0  # of a session: consent, questions, sound check and instructions
NORMALISED_DEVIATION = sqrt(1 / 12)  # of ranks spread evenly over [0, 1]
RAW_DEVIATION = 0.25  # of a scale's length, as ratings of one system typically spread
_REPETITIONS = 5_000
_LEVELS = 10
_CUT_DEVIATIONS = 2.0
FEWEST_OF_A_CLASS = 2  # ratings, for an interval of an equal error rate
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class SystemPrecision:
    """What is known of every system after a study.

    Attributes:
        system: its name.
        task: what was rated.
        ratings: of this system.
        targets, nontargets: what its equal error rate is read from: pairs of its own (verifiability), or the
            originals of the study against all of its own ratings.
        eer_half_width: of the 95 % interval at the expected EER, with listeners alike; NaN where a class has fewer than
            `FEWEST_OF_A_CLASS` ratings.
        naive_eer_half_width: the same if all ratings were independent.
        mean_half_width: of the mean normalised rating, with listeners alike.
        raw_mean_half_width: of the mean rating, in points of the scale, with listeners alike.
    """

    system: str
    task: str
    ratings: int
    targets: int
    nontargets: int
    eer_half_width: float
    naive_eer_half_width: float
    mean_half_width: float
    raw_mean_half_width: float


@dataclass(frozen=True, slots=True)
class PrecisionPlan:
    """`hours` and `cost` are of all evaluators together, `minutes` of one of them."""

    rows: tuple[SystemPrecision, ...]
    minutes: float
    hours: float
    cost: float


def interval_width(
    trials_per_class: int, eer: float, *, reference_trials: int | None = None, inflation: float = 1.0
) -> float:
    """Return the half-width of the 95 % interval of an equal error rate.

    Args:
        trials_per_class: ratings of each class; of the system where there are `reference_trials`.
        eer: the expected rate, in (0, 1).
        reference_trials: ratings of the originals, where they differ in number.
        inflation: factor for ratings that are not independent; 1 for independent ones.

    Raises:
        ProblemsError: fewer than two ratings of a class, or a rate outside of (0, 1).
    """
    targets = trials_per_class if reference_trials is None else reference_trials
    if min(targets, trials_per_class) < FEWEST_OF_A_CLASS or not 0 < eer < 1:
        raise ProblemsError(
            f"Expected at least {FEWEST_OF_A_CLASS} ratings of each class and a rate between 0 and 1, found "
            f"{trials_per_class} and {eer}."
        )
    return inflation * _simulated_half_width(targets, trials_per_class, round(float(eer), 6))


def plan_precision(
    *,
    evaluators: int,
    trials: int,
    originals: int,
    systems: Sequence[str],
    questions: Sequence[AskedQuestion],
    seconds_per_trial: float = 25.0,
    other_minutes: float = OTHER_MINUTES,
    other_trials: int = 0,
    pay_per_hour: float = 0.0,
) -> PrecisionPlan:
    """Return what each system's results will be worth, and what that takes.

    Args:
        systems: their names; the anonymised trials are shared evenly among them.
        questions: those that are answered on a scale; others have no rows.
        seconds_per_trial: listening and answering, all questions of a trial together.
        other_minutes: consent, questions, sound check and instructions.
        other_trials: practice, gold and bridge trials of each evaluator, which are paid and not scored.

    Raises:
        ProblemsError: no system, no evaluator, or more originals than trials.
    """
    if not systems or evaluators < 1 or not 0 <= originals <= trials:
        raise ProblemsError(
            "Expected at least 1 system and 1 evaluator, and no more originals than trials; found"
            f" {len(systems)}, {evaluators}, and {originals} originals of {trials} trials."
        )
    each, more = divmod(evaluators * (trials - originals), len(systems))
    rows = [
        _row(system, one, each + (number < more), evaluators * originals)
        for number, system in enumerate(systems)
        for one in questions
        if one.is_rated
    ]
    minutes = other_minutes + (trials + other_trials) * seconds_per_trial / 60
    hours = evaluators * minutes / 60
    return PrecisionPlan(tuple(rows), minutes, hours, hours * pay_per_hour)


def _row(system: str, question: AskedQuestion, ratings: int, originals: int) -> SystemPrecision:
    if question.compares_voices:
        targets, nontargets = ratings - ratings // 2, ratings // 2
    else:
        targets, nontargets = originals, ratings
    is_known = min(targets, nontargets) >= FEWEST_OF_A_CLASS
    naive = (
        interval_width(nontargets, TYPICAL_EER, reference_trials=None if question.compares_voices else targets)
        if is_known
        else nan
    )
    standard = _NORMAL_95 / sqrt(ratings) if ratings else nan
    rate = NORMALISED_INFLATION * naive
    normalised = NORMALISED_INFLATION * NORMALISED_DEVIATION * standard
    raw = RAW_INFLATION * RAW_DEVIATION * (question.points - 1) * standard
    return SystemPrecision(system, question.key, ratings, targets, nontargets, rate, naive, normalised, raw)


@lru_cache(maxsize=512)
def _simulated_half_width(targets: int, nontargets: int, eer: float) -> float:
    from scipy.special import ndtr, ndtri

    distance = -float(ndtri(eer))  # of each class from the middle, in deviations
    cuts = np.concatenate([[-np.inf], np.linspace(-_CUT_DEVIATIONS, _CUT_DEVIATIONS, _LEVELS - 1), [np.inf]])
    random = np.random.default_rng(2022)
    target_levels = random.multinomial(targets, np.diff(ndtr(cuts - distance)), _REPETITIONS)
    nontarget_levels = random.multinomial(nontargets, np.diff(ndtr(cuts + distance)), _REPETITIONS)
    return _NORMAL_95 * float(interpolated_eers(target_levels.astype(float), nontarget_levels.astype(float)).std())
