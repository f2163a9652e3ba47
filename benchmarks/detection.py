"""All detection metrics of a million trials beside one stable `numpy.argsort` of the same scores."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks._measuring import Figure, measure_least_seconds, report
from evaluation.metrics.detection import detection_metrics

TRIALS = 1_000_000
BUDGET = 5
CASES = (("half targets", TRIALS // 2, 12), ("5 % targets", TRIALS // 20, 12), ("tied scores", TRIALS // 2, 3))


def main() -> int:
    return report(*(measure_case(*case) for case in CASES))


def measure_case(what: str, targets: int, decimals: int) -> Figure:
    """Return the ratio for so many targets, with scores of so many decimals."""
    random = np.random.default_rng(1)
    target = random.normal(1.5, 1.0, targets).round(decimals)
    nontarget = random.normal(0.0, 1.0, TRIALS - targets).round(decimals)
    scores = random.permutation(np.concatenate([nontarget, target]))
    detection_metrics(target[:100], nontarget[:100])  # imports
    sort_s, metrics_s = measure_least_seconds(
        lambda: np.argsort(scores, kind="stable"), lambda: detection_metrics(target, nontarget)
    )
    return Figure(f"All detection metrics, 10⁶ trials, {what} / a stable argsort", metrics_s / sort_s, BUDGET)


if __name__ == "__main__":
    sys.exit(main())
