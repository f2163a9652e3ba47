"""Linkability and ZEBRA against the official values, the protocol's words, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.linkability import linkability
from evaluation.metrics.zebra import zebra, zebra_category
from tests.evaluation.score_sets import reference_cases, reference_scores


@pytest.mark.parametrize("name", reference_cases())
def test_linkability_equals_official(name):
    expected = reference_cases()[name]["dsys"]
    scores = reference_scores(name)
    if expected == "nan":
        assert math.isnan(linkability(*scores, compatibility="official"))
        assert linkability(*scores) == 0.0
    else:
        assert linkability(*scores) == pytest.approx(expected, abs=1e-9)
        assert linkability(*scores, compatibility="official") == linkability(*scores)


@pytest.mark.parametrize("name", reference_cases())
def test_zebra_equals_official(name):
    expected, scores = reference_cases()[name]["zebra"], reference_scores(name)
    if "raises" in expected:
        with pytest.raises(InputError, match="IndexError"):
            zebra(*scores, compatibility="official")
        return
    found = zebra(*scores)
    assert found.population_bit == pytest.approx(expected["population_bit"], abs=1e-9)
    assert found.individual_log10 == pytest.approx(expected["individual_log10"], abs=1e-9)
    assert found.category == expected["category"]
    assert zebra(*scores, compatibility="official") == found


def test_linkability_of_scores_that_span_all_of_double_precision():
    huge = np.linspace(0.8, 1.0, 40) * np.finfo(float).max
    assert linkability(huge, -huge) == pytest.approx(linkability(huge / 2**1000, -huge / 2**1000), abs=1e-12)


def test_linkability_of_neighbouring_numbers_is_finite():
    target = np.repeat(np.nextafter(1.0, 2.0), 40)
    assert 0.0 <= linkability(target, np.ones(40)) <= 1.0


def test_linkability_of_fewer_than_20_targets_is_0():
    assert linkability(np.arange(19.0) + 100, np.arange(19.0)) == 0.0
    assert linkability(np.arange(20.0) + 100, np.arange(19.0)) > 0.0


def test_zebra_of_one_pair_is_defined():
    found = zebra([1.0], [0.0])
    assert found.population_bit == pytest.approx(0.5 / math.log(2))
    assert found.individual_log10 == pytest.approx(math.log10(2), abs=1e-6)
    assert found.category == "A"


@pytest.mark.parametrize(
    ("individual", "category"),
    [(0.0, "0"), (2.0**-51, "A"), (np.nextafter(1.0, 2.0), "B"), (2.0, "B"), (6.1, "F"), (math.inf, "F")],
)
def test_zebra_category_includes_its_upper_limit(individual, category):
    assert zebra_category(individual) == category


def test_zebra_category_of_exactly_0_is_an_error_officially():
    with pytest.raises(InputError, match="no category for exactly 0"):
        zebra_category(0.0, compatibility="official")
    assert zebra_category(1e-300, compatibility="official") == "0"


@pytest.mark.parametrize("individual", [-1e-9, math.nan])
def test_zebra_category_refuses_what_is_no_disclosure(individual):
    with pytest.raises(InputError, match="0 or above, found"):
        zebra_category(individual)
