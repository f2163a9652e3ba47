"""How often a results page calls equal systems different, and how often its intervals of differences hold 0.

Run from the root of the repository: ``python -m benchmarks.null_studies [STUDIES]``. Each study is simulated
(`listening.analysis.simulation`): 12 listeners rate 8 utterances of each of 6 equal systems, the same of all systems or
other ones of each; both classes of pairs in verifiability. Listeners, speakers and utterances vary. Two lines have 20
listeners who rate 3 of the 6 systems each, so that 10 rate a system and 4 both of a pair: the t test decides alone, and
differences have no interval. Printed are the share of studies in which any two systems are called different, at most
5 %, and the share of intervals that hold 0, which must lie in 92 to 97 %; beside them what the permutation test within
listeners says alone. Two lines more have systems that differ: their intervals must hold the difference of the equal
error rates of all simulated ratings together, and only equal ones may count as wrongly called different. After ± stands
the standard error over studies.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from common.arrays import Flags, Floats
from evaluation.metrics.detection import interpolated_eers
from listening.analysis.models.comparisons import make_comparison_tables
from listening.analysis.models.intervals import cluster_two_way, draw_listeners, number_items
from listening.analysis.reading.inputs import Ratings, Scored, Settings
from listening.analysis.scoring.detection import Rate, compare_rates, list_tests, measure_test
from listening.analysis.scoring.normalisation import score_ratings
from listening.analysis.simulation import ListenerModel, RatedTrial, SystemModel, simulate_ratings
from listening.analysis.tables import Row
from listening.tasks import RATED

STUDIES, LISTENERS, SYSTEMS, UTTERANCES = 500, 12, 6, 8
SCALE = dict.fromkeys(RATED, (1.0, 10.0))
SETTINGS = Settings(resamples=300)
EQUAL = {f"system-{number}": SystemModel(0.5, 0.5, 0.4, 0.6) for number in range(SYSTEMS)}
ALL_RATED = [tuple(EQUAL)] * LISTENERS
THREE_RATED = list(combinations(EQUAL, 3))
UNEQUAL = EQUAL | {"system-0": SystemModel(0.5, 0.5, 0.25, 0.65), "system-1": SystemModel(0.5, 0.5, 0.45, 0.55)}


def make_study(
    seed: int,
    task: str,
    *,
    is_shared: bool,
    systems: Mapping[str, SystemModel] = EQUAL,
    rated: Sequence[Sequence[str]] = ALL_RATED,
) -> Ratings:
    """The ratings of a study; `is_shared`: the same utterances of all systems; `rated`: each listener's systems."""
    trials = [
        RatedTrial(listener, system, is_target, f"{'' if is_shared else system}{number}", f"speaker-{number}", task)
        for listener, chosen in enumerate(rated)
        for system in chosen
        for number in range(UTTERANCES)
        for is_target in ((0, 1) if task == "verifiability" else (0,))
    ]
    rating = simulate_ratings(trials, systems, SCALE, np.random.default_rng(seed), ListenerModel())
    columns = [np.array(column) for column in zip(*trials, strict=True)]
    listener, system, is_target, utterance, speaker, tasks = columns
    name, blank = np.char.add("listener-", listener.astype(str)), np.full(rating.size, "")
    return Ratings(
        *(name, name, tasks, system, is_target, utterance, utterance, blank, speaker, blank, rating.astype(float)),
        position=np.ones(rating.size, np.int64),
        purpose=np.full(rating.size, "scored"),
        is_finished=np.ones(rating.size, np.bool_),
        excluded=blank,
    )


def compare_systems(scored: Scored) -> list[Row]:
    """The differences of equal error rates of a study, without the calibration that takes longest."""
    draws, item = draw_listeners(scored.listeners.size, SETTINGS), number_items(scored.ratings.utterance)
    found = [measure_test(scored, test, None, SETTINGS, draws, item) for test in list_tests(scored, "verifiability")]
    clustering = cluster_two_way([one.eer.influence for one in found], scored.listener, item)
    rates = [Rate(one.test.system, one.eer.value, one.eer.resampled) for one in found]
    return compare_rates(rates, clustering, SETTINGS)[1]


