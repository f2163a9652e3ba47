"""What each metric is called, which way is better and in which unit it is given.

Tables, boards and figures read name, unit and direction here and nowhere else; the descriptions themselves stand in
``catalogue.toml``. Files, recipes and stored numbers name a metric and its estimator apart (``eer`` by ``kaldi``);
`find_metric` leads from there to the description, so that every number has one.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

NO_VALUE = "–"


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


FAMILIES: dict[str, dict[str, Metric]] = {
    family: {key: Metric(**row | {"key": key, "direction": Direction(row["direction"])}) for key, row in rows.items()}
    for family, rows in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
DETECTION_METRICS, EXPOSURE_METRICS, PITCH_METRICS, EXTRA_METRICS = (
    FAMILIES[name] for name in ("detection", "exposure", "pitch", "extras")
)
ALL_METRICS = {key: metric for family in FAMILIES.values() for key, metric in family.items()}

PITCH_CORRELATION = ALL_METRICS["pitch_correlation"]
PITCH_CORRELATION_VOICED = ALL_METRICS["pitch_correlation_voiced"]
PITCH_CORRELATION_REALIGNED = ALL_METRICS["pitch_correlation_realigned"]
PITCH_CORRELATION_UNRELATED = ALL_METRICS["pitch_correlation_unrelated"]
PREDICTED_NATURALNESS = ALL_METRICS["predicted_naturalness"]
DURATION_DIFFERENCE = ALL_METRICS["duration_difference"]
LEVEL_CHANGE = ALL_METRICS["level_change"]
MIN_CLLR = ALL_METRICS["min_cllr"]
WER = ALL_METRICS["wer"]
DE_IDENTIFICATION = ALL_METRICS["de_identification"]
GAIN_OF_VOICE_DISTINCTIVENESS = ALL_METRICS["gain_of_voice_distinctiveness"]
# What pages call the estimators of recipes and of stored numbers.
ESTIMATORS = {
    "dnsmos-p808": "DNSMOS P.808",
    "kaldi": "Kaldi",
    "official": "official scripts",
    "pav": "pool adjacent violators",
    "praat": "Praat",
    "rocch": "ROC convex hull",
    "speechbrain": "SpeechBrain",
}
# Those of the basic recipe.
METRICS = {
    metric.key: metric
    for metric in (
        PITCH_CORRELATION,
        PITCH_CORRELATION_VOICED,
        PITCH_CORRELATION_REALIGNED,
        PITCH_CORRELATION_UNRELATED,
        PREDICTED_NATURALNESS,
        DURATION_DIFFERENCE,
        LEVEL_CHANGE,
    )
}


def find_metric(metric: str, estimator: str = "") -> Metric:
    """Return the description of a metric as reported numbers, recipes and stored numbers name it.

    The description of ``<estimator>_<metric>`` if there is one (the EERs are metrics of their own, for they differ),
    else that of the metric, which all of its estimators share. ``accuracy_<emotion>`` is the recall of that emotion.

    Raises:
        LookupError: no description; an EER without its estimator has none.

    Example:
        >>> find_metric("eer", "rocch").label, find_metric("wer", "tglarge").label
        ('EER (ROCCH)', 'WER')
    """
    for key in (f"{estimator}_{metric}", metric):
        if key in ALL_METRICS:
            return ALL_METRICS[key]
    family, _, emotion = metric.partition("_")
    if family == "accuracy" and emotion:
        return replace(ALL_METRICS[family], key=metric, label=f"Recall of {emotion}")
    known = ", ".join(ALL_METRICS)
    named = f"“{metric}” by “{estimator}”" if estimator else f"“{metric}”"
    raise LookupError(f"Expected a metric among {known}; an EER names its estimator. Found {named}.")


def format_value(value: float | None, metric: Metric) -> str:
    """Return a value with the decimals of its metric; its unit is written next to the name, as `format_heading` writes
    it."""
    return NO_VALUE if value is None or math.isnan(value) else f"{value:.{metric.decimals}f}"


def format_heading(metric: Metric, *, detail: str = "") -> str:
    """Name and unit of a metric over or beside its values."""
    name = f"{metric.label} {detail}".strip()
    return name if metric.unit in ("", "log10") else f"{name}, {metric.unit}"
