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
    metric.key: metric for metric in (PITCH_CORRELATION, PITCH_CORRELATION_VOICED, DURATION_DIFFERENCE, LEVEL_CHANGE)
}

KALDI_EER = Metric(
    key="kaldi_eer",
    label="EER (Kaldi)",
    unit="%",
    direction=Direction.HIGHER,
    decimals=3,
    definition=(
        "Equal error rate of an attacker as Kaldi's compute-eer reads it, k of all targets at the first crossing; "
        "ranks VoicePrivacy 2020 and 2022."
    ),
)
ROCCH_EER = Metric(
    key="rocch_eer",
    label="EER (ROCCH)",
    unit="%",
    direction=Direction.HIGHER,
    decimals=3,
    definition=(
        "Equal error rate of an attacker on the convex hull of the ROC, at most 50 %; below the other two estimators "
        "(Brümmer & du Preez 2006)."
    ),
)
SPEECHBRAIN_EER = Metric(
    key="speechbrain_eer",
    label="EER (SpeechBrain)",
    unit="%",
    direction=Direction.HIGHER,
    decimals=3,
    definition=(
        "Equal error rate of an attacker where false alarms and misses are closest, the mean of both, as SpeechBrain "
        "computes it; ranks VoicePrivacy 2024 and suits ratings of listeners."
    ),
)
CLLR = Metric(
    key="cllr",
    label="C_llr",
    unit="bit",
    direction=Direction.HIGHER,
    decimals=3,
    definition="Cost of an attacker's scores as log-likelihood ratios, not calibrated (Brümmer & du Preez 2006).",
)
MIN_CLLR = Metric(
    key="min_cllr",
    label="min C_llr",
    unit="bit",
    direction=Direction.HIGHER,
    decimals=3,
    definition="C_llr after the best monotone calibration (PAV): 0 is no privacy, 1 is no information.",
)
LINKABILITY = Metric(
    key="linkability",
    label="Linkability D_sys",
    unit="",
    direction=Direction.LOWER,
    decimals=3,
    definition=(
        "How well score histograms tell pairs of one speaker from others (Gomez-Barrero et al. 2018); one outlying "
        "score makes it useless."
    ),
)
ZEBRA_POPULATION = Metric(
    key="zebra_population",
    label="ZEBRA population",
    unit="bit",
    direction=Direction.LOWER,
    decimals=3,
    definition="Expected disclosure of an attacker's scores, 0 to 0.721 bit (Nautsch et al. 2020).",
)
ZEBRA_INDIVIDUAL = Metric(
    key="zebra_individual",
    label="ZEBRA individual",
    unit="log10",
    direction=Direction.LOWER,
    decimals=3,
    definition="Worst-case disclosure: base-10 logarithm of the strongest likelihood ratio (Nautsch et al. 2020).",
)
AUC = Metric(
    key="auc",
    label="AUC",
    unit="",
    direction=Direction.LOWER,
    decimals=4,
    definition="Chance that a trial of one speaker scores above one of two speakers; 0.5 is no information.",
)
MIN_DCF_01 = Metric(
    key="min_dcf_01",
    label="minDCF (p = 0.01)",
    unit="",
    direction=Direction.HIGHER,
    decimals=3,
    definition="Least detection cost of an attacker at a target prior of 0.01, 1 is no better than chance (NIST).",
)
MIN_DCF_001 = Metric(
    key="min_dcf_001",
    label="minDCF (p = 0.001)",
    unit="",
    direction=Direction.HIGHER,
    decimals=3,
    definition="Least detection cost of an attacker at a target prior of 0.001, 1 is no better than chance (NIST).",
)

DETECTION_METRICS = {
    metric.key: metric
    for metric in (
        KALDI_EER,
        ROCCH_EER,
        SPEECHBRAIN_EER,
        CLLR,
        MIN_CLLR,
        LINKABILITY,
        ZEBRA_POPULATION,
        ZEBRA_INDIVIDUAL,
        AUC,
        MIN_DCF_01,
        MIN_DCF_001,
    )
}
# METRICS above are those of the basic recipe.
ALL_METRICS = METRICS | DETECTION_METRICS
