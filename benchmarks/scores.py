"""What the detection metrics of a million trials cost beside one stable sort of their scores, and in memory.

Run from the root of the repository: ``python -m benchmarks.scores``. Prints (all metrics) / (one stable
``numpy.argsort`` of the same scores), which must stay at or below 5, for scores without and with ties, and the same of
the measures beyond the EER; the memory that 5 million trials take at most, which must stay below 2 GB; and the seconds
of a bootstrap of a real-size set.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.bootstrap import bootstrap_detection, draw_speakers
from evaluation.metrics.calibration import min_cllr, rocch_eer
from evaluation.metrics.detection import detection_metrics
from evaluation.metrics.exposure import make_trials, measure_exposure

TRIALS = 1_000_000
BUDGET = 5.0
MEMORY_TRIALS = 5_000_000
MEMORY_BUDGET_GB = 2.0
REPEATS = 5
MEASURE_MEMORY = "memory"

Scores = NDArray[np.float64]


def main() -> int:
    """Print the figures; the exit status is 1 where one is above its budget."""
    over = False
    for what, targets, decimals in (
        ("half targets", TRIALS // 2, 12),
        ("5 % targets", TRIALS // 20, 12),
        ("half targets, tied at 3 decimals", TRIALS // 2, 3),
    ):
        over |= print_ratio(what, *make_scores(targets, TRIALS - targets, decimals)) > BUDGET
    over |= print_exposure_ratio() > BUDGET
    command = [sys.executable, "-m", "benchmarks.scores", MEASURE_MEMORY]
    peak_gb = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"ROCCH and min C_llr of {MEMORY_TRIALS:,} trials: {peak_gb:.2f} GB at most (budget {MEMORY_BUDGET_GB:.0f})")
    print_bootstrap()
    return int(over or peak_gb > MEMORY_BUDGET_GB)


def make_scores(targets: int, nontargets: int, decimals: int = 12) -> tuple[Scores, Scores]:
    random = np.random.default_rng(1)
    return random.normal(1.5, 1.0, targets).round(decimals), random.normal(0.0, 1.0, nontargets).round(decimals)


def print_ratio(what: str, target: Scores, nontarget: Scores) -> float:
    """EER by three estimators, C_llr, min C_llr, D_sys, ZEBRA (and AUC, minDCF, DET) over one sort."""
    scores = np.random.default_rng(2).permutation(np.concatenate([nontarget, target]))
    detection_metrics(target[:100], nontarget[:100])  # imports outside of the measurement
    sort_s, metrics_s = np.inf, np.inf
    for _ in range(REPEATS):  # in turns, so that a busy machine slows both
        start = perf_counter()
        np.argsort(scores, kind="stable")
        sorted_at = perf_counter()
        detection_metrics(target, nontarget)
        sort_s, metrics_s = min(sort_s, sorted_at - start), min(metrics_s, perf_counter() - sorted_at)
    ratio = metrics_s / sort_s
    print(f"{TRIALS:,} trials, {what}: sort {sort_s:.3f} s, all metrics {metrics_s:.3f} s, ", end="")
    print(f"ratio {ratio:.2f} (budget {BUDGET:.0f})")
    return ratio


def print_exposure_ratio(speakers: int = 25) -> float:
    """What the EER hides, of trials whose names are known: two sorts, and ranks with 30 exchanges of identities."""
    utterances = TRIALS // speakers
    models = [f"s{number}" for number in range(speakers)]
    said = [f"u{number}" for number in range(utterances) for _ in models]
    own = np.arange(utterances)[:, None] % speakers == np.arange(speakers)
    scores = np.random.default_rng(4).normal(1.5 * own)
    trials = make_trials(scores.ravel(), own.ravel(), models * utterances, said)
    sort_s, measured_s = np.inf, np.inf
    for _ in range(REPEATS):
        start = perf_counter()
        np.argsort(trials.scores, kind="stable")
        sorted_at = perf_counter()
        measure_exposure(trials)
        sort_s, measured_s = min(sort_s, sorted_at - start), min(measured_s, perf_counter() - sorted_at)
    ratio = measured_s / sort_s
    print(f"{TRIALS:,} trials, beyond the EER: sort {sort_s:.3f} s, measured {measured_s:.3f} s, ", end="")
    print(f"ratio {ratio:.2f} (budget {BUDGET:.0f})")
    return ratio


def print_peak_memory() -> None:
    """GB of this process after ROCCH-EER and min C_llr, Python and the libraries included."""
    scores = make_scores(MEMORY_TRIALS // 2, MEMORY_TRIALS // 2)
    rocch_eer(*scores)
    min_cllr(*scores)
    unit = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9)


def print_bootstrap(resamples: int = 1000) -> None:
    """A set as large as vctk_test_trials_f: 15 speakers, 1,000 trials each."""
    random = np.random.default_rng(3)
    speakers = np.array([f"p{i:03}" for i in range(15)])
    models, owners = random.choice(speakers, 15_000), np.repeat(speakers, 1000)
    is_target = models == owners
    scores = random.normal(1.5 * is_target)
    start = perf_counter()
    draws = draw_speakers(speakers, resamples, random)
    found = bootstrap_detection(scores, is_target, models.tolist(), owners.tolist(), draws)
    seconds = perf_counter() - start
    interval = found["kaldi_eer"].interval()
    print(f"bootstrap of Kaldi EER and min C_llr, {resamples:,} resamples of 15,000 trials: {seconds:.2f} s ", end="")
    print(f"(EER {100 * interval.estimate:.2f} %, {100 * interval.lower:.2f} to {100 * interval.upper:.2f})")


if __name__ == "__main__":
    sys.exit(print_peak_memory() if sys.argv[1:] == [MEASURE_MEMORY] else main())
