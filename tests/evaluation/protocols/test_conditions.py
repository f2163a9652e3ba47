"""Conditions and gates at their limits, under both policies."""

from __future__ import annotations

import math

import pytest

from common.errors import InputError
from evaluation.protocols.ranking.ranking import check_gate, conditions

MINIMUMS = (15, 20, 25, 30)


@pytest.mark.parametrize(
    ("average", "cumulative", "interval"), [(15.0, [15], [15]), (20.0, [15, 20], [20]), (32.0, [15, 20, 25, 30], [30])]
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


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: conditions(math.nan, MINIMUMS), "average EER of 0 to 100"),
        (lambda: conditions(10, (20, 15)), "limits that ascend"),
        (lambda: conditions(10, MINIMUMS, policy="best"), "“cumulative” or “interval”"),
    ],
)
def test_wrong_conditions_are_refused(call, sentence):
    with pytest.raises(InputError, match=sentence):
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
    with pytest.raises(InputError) as caught:
        check_gate({"f": 0.5, "x": math.nan}, [("f", "m"), ("x",)], 0.3)
    assert str(caught.value).endswith("found missing: m; not finite: x.")
    with pytest.raises(InputError, match="empty group"):
        check_gate({"f": 0.5}, [()], 0.3)