def true_rates(studies: Sequence[Scored], systems: Mapping[str, SystemModel]) -> dict[str, float]:
    """The equal error rate of each system: of all ratings, in all studies, of all systems of its model."""
    level = np.unique(np.concatenate([one.score for one in studies]), return_inverse=True)[1]
    name = np.concatenate([one.ratings.system for one in studies])
    is_target = np.concatenate([one.ratings.is_target for one in studies])
    rates: dict[str, float] = {}
    for model in set(systems.values()):
        alike = [system for system, one in systems.items() if one == model]
        of_model = np.isin(name, alike)
        sides = (np.bincount(level[of_model & (is_target == one)], minlength=int(level.max()) + 1) for one in (1, 0))
        rates |= dict.fromkeys(alike, float(interpolated_eers(*(side[None].astype(np.float64) for side in sides))[0]))
    return rates


def share(each: Sequence[float] | Flags | Floats) -> str:
    """The mean over studies and its standard error, in percent; "none" where no study has a value."""
    values = np.asarray(each, np.float64)
    if np.isnan(values).all():
        return "none"
    return f"{100 * values.mean():5.1f} ± {100 * values.std(ddof=1) / np.sqrt(values.size):.1f} %"


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES
    print(f"{studies} studies of {LISTENERS} listeners, {UTTERANCES} utterances a system, {SYSTEMS} systems")
    print(f"{'':55}  called different  within listeners  intervals hold")
    for task, rated in (("naturalness", ALL_RATED), ("verifiability", ALL_RATED), ("naturalness", THREE_RATED)):
        for is_shared in (True, False):
            for kind in ("raw", "normalised") if rated is ALL_RATED else ("raw",):
                told, alone, covered = np.zeros(studies), np.zeros(studies), np.zeros(studies)
                for seed in range(studies):
                    study = make_study(seed, task, is_shared=is_shared, rated=rated)
                    rows = make_comparison_tables(score_ratings(study, SCALE, SETTINGS, kind), SETTINGS)[0].records()
                    told[seed] = any(row["is_told_apart"] for row in rows)
                    alone[seed] = any(row["permutation_adjusted"] < 0.05 for row in rows)
                    intervals = [(row["difference_low"], row["difference_high"]) for row in rows]
                    held = [low <= 0 <= high for low, high in intervals if low is not None]
                    covered[seed] = np.mean(held) if held else np.nan
                few = "" if rated is ALL_RATED else " 3 of 6 rated"
                words = f"{task}, {kind}, {'shared' if is_shared else 'own'} utterances{few}"
                print(f"{words:55}  {share(told):>16}  {share(alone):>16}  {share(covered):>14}", flush=True)
    for name, systems in (("equal error rates", EQUAL), ("unequal error rates", UNEQUAL)):
        for is_shared in (True, False):
            made = [make_study(seed, "verifiability", is_shared=is_shared, systems=systems) for seed in range(studies)]
            told, right, covered = compare_all([score_ratings(one, SCALE, SETTINGS, "raw") for one in made], systems)
            words = f"{name}, {'shared' if is_shared else 'own'} utterances"
            print(f"{words:55}  {share(told):>16}  {'':16}  {share(covered):>14}{right}", flush=True)


def compare_all(studies: Sequence[Scored], systems: Mapping[str, SystemModel]) -> tuple[Floats, str, Floats]:
    """Of each study whether equal systems are called different, and the share of intervals that hold the truth.

    Returns:
        Both of shape (studies,), and between them the words on unequal systems.
    """
    true = true_rates(studies, systems)
    told, right, covered = np.zeros(len(studies)), np.zeros(len(studies)), np.zeros(len(studies))
    for place, scored in enumerate(studies):
        rows = compare_systems(scored)
        is_equal = [systems[row["first"]] == systems[row["second"]] for row in rows]
        told[place] = any(row["is_told_apart"] for row, equal in zip(rows, is_equal, strict=True) if equal)
        found = [row["is_told_apart"] for row, equal in zip(rows, is_equal, strict=True) if not equal]
        right[place] = np.mean(found) if found else np.nan
        covered[place] = np.mean(
            [
                row["difference_low"] <= true[row["first"]] - true[row["second"]] <= row["difference_high"]
                for row in rows
            ]
        )
    words = ", ".join(f"{rate:.3f}" for rate in sorted(set(true.values())))
    return told, "" if np.isnan(right).any() else f"  rates {words}: {share(right).strip()} significant", covered


if __name__ == "__main__":
    main()
