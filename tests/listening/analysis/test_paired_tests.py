"""Tests of differences within listeners, against scipy and against counting out every flip of signs."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from listening.analysis.models.comparisons import (
    permutation_p,
    rank_biserial,
    sign_flip_share,
    sign_flip_tail,
    wilcoxon_p,
)


@cache
def flips_of(count):
    """All flips of so many signs but the first: to flip every sign changes how far no sum is from zero."""
    return np.array(list(itertools.product([1.0], *[[1.0, -1.0]] * (count - 1))))


def counted(differences):
    """Share of all flips of signs whose sum is as far from zero."""
    return (np.abs(flips_of(differences.size) @ differences) >= abs(differences.sum()) - 1e-9).mean()


def test_permutations_agree_with_scipy():
    differences = np.random.default_rng(1).normal(0.35, 1, (30, 3))
    found = permutation_p(differences, 20_000, np.random.default_rng(2))
    for place in range(3):
        expected = stats.permutation_test(
            (differences[:, place],), np.sum, permutation_type="samples", n_resamples=20_000, rng=3
        ).pvalue
        assert found[place] == pytest.approx(expected, rel=0.1, abs=0.002)


@given(st.lists(st.integers(-40, 60), min_size=1, max_size=10))
def test_flips_counted_out_are_exact(whole):
    differences = np.array(whole) / 8
    assert sign_flip_share(differences[:, None])[0] == pytest.approx(counted(differences))


@pytest.mark.parametrize(("kind", "slack"), [("alike", 1.0), ("ones", 0.3), ("quarters", 0.1), ("halves from 1", 0.35)])
def test_the_saddlepoint_agrees_with_counting_on_lattices_and_off_them(kind, slack):
    """Sizes in [1, 1.5] are almost a lattice, and none: what is right for one is wrong for them."""
    count = 15
    numbers = np.random.default_rng([count, len(kind)])
    ratios = []
    for _ in range(6):
        sizes = {
            "alike": numbers.uniform(1, 1.5, count),
            "ones": np.full(count, 0.7),
            "quarters": numbers.integers(1, 6, count) / 4,
            "halves from 1": numbers.choice([1.0, 1.5], count),
        }[kind]
        drawn = sizes * np.where(numbers.random(count) < 0.85, 1, -1)
        exact = counted(drawn)
        if exact < 0.1:
            ratios.append(sign_flip_tail(drawn[:, None])[0] / exact)
    assert len(ratios) > 1
    assert np.exp(np.abs(np.log(ratios)).max()) < 1 + slack
    assert np.median(ratios) == pytest.approx(1, abs=0.3)


def test_small_p_values_do_not_stop_at_the_number_of_permutations():
    """52 listeners who agree: all corrections over 91 pairs must leave it small."""
    differences = np.random.default_rng(0).normal(1, 1, (52, 1))
    found = permutation_p(differences, 1000, np.random.default_rng(0))[0]
    _, expected = stats.ttest_1samp(differences[:, 0], 0)
    assert 0 < found < 1e-5
    assert np.log10(found) == pytest.approx(np.log10(expected), abs=2)


@pytest.mark.parametrize("tested", [lambda d: permutation_p(d, 200, np.random.default_rng(0)), wilcoxon_p])
def test_no_difference_at_all_and_nobody_who_rated_both(tested):
    found = tested(np.array([[0.0, np.nan, 1.0], [0.0, np.nan, np.nan]]))
    assert found[0] == 1
    assert np.isnan(found[1])
    assert found[2] == 1  # one listener cannot tell anything


def test_permutations_keep_their_level_where_nothing_differs():
    """500 pairs without a difference, ratings of a listener alike: p under 0.05 in about 5 % of them."""
    differences = np.random.default_rng(11).laplace(0, 1, (25, 500))
    found = permutation_p(differences, 1000, np.random.default_rng(1))
    assert (found < 0.05).mean() == pytest.approx(0.05, abs=0.025)
    assert stats.kstest(found, "uniform").pvalue > 0.001


@pytest.mark.parametrize("count", [6, 80])
@pytest.mark.parametrize("is_whole", [True, False])
def test_signed_ranks_agree_with_scipy(count, is_whole):
    numbers = np.random.default_rng(count)
    differences = numbers.normal(0.3, 1.5, (count, 5))
    differences = np.round(differences) if is_whole else differences
    if count > 6:
        differences[0, 0] = np.nan
    found = wilcoxon_p(differences)
    for place in range(5):
        one = differences[np.isfinite(differences[:, place]) & (differences[:, place] != 0), place]
        has_ties = len(set(np.abs(one))) < one.size
        if one.size == 0:
            expected = 1
        elif has_ties and one.size <= 14:
            expected = share_of_signed_ranks(one)
        else:
            method = "approx" if has_ties or one.size > 50 else "exact"
            expected = stats.wilcoxon(one, method=method).pvalue
        assert found[place] == pytest.approx(expected, abs=1e-12)


def share_of_signed_ranks(differences):
    """Of all ways to give signs to the ranks, those whose sum is as far from zero."""
    ranks = stats.rankdata(np.abs(differences))
    observed = abs((ranks * np.sign(differences)).sum())
    sums = [abs((ranks * signs).sum()) for signs in itertools.product((-1, 1), repeat=ranks.size)]
    return np.mean(np.array(sums) >= observed - 1e-9)


def test_rank_biserial_by_hand_and_by_ranks():
    assert rank_biserial(np.array([[1.0], [2.0], [-3.0], [0.0]]))[0] == pytest.approx(0.0)  # 1 + 2 against 3
    assert rank_biserial(np.array([[1.0], [2.0], [-0.5]]))[0] == pytest.approx((2 + 3 - 1) / 6)
    one = np.random.default_rng(0).normal(0.4, 1, 25)
    smaller = stats.wilcoxon(one).statistic
    assert abs(rank_biserial(one[:, None])[0]) == pytest.approx(1 - 2 * smaller / (25 * 26 / 2))
