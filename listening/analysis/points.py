"""Means and equal error rates without intervals, quickly: for monitors, previews and what exclusions change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from listening.analysis.detection import Test, class_histograms, tests_of
from listening.analysis.inputs import Scored
from listening.analysis.weighted_histograms import equal_error_rates


@dataclass(frozen=True, slots=True)
class Point:
    """Attributes:
    listeners, n: different listeners, and ratings, of a system.
    mean: of their scores.
    eer: in [0, 1], as `detection` defines it; None for originals that are no test, and where a class is missing.
    """

    listeners: int
    n: int
    mean: float
    eer: float | None


def points_of(scored: Scored) -> dict[tuple[str, str], Point]:
    """Of each task and system that was rated, in the order of the tables."""
    points = {}
    for task in scored.tasks:
        tests = {test.system: test for test in tests_of(scored, task)}
        of_task = scored.ratings.task == task
        for system in scored.systems(task):
            chosen = of_task & (scored.ratings.system == system)
            points[task, system] = Point(
                int(np.unique(scored.listener[chosen]).size),
                int(chosen.sum()),
                float(scored.score[chosen].mean()),
                _eer(scored, tests.get(system)),
            )
    return points


def _eer(scored: Scored, test: Test | None) -> float | None:
    if test is None or not test.has_both:
        return None
    _, target, nontarget = class_histograms(scored, test)
    return float(equal_error_rates(target.sum(0, keepdims=True), nontarget.sum(0, keepdims=True))[0])
