"""Reading a million lines of scores and joining them to their trials, beside `pandas.read_csv` of the same file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._measuring import Figure, measure_least_seconds, report
from evaluation.formats.scores import join_scores, read_scores, read_trial_table

LINES = 1_000_000
MODELS = 29
BUDGET = 3


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        scores, trials = write_files(Path(folder))
        table = read_trial_table(trials)
        pandas_s, ours_s = measure_least_seconds(
            lambda: pd.read_csv(scores, sep=" ", header=None),
            lambda: join_scores(read_scores(scores), table),
            repeats=7,
        )
        assert join_scores(read_scores(scores), table).complete
    return report(Figure("Reading and joining 10⁶ score lines / pandas.read_csv", ours_s / pandas_s, BUDGET))


def write_files(folder: Path) -> tuple[Path, Path]:
    """Write scores and trials in the form of the LibriSpeech sets; return their paths."""
    random = np.random.default_rng(0)
    models = random.choice(np.arange(100, 9999), MODELS, replace=False)
    numbers = (np.arange(LINES) // MODELS).tolist()
    pairs = [f"{models[i % MODELS]} {1000 + n % 40}-{100000 + n}-{n % 50:04d}" for i, n in enumerate(numbers)]
    scores, trials = folder / "scores", folder / "trials"
    values = random.normal(-20, 30, LINES).tolist()
    scores.write_text("".join(f"{pair} {value:.6g}\n" for pair, value in zip(pairs, values, strict=True)))
    kinds = np.where(random.random(LINES) < 0.05, "target", "nontarget").tolist()
    trials.write_text("".join(f"{pair} {kind}\n" for pair, kind in zip(pairs, kinds, strict=True)))
    return scores, trials


if __name__ == "__main__":
    sys.exit(main())
