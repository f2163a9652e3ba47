"""What each metric is called, which way is better and in which unit it is given.

Tables, boards and figures read name, unit and direction here and nowhere else. Files, recipes and stored numbers name a
metric and its estimator apart (``eer`` by ``kaldi``); `find_metric` leads from there to the description, so that every
number has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Direction(StrEnum):
    """Which values of a metric are better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEAR_ZERO = "near zero"
    NEITHER = "neither"


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
        KALDI_EER, ROCCH_EER, SPEECHBRAIN_EER, CLLR, MIN_CLLR, LINKABILITY, ZEBRA_POPULATION, ZEBRA_INDIVIDUAL, AUC,
        MIN_DCF_01, MIN_DCF_001,
    )
}  # fmt: skip

WER = Metric(
    key="wer",
    label="WER",
    unit="%",
    direction=Direction.LOWER,
    decimals=2,
    definition=(
        "Word errors (insertions, deletions, substitutions) per reference word, pooled over the set; its estimator "
        "names the language model where an edition has several (2022 counts tglarge)."
    ),
)
UAR = Metric(
    key="uar",
    label="UAR",
    unit="%",
    direction=Direction.HIGHER,
    decimals=3,
    definition=(
        "Unweighted average recall of emotion recognition: mean over speakers of the mean recall of their classes "
        "(VoicePrivacy 2024); chance is 25 % for four classes."
    ),
)
ACCURACY = Metric(
    key="accuracy",
    label="Recall",
    unit="%",
    direction=Direction.HIGHER,
    decimals=3,
    definition="Recall of one emotion, mean over the speakers that have it (ACC in VoicePrivacy 2024).",
)
PITCH_CORRELATION_STD = Metric(
    key="pitch_correlation_std",
    label="ρF0, standard deviation",
    unit="",
    direction=Direction.NEITHER,
    decimals=4,
    definition="Standard deviation over the utterances of a set of the pitch correlation ρF0 (population, ddof 0).",
)
PITCH_CORRELATION_REALIGNED = Metric(
    key="pitch_correlation_realigned",
    label="Pitch correlation, realigned",
    unit="",
    direction=Direction.HIGHER,
    decimals=4,
    definition=(
        "Pearson correlation of the F0 contours over the frames voiced in both after dynamic time warping (results "
        "paper of VoicePrivacy 2022, section VI.C); unrelated utterances reach about 0.53, so read it beside that."
    ),
)
DE_IDENTIFICATION = Metric(
    key="de_identification",
    label="De-Identification",
    unit="",
    direction=Direction.HIGHER,
    decimals=3,
    definition=(
        "1 less the diagonal dominance of the similarities of original and anonymised voices over that of original "
        "ones; 1 is perfect (Noé et al. 2020)."
    ),
)
GAIN_OF_VOICE_DISTINCTIVENESS = Metric(
    key="gain_of_voice_distinctiveness",
    label="Gain of voice distinctiveness G_VD",
    unit="dB",
    direction=Direction.HIGHER,
    decimals=2,
    definition=(
        "10 log10 of the diagonal dominance of the similarities of anonymised voices over that of original ones; 0 is "
        "as distinct as the speakers were (VoicePrivacy 2022 evaluation plan, equation 3)."
    ),
)
ZEBRA_CATEGORY = Metric(
    key="zebra_category",
    label="ZEBRA category",
    unit="",
    direction=Direction.LOWER,
    decimals=0,
    definition="Letter of the worst-case disclosure, from 0 (none) over A to F (Nautsch et al. 2020), here 0 to 6.",
)

SOURCE_VALIDATION_ERROR = Metric(
    key="source_validation_error",
    label="VER_S",
    unit="%",
    direction=Direction.HIGHER,
    decimals=1,
    definition=(
        "Share of held-out anonymised segments whose speaker the recogniser of a semi-informed attacker names wrongly; "
        "by chance all but one of as many as there are speakers (Franzreb et al., adversarial target classifier)."
    ),
)
TARGET_VALIDATION_ERROR = Metric(
    key="target_validation_error",
    label="VER_T",
    unit="%",
    direction=Direction.NEITHER,
    decimals=1,
    definition=(
        "Share of held-out anonymised segments whose target the classifier trained with the recogniser names wrongly; "
        "above chance it was misled, and says nothing of what the vectors hold: read the fresh probe beside it."
    ),
)
TARGET_PROBE_ERROR = Metric(
    key="target_probe_error",
    label="Fresh probe of targets",
    unit="%",
    direction=Direction.NEITHER,
    decimals=1,
    definition=(
        "Share of held-out segments whose target a linear classifier names wrongly that was trained afterwards on the "
        "finished vectors; near chance they hold no target that a linear classifier can find."
    ),
)

