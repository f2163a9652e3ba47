"""Predicted naturalness of some utterances of a data set: a number for its page, and a warning of broken audio.

The network is DNSMOS P.808 (`speech.predictors.dnsmos`). It hears a sample only, as many utterances of each speaker as
of any other, because it takes a tenth of the time that the speech lasts. It never heard anonymised speech: its opinion
is a prediction, and no rating by listeners. Opinions are from 1 (bad) to 5 (excellent).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from speech.audio.files import resample
from speech.predictors import dnsmos

ESTIMATOR = "DNSMOS P.808"
SAMPLE, SAMPLE_AT_INTAKE = 20, 4  # utterances of a data set
# White noise, swapped bytes, a tone and a buzz lie at 2.1 to 2.4; of 136 anonymised recordings by B2 and six published
# systems the lowest has 2.5, of 136 originals (LibriSpeech, VCTK, RAVDESS, synthetic) 2.8.
NOISE_BELOW, SPEECH_FROM = 2.4, 2.8


def missing() -> str:
    """Return why nothing can be predicted here, as one sentence; empty where it can."""
    return dnsmos.missing()


def sounds_broken(anonymised: float | None, original: float | None) -> bool:
    """Return whether predictions of both forms say that the anonymised one is no speech any more; None: nothing can be
    said.

    Example:
        >>> sounds_broken(2.1, 3.6), sounds_broken(2.1, 2.2), sounds_broken(2.6, 3.6)
        (True, False, False)
    """
    return anonymised is not None and anonymised < NOISE_BELOW and (original is None or original >= SPEECH_FROM)


def choose_sample(speakers: Sequence[str], most: int) -> list[int]:
    """Return which utterances are heard: the first of each speaker, then the second of each, as their order is.

    Args:
        speakers: of each utterance.
        most: how many are chosen, where there are as many.

    Returns:
        Their places, ascending.

    Example:
        >>> choose_sample(["a", "a", "a", "b"], 3)
        [0, 1, 3]
    """
    seen: dict[str, int] = defaultdict(int)
    turns = []
    for place, speaker in enumerate(speakers):
        turns.append((seen[speaker], place))
        seen[speaker] += 1
    return sorted(place for _, place in sorted(turns)[:most])


def predict_naturalness(samples: NDArray[np.int16], rate_hz: int) -> float | None:
    """Return predicted overall quality of a recording, 1 to 5; None where nothing can be said of it (silence, under 0.1
    s).

    Args:
        samples: int16, shape (n,).
    """
    try:
        heard = samples if rate_hz == dnsmos.RATE_HZ else resample(samples, rate_hz, dnsmos.RATE_HZ)
        return _load().predict_p808(heard)
    except InputError:
        return None


@lru_cache(maxsize=1)
def _load() -> dnsmos.Dnsmos:
    return dnsmos.load_dnsmos()
