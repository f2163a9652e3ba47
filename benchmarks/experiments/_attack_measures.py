"""How often a trained attacker errs on scored trials: all of them and those within a gender, over speakers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from common.errors import MetricInputError
from evaluation.attackers.training.report import AttackMeasures
from evaluation.metrics.bootstrap import Interval, bootstrap_detection, draw_speakers
from evaluation.metrics.detection import kaldi_eer

RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class AttackTrials:
    """Scored trials of an attack.

    Attributes:
        scores: shape (n,), higher is more alike.
        models: shape (n,), the speaker that each model was enrolled from.
        speakers: shape (n,), the speaker of each trial utterance.
        genders: of speakers, ``f`` or ``m``; those that are missing have no part in same-gender trials.
    """

    scores: npt.NDArray[np.float64]
    models: npt.NDArray[np.str_]
    speakers: npt.NDArray[np.str_]
    genders: Mapping[str, str]


def attack_measures(
    trials: AttackTrials, *, random: np.random.Generator, resamples: int = RESAMPLES, level: float = 0.95
) -> AttackMeasures:
    """EER of all trials and of those within a gender, with intervals over speakers.

    Args:
        random: of the resamples.
        resamples: fewer than 2 for no intervals.

    Raises:
        MetricInputError: columns of different lengths, no target or no nontarget trial, scores that are not finite.
    """
    if not trials.scores.size == trials.models.size == trials.speakers.size:
        raise MetricInputError(
            f"Expected a model and a speaker for each score, found {trials.scores.size} scores, {trials.models.size} "
            f"models and {trials.speakers.size} speakers."
        )
    is_target = trials.models == trials.speakers
    everything = np.ones(is_target.size, dtype=np.bool_)
    eer, interval = _measured(trials, everything, random, resamples, level)
    sides = [np.array([trials.genders.get(str(one), "") for one in side]) for side in (trials.models, trials.speakers)]
    within = (sides[0] == sides[1]) & (sides[0] != "")
    has_both = (within & is_target).any() and (within & ~is_target).any()
    same = _measured(trials, within, random, resamples, level) if has_both else (None, None)
    n_target = int(is_target.sum())
    return AttackMeasures(eer, interval, same[0], same[1], n_target, is_target.size - n_target)


def _measured(
    trials: AttackTrials, chosen: npt.NDArray[np.bool_], random: np.random.Generator, resamples: int, level: float
) -> tuple[float, Interval | None]:
    scores, models, speakers = trials.scores[chosen], trials.models[chosen], trials.speakers[chosen]
    is_target = models == speakers
    eer = kaldi_eer(scores[is_target], scores[~is_target])
    if resamples < 2:
        return eer, None
    draws = draw_speakers(np.concatenate([models, speakers]), resamples, random)
    replicates = bootstrap_detection(scores, is_target, models, speakers, draws, measures=("kaldi_eer",))
    return eer, replicates["kaldi_eer"].find_interval(level)
