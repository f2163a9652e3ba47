"""How often a results page calls equal systems different, and how often its intervals of differences hold 0.

Run from the root of the repository: ``python -m benchmarks.null_studies [STUDIES]``. Each study is simulated
(`listening.analysis.simulation`): 12 listeners rate 8 utterances of each of 6 equal systems, the same of all systems or
other ones of each; both classes of pairs in verifiability. Listeners, speakers and utterances vary. Printed are the
share of studies in which any two systems are called different, at most 5 %, and the share of intervals that hold
0, which must lie in 92 to 97 %; beside them what the permutation test within listeners says alone.
"""

from __future__ import annotations

import sys

import numpy as np

from listening.analysis.models.comparisons import make_comparison_tables
from listening.analysis.reading.inputs import Ratings, Settings
from listening.analysis.scoring.detection import make_detection_tables
from listening.analysis.scoring.scores import score_ratings
from listening.analysis.simulation import ListenerModel, RatedTrial, SystemModel, simulate_ratings
from listening.tasks import RATED

STUDIES, LISTENERS, SYSTEMS, UTTERANCES = 500, 12, 6, 8
SCALE = dict.fromkeys(RATED, (1.0, 10.0))
SETTINGS = Settings(resamples=300)
EQUAL = {f"system-{number}": SystemModel(0.5, 0.5, 0.4, 0.6) for number in range(SYSTEMS)}


def make_study(seed: int, task: str, *, is_shared: bool) -> Ratings:
    """The ratings of a study; `is_shared`: the same utterances of all systems."""
    trials = [
        RatedTrial(listener, system, is_target, f"{'' if is_shared else system}{number}", f"speaker-{number}", task)
        for listener in range(LISTENERS)
        for system in EQUAL
        for number in range(UTTERANCES)
        for is_target in ((0, 1) if task == "verifiability" else (0,))
    ]
    rating = simulate_ratings(trials, EQUAL, SCALE, np.random.default_rng(seed), ListenerModel())
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


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES
    print(f"{studies} studies of {LISTENERS} listeners, {UTTERANCES} utterances a system, {SYSTEMS} equal systems")
    print(f"{'':40}  different   within listeners alone  intervals hold 0")
    for task in ("naturalness", "verifiability"):
        for is_shared in (True, False):
            for kind in ("raw", "normalised"):
                told, alone, covered = np.zeros(studies), np.zeros(studies), []
                for seed in range(studies):
                    scored = score_ratings(make_study(seed, task, is_shared=is_shared), SCALE, SETTINGS, kind)
                    rows = make_comparison_tables(scored, SETTINGS)[0].records()
                    told[seed] = any(row["is_told_apart"] for row in rows)
                    alone[seed] = any(row["permutation_adjusted"] < 0.05 for row in rows)
                    covered += [row["difference_low"] <= 0 <= row["difference_high"] for row in rows]
                words = f"{task}, {kind}, {'shared' if is_shared else 'own'} utterances"
                print(f"{words:40}  {told.mean():10.1%}  {alone.mean():22.1%}  {np.mean(covered):16.1%}", flush=True)
    for is_shared in (True, False):
        told, covered = np.zeros(studies // 5), []
        for seed in range(told.size):
            scored = score_ratings(make_study(seed, "verifiability", is_shared=is_shared), SCALE, SETTINGS, "raw")
            rows = make_detection_tables(scored, SETTINGS)[2].records()
            told[seed] = any(row["is_told_apart"] for row in rows)
            covered += [row["difference_low"] <= 0 <= row["difference_high"] for row in rows]
        words = f"equal error rates, {'shared' if is_shared else 'own'} utterances"
        print(f"{words:40}  {told.mean():10.1%}  {'':22}  {np.mean(covered):16.1%}", flush=True)


if __name__ == "__main__":
    main()
