"""Real ratings, 59,520 of them: what is known of the English listening test of the Voice Conversion Challenge 2020.

The expected numbers were computed from the same file by others; those of system means and equal error rates are
computed here once more, in plain pandas and from the definitions, without any code of the analysis.
"""

from statistics import median

import numpy as np
import pandas as pd
import pytest

from listening.analysis.agreement.reliability import ALPHA, REPEATEDLY_RATED
from listening.analysis.analyse import analyse
from listening.analysis.reading.inputs import ORIGINAL, Settings
from listening.analysis.reading.ratings import read_ratings
from tests.official import VCC2020

pytestmark = pytest.mark.slow  # all 59,520 ratings of the panel
KINDS = ("raw", "normalised")


@pytest.fixture(scope="module")
def inputs():
    return read_ratings(VCC2020, VCC2020.name)


@pytest.fixture(scope="module")
def results(inputs):
    return analyse(inputs, Settings(resamples=100, permutations=100))


@pytest.fixture(scope="module")
def plain():
    """Valid ratings as they stand in the file, and their ranks within listener and task."""
    table = pd.read_csv(VCC2020)
    table = table[table.valid == 1].copy()
    of_listener = table.groupby(["listener", "task"]).score
    table["raw"] = table.score
    table["normalised"] = (of_listener.rank() - 1) / (of_listener.transform("size") - 1)
    table["midrank"] = (of_listener.rank() - 0.5) / of_listener.transform("size")
    return table


def interpolated_eer(targets, nontargets):
    """Where misses and false alarms cross on the polygon through every threshold."""
    thresholds = np.append(np.unique(np.concatenate([targets, nontargets])), np.inf)
    misses = np.searchsorted(np.sort(targets), thresholds) / len(targets)
    alarms = 1 - np.searchsorted(np.sort(nontargets), thresholds) / len(nontargets)
    after = int(np.argmax(misses >= alarms))
    before = misses[after - 1] - alarms[after - 1]
    part = -before / (misses[after] - alarms[after] - before)
    return misses[after - 1] + part * (misses[after] - misses[after - 1])


def eers_of(table, scores):
    quality = table[table.task == "quality"]
    natural = quality.loc[quality.system == "ref", scores].to_numpy()
    by_system = quality[quality.system != "ref"].groupby("system")[scores]
    return {system: interpolated_eer(natural, of_system.to_numpy()) for system, of_system in by_system}


def named(results, scores, table, column, **equal):
    return {row["system"]: row[column] for row in results.table(scores, table).records(**equal)}


def test_every_rating_is_read(inputs):
    ratings = inputs.ratings
    assert len(ratings) == 59_520
    assert (np.unique(ratings.listener).size, np.unique(ratings.system).size) == (124, 62)
    assert dict(zip(*np.unique(ratings.task, return_counts=True), strict=True)) == {
        "naturalness": 29_760,
        "verifiability": 29_760,
    }
    assert (ratings.excluded != "").sum() == 6200
    pairs = ratings.rows(ratings.task == "verifiability")
    assert [((pairs.system == ORIGINAL) & (pairs.is_target == kind)).sum() for kind in (-1, 0, 1)] == [0, 960, 480]


@pytest.mark.parametrize(("scores", "expected"), [("raw", 0.186), ("normalised", 0.114)])
def test_median_eer_of_natural_against_each_system_is_the_published_one(results, scores, expected):
    found = named(results, scores, "detection", "eer", task="naturalness")
    assert len(found) == 61
    assert median(found.values()) == pytest.approx(expected, abs=0.0005)


@pytest.mark.parametrize("scores", KINDS)
def test_eers_are_those_of_an_independent_recomputation(results, plain, scores):
    assert named(results, scores, "detection", "eer", task="naturalness") == pytest.approx(
        eers_of(plain, scores), abs=1e-9
    )


@pytest.mark.parametrize("scores", KINDS)
def test_criterion_24_means_and_order_of_systems_are_those_of_an_independent_recomputation(results, plain, scores):
    quality = plain[plain.task == "quality"]
    expected = quality.groupby("system")[scores].mean().rename({"ref": ORIGINAL}).to_dict()
    found = named(results, scores, "summary", "mean", task="naturalness", kind="all")
    assert found == pytest.approx(expected, abs=1e-9)
    assert sorted(found, key=found.get) == sorted(expected, key=expected.get)
    assert len(found) == 62


