"""What each metric is called, which way is better and in which unit it is given.

Tables, boards and figures read name, unit and direction here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Which values of a metric are better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEAR_ZERO = "near zero"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as a reader meets it.

    Attributes:
        key: stable name in storage and exports.
        label: name on a page or an axis.
        unit: such as ``ms``; empty where the metric has none.
        direction: which values are better.
        decimals: digits after the point in tables.
        definition: one sentence with the source.
    """

    key: str
    label: str
    unit: str
    direction: Direction
    decimals: int
    definition: str


PITCH_CORRELATION = Metric(
    key="pitch_correlation",
    label="Pitch correlation ρF0",
    unit="",
    direction=Direction.HIGHER,
    decimals=4,
    definition=(
        "Pearson correlation of the F0 contours of original and anonymised utterance over all "
        "frames after rotation by the best lag, as the official script of VoicePrivacy 2022 "
        "computes it; unrelated utterances reach about 0.25."
    ),
)
PITCH_CORRELATION_VOICED = Metric(
    key="pitch_correlation_voiced",
    label="Pitch correlation, voiced frames",
    unit="",
    direction=Direction.HIGHER,
    decimals=4,
    definition=(
        "Pearson correlation of the F0 contours over the frames that are voiced in both after "
        "rotation by the best lag, as the papers on VoicePrivacy 2022 describe it."
    ),
)
DURATION_DIFFERENCE = Metric(
    key="duration_difference",
    label="Duration difference",
    unit="ms",
    direction=Direction.NEAR_ZERO,
    decimals=1,
    definition="Duration of the anonymised utterance minus that of the original.",
)
LEVEL_CHANGE = Metric(
    key="level_change",
    label="Level change",
    unit="dB",
    direction=Direction.NEAR_ZERO,
    decimals=1,
    definition="Root mean square level of the anonymised utterance minus that of the original.",
)

METRICS = {
    metric.key: metric
    for metric in (PITCH_CORRELATION, PITCH_CORRELATION_VOICED, DURATION_DIFFERENCE, LEVEL_CHANGE)
}
