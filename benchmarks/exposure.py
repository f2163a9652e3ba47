"""Whether 95 % intervals of the measures beyond the EER hold the truth in 92 to 97 % of tests with other speakers.

Run from the root of the repository: ``python -m benchmarks.exposure [TESTS]``. Each test has newly drawn speakers
with utterances of their own; every utterance is compared with every model. A speaker's own scores lie above those of
others by an amount that differs between speakers, and each pair of speakers is more or less alike. The truth is the
mean of 240 such tests: disclosures of few utterances lie above those of many. Printed is the share of intervals that
hold it, by measure.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from evaluation.metrics.bootstrap import draw_speakers
from evaluation.metrics.exposure import Trials, bootstrap_exposure, make_trials, measure_exposure

TESTS, TRUTH_TESTS, RESAMPLES = 300, 240, 400
MEASURES = ("accepted_at_1_percent", "rank_disclosure", "mean_speaker_eer")


@dataclass(frozen=True)
class Population:
    """Attributes:
    signal, spread: mean and deviation over speakers of what own scores lie above others.
    alike: deviation over pairs of speakers.
    """

    name: str
    speakers: int
    utterances: int
    signal: float
    spread: float
    alike: float


POPULATIONS = (
    Population("no signal", 30, 40, 0.0, 0.0, 0.3),
    Population("well protected", 30, 40, 0.5, 0.5, 0.3),
    Population("half protected", 30, 40, 1.5, 0.8, 0.3),
    Population("hardly protected", 30, 40, 3.0, 1.0, 0.3),
    Population("few speakers", 15, 40, 1.5, 0.8, 0.3),
)


def draw_test(population: Population, random: np.random.Generator) -> Trials:
    """One test with speakers of its own."""
    n = population.speakers
    own = np.repeat(np.arange(n), population.utterances)
    pairs = random.normal(0, population.alike, (n, n))
    np.fill_diagonal(pairs, random.normal(population.signal, population.spread, n))
    scores = random.normal(size=(own.size, n)) + pairs[own]
    is_target = own[:, None] == np.arange(n)
    names = [f"s{number}" for number in range(n)]
    said = [f"s{speaker}-{number}" for number, speaker in enumerate(own.tolist()) for _ in range(n)]
    return make_trials(scores.ravel(), is_target.ravel(), names * own.size, said)


def main() -> None:
    tests = int(sys.argv[1]) if len(sys.argv) > 1 else TESTS
    for population in POPULATIONS:
        random = np.random.default_rng(17)
        others = [measure_exposure(draw_test(population, random)).values() for _ in range(TRUTH_TESTS)]
        truth = {name: float(np.mean([one[name] for one in others])) for name in MEASURES}
        held: dict[str, list[bool]] = {name: [] for name in MEASURES}
        for _ in range(tests):
            trials = draw_test(population, random)
            speakers = [trials.utterances[place].partition("-")[0] for place in trials.utterance.tolist()]
            draws = draw_speakers(speakers, RESAMPLES, random)
            found = bootstrap_exposure(trials, speakers, draws, measure_exposure(trials))
            for name in MEASURES:
                limits = found[name].interval()
                held[name].append(limits.lower - 1e-9 <= truth[name] <= limits.upper + 1e-9)
        said = ", ".join(f"{name} {100 * np.mean(held[name]):.0f} % (truth {truth[name]:.2f})" for name in MEASURES)
        print(f"{population.name}: {said}", flush=True)


if __name__ == "__main__":
    main()
