"""The alphas of the official B2 of 2024, so that a published baseline can be made again.

Enrolment and trials of a speaker share an alpha there, and the n-th utterance of every set does: voices for a
challenge come from `pseudo_speakers`, which keeps them apart. Source: the challenge's own program of 2024.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

OFFICIAL_LOW, OFFICIAL_HIGH = 0.5, 0.9
_UTTERANCE_SEED = "VPC2024"


def official_speaker_alpha(speaker: str) -> float:
    """Alpha of a speaker at speaker level, in [0.5, 0.9): the same in every data set.

    >>> round(official_speaker_alpha("1272"), 8)
    0.77574436
    """
    return float(_generator(speaker).uniform(OFFICIAL_LOW, OFFICIAL_HIGH))


def official_utterance_alphas(n_utterances: int) -> npt.NDArray[np.float64]:
    """Alphas at utterance level, shape (n_utterances,), in [0.5, 0.9), in the order of `wav.scp`.

    >>> official_utterance_alphas(3).round(8).tolist()
    [0.68758807, 0.56747103, 0.75924141]
    """
    return _generator(_UTTERANCE_SEED).uniform(OFFICIAL_LOW, OFFICIAL_HIGH, n_utterances)


def _generator(text: str) -> np.random.Generator:
    """Numpy's default generator, seeded by the first eight hexadecimal digits of SHA-256."""
    return np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))
