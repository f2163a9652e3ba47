"""Summaries and distributions of per-utterance measures."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.averages import Summary, distribute, summarise


def test_summary_has_the_population_deviation():
    assert summarise([1, 2, 3, 4]) == Summary(mean=2.5, std=pytest.approx(1.25**0.5), n=4)
    assert summarise(np.array([0.7])) == Summary(mean=0.7, std=0.0, n=1)


@pytest.mark.parametrize(("values", "sentence"), [([], "found none"), ([0.1, np.nan], "1 of 2"), ([np.inf], "1 of 1")])
def test_summary_refuses_nothing_and_what_is_not_finite(values, sentence):
    with pytest.raises(InputError, match=sentence):
        summarise(values)


def test_distribution_counts_by_group_in_common_bins():
    values = {"F": [0.0, 0.3, 0.34, 1.0], "M": [0.29], "unknown": []}
    result = distribute(values, bins_per_unit=10)
    assert result.groups == ("F", "M")
    assert [summary.n for summary in result.summaries] == [4, 1]
    assert [(row.lower, row.upper) for row in result.bins] == [(i / 10, (i + 1) / 10) for i in range(10)]
    assert [row.counts for row in result.bins] == [
        (1, 0), (0, 0), (0, 1), (2, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (1, 0),
    ]  # fmt: skip


def test_distribution_widens_by_whole_bins():
    result = distribute({"F": [-0.31, 0.5]}, bins_per_unit=10)
    assert (result.bins[0].lower, result.bins[-1].upper) == (-0.4, 1.0)
    assert sum(row.counts[0] for row in result.bins) == 2


def test_distribution_of_nothing_is_refused():
    with pytest.raises(InputError, match="found none in any group"):
        distribute({"F": [], "M": []})
