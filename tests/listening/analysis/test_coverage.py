"""Intervals cover the truth of a small simulated study about as often as they say; naive ones do not."""

import numpy as np
import pytest

from listening.analysis.reading.inputs import Settings
from listening.analysis.scoring.detection import estimate_points, make_detection_tables
from listening.analysis.scoring.summary import make_summary_tables
from listening.analysis.tables import make_table
from portal.demo.listener_model import Spreads
from tests.listening.analysis.simulated import scored_of

STUDIES = 60
SETTINGS = Settings(resamples=300)
STUDY = {"listeners": 25, "count": 1, "each": 6, "utterances": 24, "tasks": ("naturalness",)}
SPREADS = Spreads(speaker=0.0, utterance=0.1)


@pytest.fixture(name="truth", scope="module")
def _truth():
    """Mean and rate of the system over as many listeners and utterances as 300 studies have."""
    points = [estimate_points(scored_of(seed=seed, spreads=SPREADS, **STUDY)) for seed in range(1000, 1300)]
    of_system = [one["naturalness", "T01-p1"] for one in points]
    return np.mean([one.mean for one in of_system]), np.mean([one.eer for one in of_system])


def test_intervals_cover_and_naive_ones_do_not(truth):
    mean, rate = truth
    covered = {"mean": 0, "eer": 0, "naive": 0}
    for seed in range(STUDIES):
        scored = scored_of(seed=seed, spreads=SPREADS, **STUDY)
        summary = make_summary_tables(scored, SETTINGS, make_table("differences", []))[0].records(system="T01-p1")[0]
        detection = make_detection_tables(scored, SETTINGS)[0].records(system="T01-p1")[0]
        covered["mean"] += summary["mean_low"] <= mean <= summary["mean_high"]
        covered["eer"] += detection["eer_low"] <= rate <= detection["eer_high"]
        covered["naive"] += abs(summary["mean"] - mean) <= 1.96 * summary["se_naive"]
    # Of 60 at 95 %, fewer than 52 would be chance in one of a hundred; 46 are 77 %.
    assert covered["mean"] >= 52
    assert covered["eer"] >= 52
    assert covered["naive"] <= 46
