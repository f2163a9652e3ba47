"""Frames of a target in place of those of a source: the nearest in matching space, averaged.

As kNN-VC does it in the space of a self-supervised model (Baas, van Niekerk, Kamper: Voice conversion with just
nearest neighbors, Interspeech 2023), here in that of WORLD's envelope. Conventions: frames as in `knn_world_frames`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anonymization.methods.knn_world_frames import Singles, WorldFrames

# Distances of so many pairs are held at once.
_PAIRS = 1 << 21
# More candidates than are wanted: which are nearest is then decided without the rounding of a matrix product, which
# may differ with the number of threads.
_SPARE = 8
# The weights of the three taps that smooth over time.
_SIDE, _CENTRE = 0.25, 0.5

Places = npt.NDArray[np.intp]


def convert_frames(source: WorldFrames, target: WorldFrames, k: int, blend: float) -> tuple[Singles, Singles]:
    """Envelope, shape (frames, 40), and aperiodicity, shape (frames, bands), of the source in the target's voice.

    Each frame becomes the mean of its `k` nearest of the target, voiced among voiced; envelopes are then smoothed over
    three frames. A part `blend` of the envelope is the source's own with the target's mean and spread instead.
    """
    envelope = np.empty_like(source.envelope)
    aperiodicity = np.empty_like(source.aperiodicity)
    for kind in (True, False):
        own, candidates = np.flatnonzero(source.voiced == kind), np.flatnonzero(target.voiced == kind)
        if candidates.size < k:
            candidates = np.arange(target.f0.size)
        per_block = max(1, _PAIRS // candidates.size)
        for start in range(0, own.size, per_block):
            frames = own[start : start + per_block]
            chosen = candidates[nearest(source.features[frames], target.features[candidates], k)]
            envelope[frames] = target.envelope[chosen].mean(axis=1)
            aperiodicity[frames] = target.aperiodicity[chosen].mean(axis=1)
    if blend:
        moved = (source.envelope - source.mean) / source.spread * target.spread + target.mean
        envelope += np.float32(blend) * (moved - envelope)
    return smooth(envelope), aperiodicity


def nearest(points: Singles, candidates: Singles, k: int) -> Places:
    """Places of the `k` nearest candidates of each point by Euclidean distance, the nearest first; shape (points, k).

    Of candidates equally near the first comes first.

    Args:
        points: shape (points, dimensions). candidates: shape (candidates, dimensions), `k` of them at least.
    """
    n_spared = min(k + _SPARE, len(candidates))
    halves = 0.5 * np.einsum("ij,ij->i", candidates, candidates)
    rough = halves - points @ candidates.T
    if n_spared < len(candidates):
        spared = np.argpartition(rough, n_spared - 1, axis=1)[:, :n_spared]
    else:
        spared = np.tile(np.arange(n_spared), (len(points), 1))
    spared.sort(axis=1)
    differences = candidates[spared].astype(np.float64) - points[:, None, :]
    distances = np.einsum("ijk,ijk->ij", differences, differences)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(spared, order, axis=1)


def smooth(frames: Singles) -> Singles:
    """Over time by weights of a quarter, a half and a quarter; the ends keep their own on the open side."""
    padded = np.pad(frames, ((1, 1), (0, 0)), mode="edge")
    smoothed: Singles = np.float32(_CENTRE) * frames + np.float32(_SIDE) * (padded[:-2] + padded[2:])
    return smoothed
