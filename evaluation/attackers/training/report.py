"""What the trainings of an attack found, over seeds, in the form of table 1 and figures 3 and 4 of Franzreb et al.

**Rows of ours** (`ReportRow`). A row is one anonymiser with one selection of targets, attacked by one variant of the
recogniser with several seeds. The deviation over seeds is that of a sample; the interval over speakers is given with
it, because few speakers make an EER more uncertain than seeds do.

Conventions: rates are shares, the EER is Kaldi's; lower EER and source error are better for the attacker, a higher
target error means that less of the target is heard, as far as the classifier can say.

Source: C. Franzreb, A. Das, T. Polzehl, S. Möller, "Improving the Speaker Anonymization Evaluation's Robustness to
Target Speakers with Adversarial Learning".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.attackers.training.trained_attacker import FinalValues, ProbeResult
from evaluation.metrics.bootstrap import Interval

NONE = "–"
# Key of a value, heading in the table.
COLUMNS: tuple[tuple[str, str], ...] = (
    ("eer", "EER, %"),
    ("same_gender_eer", "EER same gender, %"),
    ("source_error", "VER_S, %"),
    ("source_chance", "chance, %"),
    ("target_error", "VER_T, %"),
    ("target_chance", "chance, %"),
    ("target_probe", "fresh probe on target, %"),
    ("target_probe_other_sources", "probe, other sources, %"),
    ("source_probe", "fresh probe on source, %"),
)


@dataclass(frozen=True)
class AttackMeasures:
    """What an attack reached.

    Attributes:
        eer: of all trials.
        eer_interval: 95 %, over speakers; None with fewer than two resamples asked for.
        same_gender_eer, same_gender_interval: of the trials within a gender; None where genders are unknown or such
            trials are missing.
        n_target, n_nontarget: trials in all.
    """

    eer: float
    eer_interval: Interval | None
    same_gender_eer: float | None
    same_gender_interval: Interval | None
    n_target: int
    n_nontarget: int


@dataclass(frozen=True)
class SeedResult:
    """One training and its attack; None where it was not scored."""

    seed: int
    training: FinalValues
    attack: AttackMeasures | None


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


@dataclass(frozen=True)
class ReportRow:
    """A row of the table.

    Attributes:
        anonymizer, selection, variant: what was attacked, how its targets were chosen, and by what; for people.
        seeds: results.
    """

    anonymizer: str
    selection: str
    variant: str
    seeds: tuple[SeedResult, ...]

    def spread(self, key: str) -> Spread | None:
        """A value over the seeds that have it, by its key in `COLUMNS`."""
        return spread([_value_of(one, key) for one in self.seeds])


def spread(values: Sequence[float | None]) -> Spread | None:
    """Mean and sample deviation of the values that exist; None where none does."""
    known = tuple(value for value in values if value is not None)
    if not known:
        return None
    deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return Spread(float(np.mean(known)), deviation, known)


def table_cells(row: ReportRow) -> dict[str, str]:
    """A row in words: by the keys in `COLUMNS`, per cent with one decimal, ``±`` the sample deviation."""
    return {key: NONE if (value := row.spread(key)) is None else str(value) for key, _ in COLUMNS}


def _value_of(seed: SeedResult, key: str) -> float | None:
    if key in ("eer", "same_gender_eer"):
        return getattr(seed.attack, key, None)
    value: float | ProbeResult | None = getattr(seed.training, key)
    return value.error if isinstance(value, ProbeResult) else value
