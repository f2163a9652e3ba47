"""Interval widths against the published table, and what a study takes."""

import math

import pytest

from common.errors import ProblemsError
from listening.design.precision import interval_width, plan_precision
from tests.listening.rated import questions_of

RATES = (0.05, 0.25, 0.40, 0.45, 0.50)
# Half-widths in percentage points from 1,500 simulated studies, good to about 5 % themselves.
TABLE = {
    52: (4.0, 7.9, 8.6, 9.4, 9.0),
    104: (2.7, 5.5, 6.6, 6.4, 6.5),
    208: (2.0, 4.0, 4.6, 4.6, 4.5),
    416: (1.4, 2.9, 3.4, 3.4, 3.3),
    676: (1.1, 2.3, 2.6, 2.6, 2.7),
}


@pytest.mark.parametrize("trials", TABLE)
def test_half_widths_are_those_of_the_table(trials):
    found = [100 * interval_width(trials, rate) for rate in RATES]
    assert found == pytest.approx(TABLE[trials], rel=0.06, abs=0.06)


def test_a_large_reference_narrows_the_interval_and_likeness_widens_it():
    alone = interval_width(104, 0.45)
    beside = interval_width(104, 0.45, reference_trials=1352)
    assert 0.7 * alone < beside < 0.8 * alone
    assert interval_width(104, 0.45, inflation=1.3) == pytest.approx(1.3 * alone)


@pytest.mark.parametrize(("trials", "rate"), [(1, 0.4), (52, 0.0), (52, 1.0)])
def test_no_interval_of_nothing(trials, rate):
    with pytest.raises(ProblemsError, match="at least 2 ratings"):
        interval_width(trials, rate)


def test_plan_of_few_ratings_stands_without_intervals():
    """Three ratings of a system are two pairs of one class and one of the other."""
    plan = plan_precision(evaluators=3, trials=8, originals=4, systems=["A", "B", "C", "D"], questions=questions_of())
    rows = {row.task: row for row in plan.rows if row.system == "A"}
    assert (rows["verifiability"].targets, rows["verifiability"].nontargets) == (2, 1)
    assert math.isnan(rows["verifiability"].eer_half_width)
    assert 0 < rows["naturalness"].eer_half_width < 1
    without = plan_precision(evaluators=1, trials=2, originals=1, systems=["A", "B"], questions=questions_of()).rows[-1]
    assert without.ratings == 0
    assert math.isnan(without.mean_half_width)


def test_what_the_study_of_2022_takes():
    plan = plan_precision(
        evaluators=52,
        trials=52,
        originals=26,
        systems=[f"S{n}" for n in range(11)],
        questions=questions_of(),
        seconds_per_trial=30,
        other_minutes=4,
        pay_per_hour=10,
    )
    assert (plan.minutes, plan.hours, plan.cost) == pytest.approx((30, 26, 260))
    assert len(plan.rows) == 33
    assert {row.ratings for row in plan.rows} == {122, 123}
    first = plan.rows[0]
    assert (first.task, first.targets, first.nontargets) == ("verifiability", 62, 61)
    assert first.eer_half_width == pytest.approx(1.3 * first.naive_eer_half_width)
    natural = next(row for row in plan.rows if row.task == "naturalness")
    assert (natural.targets, natural.nontargets) == (1352, 123)
    assert natural.mean_half_width == pytest.approx(1.3 * 1.96 * (1 / 12 / 123) ** 0.5, rel=1e-3)


def test_no_plan_without_systems():
    with pytest.raises(ProblemsError, match="at least 1 system"):
        plan_precision(evaluators=5, trials=10, originals=5, systems=[], questions=questions_of())
