"""Emotion recognition as VoicePrivacy 2024 scores it: how much emotion survives anonymisation.

Each speaker is recognised by the model of the fold that has not seen them; recalls are therefore
taken within a speaker and averaged over speakers, never pooled.

Conventions: fractions, not percent; higher is better.
Source: ``evaluate_ser.py`` of the VoicePrivacy 2024 recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.calibration import Compatibility, is_official
from evaluation.metrics.errors import MetricInputError

EMOTIONS = ("sad", "neu", "ang", "hap")


@dataclass(frozen=True, slots=True)
class SpeakerEmotions:
    """One speaker.

    Attributes:
        uar_score: unweighted mean of the recalls of the speaker's classes.
        recall_scores: by class; None for a class of which the speaker has no utterance.
        n: utterances.
    """

    speaker: str
    uar_score: float
    recall_scores: dict[str, float | None]
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class EmotionScores:
    """A set.

    Attributes:
        uar_score: unweighted average recall, the mean of the speakers' own; in [0, 1], chance is
            one by the number of classes.
        class_scores: the recipe's ``ACC_<class>``: recall of the class, mean over the speakers that
            have it; None where nobody has.
        speakers: in order of first appearance.
        confusion: shape (classes, classes), utterances of the class (row) taken for (column), all
            speakers together.
        classes: names of its rows and columns.
    """

    uar_score: float
    class_scores: dict[str, float | None]
    speakers: tuple[SpeakerEmotions, ...]
    confusion: NDArray[np.int64]
    classes: tuple[str, ...]


def emotion_scores(
    references: Mapping[str, str],
    predictions: Mapping[str, str],
    speakers: Mapping[str, str],
    *,
    classes: Sequence[str] = EMOTIONS,
    compatibility: Compatibility = "documented",
) -> EmotionScores:
    """Unweighted average recall and recall per class.

    A class of which a speaker has no utterance is left out of that speaker's mean. The official
    code counts it as 0 if it was ever predicted for the speaker, and rounds each speaker's values to
    three decimals of a percent before averaging; ``compatibility="official"`` does the same.
    With a single class a speaker's mean is the recall of that class.

    Args:
        references: utterance → class.
        predictions: utterance → class; exactly the utterances of the references.
        speakers: utterance → speaker, for all of them.
        classes: what a label may be.

    Raises:
        MetricInputError: no utterance; utterances without prediction, without reference or without
            speaker; unknown classes.

    Example:
        >>> labels = {"a": "sad", "b": "sad", "c": "hap"}
        >>> emotion_scores(labels, {**labels, "b": "hap"}, dict.fromkeys(labels, "S")).uar_score
        0.75
    """
    _validate(references, predictions, speakers, classes)
    numbers = {name: number for number, name in enumerate(classes)}
    tables: dict[str, NDArray[np.int64]] = {}
    for utterance, label in references.items():
        table = tables.setdefault(speakers[utterance], np.zeros((len(classes), len(classes)), np.int64))
        table[numbers[label], numbers[predictions[utterance]]] += 1
    per_speaker = tuple(_speaker(name, table, classes, compatibility) for name, table in tables.items())
    return EmotionScores(
        uar_score=float(np.mean([speaker.uar_score for speaker in per_speaker])),
        class_scores={name: _mean_recall(per_speaker, name) for name in classes},
        speakers=per_speaker,
        confusion=np.sum(list(tables.values()), axis=0),
        classes=tuple(classes),
    )


def _speaker(
    name: str, table: NDArray[np.int64], classes: Sequence[str], compatibility: Compatibility
) -> SpeakerEmotions:
    totals = table.sum(axis=1)
    recalls = np.diag(table) / np.maximum(totals, 1)
    counted = totals > 0
    if is_official(compatibility):
        uar = round(float(recalls[counted | (table.sum(axis=0) > 0)].mean()) * 100, 3) / 100
        recalls = np.round(recalls * 100, 3) / 100
    else:
        uar = float(recalls[counted].mean())
    by_class = {
        label: float(recall) if has else None for label, recall, has in zip(classes, recalls, counted, strict=True)
    }
    return SpeakerEmotions(name, uar, by_class, int(totals.sum()))


def _mean_recall(speakers: Sequence[SpeakerEmotions], label: str) -> float | None:
    recalls = [speaker.recall_scores[label] for speaker in speakers]
    known = [recall for recall in recalls if recall is not None]
    return float(np.mean(known)) if known else None


def _validate(
    references: Mapping[str, str],
    predictions: Mapping[str, str],
    speakers: Mapping[str, str],
    classes: Sequence[str],
) -> None:
    faults = []
    if not references:
        faults.append("no utterance at all")
    for what, keys in (
        ("without a prediction", references.keys() - predictions.keys()),
        ("predicted but without a reference", predictions.keys() - references.keys()),
        ("without a speaker", references.keys() - speakers.keys()),
    ):
        if keys:
            faults.append(f"{len(keys)} {what}, first {min(keys)}")
    unknown = sorted({*references.values(), *predictions.values()} - {*classes})
    if unknown:
        faults.append(f"the unknown classes {', '.join(unknown)}")
    if faults:
        raise MetricInputError(
            f"Expected one of {', '.join(classes)} as reference and prediction of each utterance, and its speaker; "
            f"found {'; '.join(faults)}."
        )
