"""Noise on the vector of a speaker, found against a classifier: the vector leaves its speaker and stays a voice.

System T18 of the VoicePrivacy 2022 challenge adds adversarial noise to the speaker's vector; how it finds it is not
published, so this is a design of our own: projected gradient ascent (Madry et al., "Towards Deep Learning Models
Resistant to Adversarial Attacks", ICLR 2018) within a ball about the vector. What rises is the cross-entropy of the
speaker for a classifier by cosine that knows the speaker and some of a pool, less the squared Mahalanobis distance to
the pool, so that the result sounds like somebody.

Conventions: vectors have length 1, shape (numbers,), numbers ≥ 0 as those of GE2E; a pool has the shape (speakers,
numbers).
"""

from __future__ import annotations

import numpy as np

from common.arrays import Floats

STEPS = 20
# Of the classifier: so many speakers of the pool, drawn for each voice, and the factor of its cosines.
KNOWN = 20
_SCALE = 10.0
# Weight of the distance to the pool, and what is added to the spread of each direction, as a part of the mean one.
_NEARNESS = 0.02
_LOADING = 0.5
# The ball is crossed in so many steps.
_CROSSED_IN = 8


def add_noise(vector: Floats, pool: Floats, strength: float, draw: np.random.Generator) -> Floats:
    """Return the vector with noise, of length 1.

    Args:
        vector: of the speaker.
        pool: at least one speaker.
        strength: the largest length of the noise, as a part of that of the vector, ≥ 0.
        draw: decides where the ascent begins, and whom the classifier knows.
    """
    known = pool[draw.choice(len(pool), min(KNOWN, len(pool)), replace=False)]
    mean = pool.mean(axis=0)
    precision = _precision(pool)
    noise = draw.standard_normal(vector.size)
    noise *= 0.5 * strength / np.linalg.norm(noise)
    for _ in range(STEPS):
        there = vector + noise
        logits = _SCALE * np.array([vector @ there, *(known @ there)])
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        # Gradient of -log p(speaker), and of the distance.
        away = _SCALE * (shares[0] * vector + shares[1:] @ known - vector)
        back = 2 * _NEARNESS * precision @ (there - mean)
        gradient = away - back
        length = float(np.linalg.norm(gradient))
        if not length:
            break
        noise = noise + strength / _CROSSED_IN * gradient / length
        noise *= min(1.0, strength / max(float(np.linalg.norm(noise)), 1e-12))
    found = np.maximum(vector + noise, 0.0)
    length = float(np.linalg.norm(found))
    return found / length if length else vector


def _precision(pool: Floats) -> Floats:
    """Return inverse of the pool's covariance, loaded, shape (numbers, numbers)."""
    centred = pool - pool.mean(axis=0)
    covariance = centred.T @ centred / len(pool)
    loading = _LOADING * max(float(np.trace(covariance)) / len(covariance), 1e-6)
    inverse: Floats = np.linalg.inv(covariance + loading * np.eye(len(covariance)))
    return inverse
