"""Stress majorisation where only some distances are known: places whose distances are near the known ones.

Source: de Leeuw, "Applications of convex analysis to multidimensional scaling", in Recent Developments in Statistics
(1977), 133-145; with weights as in Borg & Groenen, Modern Multidimensional Scaling (2005), section 8.6. Each step is a
Guttman transform X ← V⁺ B(X) X; the raw stress Σ (δ − d)² over the known pairs never rises.

Conventions: distances have shape (samples, samples), symmetric, NaN where a pair is not known. Nothing is drawn at
random, so equal input gives equal places. The result is a local minimum, near where the start lies.
"""

from __future__ import annotations

import numpy as np

from listening.analysis.inputs import Floats

_STEPS_AT_MOST = 2_000
_STANDS_STILL = 1e-11  # share of the squared distances by which a step lowers the stress at the end
_ONE_POINT = 1e-9  # share of the longest distance


def is_connected(distances: Floats) -> bool:
    """Whether known distances lead from every sample to every other one; without this, parts could lie anywhere."""
    from scipy.sparse.csgraph import connected_components

    return bool(connected_components(np.isfinite(distances), directed=False)[0] <= 1)


def with_shortest_paths(distances: Floats) -> Floats:
    """Known distances, and for each pair that is not known the shortest way over known ones.

    Args:
        distances: connected, see `is_connected`.
    """
    ways = np.where(np.isfinite(distances), distances, np.inf)
    np.fill_diagonal(ways, 0)
    for over in range(len(ways)):  # Floyd & Warshall: unlike sparse graphs this takes a distance of 0 for what it is
        ways = np.minimum(ways, ways[:, over, None] + ways[over])
    return np.asarray(np.where(np.isfinite(distances), distances, ways))


def majorised(distances: Floats, start: Floats) -> Floats:
    """Places of least raw stress over the known pairs, weighted 1 each, pairs that are not known 0.

    Args:
        distances: connected, see `is_connected`; the diagonal is not looked at.
        start: shape (samples, dimensions), not all at one point.

    Returns:
        Shape (samples, dimensions), centred.
    """
    samples = len(distances)
    weights = np.isfinite(distances).astype(np.float64)
    np.fill_diagonal(weights, 0)
    asked = np.where(weights > 0, distances, 0.0)
    # V is singular along a shift of all places alone, so this is V⁺ on centred places.
    inverse = np.linalg.inv(np.diag(weights.sum(1)) - weights + 1 / samples) - 1 / samples
    places = _apart(start, asked)
    places = places - places.mean(0)
    total, before = float((weights * asked**2).sum()), np.inf
    for _ in range(_STEPS_AT_MOST):
        away = np.sqrt(((places[:, None] - places[None]) ** 2).sum(2))
        stress = float((weights * (asked - away) ** 2).sum())
        if before - stress <= _STANDS_STILL * total:
            break
        before = stress
        ratios = np.divide(asked, away, out=np.zeros_like(asked), where=away > 0)
        places = inverse @ (np.diag(ratios.sum(1)) - ratios) @ places
    return np.asarray(places)


def _apart(places: Floats, asked: Floats) -> Floats:
    """Places, a little shifted where two that should be apart lie on each other: no step would ever part them."""
    away = np.sqrt(((places[:, None] - places[None]) ** 2).sum(2))
    if not (away[asked > 0] < _ONE_POINT * away.max()).any():
        return places
    numbers = np.arange(1.0, len(places) + 1)
    return np.asarray(places + 1e-3 * away.max() * np.sin(np.outer(numbers, np.arange(1, places.shape[1] + 1))))
