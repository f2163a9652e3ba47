"""Which listeners a resample holds: the listener-cluster bootstrap, drawn once and shared by whatever is compared.

Ratings of one listener are alike, so listeners are drawn, each with all ratings. Every statistic of an analysis with
equal listeners takes equal draws, so that differences of two systems, and what they share with the pool of originals,
are resampled jointly.
Source: Cameron, Gelbach & Miller, "Bootstrap-based improvements for inference with clustered errors", Review of
Economics and Statistics 90 (2008).
"""

from __future__ import annotations

import numpy as np

from listening.analysis.inputs import Floats, Ints
from listening.analysis.settings import Settings


def listener_draws(listeners: int, settings: Settings) -> Ints | None:
    """How often each listener occurs in each resample.

    Returns:
        Shape (resamples, listeners), rows sum to `listeners`; None with fewer listeners than `least_clusters`.
    """
    if listeners < settings.least_clusters:
        return None
    numbers = np.random.default_rng(settings.seed)
    return numbers.multinomial(listeners, np.full(listeners, 1 / listeners), size=settings.resamples)


def percentile_interval(resampled: Floats, level: float) -> tuple[float, float]:
    """Lower and upper limit by quantiles of the resamples in which the statistic is defined; NaN where none is.

    Args:
        resampled: shape (resamples,), NaN where it is not defined.
        level: nominal coverage, in (0, 1).
    """
    defined = resampled[np.isfinite(resampled)]
    if not defined.size:
        return float("nan"), float("nan")
    lower, upper = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)
