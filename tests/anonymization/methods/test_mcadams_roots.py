"""The root finder of B2: many polynomials side by side, each as if it were alone."""

import numpy as np
import pytest

from anonymization.methods.mcadams.numba_engine import find_roots


def make_polynomials(count, order, seed=0):
    """Polynomials with roots inside the unit circle, as a prediction has: complex pairs and at least one real root."""
    rng = np.random.default_rng(seed)
    polynomials = np.empty((count, order + 1))
    for i in range(count):
        n_pairs = int(rng.integers(0, (order - 1) // 2 + 1))
        pairs = rng.uniform(0.3, 0.999, n_pairs) * np.exp(1j * rng.uniform(0.05, 3.1, n_pairs))
        real = rng.uniform(-0.95, 0.95, order - 2 * n_pairs)
        polynomials[i] = np.poly(np.concatenate([pairs, pairs.conj(), real])).real
    return polynomials


@pytest.mark.parametrize("order", [1, 11])
def test_roots_of_any_order_equal_numpy_roots(order):
    polynomials = make_polynomials(70, order)
    roots, found = find_roots(polynomials)
    assert roots.shape == (70, order)
    assert found.mean() > 0.9
    for polynomial, ours in zip(polynomials[found], roots[found], strict=True):
        distance = np.abs(ours[:, np.newaxis] - np.roots(polynomial))
        assert distance.min(axis=1).max() < 1e-5
        assert np.poly(ours).real == pytest.approx(polynomial, abs=1e-7)


def test_polynomials_do_not_meet_their_neighbours():
    count = 33
    polynomials = make_polynomials(count, 20, seed=count)
    roots, found = find_roots(polynomials)
    assert roots.shape == (count, 20)
    assert found.shape == (count,)
    for i in range(0, count, 7):
        alone, found_alone = find_roots(polynomials[i : i + 1])
        assert alone.tobytes() == roots[i : i + 1].tobytes()
        assert found_alone[0] == found[i]


def test_complex_roots_are_exact_pairs_in_number_and_real_ones_have_no_imaginary_part():
    polynomials = np.array([np.poly([0.5, -0.25, 0.9j, -0.9j]).real, np.poly([0.1, 0.2, 0.3, 0.4])])
    roots, found = find_roots(polynomials)
    assert found.all()
    assert np.count_nonzero(roots.imag == 0, axis=1).tolist() == [2, 4]
    assert np.count_nonzero(roots.imag > 0, axis=1).tolist() == [1, 0]


@pytest.mark.parametrize("bad", [np.nan, 1e200])
def test_polynomial_without_usable_roots_is_marked_and_harms_no_other(bad):
    polynomials = make_polynomials(40, 20, seed=3)
    expected, expected_found = find_roots(polynomials)
    spoilt = polynomials.copy()
    spoilt[17, 5] = bad
    roots, found = find_roots(spoilt)
    others = np.arange(40) != 17
    assert not found[17]
    assert np.array_equal(roots[others], expected[others])
    assert np.array_equal(found[others], expected_found[others])


def test_sevenfold_root_ends():
    roots, found = find_roots(np.poly([0.5] * 7)[np.newaxis])
    assert roots.shape == (1, 7)
    if found[0]:
        assert np.abs(roots - 0.5).max() < 0.05
