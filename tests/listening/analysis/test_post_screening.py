"""Rules of screening: each catches whom it should, says why it cannot judge, and leaving out changes what it should."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from listening.analysis.agreement.reliability import make_reliability_tables
from listening.analysis.models.comparisons import make_comparison_tables
from listening.analysis.models.mixed_model import make_model_tables
from listening.analysis.post_screening.listeners import make_listener_tables
from listening.analysis.post_screening.rules import (
    RULES,
    bt500_counts,
    count_missed_controls,
    make_effect_tables,
    make_screening_table,
    read_right_answers,
)
from listening.analysis.reading.inputs import BRIDGE, GOLD
from listening.analysis.scoring.detection import estimate_points
from tests.listening.analysis.rated import QUICK, SCALE, drawn, joined, ratings_of, scored_of


def found(ratings, rule, gold=None, **equal):
    return make_screening_table(ratings, SCALE, QUICK, gold).records(rule=rule, **equal)


def caught(ratings, rule, gold=None):
    return sorted({row["listener"] for row in found(ratings, rule, gold, is_caught=1)})


def with_one(ratings, values, listener="L000"):
    """The ratings with other values for one listener."""
    changed = ratings.rating.copy()
    own = ratings.listener == listener
    changed[own] = values(changed[own]) if callable(values) else values
    return replace(ratings, rating=changed)


def panel(**how):
    return drawn(listeners=15, systems=5, each=4, points=10, step=1.0, **how)


def test_every_rule_has_a_row_for_every_listener_and_a_plain_panel_is_not_caught():
    table = make_screening_table(panel(seed=1), SCALE, QUICK)
    for rule in RULES:
        rows = table.records(rule=rule)
        assert [row["listener"] for row in rows] == [f"L{n:03}" for n in range(15)]
        assert all(row["limit"] is not None for row in rows)
    assert table.records(is_caught=1) == []


def test_nearly_equal_ratings_are_caught_by_the_limit_of_p808_carried_to_the_scale():
    ratings = with_one(panel(), lambda values: np.where(np.arange(values.size) < 9, 5, 6))
    assert caught(ratings, "low-variance") == ["L000"]
    row = found(ratings, "low-variance", listener="L000")[0]
    assert row["limit"] == pytest.approx(0.1 * (9 / 4) ** 2)
    assert row["value"] == pytest.approx(0.45 * 0.55)
    five = make_screening_table(ratings, dict.fromkeys(SCALE, (1.0, 5.0)), QUICK)
    assert five.records(rule="low-variance")[0]["limit"] == pytest.approx(0.1)


def test_who_agrees_with_nobody_is_caught():
    ratings = with_one(panel(seed=2), lambda values: np.random.default_rng(0).integers(1, 11, values.size))
    assert caught(ratings, "disagrees") == ["L000"]
    turned = with_one(panel(seed=2), lambda values: 11 - values)
    assert caught(turned, "disagrees") == ["L000"]


def test_a_panel_that_hears_no_difference_is_not_taken_apart():
    """Nothing to agree about: correlations scatter around zero, and half of them lie under the floor of 0.3."""
    ratings = drawn(listeners=40, systems=5, each=4, step=0.0, noise_sd=2.0, utterance_sd=0.0, speaker_sd=0.0, seed=3)
    rows = found(ratings, "disagrees")
    assert sum(row["value"] < 0.3 for row in rows) > 20
    assert sum(row["is_caught"] for row in rows) <= 0.3 * 40


def golden(values, item="gold-1", tasks="naturalness"):
    names = [f"L{n:03}" for n in range(len(values))]
    return ratings_of(names, ["original"] * len(values), values, item=item, purpose=GOLD, task=tasks)


def test_control_trials_off_their_range_are_caught_if_more_than_half_are():
    right = {"gold-1": {"naturalness": [9, 10]}, "gold-2": {"naturalness": [1, 2]}}
    both = joined(panel(), golden([5, 5, 10, 9]), golden([5, 1, 2, 3], item="gold-2"))
    assert caught(both, "gold-missed", right) == ["L000"]
    values = {row["listener"]: row["value"] for row in found(both, "gold-missed", right)}
    assert [values[f"L00{n}"] for n in range(5)] == [1.0, 0.5, 0.0, 0.5, None]
    assert found(both, "gold-missed", right, listener="L004")[0]["remark"] == "No control trials."
    assert count_missed_controls(both, SCALE, QUICK, right) == {"control_trials": 8, "controls_missed": 4}
    out = replace(both, excluded=np.where(both.listener == "L000", "asleep", ""))
    assert count_missed_controls(out, SCALE, QUICK, right) == {"control_trials": 6, "controls_missed": 2}
    assert count_missed_controls(panel(), SCALE, QUICK, right) == {}


def test_right_answers_come_from_the_design():
    design = {"seed": 1, "gold": {"gold-1": {"naturalness": [9, 10]}, "gold-2": {"naturalness": "high"}, "gold-3": 4}}
    assert read_right_answers(design) == {"gold-1": {"naturalness": [9, 10]}, "gold-2": {}}
    assert read_right_answers({}) == read_right_answers({"gold": None}) == {}


def test_without_known_answers_the_median_of_the_others_stands_for_them():
    ratings = joined(panel(), golden([1, 9, 9, 10, 8, 9, 9]))
    assert caught(ratings, "gold-missed") == ["L000"]
    assert "the median of the other listeners" in found(ratings, "gold-missed", listener="L000")[0]["remark"]
    few = found(joined(panel(), golden([1, 9, 9])), "gold-missed", listener="L000")[0]
    assert few["remark"] == "Right answers are not known, and too few others rated."


def bridge_of(matrix):
    """Items × listeners, NaN where not rated."""
    item, listener = np.nonzero(np.isfinite(matrix))
    return ratings_of(
        [f"L{n:03}" for n in listener],
        ["T01"] * item.size,
        matrix[item, listener],
        item=[f"bridge-{n}" for n in item],
        purpose=BRIDGE,
    )


def by_bt500(matrix):
    """The annex written out: for each listener ratings above and below."""
    above, below = np.zeros(matrix.shape[1], int), np.zeros(matrix.shape[1], int)
    for row in matrix:
        b = stats.kurtosis(row, fisher=False)
        limit = (2 if 2 <= b <= 4 else np.sqrt(20)) * row.std(ddof=1)
        above += row >= row.mean() + limit
        below += row <= row.mean() - limit
    return above, below


def bridge_matrix(seed=0, items=6, listeners=15):
    numbers = np.random.default_rng(seed)
    return np.round(numbers.uniform(4, 7, (items, 1)) + numbers.normal(0, 0.7, (items, listeners)), 2)


def far_off(listener):
    """15 ratings as normal quantiles, kurtosis near 3, the one of a listener 2.2 SD above the mean."""
    row = stats.norm.ppf((np.arange(15) + 0.5) / 15)
    row[-1] *= 1.35
    return np.roll(row, listener + 1)


def test_observer_screening_is_that_of_bt500():
    matrix = bridge_matrix(items=30)
    matrix[::3, 0] += 4
    matrix[1::3, 0] -= 4
    item, listener = (one.ravel() for one in np.indices(matrix.shape))
    counts = bt500_counts(item, listener, matrix.ravel(), np.ones(item.size, bool), matrix.shape[1])
    np.testing.assert_array_equal(counts[0], by_bt500(matrix)[0])
    np.testing.assert_array_equal(counts[1], by_bt500(matrix)[1])
    assert set(counts[2].tolist()) == {30}


def test_who_is_far_off_on_both_sides_of_the_bridge_set_is_caught_and_on_one_side_is_not():
    """L000 is far up on one item and far down on another, L001 far up on three."""
    nobody = stats.norm.ppf((np.arange(15) + 0.5) / 15)
    matrix = 5 + np.array([far_off(0), -far_off(0), nobody, far_off(1), far_off(1), far_off(1)])
    above, below = by_bt500(matrix)
    assert (above[0], below[0]) == (1, 1)
    assert (above[1], below[1]) == (3, 0)
    ratings = joined(panel(), bridge_of(matrix))
    assert caught(ratings, "bridge-outlier") == ["L000"]
    one_sided = found(ratings, "bridge-outlier", listener="L001")[0]
    assert (one_sided["value"], one_sided["is_caught"]) == (0.5, 0)
    assert one_sided["remark"] == "One-sided: 3 above and 0 below the others."
    assert found(ratings, "bridge-outlier", listener="L007")[0]["value"] == 0


def everybody_rates(values):
    """Items × listeners."""
    item, listener = (one.ravel() for one in np.indices(values.shape))
    return ratings_of(
        [f"L{n:03}" for n in listener], [f"T{n % 4}" for n in item], values.ravel(), item=[f"i{n}" for n in item]
    )


def test_ratings_far_off_are_counted_by_z():
    numbers = np.random.default_rng(0)
    values = np.round(5 + numbers.normal(0, 0.5, (20, 30)), 3)
    values[:3, 0] = 10
    ratings = everybody_rates(values)
    z = np.abs(stats.zscore(values, axis=1)) >= 3.29
    rows = found(ratings, "vote-outliers")
    np.testing.assert_allclose([row["value"] for row in rows], z.mean(axis=0))
    assert caught(ratings, "vote-outliers") == ["L000"]


def test_who_is_left_out_is_judged_and_judges_nobody():
    ratings = with_one(panel(seed=2), lambda values: 11 - values)
    out = replace(ratings, excluded=np.where(ratings.listener == "L000", "disagrees", ""))
    alone = ratings.rows(ratings.listener != "L000")
    assert caught(out, "disagrees") == ["L000"]
    assert [row for row in found(out, "disagrees") if row["listener"] != "L000"] == found(alone, "disagrees")


def test_effects_are_points_before_and_after():
    ratings = with_one(panel(seed=2), lambda values: 11 - values)
    screening = make_screening_table(ratings, SCALE, QUICK)
    rows = make_effect_tables(ratings, SCALE, QUICK, "normalised", screening)[0].records()
    assert {row["rule"] for row in rows} == {"disagrees"}
    before = estimate_points(scored_of(ratings, "normalised"))
    after = estimate_points(scored_of(ratings.rows(ratings.listener != "L000"), "normalised"))
    assert len(rows) == 5
    for row in rows:
        for when, points in (("before", before), ("after", after)):
            point = points[row["task"], row["system"]]
            assert (row[f"listeners_{when}"], row[f"n_{when}"]) == (point.listeners, point.n)
            assert row[f"mean_{when}"] == pytest.approx(point.mean)
            assert row[f"eer_{when}"] == (None if point.eer is None else pytest.approx(point.eer))


def test_standing_exclusions_have_their_own_rows():
    ratings = panel(seed=2)
    out = replace(ratings, excluded=np.where(ratings.listener == "L004", "asked for it", ""))
    rows = make_effect_tables(out, SCALE, QUICK, "raw", make_screening_table(out, SCALE, QUICK))[0].records()
    assert {row["rule"] for row in rows} == {"standing"}
    assert {(row["listeners_before"], row["listeners_after"]) for row in rows} == {(15, 14)}
    assert rows[0]["mean_before"] == pytest.approx(ratings.rating[ratings.system == rows[0]["system"]].mean())


@pytest.mark.parametrize("kind", ["raw", "normalised"])
def test_sections_about_ratings_stand_with_nothing_that_counts(kind):
    """Only a control trial, and only a session that is left out: tables are empty or say why, and nothing fails."""
    out = ratings_of(["A"] * 3, ["original", "T1", "T2"], [3, 4, 5], excluded="why")
    for ratings in (golden([9]), out, joined(out, golden([9]))):
        counted, everyone = scored_of(ratings, kind), scored_of(ratings, kind, with_excluded=True)
        screening = make_screening_table(ratings, SCALE, QUICK)
        assert screening.records(is_caught=1) == []
        assert [table.rows for table in make_comparison_tables(counted, QUICK)] == [(), ()]
        assert [table.rows for table in make_model_tables(counted, QUICK)] == [(), ()]
        assert make_reliability_tables(ratings, counted, QUICK)[0].rows == ()
        told = make_listener_tables(ratings, counted, everyone, screening)[0].values("listener")
        assert told == (["A"] if "A" in ratings.listener else [])
        assert make_effect_tables(ratings, SCALE, QUICK, kind, screening)[0].records(rule="disagrees") == []
