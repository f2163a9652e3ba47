"""Table 1 of Franzreb et al. as data: what the authors measured at full size, never a result of ours.

Private kNN-VC in two configurations, ASR-BN and kNN-VC, with random (r) and same-gender (s) targets, each attacked by
the plain recogniser of SpAnE and by one with the adversarial target classifier; three seeds, mean and deviation.
Conventions: shares. Not all of the paper's EERs are lower with the classifier; see the text of its section 4.3.

Source: C. Franzreb, A. Das, T. Polzehl, S. Möller, "Improving the Speaker Anonymization Evaluation's Robustness to
Target Speakers with Adversarial Learning", table 1 (values) and section 3.1 (100 targets; 247 for ASR-BN).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

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
    eer, eer_sd, source, source_sd, target, target_sd = (round(value / 100, 4) for value in per_cent)
    return PublishedRow(
        anonymizer,
        selection,
        with_classifier,
        PublishedValue(eer, eer_sd),
        PublishedValue(source, source_sd),
        PublishedValue(target, target_sd),
    )


PUBLISHED_TABLE_1: tuple[PublishedRow, ...] = tuple(_row(*row) for row in _TABLE_1)