GENDER_PRESERVATION = Metric(
    key="gender_preservation",
    label="Gender preservation",
    unit="%",
    direction=Direction.NEITHER,
    decimals=1,
    definition=(
        "Share of utterances whose vector is nearer to the voices of their speaker's gender than to the other, mean of "
        "both genders, 50 is a guess; whether to keep it depends on the use. Read it beside that of the originals."
    ),
)
INVERSION_RECOVERY_RATE = Metric(
    key="inversion_recovery_rate",
    label="Inversion attack",
    unit="%",
    direction=Direction.LOWER,
    decimals=1,
    definition=(
        "Share of anonymised utterances whose nearest original, after a rotation learnt from pairs of other speakers, "
        "is of their speaker (after Champion et al., Interspeech 2022); read it beside chance."
    ),
)
INVERSION_CHANCE = Metric(
    key="inversion_chance",
    label="Inversion attack, chance",
    unit="%",
    direction=Direction.NEITHER,
    decimals=1,
    definition="What guessing would recover of the speakers that the inversion attack looks for.",
)

PITCH_METRICS = {
    metric.key: metric
    for metric in (
        PITCH_CORRELATION,
        PITCH_CORRELATION_STD,
        PITCH_CORRELATION_VOICED,
        PITCH_CORRELATION_REALIGNED,
    )
}
VOICE_METRICS = {metric.key: metric for metric in (DE_IDENTIFICATION, GAIN_OF_VOICE_DISTINCTIVENESS)}
CONTENT_METRICS = {metric.key: metric for metric in (WER, UAR, ACCURACY)}
TRAINING_METRICS = {
    metric.key: metric for metric in (SOURCE_VALIDATION_ERROR, TARGET_VALIDATION_ERROR, TARGET_PROBE_ERROR)
}
EXTRA_METRICS = {metric.key: metric for metric in (GENDER_PRESERVATION, INVERSION_RECOVERY_RATE, INVERSION_CHANCE)}
# METRICS above are those of the basic recipe.
ALL_METRICS = (
    DETECTION_METRICS
    | {ZEBRA_CATEGORY.key: ZEBRA_CATEGORY}
    | CONTENT_METRICS
    | PITCH_METRICS
    | VOICE_METRICS
    | TRAINING_METRICS
    | EXTRA_METRICS
    | {metric.key: metric for metric in (DURATION_DIFFERENCE, LEVEL_CHANGE)}
)


class UnknownMetricError(LookupError):
    """A metric without a description: names it, and what is known."""


def find_metric(metric: str, estimator: str = "") -> Metric:
    """The description of a metric as claims, recipes and stored numbers name it.

    The description of ``<estimator>_<metric>`` if there is one (the EERs are metrics of their own, for they differ),
    else that of the metric, which all of its estimators share. ``accuracy_<emotion>`` is the recall of that emotion.

    Raises:
        UnknownMetricError: no description; an EER without its estimator has none.

    Example:
        >>> find_metric("eer", "rocch").label, find_metric("wer", "tglarge").label
        ('EER (ROCCH)', 'WER')
    """
    for key in (f"{estimator}_{metric}", metric):
        if key in ALL_METRICS:
            return ALL_METRICS[key]
    family, _, emotion = metric.partition("_")
    if family == ACCURACY.key and emotion:
        return replace(ACCURACY, key=metric, label=f"Recall of {emotion}")
    known = ", ".join(ALL_METRICS)
    named = f"“{metric}” by “{estimator}”" if estimator else f"“{metric}”"
    raise UnknownMetricError(f"Expected a metric among {known}; an EER names its estimator. Found {named}.")
