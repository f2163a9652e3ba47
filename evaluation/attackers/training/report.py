"""What the trainings of an attack found, over seeds, in the form of table 1 and figures 3 and 4 of Franzreb et al.

**Rows of ours** (`ReportRow`). A row is one anonymiser with one selection of targets, attacked by one variant of the
recogniser with several seeds. The deviation over seeds is that of a sample; the interval over speakers is given with
it, because few speakers make an EER more uncertain than seeds do.

**Table 1 as published** (`PublishedRow`) is what the authors measured at full size, never a result of ours: private
kNN-VC in two configurations, ASR-BN and kNN-VC, with random (r) and same-gender (s) targets, each attacked by the plain
recogniser of SpAnE and by one with the adversarial target classifier; three seeds, mean and deviation. Not all of the
paper's EERs are lower with the classifier; see the text of its section 4.3.

Conventions: rates are shares, the EER is Kaldi's; lower EER and source error are better for the attacker, a higher
target error means that less of the target is heard, as far as the classifier can say.

Source: C. Franzreb, A. Das, T. Polzehl, S. Möller, "Improving the Speaker Anonymization Evaluation's Robustness to
Target Speakers with Adversarial Learning", table 1 (values) and section 3.1 (100 targets; 247 for ASR-BN).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from evaluation.attackers.training.trained_attacker import FinalValues, ProbeResult
from evaluation.metrics.bootstrap import Interval

TARGETS: Mapping[str, int] = MappingProxyType({"(7-8)": 100, "(3-16)": 100, "ASR-BN": 247, "kNN-VC": 100})


@dataclass(frozen=True)
class PublishedValue:
    """Mean and standard deviation over three seeds, shares."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class PublishedRow:
    """A row of the table.

    Attributes:
        anonymizer: as the table has it.
        selection: ``random`` or ``same gender``.
        with_classifier: whether the attacker had the adversarial target classifier.
        eer, source_error, target_error: EER, VER_S and VER_T.
    """

    anonymizer: str
    selection: str
    with_classifier: bool
    eer: PublishedValue
    source_error: PublishedValue
    target_error: PublishedValue

    @property
    def target_chance(self) -> float:
        """The target error of guessing, which the paper does not print."""
        return 1 - 1 / TARGETS[self.anonymizer]


_RANDOM, _SAME = "random", "same gender"
# EER, VER_S, VER_T, each with its deviation, in per cent.
_TABLE_1: tuple[tuple[str, str, bool, tuple[float, ...]], ...] = (
    ("(7-8)", _RANDOM, False, (19.1, 0.5, 90.4, 0.2, 4.0, 0.0)),
    ("(7-8)", _RANDOM, True, (19.4, 1.2, 89.6, 0.2, 99.4, 0.0)),
    ("(7-8)", _SAME, False, (17.4, 0.3, 87.8, 0.1, 8.4, 0.1)),
    ("(7-8)", _SAME, True, (15.9, 0.9, 87.3, 0.2, 99.5, 0.1)),
    ("(3-16)", _RANDOM, False, (13.6, 1.0, 80.9, 0.2, 10.4, 0.5)),
    ("(3-16)", _RANDOM, True, (12.4, 0.2, 80.0, 0.2, 99.3, 0.0)),
    ("(3-16)", _SAME, False, (11.8, 0.3, 77.6, 0.2, 17.6, 0.7)),
    ("(3-16)", _SAME, True, (10.2, 0.4, 76.8, 0.3, 99.3, 0.0)),
    ("ASR-BN", _RANDOM, False, (18.4, 0.2, 92.1, 0.1, 60.2, 0.5)),
    ("ASR-BN", _RANDOM, True, (18.9, 0.2, 91.9, 0.1, 99.6, 0.0)),
    ("ASR-BN", _SAME, False, (17.4, 0.6, 86.0, 0.1, 37.3, 0.4)),
    ("ASR-BN", _SAME, True, (13.9, 0.4, 85.4, 0.1, 99.5, 0.0)),
    ("kNN-VC", _RANDOM, False, (6.3, 0.7, 40.9, 0.3, 63.4, 0.2)),
    ("kNN-VC", _RANDOM, True, (6.5, 0.2, 41.4, 0.2, 99.1, 0.0)),
    ("kNN-VC", _SAME, False, (5.2, 0.1, 38.9, 0.4, 63.6, 1.1)),
    ("kNN-VC", _SAME, True, (5.0, 0.2, 39.5, 0.2, 98.8, 0.0)),
)


def _row(anonymizer: str, selection: str, with_classifier: bool, per_cent: tuple[float, ...]) -> PublishedRow:
    shares = [round(value / 100, 4) for value in per_cent]
    values = (PublishedValue(*pair) for pair in zip(shares[::2], shares[1::2], strict=True))
    return PublishedRow(anonymizer, selection, with_classifier, *values)


PUBLISHED_TABLE_1: tuple[PublishedRow, ...] = tuple(_row(*row) for row in _TABLE_1)


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
