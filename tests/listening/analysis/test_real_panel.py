"""What listeners of the Voice Conversion Challenge 2020 said: agreement, comparisons and screening of a real panel."""

import itertools
import time

import numpy as np
import pytest
from scipy import stats

from listening.analysis.agreement.reliability import ALPHA, REPEATEDLY_RATED, make_reliability_tables
from listening.analysis.models.comparisons import make_comparison_tables
from listening.analysis.models.grouping import assign_letters
from listening.analysis.models.mixed_model import make_model_tables
from listening.analysis.post_screening.listeners import make_listener_tables, measure_agreement, select_rated
from listening.analysis.post_screening.rules import make_effect_tables, make_screening_table
from listening.analysis.reading.inputs import Settings
from listening.analysis.reading.ratings import read_ratings
from listening.analysis.scoring.normalisation import score_ratings
from tests.official import VCC2020

SETTINGS = Settings(resamples=200)


@pytest.fixture(scope="module")
def study():
    return read_ratings(VCC2020, VCC2020.name)


@pytest.fixture(scope="module")
def scored(study):
    return {kind: score_ratings(study.ratings, study.study.scale, SETTINGS, kind) for kind in ("raw", "normalised")}


@pytest.mark.parametrize(("kind", "alpha"), [("raw", 0.61), ("normalised", 0.71)])
def test_alpha_at_item_level(study, scored, kind, alpha):
    """An item is a sample by its name; quality ratings of listeners who count."""
    table = make_reliability_tables(study.ratings, scored[kind], SETTINGS)[0]
    (row,) = table.records(task="naturalness", measure=ALPHA, over=REPEATEDLY_RATED)
    assert row["value"] == pytest.approx(alpha, abs=0.005)
    assert row["value_low"] < row["value"] < row["value_high"]
    assert (row["listeners"], row["items"]) == (119, 6090)


def test_agreement_of_listeners_with_the_others(scored):
    """Median 0.81, tenth percentile 0.70, one of 119 under 0.3."""
    found, _ = measure_agreement(select_rated(scored["raw"], "naturalness"))
    assert np.median(found) == pytest.approx(0.81, abs=0.005)
    assert np.quantile(found, 0.1) == pytest.approx(0.70, abs=0.005)
    assert ((found < 0.3).sum(), found.size) == (1, 119)


def test_screening_finds_the_one_who_agrees_with_nobody(study, scored):
    screening = make_screening_table(study.ratings, study.study.scale, SETTINGS)
    (row,) = screening.records(rule="disagrees", is_caught=1)
    assert row["task"] == "naturalness"
    assert row["value"] < 0.3
    assert screening.records(rule="low-variance", is_caught=1) == []
    effects = make_effect_tables(study.ratings, study.study.scale, SETTINGS, "raw", screening)[0]
    standing = effects.records(rule="standing", task="naturalness")
    assert {(one["listeners_before"], one["listeners_after"]) for one in standing} == {(124, 119)}
    everyone = score_ratings(study.ratings, study.study.scale, SETTINGS, "raw", with_excluded=True)
    listeners = make_listener_tables(study.ratings, scored["raw"], everyone, SETTINGS, screening)[0]
    assert len(listeners.rows) == 2 * 124
    assert sum(bool(one["excluded"]) for one in listeners.records(task="naturalness")) == 5


def test_letters_are_what_the_corrected_comparisons_say(scored):
    started = time.process_time()
    table = make_comparison_tables(scored["normalised"], SETTINGS)[0]
    rows = {(row["first"], row["second"]): row for row in table.records(task="naturalness")}
    assert len(rows) == 62 * 61 / 2
    of = scored["normalised"]
    means = {
        name: of.score[(of.ratings.system == name) & (of.ratings.task == "naturalness")].mean()
        for name in of.systems("naturalness")
    }
    apart = {frozenset(pair) for pair, row in rows.items() if row["permutation_adjusted"] < 0.05}
    groups = assign_letters(sorted(means, key=lambda name: -means[name]), lambda a, b: frozenset((a, b)) in apart)
    assert time.process_time() - started < 90
    assert 0.7 < len(apart) / len(rows) < 0.95
    letters = {name: set(text.split()) for name, text in groups.items()}
    for pair in itertools.combinations(groups, 2):
        assert bool(letters[pair[0]] & letters[pair[1]]) == (frozenset(pair) not in apart)


def test_pooled_comparisons_agree_with_scipy(scored):
    of = scored["raw"]
    rows = make_comparison_tables(of, SETTINGS)[1].records(task="naturalness")
    for row in rows[::97]:
        first, second = (
            of.score[(of.ratings.task == "naturalness") & (of.ratings.system == row[name])]
            for name in ("first", "second")
        )
        expected = stats.mannwhitneyu(first, second, method="asymptotic")
        assert (row["u"], row["p"]) == (expected.statistic, pytest.approx(expected.pvalue, rel=1e-6))


def test_the_mixed_model_finds_what_listeners_add_and_ranks_take_away(scored):
    """Listener means range over two points of five in these data: a fifth of the variance, and nothing of ranks."""
    raw, normalised = (make_model_tables(scored[kind], SETTINGS) for kind in ("raw", "normalised"))
    share = {row["part"]: row["share"] for row in raw[1].records(task="naturalness")}
    assert 0.15 < share["listener"] < 0.3
    assert normalised[1].records(task="naturalness", part="listener")[0]["share"] < 0.01
    of = scored["raw"]
    chosen = of.ratings.task == "naturalness"
    means = {name: of.score[chosen & (of.ratings.system == name)].mean() for name in of.systems("naturalness")}
    for row in raw[0].records(task="naturalness")[1:]:
        assert row["effect"] == pytest.approx(means[row["system"]] - means["original"], abs=0.25)
