"""Gender preservation: does anonymised speech still sound like the gender of its speaker, to an encoder of speakers?

The originals' vectors give one centroid for each gender; an anonymised utterance is taken for the gender of the nearer
one. What it is worth: a hint for the comparison of systems by one encoder, not a listening test; speakers whose
originals are already nearer to the other centroid say how far the encoder can be trusted. Conventions: vectors have
shape (n, d); shares lie in [0, 1]; a speaker's own originals never take part in judging that speaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.metrics.arrays import unit_vectors
from evaluation.metrics.errors import MetricInputError

Floats = npt.NDArray[np.float64]


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

    def sentence(self) -> str:
        """The finding and what it is worth."""
        parts = ", ".join(f"{gender} {share:.0%}" for gender, share in self.preserved_by_gender.items())
        return (
            f"{self.preserved:.0%} of {self.utterances} anonymised utterances are nearer to the voices of their"
            f" speaker's gender ({parts}); of the originals {self.originals:.0%}. A prediction by an encoder of"
            f" speakers from {self.speakers} speakers, not a judgement by listeners."
        )


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
        MetricInputError: other shapes, a speaker without a gender, other than two genders, or a gender with fewer than
            two speakers, so that one cannot be left out.
    """
    known, judged = _unit(originals, original_speakers), _unit(anonymised, anonymised_speakers)
    unknown = sorted({*original_speakers, *anonymised_speakers} - set(gender_of))
    if unknown:
        raise MetricInputError(f"Expected the gender of each speaker, found none of {', '.join(unknown)}.")
    speakers = sorted(set(original_speakers))
    means = np.stack([known[np.array(original_speakers) == speaker].mean(axis=0) for speaker in speakers])
    genders = np.array([gender_of[speaker] for speaker in speakers])
    names, counts = np.unique(genders, return_counts=True)
    if len(names) != 2 or counts.min() < 2:
        found = ", ".join(f"{count} of {name}" for name, count in zip(names, counts, strict=True)) or "none"
        raise MetricInputError(f"Expected originals of two or more speakers of each of two genders, found {found}.")
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
    """The share of utterances nearest to their own gender, for each gender that has utterances."""
    right: dict[str, list[bool]] = {str(name): [] for name in names}
    for vector, speaker in zip(vectors, speakers, strict=True):
        cosines = {name: float(vector @ centroid) for name, centroid in nearest[speaker].items()}
        right.setdefault(gender_of[speaker], []).append(max(cosines, key=cosines.__getitem__) == gender_of[speaker])
    return {name: float(np.mean(each)) for name, each in right.items() if each}


def _unit(vectors: npt.ArrayLike, speakers: Sequence[str]) -> Floats:
    values = np.asarray(vectors, np.float64)
    if values.ndim != 2 or len(values) != len(speakers) or not len(values):
        raise MetricInputError(
            f"Expected one or more vectors, shape (n, d), and a speaker of each, found shape {values.shape} and"
            f" {len(speakers)} speakers."
        )
    return unit_vectors(values, "vectors")


def _direction(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
