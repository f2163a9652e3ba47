"""The measures of an attack on trials, as the experiment with a semi-informed attacker prints them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.experiments._attack_measures import AttackTrials, attack_measures
from common.errors import MetricInputError
from evaluation.metrics.detection import kaldi_eer


def test_attack_measures_are_those_of_the_trials():
    random = np.random.default_rng(1)
    names = np.array([f"s{one}" for one in range(8)])
    models, speakers = (each.ravel() for each in np.meshgrid(names, np.repeat(names, 4), indexing="ij"))
    scores = random.normal(size=models.size) + 1.5 * (models == speakers)
    genders = {str(name): "fm"[place % 2] for place, name in enumerate(names)}
    trials = AttackTrials(scores, models, speakers, genders)
    found = attack_measures(trials, random=np.random.default_rng(2), resamples=50)
    same = models == speakers
    assert found.eer == kaldi_eer(scores[same], scores[~same])
    assert found.eer_interval.lower <= found.eer <= found.eer_interval.upper
    within = np.array([genders[a] == genders[b] for a, b in zip(models, speakers, strict=True)])
    assert found.same_gender_eer == kaldi_eer(scores[same], scores[within & ~same])
    assert (found.n_target, found.n_nontarget) == (32, 224)
    without = attack_measures(replace(trials, genders={}), random=random, resamples=0)
    assert (without.same_gender_eer, without.eer_interval) == (None, None)
    with pytest.raises(MetricInputError, match="a model and a speaker for each score"):
        attack_measures(replace(trials, models=models[1:]), random=random)
