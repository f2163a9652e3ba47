"""B2 on speech of the demo, two utterances at a time, beside a plain loop over frames with `numpy.roots`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from anonymization.methods.mcadams.method import mcadams
from anonymization.methods.mcadams.parameters import McAdamsParameters
from benchmarks._measuring import RATE_HZ, Figure, measure_least_seconds, read_speech, report
from common.arrays import Samples
from tests.anonymization.plain_mcadams import plain_mcadams

ALPHA = 0.7
THREADS = 2
SPEECH_S = 60


def main() -> int:
    utterances = read_speech(SPEECH_S)
    outputs = [anonymize(samples) for samples in utterances]  # compiles the loops
    plain = [plain_mcadams(samples, ALPHA) for samples in utterances]
    difference = max(int(np.abs(ours.astype(int) - theirs).max()) for ours, theirs in zip(outputs, plain, strict=True))
    with ThreadPoolExecutor(THREADS) as pool:
        plain_s, ours_s = measure_least_seconds(
            lambda: [plain_mcadams(samples, ALPHA) for samples in utterances],
            lambda: list(pool.map(anonymize, utterances)),
            repeats=3,
        )
    return report(
        Figure("B2 on two cores, times the speed of a plain loop", plain_s / ours_s, 20, is_least=True),
        Figure("B2, largest difference from the plain loop", difference, 2, "of int16"),
    )


def anonymize(samples: Samples) -> Samples:
    return mcadams(samples, RATE_HZ, McAdamsParameters(ALPHA))


if __name__ == "__main__":
    sys.exit(main())
