"""What anonymisation leaves of two traits of a speaker: gender and emotion.

**Gender preservation** (`gender_preservation`): does anonymised speech still sound like the gender of its speaker, to
an encoder of speakers? The originals' vectors give one centroid for each gender; an anonymised utterance is taken for
the gender of the nearer one. It is a hint for the comparison of systems by one encoder, not a listening test; speakers
whose originals are already nearer to the other centroid say how far the encoder can be trusted. A speaker's own
originals never take part in judging that speaker.

**Emotion recognition** (`emotion_scores`) as VoicePrivacy 2024 scores it: how much emotion survives. Each speaker is
recognised by the model of the fold that has not seen them; recalls are therefore taken within a speaker and averaged
over speakers, never pooled.

Conventions: shares lie in [0, 1], not in percent; a higher emotion score is better; vectors have shape (n, d).

Source of the emotion scores: ``evaluate_ser.py`` of the VoicePrivacy 2024 recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from common.arrays import Floats, unit_vectors
from common.errors import InputError
from evaluation.metrics.calibration import Compatibility, is_official


@dataclass(frozen=True)
class GenderPreservation:
    """How often utterances are nearest to the centroid of their speaker's gender.

    Attributes:
        preserved: share of the anonymised utterances, each gender alike: the mean over the genders.
        preserved_by_gender: the share for each gender of the source.
        originals: the same mean for the originals themselves: the most that the encoder can show.
        utterances: anonymised utterances judged.
        speakers: of the originals.
    """

    preserved: float
    preserved_by_gender: dict[str, float]
    originals: float
    utterances: int
    speakers: int


def gender_preservation(
    originals: npt.ArrayLike,
    original_speakers: Sequence[str],
    anonymised: npt.ArrayLike,
    anonymised_speakers: Sequence[str],
    gender_of: dict[str, str],
) -> GenderPreservation:
    """Judge each anonymised utterance, and each original, by the originals of all other speakers.

    Vectors are brought to length one; a speaker is the mean of their utterances, a gender the mean of its speakers.

    Args:
        originals: vectors of original utterances, shape (n, d), by one encoder.
        original_speakers: of each of them.
        anonymised: vectors of anonymised utterances, shape (m, d), by the same encoder.
        anonymised_speakers: the source speaker of each of them.
        gender_of: of every speaker; exactly two genders.

    Raises:
        InputError: other shapes, a speaker without a gender, other than two genders, or a gender with fewer than
            two speakers, so that one cannot be left out.
    """
    known, judged = _unit(originals, original_speakers), _unit(anonymised, anonymised_speakers)
    unknown = sorted({*original_speakers, *anonymised_speakers} - set(gender_of))
    if unknown:
        raise InputError(f"Expected the gender of each speaker, found none of {', '.join(unknown)}.")
    speakers = sorted(set(original_speakers))
    means = np.stack([known[np.array(original_speakers) == speaker].mean(axis=0) for speaker in speakers])
    genders = np.array([gender_of[speaker] for speaker in speakers])
    names, counts = np.unique(genders, return_counts=True)
    if len(names) != 2 or counts.min() < 2:
        found = ", ".join(f"{count} of {name}" for name, count in zip(names, counts, strict=True)) or "none"
        raise InputError(f"Expected originals of two or more speakers of each of two genders, found {found}.")
    nearest = {speaker: _centroids(means, genders, speakers, speaker) for speaker in {*speakers, *anonymised_speakers}}
    by_gender = _shares(judged, anonymised_speakers, gender_of, nearest, names)
    own = _shares(known, original_speakers, gender_of, nearest, names)
    return GenderPreservation(
        preserved=float(np.mean(list(by_gender.values()))),
        preserved_by_gender=by_gender,
        originals=float(np.mean(list(own.values()))),
        utterances=len(judged),
        speakers=len(speakers),
    )


def _centroids(means: Floats, genders: npt.NDArray[np.str_], speakers: list[str], without: str) -> dict[str, Floats]:
    others = np.array([speaker != without for speaker in speakers])
    return {str(name): _direction(means[others & (genders == name)].mean(axis=0)) for name in np.unique(genders)}


def _shares(
    vectors: Floats,
    speakers: Sequence[str],
    gender_of: dict[str, str],
    nearest: dict[str, dict[str, Floats]],
    names: npt.NDArray[np.str_],
) -> dict[str, float]:
    """Return the share of utterances nearest to their own gender, for each gender that has utterances."""
    right: dict[str, list[bool]] = {str(name): [] for name in names}
    for vector, speaker in zip(vectors, speakers, strict=True):
        cosines = {name: float(vector @ centroid) for name, centroid in nearest[speaker].items()}
        right.setdefault(gender_of[speaker], []).append(max(cosines, key=cosines.__getitem__) == gender_of[speaker])
    return {name: float(np.mean(each)) for name, each in right.items() if each}


def _unit(vectors: npt.ArrayLike, speakers: Sequence[str]) -> Floats:
    values = np.asarray(vectors, np.float64)
    if values.ndim != 2 or len(values) != len(speakers) or not len(values):
        raise InputError(
            f"Expected one or more vectors, shape (n, d), and a speaker of each, found shape {values.shape} and"
            f" {len(speakers)} speakers."
        )
    return unit_vectors(values, "vectors")


def _direction(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


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
        InputError: no utterance; utterances without prediction, without reference or without
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
    problems = []
    if not references:
        problems.append("no utterance at all")
    for what, keys in (
        ("without a prediction", references.keys() - predictions.keys()),
        ("predicted but without a reference", predictions.keys() - references.keys()),
        ("without a speaker", references.keys() - speakers.keys()),
    ):
        if keys:
            problems.append(f"{len(keys)} {what}, first {min(keys)}")
    unknown = sorted({*references.values(), *predictions.values()} - {*classes})
    if unknown:
        problems.append(f"the unknown classes {', '.join(unknown)}")
    if problems:
        raise InputError(
            f"Expected one of {', '.join(classes)} as reference and prediction of each utterance, and its speaker; "
            f"found {'; '.join(problems)}."
        )
