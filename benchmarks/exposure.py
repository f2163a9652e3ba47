"""Whether 95 % intervals of the measures beyond the EER hold the truth in 92 to 97 % of tests with other speakers.

Run from the root of the repository: ``python -m benchmarks.exposure [TESTS] [POPULATION]`` (a part of its name). Each
test has newly drawn speakers with utterances of their own; every utterance is compared with every model. A speaker's
own scores lie above those of others by an amount that differs between speakers, and each pair of speakers is more or
less alike. The truth is the mean of 240 such tests: disclosures of few utterances lie above those of many. Printed is
the share of intervals that hold it, by measure: as shipped, and by percentiles alone, which are too narrow for few
speakers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from evaluation.metrics.bootstrap import Replicates, bootstrap_detection, draw_speakers, weighted_sum
from evaluation.metrics.exposure import Trials, bootstrap_exposure, make_trials, measure_exposure

TESTS, TRUTH_TESTS, RESAMPLES = 300, 240, 400
EER = "kaldi_eer"
SHIPPED = "shipped"
METHODS: tuple[str, ...] = (SHIPPED, "percentile")
MEASURES = (EER, "accepted_at_1_percent", "rank_disclosure", "mean_speaker_eer")


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


POPULATIONS = tuple(
    Population(f"{name}, {speakers} speakers", speakers, 40, signal, spread, 0.3)
    for speakers in (30, 15)
    for name, signal, spread in (
        ("no signal", 0.0, 0.0),
        ("well protected", 0.5, 0.5),
        ("half protected", 1.5, 0.8),
        ("hardly protected", 3.0, 1.0),
    )
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


def measure(trials: Trials) -> dict[str, float]:
    """The measures of a test, shares in per cent."""
    found = measure_exposure(trials)
    return {**found.values(), EER: 100 * found.kaldi_eer}


def resample(trials: Trials, random: np.random.Generator) -> dict[str, Replicates]:
    """The same of its resamples."""
    speakers = [trials.utterances[place].partition("-")[0] for place in trials.utterance.tolist()]
    models = [trials.models[place] for place in trials.model.tolist()]
    draws = draw_speakers(speakers, RESAMPLES, random)
    found = bootstrap_exposure(trials, speakers, draws, measure_exposure(trials))
    eer = bootstrap_detection(trials.scores, trials.is_target, models, speakers, draws, measures=[EER])[EER]
    return {**found, EER: weighted_sum([(100.0, eer)])}


def main() -> None:
    tests = int(sys.argv[1]) if len(sys.argv) > 1 else TESTS
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    for population in (one for one in POPULATIONS if wanted in one.name):
        random = np.random.default_rng(17)
        others = [measure(draw_test(population, random)) for _ in range(TRUTH_TESTS)]
        truth = {name: float(np.mean([one[name] for one in others])) for name in MEASURES}
        held: dict[tuple[str, str], list[bool]] = {(name, method): [] for name in MEASURES for method in METHODS}
        for _ in range(tests):
            found = resample(draw_test(population, random), random)
            for (name, method), flags in held.items():
                limits = found[name].find_interval() if method == SHIPPED else found[name].interval(method="percentile")
                flags.append(limits is not None and limits.lower - 1e-9 <= truth[name] <= limits.upper + 1e-9)
        shares = {key: f"{100 * np.mean(flags):.0f}" for key, flags in held.items()}
        said = (f"{name} {shares[name, SHIPPED]} % ({shares[name, 'percentile']} %)" for name in MEASURES)
        print(f"{population.name}: {', '.join(said)}", flush=True)


if __name__ == "__main__":
    main()
