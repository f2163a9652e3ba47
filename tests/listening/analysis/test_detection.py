"""Detection by listeners: definitions of each task, intervals, pairs of systems, and what is said without them."""

from dataclasses import replace

import numpy as np
import pytest

from evaluation.metrics.detection import auc
from listening.analysis.models.intervals import Influence, TwoWay, cluster_two_way
from listening.analysis.reading.inputs import ORIGINAL, Settings
from listening.analysis.scoring.detection import (
    Rate,
    compare_rates,
    estimate_points,
    make_detection_tables,
)
from listening.analysis.scoring.normalisation import score_ratings
from tests.listening.analysis.simulated import SCALE, SETTINGS, ratings_of, scored_of
from tests.listening.analysis.test_weighted_histograms import eer_by_root


@pytest.fixture(name="tables", scope="module")
def _tables():
    scored = scored_of()
    return scored, make_detection_tables(scored, SETTINGS)


def scores(scored, task, system, is_target=None):
    chosen = (scored.ratings.task == task) & (scored.ratings.system == system)
    if is_target is not None:
        chosen &= scored.ratings.is_target == is_target
    return scored.score[chosen]


def test_naturalness_detects_originals_among_a_system(tables):
    scored, (rates, _, _) = tables
    rows = rates.records(task="naturalness")
    assert [row["system"] for row in rows] == ["T01-p1", "T02-p1", "T03-p1"]
    for row in rows:
        target, nontarget = scores(scored, "naturalness", ORIGINAL), scores(scored, "naturalness", row["system"])
        assert (row["n_target"], row["n_nontarget"]) == (target.size, nontarget.size) == (240, 80)
        assert row["eer"] == pytest.approx(eer_by_root(target, nontarget), abs=1e-9)
        assert row["auc"] == pytest.approx(auc(target, nontarget), abs=1e-9)
    assert rows[0]["eer"] < rows[1]["eer"] < rows[2]["eer"]


def test_verifiability_compares_pairs_of_one_system_and_has_the_originals(tables):
    scored, (rates, _, _) = tables
    rows = rates.records(task="verifiability")
    assert [row["system"] for row in rows] == [ORIGINAL, "T01-p1", "T02-p1", "T03-p1"]
    for row in rows:
        sides = [scores(scored, "verifiability", row["system"], is_target) for is_target in (1, 0)]
        assert row["eer"] == pytest.approx(eer_by_root(*sides), abs=1e-9)
    assert rows[0]["eer"] < 0.2 < rows[3]["eer"]


def test_det_curve_has_a_point_for_each_distinct_score_and_both_ends(tables):
    scored, (_, det, _) = tables
    points = det.records(task="naturalness", system="T02-p1")
    target, nontarget = scores(scored, "naturalness", ORIGINAL), scores(scored, "naturalness", "T02-p1")
    distinct = np.unique(np.concatenate([target, nontarget]))
    assert [point["threshold"] for point in points] == [*distinct.tolist(), None]
    assert (points[0]["miss_rate"], points[0]["false_alarm_rate"]) == (0, 1)
    assert (points[-1]["miss_rate"], points[-1]["false_alarm_rate"]) == (1, 0)
    for point, threshold in zip(points, distinct, strict=False):
        assert point["miss_rate"] == pytest.approx((target < threshold).mean(), abs=1e-9)
        assert point["false_alarm_rate"] == pytest.approx((nontarget >= threshold).mean(), abs=1e-9)


def test_points_are_those_of_the_tables(tables):
    scored, (rates, _, _) = tables
    points = estimate_points(scored)
    for row in rates.records():
        point = points[row["task"], row["system"]]
        assert point.eer == pytest.approx(row["eer"], abs=1e-9)
    natural = points["naturalness", ORIGINAL]
    assert (natural.eer, natural.n, natural.listeners) == (None, 240, 20)
    assert natural.mean == pytest.approx(scores(scored, "naturalness", ORIGINAL).mean())


