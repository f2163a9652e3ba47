"""Corrected p-values, against statsmodels."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from listening.analysis.models.comparisons import adjust_p

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40).map(np.array)


@given(P_VALUES)
def test_corrections_agree_with_statsmodels(p):
    with patch("gc.collect"):  # statsmodels tidies up all memory at each call: seconds after thousands of tests
        theirs = multipletests(p, method="holm")[1]
    np.testing.assert_allclose(adjust_p(p, "holm"), theirs, atol=1e-12)
    np.testing.assert_allclose(adjust_p(p, "bh"), multipletests(p, method="fdr_bh")[1], atol=1e-12)


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_a_test_that_could_not_be_made_does_not_count(correction):
    found = adjust_p(np.array([0.01, np.nan, 0.04]), correction)
    assert np.isnan(found[1])
    np.testing.assert_allclose(found[[0, 2]], adjust_p(np.array([0.01, 0.04]), correction))
