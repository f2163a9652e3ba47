"""How an own attacker compares vectors: by the protocol that one names, without any training vectors.

The long-term spectrum scales its vectors by those enrolled, so it is compared in its own way; every other encoder by
cosine as in 2024, unless another protocol is named (`evaluation.attackers.scoring.PRESETS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.attackers import long_term_spectrum
from evaluation.attackers.scoring import PRESETS, fit_back_end, score_trials
from evaluation.metrics.errors import MetricInputError
from evaluation.objective.attack import Scorer, Vectors

DEFAULT_PRESET = "2024"
OWN_WAY = long_term_spectrum.ENGINE.name


def scorer_of(engine: str, preset: str = "") -> Scorer:
    """What gives the scores of trials for an encoder.

    Args:
        preset: a name of `PRESETS`; the usual way of the encoder where it is empty.

    Raises:
        MetricInputError: no such preset, or one that has to be fitted on the vectors of a training corpus.
    """
    if not preset and engine == OWN_WAY:
        return _by_spectrum
    name = preset or DEFAULT_PRESET
    if name not in PRESETS:
        raise MetricInputError(f"Expected a way of scoring among {', '.join(PRESETS)}, found “{name}”.")
    options = PRESETS[name]
    back_end = fit_back_end(options)

    def score(
        models: Mapping[str, NDArray[np.float32]], tests: Vectors, pairs: Sequence[tuple[str, str]]
    ) -> NDArray[np.float64]:
        return score_trials(models, tests, pairs, back_end, options)

    return score


def _by_spectrum(
    models: Mapping[str, NDArray[np.float32]], tests: Vectors, pairs: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    enrolled = {name: [one.astype(np.float64) for one in vectors] for name, vectors in models.items()}
    heard = {name: vector.astype(np.float64) for name, vector in tests.items()}
    return np.array([score for _, _, score in long_term_spectrum.score_trials(enrolled, heard, pairs)])
