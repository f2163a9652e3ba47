"""The pitch correlation of pairs of recordings beside the two F0 extractions that it needs."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks._measuring import RATE_HZ, Figure, measure_least_seconds, read_speech, report
from common.arrays import Samples
from evaluation.metrics.pitch import pitch_correlation
from speech.pitch.estimators import f0_praat

SPEECH_S = 180
LONG_S = 600
BUDGET = 1.3
Pair = tuple[Samples, Samples]


def main() -> int:
    utterances = read_speech(SPEECH_S)
    long = np.resize(np.concatenate(utterances), LONG_S * RATE_HZ)
    correlate(make_pair(utterances[0]))  # imports Praat
    return report(
        measure_pairs("utterances", [make_pair(samples) for samples in utterances]),
        measure_pairs("ten minutes", [make_pair(long)]),
    )


def make_pair(samples: Samples) -> Pair:
    """Return an utterance and a delayed, quieter copy."""
    return samples, np.roll(samples, RATE_HZ // 20) // 2


def measure_pairs(what: str, pairs: list[Pair]) -> Figure:
    alone_s, whole_s = measure_least_seconds(
        lambda: [extract(pair) for pair in pairs], lambda: [correlate(pair) for pair in pairs]
    )
    return Figure(f"Pitch correlation of a pair, {what} / its two F0 extractions", whole_s / alone_s, BUDGET)


def extract(pair: Pair) -> None:
    f0_praat(pair[0], RATE_HZ)
    f0_praat(pair[1], RATE_HZ)


def correlate(pair: Pair) -> None:
    pitch_correlation(f0_praat(pair[0], RATE_HZ), f0_praat(pair[1], RATE_HZ))


if __name__ == "__main__":
    sys.exit(main())
