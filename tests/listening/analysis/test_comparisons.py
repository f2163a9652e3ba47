"""Systems compared two by two, against scipy and by hand."""

import numpy as np
import pytest
from scipy import stats

from listening.analysis.models.comparisons import list_pairs, listener_differences, make_comparison_tables
from listening.analysis.reading.inputs import Settings
from listening.analysis.scoring.normalisation import score_ratings
from listening.analysis.scoring.summary import make_summary_tables
from tests.listening.analysis.rated import QUICK, drawn, ratings_of, scored_of
from tests.listening.analysis.simulated import SCALE, null_study

NULL_SETTINGS = Settings(resamples=300, permutations=500)


def tables(ratings, settings=QUICK, kind="raw"):
    return make_comparison_tables(scored_of(ratings, kind), settings)


def test_differences_are_means_within_listeners():
    ratings = ratings_of(list("AAAABBB"), ["original", "T1", "T1", "T2", "original", "T1", "T1"], [9, 4, 6, 1, 8, 8, 6])
    rows = tables(ratings)[0].records()
    assert [(row["first"], row["second"], row["listeners"], row["difference"]) for row in rows] == [
        ("original", "T1", 2, (4 + 1) / 2),
        ("original", "T2", 1, 8),
        ("T1", "T2", 1, 4),
    ]


def test_verifiability_is_compared_class_by_class():
    """A met two pairs of one speaker with T1 and none of two speakers: only the class met with both counts."""
    ratings = ratings_of(
        list("AAAABBBB"),
        ["T1", "T1", "T2", "T2", "T1", "T1", "T2", "T2"],
        [9, 7, 6, 1, 10, 2, 8, 1],
        task="verifiability",
        is_target=[1, 1, 1, 0, 1, 0, 1, 0],
    )
    scored = scored_of(ratings)
    found = listener_differences(scored, list_pairs(scored, "verifiability"))[:, 0]
    assert found.tolist() == [8 - 6, (2 + 1) / 2]


def test_resampling_listeners_gives_the_standard_error_of_their_mean():
    scored = scored_of(drawn(listeners=60, seed=6))
    differences = listener_differences(scored, list_pairs(scored, "naturalness"))[:, 0]
    row = make_comparison_tables(scored, Settings())[0].records()[0]
    wide = 2 * stats.norm.ppf(0.975) * differences.std(ddof=1) / np.sqrt(60)
    assert row["difference_high"] - row["difference_low"] == pytest.approx(wide, rel=0.1)


def test_pair_that_few_listeners_rated_both_is_decided_by_those_who_rated_each():
    """Five of twenty rated both: the test within listeners rests on too few, the t test on twelve of each."""
    ratings = drawn(listeners=20, systems=2, seed=7, step=3.0)
    place = np.array([int(name[1:]) for name in ratings.listener])
    kept = np.where(ratings.system == "T01", place < 12, place >= 7)
    [row] = tables(ratings.rows(kept))[0].records(first="original", second="T01")
    assert (row["listeners"], row["decisive_p"]) == (5, row["two_way_adjusted"])
    assert row["is_told_apart"] == 1


def test_criterion_28_one_decision_rests_on_both_tests():
    """All rate eight utterances of each of six equal systems, and agree which of these are better."""
    found = {"permutation": 0, "told": 0}
    for seed in range(12):
        scored = score_ratings(null_study(seed, is_shared=False), SCALE, NULL_SETTINGS, "raw")
        differences = make_comparison_tables(scored, NULL_SETTINGS)[0]
        rows = differences.records()
        found["permutation"] += any(row["permutation_adjusted"] < 0.05 for row in rows)
        found["told"] += any(row["is_told_apart"] for row in rows)
        summary = make_summary_tables(scored, NULL_SETTINGS, differences)[0]
        letters = {row["system"]: set(row["group"]) for row in summary.records()}
        for row in rows:
            assert row["decisive_p"] == max(row["permutation_adjusted"], row["two_way_adjusted"])
            assert row["is_told_apart"] == (row["decisive_p"] < 0.05)
            assert bool(letters[row["first"]] & letters[row["second"]]) != bool(row["is_told_apart"])
    # At 5 % more than 3 of 12 would be chance in one of four hundred.
    assert found["permutation"] >= 4
    assert found["told"] <= 3


def test_criterion_28_intervals_of_differences_cover_other_utterances():
    covered = []
    for seed in range(12):
        scored = score_ratings(null_study(seed), SCALE, NULL_SETTINGS, "normalised")
        rows = make_comparison_tables(scored, NULL_SETTINGS)[0].records()
        covered += [row["difference_low"] <= 0 <= row["difference_high"] for row in rows]
    assert np.mean(covered) >= 0.88
