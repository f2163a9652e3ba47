"""An orthogonal map of speaker vectors: it takes each away from all originals and keeps the distances between speakers.

The idea of the orthogonal Householder network (Miao et al., "Speaker anonymization using orthogonal Householder neural
network", IEEE/ACM TASLP 2023): a chain of reflections, trained so that anonymised vectors stay different speakers and
lie far from the original ones. Its training code is not published, and its vectors are ECAPA's; this is a design of our
own, fitted to a pool for each map. So that the result stays a voice, vectors are reflected as coordinates on the
principal axes of the pool, in units of the pool's deviation along each.

Conventions: vectors have length 1, shape (numbers,), numbers ≥ 0 as those of GE2E; a pool has the shape (speakers,
numbers).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from common.arrays import Floats

# As many reflections as axes make any orthogonal map.
AXES = REFLECTIONS = 64
STEPS = 150
# Of the gradient descent (Adam) and of the cosines between anonymised and original vectors.
_RATE, _MOMENTUM, _SQUARES = 0.02, 0.9, 0.999
_SCALE = 10.0
# Weight of a vector's cosine with its own original where that is above 0.
_APART = 1.0


@dataclass(frozen=True, eq=False)
class Reflections:
    """A map. mean: of the pool, shape (numbers,); axes: shape (AXES, numbers), orthonormal; spread: of the pool along
    each; normals: of the reflections in their order, shape (reflections, AXES), of length 1.
    """

    mean: Floats
    axes: Floats
    spread: Floats
    normals: Floats

    def apply(self, vector: Floats) -> Floats:
        """Return the mapped vector, of length 1; what lies off the axes is left out."""
        mapped = _reflect(self.coordinates(vector)[None], self.normals)[-1][0]
        found = np.maximum(self.mean + (mapped * self.spread) @ self.axes, 0.0)
        length = float(np.linalg.norm(found))
        return found / length if length else self.mean / np.linalg.norm(self.mean)

    def coordinates(self, vectors: Floats) -> Floats:
        """On the axes, in units of the spread, shape (…, AXES)."""
        found: Floats = (vectors - self.mean) @ self.axes.T / self.spread
        return found


def fit_reflections(pool: Floats, draw: np.random.Generator) -> Reflections:
    """Return a map that takes the speakers of a pool away from all originals.

    What falls is, averaged over the pool, the logarithm of the sum of exp(10 cosine) of an anonymised speaker with each
    original one, plus the cosine with the own original where that is above 0.

    Args:
        pool: at least two speakers.
        draw: decides where the descent begins, and so which map is found.
    """
    mean = pool.mean(axis=0)
    _, deviations, rows = np.linalg.svd(pool - mean, full_matrices=False)
    count = min(AXES, int(np.count_nonzero(deviations > 1e-9)))
    spread = deviations[:count] / np.sqrt(len(pool))
    start = Reflections(mean, rows[:count], spread, _unit(draw.standard_normal((REFLECTIONS, count))))
    originals = _unit(start.coordinates(pool))
    normals, first, second = start.normals, np.zeros_like(start.normals), np.zeros_like(start.normals)
    for step in range(1, STEPS + 1):
        gradient = _gradient(originals, normals)
        first = _MOMENTUM * first + (1 - _MOMENTUM) * gradient
        second = _SQUARES * second + (1 - _SQUARES) * gradient**2
        moved = _RATE * (first / (1 - _MOMENTUM**step)) / (np.sqrt(second / (1 - _SQUARES**step)) + 1e-8)
        normals = _unit(normals - moved)
    return Reflections(mean, rows[:count], spread, normals)


def _gradient(originals: Floats, normals: Floats) -> Floats:
    """Of what falls, by the normals; all vectors have length 1, so that products are cosines."""
    passed = _reflect(originals, normals)
    cosines = passed[-1] @ originals.T
    weights = np.exp(_SCALE * (cosines - cosines.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    own = np.diagonal(cosines)[:, None] > 0
    back = (_SCALE * weights @ originals + _APART * own * originals) / len(originals)
    found = np.empty_like(normals)
    for place in range(len(normals) - 1, -1, -1):
        normal, before = normals[place], passed[place]
        along, pushed = before @ normal, back @ normal
        found[place] = -2 * (along @ back + pushed @ before)
        back = back - 2 * pushed[:, None] * normal
    return found


def _reflect(vectors: Floats, normals: Floats) -> list[Floats]:
    """Return the vectors, shape (vectors, axes), before and after each reflection I - 2 u uᵀ."""
    passed = [vectors]
    for normal in normals:
        passed.append(passed[-1] - 2 * (passed[-1] @ normal)[:, None] * normal)
    return passed


def _unit(vectors: Floats) -> Floats:
    found: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return found
