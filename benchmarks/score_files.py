"""Reading a million lines of Kaldi scores and joining them to their trials, beside pandas reading the same file.

Run from the root of the repository: ``python -m benchmarks.score_files [LINES]``. The file is synthetic and has the
form of the LibriSpeech sets. The yardstick is ``pandas.read_csv`` of the scores alone, in the same run. Prints
(read and join) / (pandas), which must stay at or below 3; the other rows tell what the trial list and another order of
the scores cost.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from evaluation.formats.scores import join_scores, read_scores, read_trial_table

BUDGET = 3.0
MODELS = 29
REPEATS = 7


def main(lines: int) -> int:
    """Print the ratios; the exit status is 1 where the first one is above the budget."""
    try:
        import pandas as pd
    except ImportError:
        print("The yardstick is pandas, which is not installed: expected `pip install pandas`, found none.")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        scores, shuffled, trials = write_files(Path(folder), lines)
        trial_table = read_trial_table(trials)
        work: dict[str, Callable[[], object]] = {
            "pandas.read_csv of the scores": lambda: pd.read_csv(scores, sep=" ", header=None),
            "read and join": lambda: join_scores(read_scores(scores), trial_table),
            "read, join and read the trials": lambda: join_scores(read_scores(scores), read_trial_table(trials)),
            "read and join in another order": lambda: join_scores(read_scores(shuffled), trial_table),
        }
        assert join_scores(read_scores(scores), trial_table).complete
        best = dict.fromkeys(work, np.inf)
        for _ in range(REPEATS):  # in turns, so that a busy machine slows all of them
            for name, call in work.items():
                best[name] = min(best[name], seconds(call))
    yardstick, measured = best["pandas.read_csv of the scores"], best["read and join"]
    print(f"{lines:,} lines; pandas {pd.__version__}, numpy {np.__version__}")
    for name, best_s in best.items():
        print(f"{name:32} {best_s:.3f} s   ratio {best_s / yardstick:.2f}")
    print(f"ratio {measured / yardstick:.2f} (budget {BUDGET:g})")
    return int(measured > BUDGET * yardstick)


def write_files(folder: Path, lines: int) -> tuple[Path, Path, Path]:
    """Scores in the order of the trials, the same in another order, and the trials."""
    random = np.random.default_rng(0)
    models = random.choice(np.arange(100, 9999), MODELS, replace=False)
    numbers = np.arange(lines) // MODELS
    pairs = [f"{models[i % MODELS]} {1000 + n % 40}-{100000 + n}-{n % 50:04d}" for i, n in enumerate(numbers.tolist())]
    written = [f"{pair} {score:.6g}\n" for pair, score in zip(pairs, random.normal(-20, 30, lines), strict=True)]
    kinds = np.where(random.random(lines) < 0.05, "target", "nontarget").tolist()
    paths = folder / "scores", folder / "shuffled", folder / "trials"
    paths[0].write_text("".join(written))
    paths[1].write_text("".join(written[i] for i in random.permutation(lines).tolist()))
    paths[2].write_text("".join(f"{pair} {kind}\n" for pair, kind in zip(pairs, kinds, strict=True)))
    return paths


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = perf_counter()
    call()
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
