"""Weighted averages refuse gaps and duplicates; conditions and gates at their limits, under both policies."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import MetricInputError
from evaluation.metrics.averages import AverageError, check_gate, conditions, weighted_average

WEIGHTS = {"libri_f": 0.25, "libri_m": 0.25, "vctk_f": 0.2, "vctk_m": 0.2, "common_f": 0.05, "common_m": 0.05}
VALUES = {"libri_f": 7.117, "libri_m": 1.114, "vctk_f": 16.92, "vctk_m": 7.692, "common_f": 10.98, "common_m": 4.802}
MINIMUMS = (15, 20, 25, 30)


def test_average_is_the_published_one():
    average = weighted_average(VALUES.items(), WEIGHTS)
    assert (round(average.value, 3), average.n) == (7.769, 6)


def test_equal_values_average_to_themselves_exactly():
    assert weighted_average([(name, 15.0) for name in WEIGHTS], WEIGHTS).value == 15.0


def test_gap_is_refused_by_name():
    with pytest.raises(AverageError) as caught:
        weighted_average([(name, value) for name, value in VALUES.items() if name != "vctk_f"], WEIGHTS)
    assert caught.value.missing == ("vctk_f",)
    assert str(caught.value) == "Expected one finite value of each member of the average, found missing: vctk_f."


def test_duplicate_is_refused_by_name_even_with_equal_values():
    with pytest.raises(AverageError) as caught:
        weighted_average([*VALUES.items(), ("common_m", 4.802)], WEIGHTS)
    assert (caught.value.repeated, caught.value.missing) == (("common_m",), ())


def test_every_problem_is_named_at_once():
    values = [("libri_f", 1.0), ("libri_f", 2.0), ("libri_m", math.nan), ("other", 3.0)]
    with pytest.raises(AverageError) as caught:
        weighted_average(values, WEIGHTS)
    assert caught.value.repeated == ("libri_f",)
    assert caught.value.not_finite == ("libri_m",)
    assert caught.value.unknown == ("other",)
    assert caught.value.missing == ("vctk_f", "vctk_m", "common_f", "common_m")


@pytest.mark.parametrize("weights", [{"a": 0.5, "b": 0.4}, {"a": 1.5, "b": -0.5}, {"a": math.nan, "b": 1}, {}])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(MetricInputError, match="weights of 0 or more that add up to 1"):
        weighted_average([("a", 1.0), ("b", 1.0)], weights)


@given(st.permutations(list(VALUES.items())))
def test_average_does_not_depend_on_order(values):
    assert weighted_average(values, WEIGHTS).value == weighted_average(VALUES.items(), WEIGHTS).value


@given(st.floats(0, 100), st.floats(0, 100))
def test_average_lies_between_its_values(low, high):
    value = weighted_average([("a", low), ("b", high)], {"a": 0.5, "b": 0.5}).value
    assert min(low, high) <= value <= max(low, high)


@pytest.mark.parametrize(
    ("average", "cumulative", "interval"),
    [
        (14.999999, [], []),
        (15.0, [15], [15]),
        (19.999999, [15], [15]),
        (20.0, [15, 20], [20]),
        (32.0, [15, 20, 25, 30], [30]),
        (57.76, [15, 20, 25, 30], [30]),
        (100.0, [15, 20, 25, 30], [30]),
        (0.0, [], []),
    ],
)
def test_conditions_met_under_both_policies(average, cumulative, interval):
    assert [one.minimum for one in conditions(average, MINIMUMS) if one.met] == cumulative
    assert [one.minimum for one in conditions(average, MINIMUMS, policy="interval") if one.met] == interval


def test_exclusive_limit_belongs_to_the_interval_below():
    met = [one.minimum for one in conditions(20.0, MINIMUMS, policy="interval", inclusive=False) if one.met]
    assert met == [15]
    assert [one.met for one in conditions(15.0, MINIMUMS, inclusive=False)] == [False] * 4


def test_average_near_a_limit_is_noted():
    assert [one.near_limit for one in conditions(19.96, MINIMUMS)] == [False, True, False, False]
    assert [one.near_limit for one in conditions(19.96, MINIMUMS, policy="interval")] == [True, True, False, False]
    assert not any(one.near_limit for one in conditions(19.9, MINIMUMS))


def test_interval_conditions_say_where_they_end():
    assert [one.upper for one in conditions(1, MINIMUMS, policy="interval")] == [20, 25, 30, None]
    assert [one.upper for one in conditions(1, MINIMUMS)] == [None] * 4


@given(st.floats(0, 100))
def test_intervals_are_disjoint_and_within_the_cumulative_conditions(average):
    interval = [one.minimum for one in conditions(average, MINIMUMS, policy="interval") if one.met]
    cumulative = [one.minimum for one in conditions(average, MINIMUMS) if one.met]
    assert interval == cumulative[-1:]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: conditions(math.nan, MINIMUMS), "average EER of 0 to 100"),
        (lambda: conditions(-1, MINIMUMS), "average EER of 0 to 100"),
        (lambda: conditions(10, (20, 15)), "limits that ascend"),
        (lambda: conditions(10, (15, 15)), "limits that ascend"),
        (lambda: conditions(10, MINIMUMS, policy="best"), "“cumulative” or “interval”"),
    ],
)
def test_wrong_conditions_are_refused(call, sentence):
    with pytest.raises(MetricInputError, match=sentence):
        call()


def test_no_limits_mean_no_conditions():
    assert conditions(40, ()) == ()


def test_gate_takes_the_mean_of_each_group_and_is_strict():
    values = {"dev_f": 0.2, "dev_m": 0.4, "test_f": 0.3001, "test_m": 0.3}
    groups = [("dev_f", "dev_m"), ("test_f", "test_m")]
    results = check_gate(values, groups, 0.3)
    assert [(one.group, one.passed) for one in results] == [(groups[0], False), (groups[1], True)]
    assert results[0].value == 0.3
    assert [one.passed for one in check_gate(values, groups, 0.3, inclusive=True)] == [True, True]


def test_gate_refuses_gaps():
    with pytest.raises(AverageError) as caught:
        check_gate({"f": 0.5, "x": math.nan}, [("f", "m"), ("x",)], 0.3)
    assert (caught.value.missing, caught.value.not_finite) == (("m",), ("x",))
    with pytest.raises(MetricInputError, match="empty group"):
        check_gate({"f": 0.5}, [()], 0.3)
