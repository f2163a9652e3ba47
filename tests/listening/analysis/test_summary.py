"""Summaries of systems against numpy, scipy and statsmodels; intervals, letters, histograms, and what ranks carry."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import bootstrap, t
from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

from listening.analysis.models.comparisons import make_comparison_tables
from listening.analysis.reading.inputs import ORIGINAL, Settings
from listening.analysis.scoring.detection import estimate_points
from listening.analysis.scoring.normalisation import score_ratings
from listening.analysis.scoring.summary import make_summary_tables
from listening.analysis.tables import make_table
from portal.demo.listener_model import Spreads
from tests.listening.analysis.simulated import SCALE, SETTINGS, ratings_of, scored_of

NO_DIFFERENCES = make_table("differences", [])


@pytest.fixture(name="study", scope="module")
def _study():
    scored = scored_of()
    return scored, make_summary_tables(scored, SETTINGS, NO_DIFFERENCES)


def chosen(scored, task="naturalness", system="T02-p1"):
    return np.flatnonzero((scored.ratings.task == task) & (scored.ratings.system == system))


def test_points_are_those_of_numpy(study):
    scored, (summary, _) = study
    row = summary.records(task="naturalness", system="T02-p1")[0]
    score = scored.score[chosen(scored)]
    assert (row["n"], row["listeners"]) == (80, 20)
    assert row["items"] == np.unique(scored.ratings.utterance[chosen(scored)]).size
    for name, value in (
        ("mean", score.mean()),
        ("median", np.median(score)),
        ("q1", np.quantile(score, 0.25)),
        ("q3", np.quantile(score, 0.75)),
        ("sd", score.std(ddof=1)),
        ("se_naive", score.std(ddof=1) / np.sqrt(80)),
    ):
        assert row[name] == pytest.approx(value, abs=1e-9)


def test_two_way_error_is_that_of_statsmodels(study):
    scored, (summary, _) = study
    row = summary.records(task="naturalness", system="T02-p1")[0]
    rating = chosen(scored)
    _, item = np.unique(scored.ratings.utterance[rating], return_inverse=True)
    fitted = sm.OLS(scored.score[rating], np.ones((80, 1))).fit()
    variance = cov_cluster_2groups(fitted, scored.listener[rating], item)[0][0, 0]
    assert row["se_two_way"] == pytest.approx(np.sqrt(variance), rel=1e-8)
    degrees = min(20, np.unique(item).size) - 1
    limits = t.interval(0.95, degrees, loc=row["mean"], scale=row["se_two_way"])
    assert [row["two_way_low"], row["two_way_high"]] == pytest.approx(limits)


@pytest.mark.parametrize(("column", "cluster"), [("se_listener", "listener"), ("se_item", "utterance")])
def test_bootstrap_errors_are_those_of_scipy(column, cluster):
    """scipy draws clusters as pairs of (sum, count)."""
    settings = Settings(resamples=4000)
    scored = scored_of(settings=settings)
    row = make_summary_tables(scored, settings, NO_DIFFERENCES)[0].records(task="naturalness", system="T02-p1")[0]
    rating = chosen(scored)
    # Utterances are drawn from those of the whole study: some say nothing of this system.
    names = np.unique(getattr(scored.ratings, cluster))
    place = np.searchsorted(names, getattr(scored.ratings, cluster)[rating])
    sums = np.bincount(place, scored.score[rating], names.size)
    counts = np.bincount(place, minlength=names.size)
    reference = bootstrap(
        (sums, counts),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(8),
    )
    assert row[column] == pytest.approx(reference.standard_error, rel=0.06)


def test_intervals_hold_their_points_and_grow_with_shared_utterances():
    """The same ratings, once each with an utterance of its own and once with few utterances shared by all listeners."""
    spreads = Spreads(utterance=0.25, bias=0.02)
    ratings = ratings_of(listeners=25, utterances=10, spreads=spreads, tasks=("naturalness",))
    own = replace(ratings, utterance=np.arange(len(ratings)).astype(str))
    rows = [
        make_summary_tables(score_ratings(one, SCALE, SETTINGS, "raw"), SETTINGS, NO_DIFFERENCES)[0].records()
        for one in (ratings, own)
    ]
    for shared, alone in zip(*rows, strict=True):
        for name in ("mean", "median"):
            assert shared[f"{name}_low"] <= shared[name] <= shared[f"{name}_high"]
        assert shared["mean"] == alone["mean"]
        assert shared["mean_high"] - shared["mean_low"] > 1.5 * (alone["mean_high"] - alone["mean_low"])
        assert shared["se_two_way"] > 1.3 * shared["se_listener"]
        assert alone["se_two_way"] == pytest.approx(alone["se_listener"], rel=0.1)


def test_targets_and_nontargets_stand_beside_all_where_voices_are_compared(study):
    _, (summary, _) = study
    rows = summary.records(task="verifiability", system="T01-p1")
    assert [row["kind"] for row in rows] == ["all", "target", "nontarget"]
    assert rows[0]["n"] == rows[1]["n"] + rows[2]["n"]
    assert rows[1]["mean"] > rows[2]["mean"]
    assert [row["group"] for row in rows[1:]] == [None, None]
    assert {row["kind"] for row in summary.records(task="naturalness")} == {"all"}


def test_unknown_utterances_leave_intervals_of_listeners():
    ratings = ratings_of(tasks=("naturalness",))
    scored = score_ratings(replace(ratings, utterance=np.full(len(ratings), "")), SCALE, SETTINGS, "raw")
    for row in make_summary_tables(scored, SETTINGS, NO_DIFFERENCES)[0].records():
        assert row["items"] == 0
        assert row["se_item"] is None
        assert row["mean_low"] < row["mean"] < row["mean_high"]
        assert "not known" in row["remark"]


@pytest.mark.parametrize("kind", ["raw", "normalised"])
def test_histograms_hold_every_rating_once(kind):
    scored = scored_of(kind)
    _, histogram = make_summary_tables(scored, SETTINGS, NO_DIFFERENCES)
    bins = histogram.records(task="naturalness", system="T02-p1")
    score = scored.score[chosen(scored)]
    assert sum(one["count"] for one in bins) == score.size
    assert sum(one["share"] for one in bins) == pytest.approx(1)
    if kind == "raw":
        assert [(one["lower"], one["upper"]) for one in bins] == [(k - 0.5, k + 0.5) for k in range(1, 11)]
        assert [one["count"] for one in bins] == [np.count_nonzero(score == k) for k in range(1, 11)]
    else:
        assert len(bins) == 20
        assert (bins[0]["lower"], bins[-1]["upper"]) == (0, 1)
        edges = np.arange(20) / 20
        expected = np.bincount(np.searchsorted(edges, score + 1e-9, side="right") - 1, minlength=20)
        assert [one["count"] for one in bins] == expected.tolist()


def test_a_single_rating_is_a_mean_without_spread():
    ratings = ratings_of(tasks=("naturalness",))
    scored = score_ratings(ratings.rows(np.array([0])), SCALE, SETTINGS, "normalised")
    (row,) = make_summary_tables(scored, SETTINGS, NO_DIFFERENCES)[0].records()
    assert (row["n"], row["listeners"], row["items"], row["sd"], row["se_naive"]) == (1, 1, 1, None, None)
    assert row["mean"] == row["median"] == row["low_whisker"] == scored.score[0]


def test_pairs_of_one_speaker_and_of_two_have_no_common_mean():
    """It would tell how many of each there are: originals have both here, systems pairs of one speaker alone."""
    ratings = ratings_of(tasks=("verifiability",))
    kept = ratings.rows((ratings.system == ORIGINAL) | (ratings.is_target == 1))
    scored = score_ratings(kept, SCALE, SETTINGS, "normalised")
    differences = make_comparison_tables(scored, SETTINGS)[0]
    rows = make_summary_tables(scored, SETTINGS, differences)[0].records()
    for row in rows:
        assert (row["mean"] is None) == (row["mean_low"] is None) == (row["median"] is None) == (row["kind"] == "all")
        assert bool(row["group"]) == (row["kind"] == "all")
    assert all(point.mean is None for point in estimate_points(scored).values())
