"""Corrected p-values, against statsmodels."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from listening.analysis.corrections import adjusted, benjamini_hochberg, holm

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40).map(np.array)


@given(P_VALUES)
def test_corrections_agree_with_statsmodels(p):
    with patch("gc.collect"):  # statsmodels tidies up all memory at each call: seconds after thousands of tests
        theirs = multipletests(p, method="holm")[1]
    np.testing.assert_allclose(holm(p), theirs, atol=1e-12)
    np.testing.assert_allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1], atol=1e-12)


@given(P_VALUES, st.sampled_from(["holm", "bh"]))
def test_corrected_values_are_no_smaller_and_keep_their_order(p, correction):
    found = adjusted(p, correction)
    assert (found >= p - 1e-15).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_a_test_that_could_not_be_made_does_not_count(correction):
    found = adjusted(np.array([0.01, np.nan, 0.04]), correction)
    assert np.isnan(found[1])
    np.testing.assert_allclose(found[[0, 2]], adjusted(np.array([0.01, 0.04]), correction))


def test_no_test_at_all():
    assert holm(np.array([])).size == 0
    assert np.isnan(benjamini_hochberg(np.array([np.nan]))).all()
