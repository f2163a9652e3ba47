"""What the voice similarity matrices, De-Identification and G_VD of a trial set cost.

Run from the root of the repository: ``python -m benchmarks.voice_similarity [UTTERANCES]``. Takes random
embeddings of 30 speakers (1,500 utterances unless told otherwise), original and anonymised. Prints
(three matrices from embeddings) / (one stable argsort of the pair scores of each), and the seconds, which
must stay at or below two for 1,500 utterances.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np

from evaluation.metrics.voice_similarity import cosine_scores, voice_distinctiveness_of_embeddings

BUDGET_S = 2.0
BUDGET_UTTERANCES = 1500
SPEAKERS = 30
DIMENSIONS = 192
REPEATS = 3


def main(utterances: int) -> int:
    """Print ratio and seconds; the exit status is 1 above the budget."""
    random = np.random.default_rng(1)
    codes = np.sort(random.integers(SPEAKERS, size=utterances))
    voices = random.normal(size=(SPEAKERS, DIMENSIONS))
    original = voices[codes] + 1.5 * random.normal(size=(utterances, DIMENSIONS))
    anonymised = 0.5 * voices[codes] + 1.5 * random.normal(size=(utterances, DIMENSIONS))
    speakers = [f"speaker-{code:02}" for code in codes]
    scores = cosine_scores(original, original)[np.triu(np.ones((utterances, utterances), bool), 1)]
    sorting_s = 3 * best(lambda: np.argsort(scores, kind="stable"))
    official_s = best(lambda: voice_distinctiveness_of_embeddings(original, anonymised, speakers))
    plan_s = best(lambda: voice_distinctiveness_of_embeddings(original, anonymised, speakers, form="plan"))
    print(f"{utterances} utterances of {SPEAKERS} speakers, {scores.size} pairs a matrix")
    print(f"three stable argsorts of the scores {sorting_s:.3f} s")
    print(f"official form {official_s:.3f} s, ratio {official_s / sorting_s:.2f}")
    print(f"plan form {plan_s:.3f} s, ratio {plan_s / sorting_s:.2f}")
    print(f"budget {BUDGET_S:g} s for {BUDGET_UTTERANCES} utterances")
    return int(utterances <= BUDGET_UTTERANCES and official_s > BUDGET_S)


def best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs after one that imports everything."""
    work()
    times_s = []
    for _ in range(REPEATS):
        start = perf_counter()
        work()
        times_s.append(perf_counter() - start)
    return min(times_s)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else BUDGET_UTTERANCES))
