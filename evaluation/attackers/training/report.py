"""What the trainings of an attacker found, over seeds, in the form of table 1 of Franzreb et al.

The deviation over seeds is that of a sample.

Conventions: rates are shares; a lower source error is better for the attacker, a higher target error means that less of
the target is heard, as far as the classifier can say.

Source: C. Franzreb, A. Das, T. Polzehl, S. Möller, "Improving the Speaker Anonymization Evaluation's Robustness to
Target Speakers with Adversarial Learning".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.attackers.training.trained_attacker import FinalValues, ProbeResult

NONE = "–"
# Key of a value, heading in the table.
COLUMNS: tuple[tuple[str, str], ...] = (
    ("source_error", "VER_S, %"),
    ("source_chance", "chance, %"),
    ("target_error", "VER_T, %"),
    ("target_chance", "chance, %"),
    ("target_probe", "fresh probe on target, %"),
    ("target_probe_other_sources", "probe, other sources, %"),
    ("source_probe", "fresh probe on source, %"),
)


@dataclass(frozen=True)
class Spread:
    """A value over seeds.

    Attributes:
        mean: of the values.
        deviation: sample standard deviation; None for a single value.
        values: one for each seed that has it.
    """

    mean: float
    deviation: float | None
    values: tuple[float, ...]

    def __str__(self) -> str:
        """In per cent, as the table has it."""
        if self.deviation is None:
            return f"{100 * self.mean:.1f}"
        return f"{100 * self.mean:.1f} ± {100 * self.deviation:.1f}"


def spread(values: Sequence[float | None]) -> Spread | None:
    """Return mean and sample deviation of the values that exist; None where none does."""
    known = tuple(value for value in values if value is not None)
    if not known:
        return None
    deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return Spread(float(np.mean(known)), deviation, known)


def spread_over_seeds(trainings: Sequence[FinalValues], key: str) -> Spread | None:
    """Return a value over the trainings that have it, by its key in `COLUMNS`."""
    values = [getattr(training, key) for training in trainings]
    return spread([value.error if isinstance(value, ProbeResult) else value for value in values])


def table_cells(trainings: Sequence[FinalValues]) -> list[str]:
    """Return the values of `COLUMNS` over seeds in words: per cent with one decimal, ``±`` the sample deviation."""
    spreads = (spread_over_seeds(trainings, key) for key, _ in COLUMNS)
    return [NONE if value is None else str(value) for value in spreads]
