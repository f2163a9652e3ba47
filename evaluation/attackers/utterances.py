"""What every encoder asks of an utterance before it listens: the rate of the model, enough length, and some sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.attackers.contract import Samples
from evaluation.metrics.errors import MetricInputError
from evaluation.metrics.samples import is_silent

RATE_HZ = 16_000


class UtteranceError(MetricInputError):
    """One utterance of a batch cannot be used; `position` counts from 0, the sentence from 1."""

    def __init__(self, position: int, total: int, expected: str, found: str) -> None:
        super().__init__(f"Utterance {position + 1} of {total}: expected {expected}, found {found}.")
        self.position = position


def check_rate(rate_hz: int) -> None:
    """Refuse another rate than that of the published models, 16 kHz.

    Raises:
        MetricInputError: what was expected and found.
    """
    if rate_hz != RATE_HZ:
        raise MetricInputError(f"Expected speech at {RATE_HZ} Hz, found {rate_hz} Hz; resample it first.")


def check_utterances(utterances: Sequence[Samples], rate_hz: int, *, shortest_samples: int) -> None:
    """Refuse what no model can judge.

    Args:
        utterances: int16, mono, each shape (n,).
        shortest_samples: that the model needs.

    Raises:
        UtteranceError: an utterance of another shape or type, shorter than that, or silent throughout.
    """
    total = len(utterances)
    for position, samples in enumerate(utterances):
        if samples.ndim != 1 or samples.dtype != np.int16:
            found = f"{samples.dtype} of shape {samples.shape}"
            raise UtteranceError(position, total, "int16 samples of one channel", found)
        if samples.size < shortest_samples:
            seconds, needed = samples.size / rate_hz, shortest_samples / rate_hz
            raise UtteranceError(position, total, f"at least {needed:.3g} s", f"{seconds:.3g} s")
        if is_silent(samples):
            raise UtteranceError(position, total, "speech", "silence throughout")