def test_limit_over_all_pairs_is_the_quantile_of_the_largest_deviation():
    """One pair is decided at its own 95 %; the limit grows with the number of pairs, and equal rates stay together."""
    numbers = np.random.default_rng(0)
    resampled = 0.3 + 0.02 * numbers.standard_normal((12, 2000))
    value = np.full(12, 0.3)
    value[0] = 0.3 + 0.02 * np.sqrt(2) * 2.4  # beyond 1.96 standard errors, within those of 66 pairs
    item = np.arange(24)
    influences = [Influence(np.array([2 * k, 2 * k + 1]), np.array([0.01, -0.01]), 1000, 1000) for k in range(12)]
    clustering = cluster_two_way(influences, item, item)
    resampled[0] += value[0] - 0.3
    rates = [Rate(f"s{k}", float(value[k]), resampled[k]) for k in range(12)]
    _, pair = compare_rates(rates[:2], cluster_two_way(influences[:2], item, item), Settings())
    assert pair[0]["is_told_apart"] == 1
    letters, pairs = compare_rates(rates, clustering, Settings())
    assert len(pairs) == 66
    assert sum(row["is_told_apart"] for row in pairs) == 0
    assert set(letters.values()) == {"a"}


def test_criterion_28_a_small_variance_narrows_the_interval_and_decides_nothing():
    """Two rates whose difference is 2.2 standard errors; by utterances the variance is as large, a third or thrice."""
    numbers = np.random.default_rng(0)
    resampled = 0.3 + 0.02 * numbers.standard_normal((2, 2000))
    rates = [Rate("A", 0.3 + 0.02 * np.sqrt(2) * 2.2, resampled[0]), Rate("B", 0.3, resampled[1])]
    rates[0].resampled[:] += rates[0].value - 0.3
    both, clusters = np.eye(2), np.full(2, 1000)
    widths, told = [], []
    for variance in (1.0, 1 / 3, 3.0):
        [row] = compare_rates(rates, TwoWay(both, variance * both, both, clusters, clusters), Settings())[1]
        widths.append(row["difference_high"] - row["difference_low"])
        told.append(row["is_told_apart"])
    assert widths[1:] == pytest.approx([widths[0] / np.sqrt(3), widths[0] * np.sqrt(3)], rel=0.1)
    assert told == [1, 1, 0]
    rates[0] = replace(rates[0], value=0.3 + 0.02 * np.sqrt(2) * 1.8)
    assert (
        compare_rates(rates, TwoWay(both, both / 3, both, clusters, clusters), Settings())[1][0]["is_told_apart"] == 0
    )


def test_a_system_that_few_heard_has_no_interval_beside_others_that_have():
    ratings = ratings_of(listeners=20, tasks=("naturalness",))
    few = (ratings.system != "T02-p1") | (ratings.listener < "listener-06")
    rates, _, differences = make_detection_tables(score_ratings(ratings.rows(few), SCALE, SETTINGS, "raw"), SETTINGS)
    rows = {row["system"]: row for row in rates.records()}
    assert rows["T02-p1"]["eer_low"] is None
    assert "6 listeners" in rows["T02-p1"]["remark"]
    assert rows["T01-p1"]["eer_low"] is not None
    assert (bool(rows["T01-p1"]["group"]), bool(rows["T02-p1"]["group"])) == (True, False)
    with_it = differences.records(second="T02-p1")[0]
    assert (with_it["difference_low"], with_it["remark"]) == (None, "No interval: one of the two has none.")
    assert with_it["difference"] == pytest.approx(rows["T01-p1"]["eer"] - rows["T02-p1"]["eer"], abs=1e-9)


def test_one_class_gives_a_note_and_no_rate():
    ratings = ratings_of(tasks=("verifiability",))
    scored = score_ratings(
        ratings.rows((ratings.system != "T01-p1") | (ratings.is_target == 1)), SCALE, SETTINGS, "raw"
    )
    row = make_detection_tables(scored, SETTINGS)[0].records(system="T01-p1")[0]
    assert row["eer"] is None
    assert (row["n_target"], row["n_nontarget"]) == (40, 0)
    assert row["remark"] == "No rate: there are no ratings of pairs of two speakers."
    assert estimate_points(scored)["verifiability", "T01-p1"].eer is None


def test_without_originals_there_is_nothing_to_detect_and_nothing_to_calibrate_on():
    ratings = ratings_of()
    scored = score_ratings(ratings.rows(ratings.system != ORIGINAL), SCALE, SETTINGS, "raw")
    rates, _, _ = make_detection_tables(scored, SETTINGS)
    for row in rates.records(task="naturalness"):
        assert row["remark"] == "No rate: there are no ratings of original speech."
    for row in rates.records(task="verifiability"):
        assert row["eer"] is not None
        assert row["cllr"] is None
        assert "No C_llr" in row["remark"]
