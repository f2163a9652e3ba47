"""Weighted averages refuse gaps and duplicates."""

from __future__ import annotations

import math

import pytest

from common.errors import InputError
from evaluation.metrics.averages import weighted_average

WEIGHTS = {"libri_f": 0.25, "libri_m": 0.25, "vctk_f": 0.2, "vctk_m": 0.2, "common_f": 0.05, "common_m": 0.05}
VALUES = {"libri_f": 7.117, "libri_m": 1.114, "vctk_f": 16.92, "vctk_m": 7.692, "common_f": 10.98, "common_m": 4.802}


def test_average_is_the_published_one():
    average = weighted_average(VALUES.items(), WEIGHTS)
    assert (round(average.value, 3), average.n) == (7.769, 6)


def test_equal_values_average_to_themselves_exactly():
    assert weighted_average([(name, 15.0) for name in WEIGHTS], WEIGHTS).value == 15.0


def test_every_problem_is_named_at_once():
    values = [("libri_f", 1.0), ("libri_f", 2.0), ("libri_m", math.nan), ("other", 3.0)]
    with pytest.raises(InputError) as caught:
        weighted_average(values, WEIGHTS)
    assert str(caught.value).partition("found ")[2] == (
        "missing: vctk_f, vctk_m, common_f, common_m; given more than once: libri_f; without a weight: other; "
        "not finite: libri_m."
    )


@pytest.mark.parametrize("weights", [{"a": 0.5, "b": 0.4}, {"a": 1.5, "b": -0.5}, {"a": math.nan, "b": 1}, {}])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(InputError, match="weights of 0 or more that add up to 1"):
        weighted_average([("a", 1.0), ("b", 1.0)], weights)
