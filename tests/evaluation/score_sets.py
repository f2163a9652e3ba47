"""Score sets that several tests draw on: those of the official code and drawn ones with many ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.official import load_arrays, load_json

Scores = NDArray[np.float64]

# Eighths from -8 to 8: ties within and across the kinds, exact in single precision, as are cubes of them.
eighths = st.integers(-64, 64).map(lambda k: k / 8)


def score_lists(max_size: int = 60) -> st.SearchStrategy[list[float]]:
    return st.lists(eighths, min_size=1, max_size=max_size)


def reference_cases() -> dict[str, dict[str, Any]]:
    return load_json("detection_metrics.json")


def reference_scores(name: str) -> tuple[Scores, Scores]:
    """Target and nontarget scores of a reference case."""
    sets = load_arrays("score_sets.npz")
    return sets[f"{name}.tar"], sets[f"{name}.non"]


def normal_scores(seed: int, n_target: int, n_nontarget: int) -> tuple[Scores, Scores]:
    random = np.random.default_rng(seed)
    return random.normal(1.5, 1.0, n_target), random.normal(0.0, 1.0, n_nontarget)