@pytest.mark.parametrize("scores", KINDS)
def test_similarity_of_systems_is_that_of_an_independent_recomputation(results, plain, scores):
    pairs = plain[(plain.task == "similarity") & ~plain.system.str.startswith(("ref", "team34"))]
    found = named(results, scores, "summary", "mean", task="verifiability", kind="target")
    expected = pairs.groupby("system")[scores].mean().to_dict()
    assert {system: found[system] for system in expected} == pytest.approx(expected, abs=1e-9)
    assert set(found) - set(expected) == {ORIGINAL}


def test_natural_speech_is_the_sanity_anchor_of_verifiability(results, plain):
    pairs = plain[plain.task == "similarity"]
    same = pairs.loc[pairs.system == "ref", "raw"].to_numpy()
    different = pairs.loc[pairs.system.str.startswith("team34"), "raw"].to_numpy()
    found = named(results, "raw", "detection", "eer", task="verifiability")
    assert found[ORIGINAL] == pytest.approx(interpolated_eer(same, different), abs=1e-9)
    assert found[ORIGINAL] < 0.1
    assert all(eer is None for system, eer in found.items() if system != ORIGINAL)


def clustered_error(scores, *clusters):
    """Standard error of a mean from the sums of deviations in each cluster: the sandwich without small-sample terms."""
    deviations = scores - scores.mean()
    return np.sqrt((deviations.groupby(list(clusters)).sum() ** 2).sum()) / len(scores)


PUBLISHED_RATIOS = {"raw": (1.73, 1.22, 1.9), "normalised": (1.14, 1.31, 1.3)}


@pytest.mark.parametrize("scores", KINDS)
def test_clustered_standard_errors_stand_to_naive_ones_as_published(results, plain, scores):
    """By listener and by item as published within 0.1; two-way of raw scores too.

    The published two-way ratio of normalised scores is “about 1.3, from the three medians”; those medians give
    sqrt(1.14² + 1.31² − 1) = 1.42, and so does the sandwich, system by system (1.41).
    """
    quality = plain[plain.task == "quality"]
    expected = []
    for _, of_system in quality.groupby("system"):
        ratings, listener, sample = of_system[scores], of_system["listener"], of_system["sample"]
        by_listener, by_item = clustered_error(ratings, listener), clustered_error(ratings, sample)
        both = np.sqrt(by_listener**2 + by_item**2 - clustered_error(ratings, listener, sample) ** 2)
        expected.append(np.array([by_listener, by_item, both]) / ratings.std() * np.sqrt(len(ratings)))
    rows = results.table(scores, "summary").records(task="naturalness", kind="all")
    found = [median(row[name] / row["se_naive"] for row in rows) for name in ("se_listener", "se_item", "se_two_way")]
    assert found == pytest.approx(np.median(expected, axis=0), rel=0.05)  # bootstrap of 400 draws
    published = PUBLISHED_RATIOS[scores]
    assert found[:2] == pytest.approx(published[:2], abs=0.12)
    from_medians = np.sqrt(published[0] ** 2 + published[1] ** 2 - 1)
    assert found[2] == pytest.approx(from_medians, abs=0.1)
    assert from_medians == pytest.approx({"raw": 1.87, "normalised": 1.42}[scores], abs=0.01)


@pytest.mark.parametrize(("scores", "alpha"), [("raw", 0.61), ("normalised", 0.71)])
def test_alpha_at_item_level(results, scores, alpha):
    """An item is a sample by its name; quality ratings of listeners who count."""
    [row] = results.records(scores, "reliability", task="naturalness", measure=ALPHA, over=REPEATEDLY_RATED)
    assert row["value"] == pytest.approx(alpha, abs=0.005)
    assert (row["listeners"], row["items"]) == (119, 6090)


def test_screening_finds_the_one_who_agrees_with_nobody(results):
    """Median agreement 0.81, tenth percentile 0.70, one of 119 under 0.3."""
    rows = results.records("raw", "listeners", task="naturalness")
    found = np.array([row["correlation"] for row in rows if not row["excluded"]])
    assert (np.median(found), np.quantile(found, 0.1)) == pytest.approx((0.81, 0.70), abs=0.005)
    assert ((found < 0.3).sum(), found.size, len(rows)) == (1, 119, 124)
    [row] = results.records("common", "screening", rule="disagrees", is_caught=1)
    assert (row["task"], row["value"] < 0.3) == ("naturalness", True)


def test_the_mixed_model_finds_what_listeners_add_and_ranks_take_away(results):
    """Listener means range over two points of five in these data: a fifth of the variance, and nothing of ranks."""
    raw, normalised = (
        results.records(scores, "model_variance", task="naturalness", part="listener")[0]["share"] for scores in KINDS
    )
    assert 0.15 < raw < 0.3
    assert normalised < 0.01
