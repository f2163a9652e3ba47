"""Whether 95 % intervals cover the truth in 95 % of studies, for listeners *and* utterances that were drawn again.

Run from the root of the repository: ``python -m benchmarks.coverage [STUDIES [NAME]]``. Each study is simulated
(`listening.analysis.simulation`) in the form of VoicePrivacy 2022: 52 listeners, 26 speakers, 13 systems with 104
ratings each, 1,352 ratings of originals, half of all pairs of one speaker; four systems and the originals are analysed
as those of any study, raw and normalised. Four ways in which studies may vary:

* ``2022``: every utterance is rated once a system, and utterances and listeners vary;
* ``few utterances``: the same, but 26 utterances are rated four times a system, and those of originals 13 times;
* ``no utterance variance``: as ``few utterances``, but utterances do not differ: what the stretched interval costs;
* ``new speakers``: as ``2022``, but speakers vary too and are newly drawn: what no interval here promises.

The truth is what the model expects of new listeners and new utterances: the mean, and the equal error rate of all
scores of 1,000 studies taken together. Printed is the share of intervals that hold it. As shipped it must lie in 92 to
97 % in the first, and in 92 to 99 % in the second, where few utterances make for cautious intervals. Beside them: the
listener-cluster bootstrap as it is, the two-way sandwich (means), and naive ones, by SD / √n or by drawing ratings.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import sqrt
from typing import Any

import numpy as np

from common.arrays import Floats
from evaluation.metrics.detection import interpolated_eers
from listening.analysis.models.intervals import cluster_two_way, draw_listeners, number_items, percentile_interval
from listening.analysis.reading.inputs import ORIGINAL, Ratings, Scored, Settings
from listening.analysis.scoring.detection import (
    Rate,
    Test,
    compare_rates,
    count_by_class,
    list_tests,
    make_intervals,
    measure_test,
)
from listening.analysis.scoring.normalisation import score_ratings
from listening.analysis.scoring.summary import make_summary_tables
from listening.analysis.simulation import ORIGINAL_SPEECH, ListenerModel, RatedTrial, SystemModel, simulate_ratings
from listening.analysis.tables import make_table
from listening.tasks import RATED

STUDIES, TRUTH_STUDIES = 500, 1000
LISTENERS, SPEAKERS, SYSTEMS = 52, 26, 13
LOWEST = 0.92
SCALE = dict.fromkeys(RATED, (1.0, 10.0))
KINDS = ("raw", "normalised")
TASKS = ("naturalness", "verifiability")
SETTINGS = Settings(resamples=1000)
# The systems of which intervals are computed: from bad to good; two are equal.
LOOKED_AT = (ORIGINAL, "system-00", "system-05", "system-06", "system-12")
EQUAL = {"system-05", "system-06"}
Held = dict[tuple[str, ...], list[bool]]


@dataclass(frozen=True)
class Experiment:
    """Attributes:
    name: as printed.
    utterances: of each speaker, of systems and of originals; 4 and 52 are rated once each.
    model: how listeners and material vary.
    highest: share of shipped intervals that cover, at most; at least it is `LOWEST`. None: nothing is promised.
    """

    name: str
    utterances: tuple[int, int]
    model: ListenerModel
    highest: float | None


MODEL = ListenerModel(speaker_sd=0.0)
EXPERIMENTS = (
    Experiment("2022", (4, 52), MODEL, 0.97),
    Experiment("few utterances", (1, 4), MODEL, 0.99),
    Experiment("no utterance variance", (1, 4), replace(MODEL, utterance_sd=0.0, system_utterance_sd=0.0), None),
    Experiment("new speakers", (4, 52), replace(MODEL, speaker_sd=0.08), None),
)


def main(studies: int, only: str = "") -> int:
    """Print the shares; the exit status is 1 where a shipped interval misses what it promises.

    Args:
        only: name of the experiment to run; all where empty.
    """
    failed = False
    with ProcessPoolExecutor() as pool:
        for experiment in (one for one in EXPERIMENTS if only in ("", one.name)):
            truth = expected(list(pool.map(partial(histograms, experiment), range(10_000, 10_000 + TRUTH_STUDIES))))
            held: Held = defaultdict(list)
            for one in pool.map(partial(covered, experiment, truth), range(studies)):
                for key, flags in one.items():
                    held[key] += flags
            failed |= report(experiment, held, studies)
    return int(failed)


def make_trials(experiment: Experiment) -> list[RatedTrial]:
    """What every listener meets: 26 originals and two ratings of each system, each speaker once in either half."""
    trials = []
    of_systems, of_originals = experiment.utterances
    for listener in range(LISTENERS):
        for cell, (system, is_target) in enumerate(product(range(SYSTEMS), (1, 0))):
            slot = (listener + cell) % (2 * SPEAKERS)
            speaker, turn = slot % SPEAKERS, slot // SPEAKERS + 2 * is_target
            utterance = f"{speaker}-{turn % of_systems}"
            trials.append((listener, f"system-{system:02}", is_target, utterance, f"{speaker}"))
        for speaker in range(SPEAKERS):
            utterance = f"{speaker}-original-{listener % of_originals}"
            is_target = (listener // of_originals + listener + speaker) % 2  # no utterance is of one class alone
            trials.append((listener, ORIGINAL, is_target, utterance, f"{speaker}"))
    return [RatedTrial(*trial, task) for trial in trials for task in TASKS]


def make_systems() -> dict[str, SystemModel]:
    """From bad to good, the fifth and sixth equal; far from the original speaker as the better anonymisers are."""
    models = {ORIGINAL: ORIGINAL_SPEECH}
    for number in range(SYSTEMS):
        place = (5 if number == 6 else number) / (SYSTEMS - 1)
        models[f"system-{number:02}"] = SystemModel(
            naturalness=0.25 + 0.55 * place,
            intelligibility=0.4 + 0.45 * place,
            same_distance=0.35 + 0.35 * place,
            different_distance=0.72,
        )
    return models


def simulated(experiment: Experiment, seed: int) -> Iterator[Scored]:
    """One study, raw and normalised."""
    trials = make_trials(experiment)
    rating = simulate_ratings(trials, make_systems(), SCALE, np.random.default_rng(seed), experiment.model)
    listener, system, is_target, utterance, speaker, task = (np.array(column) for column in zip(*trials, strict=True))
    name = listener.astype(str)
    blank = np.full(rating.size, "")
    ratings = Ratings(
        name,
        name,
        task,
        system,
        is_target,
        utterance,
        utterance,
        blank,
        speaker,
        blank,
        rating.astype(np.float64),
        np.zeros(rating.size, np.int64),
        np.full(rating.size, "scored"),
        np.ones(rating.size, bool),
        blank,
    )
    for kind in KINDS:
        yield score_ratings(ratings, SCALE, SETTINGS, kind)


def looked_at(scored: Scored, task: str) -> list[Test]:
    return [test for test in list_tests(scored, task) if test.system in LOOKED_AT]


def histograms(experiment: Experiment, seed: int) -> dict[tuple[str, ...], tuple[Floats, ...]]:
    """Of one study, sums and counts of each system, and distinct scores with their numbers in each test."""
    found: dict[tuple[str, ...], tuple[Floats, ...]] = {}
    for scored in simulated(experiment, seed):
        for task in scored.tasks:
            for system in LOOKED_AT:
                score = scored.score[(scored.ratings.task == task) & (scored.ratings.system == system)]
                found["mean", scored.kind, task, system] = (np.array([score.sum(), score.size]),)
            for test in looked_at(scored, task):
                values, target, nontarget = count_by_class(scored, test)
                found["EER", scored.kind, task, test.system] = (values, target.sum(0), nontarget.sum(0))
    return found


def expected(studies: list[dict[tuple[str, ...], tuple[Floats, ...]]]) -> dict[tuple[str, ...], float]:
    """The truth: of all these studies together."""
    truth = {}
    for key in studies[0]:
        parts = [study[key] for study in studies]
        if key[0] == "mean":
            total, count = np.sum([part[0] for part in parts], axis=0)
            truth[key] = float(total / count)
            continue
        values, place = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        target, nontarget = (
            np.bincount(place, np.concatenate([part[side] for part in parts]), values.size)[None].astype(np.float64)
            for side in (1, 2)
        )
        truth[key] = float(interpolated_eers(target, nontarget)[0])
    return truth


def covered(experiment: Experiment, truth: dict[tuple[str, ...], float], seed: int) -> Held:
    """Which intervals of one study hold the truth, by measure, kind, task and interval."""
    held: Held = defaultdict(list)
    for scored in simulated(experiment, seed):
        drawn = draw_listeners(scored.listeners.size, SETTINGS)
        assert drawn is not None
        draws = drawn.astype(np.float64)
        _cover_means(held, scored, draws, truth)
        for task in scored.tasks:
            _cover_rates(held, scored, task, draws, truth)
    return held


def _cover_means(held: Held, scored: Scored, draws: Floats, truth: dict[tuple[str, ...], float]) -> None:
    summary, _ = make_summary_tables(scored, SETTINGS, make_table("differences", []))
    for row in summary.records(kind="all"):
        # No interval: a mean of verifiability over pairs of the same and of different speakers.
        if row["system"] not in LOOKED_AT or row["mean_low"] is None:
            continue
        place, system = ("mean", scored.kind, str(row["task"])), str(row["system"])
        value = truth[*place, system]
        of_system = (scored.ratings.task == place[2]) & (scored.ratings.system == system)
        score, listener = scored.score[of_system], scored.listener[of_system]
        sums, counts = (np.bincount(listener, weights, draws.shape[1]) for weights in (score, None))
        half_width = 1.96 * score.std(ddof=1) / sqrt(score.size)
        limits = {
            "naive": (score.mean() - half_width, score.mean() + half_width),
            "listener bootstrap": percentile_interval((draws @ sums) / (draws @ counts), SETTINGS.level),
            "two-way": (row["two_way_low"], row["two_way_high"]),
            "shipped": (row["mean_low"], row["mean_high"]),
        }
        _keep(held, (*place, system), limits, value)


def _cover_rates(held: Held, scored: Scored, task: str, draws: Floats, truth: dict[tuple[str, ...], float]) -> None:
    numbers = np.random.default_rng(1)
    item = number_items(scored.ratings.utterance)
    # Without calibration (C_llr), which takes longest and is not looked at here.
    found = [measure_test(scored, test, None, SETTINGS, draws, item) for test in looked_at(scored, task)]
    shipped = make_intervals(found, scored.listener, item, SETTINGS)
    for one in found:
        place, system = ("EER", scored.kind, task), one.test.system
        _, *sides = count_by_class(scored, one.test)
        drawn = [
            numbers.multinomial(int(n.sum()), n.sum(0) / n.sum(), SETTINGS.resamples).astype(np.float64) for n in sides
        ]
        limits = {
            "naive": percentile_interval(interpolated_eers(*drawn), SETTINGS.level),
            "listener bootstrap": percentile_interval(one.eer.resampled, SETTINGS.level),
            "shipped": (shipped[system]["eer_low"], shipped[system]["eer_high"]),
        }
        _keep(held, (*place, system), limits, truth[*place, system])
    rates = [Rate(one.test.system, one.eer.value, one.eer.resampled) for one in found]
    _, pairs = compare_rates(
        rates, cluster_two_way([one.eer.influence for one in found], scored.listener, item), SETTINGS
    )
    for pair in pairs:
        if {pair["first"], pair["second"]} == EQUAL:
            held["two equal systems", scored.kind, task, "", "significant"].append(bool(pair["is_told_apart"]))


def _keep(held: Held, place: tuple[str, ...], limits: dict[str, tuple[Any, Any]], value: float) -> None:
    for name, (low, high) in limits.items():
        held[*place, name].append(bool(low <= value <= high))


def report(experiment: Experiment, held: Held, studies: int) -> bool:
    """Print a line for each measure, kind and task, of all systems (lowest to highest); whether a promise is broken."""
    print(f"\n{experiment.name}: {studies} studies", flush=True)
    failed = False
    for place in dict.fromkeys(key[:3] for key in held):
        shares, words = {}, []
        for name in dict.fromkeys(key[4] for key in held if key[:3] == place):
            by_system = [float(np.mean(flags)) for key, flags in held.items() if key[:3] == place and key[4] == name]
            shares[name] = float(np.mean(by_system))
            spread = f" ({100 * min(by_system):.1f} to {100 * max(by_system):.1f})" if len(by_system) > 1 else ""
            words.append(f"{name} {100 * shares[name]:.1f} %{spread}")
        is_broken = (
            experiment.highest is not None
            and "shipped" in shares
            and not LOWEST <= shares["shipped"] <= experiment.highest
        )
        failed |= is_broken
        print(f"  {', '.join(place)}: {', '.join(words)}{'  MISSED' if is_broken else ''}")
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES, *sys.argv[2:3]))
