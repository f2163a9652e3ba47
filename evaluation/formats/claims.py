"""A number that somebody claims: what it measures, its value as written, and where it was read.

Every format of results is read into `Claim`, so that one number has one identity wherever it stands, and a recomputed
number can be put beside it. Conventions: data sets are named as their Kaldi directories, without the suffix of
anonymised speech (``vctk_dev_trials_f_common``); averages over the sets of a split are ``average_dev`` and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Speech(StrEnum):
    ORIGINAL = "original"
    ANONYMISED = "anonymised"


class Gender(StrEnum):
    FEMALE = "f"
    MALE = "m"
    MIXED = "mixed"  # trials between speakers of any gender
    ALL = "all"  # both together


class AttackModel(StrEnum):
    UNPROTECTED = "unprotected"
    IGNORANT = "ignorant"
    LAZY_INFORMED = "lazy-informed"
    SEMI_INFORMED = "semi-informed"


@dataclass(frozen=True, slots=True)
class ClaimIdentity:
    """What a number measures.

    Attributes:
        training: the speech that the evaluator was trained on; None where there is none (pitch).
        enrolment: the speech of the enrolled speakers; None outside of speaker verification.
        speech: the speech under test.
        metric: such as ``eer``.
        estimator: how, such as ``kaldi``; empty where there is one way only.
    """

    data_set: str
    gender: Gender
    metric: str
    estimator: str = ""
    training: Speech | None = None
    enrolment: Speech | None = None
    speech: Speech = Speech.ANONYMISED

    @property
    def attack_model(self) -> AttackModel | None:
        """Protocol 1.2; None for metrics without an attacker and for anonymised enrolment of original trials."""
        match (self.training, self.enrolment, self.speech):
            case (_, Speech.ORIGINAL, Speech.ORIGINAL):
                return AttackModel.UNPROTECTED
            case (_, Speech.ORIGINAL, Speech.ANONYMISED):
                return AttackModel.IGNORANT
            case (Speech.ORIGINAL, Speech.ANONYMISED, Speech.ANONYMISED):
                return AttackModel.LAZY_INFORMED
            case (Speech.ANONYMISED, Speech.ANONYMISED, Speech.ANONYMISED):
                return AttackModel.SEMI_INFORMED
        return None


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The counts behind a word error rate."""

    errors: int
    words: int
    insertions: int
    deletions: int
    substitutions: int


@dataclass(frozen=True, slots=True)
class Claim:
    """One claimed number.

    Attributes:
        value: as a number; a ZEBRA category counts 0 for “0” and 1 to 6 for A to F.
        unit: ``%``, ``bit``, ``dB`` or empty.
        written: the value as it stands in the file.
        file: the file as its owner knows it.
        line: line number, from 1.
        counts: of a word error rate.
        decoding: path of the decoding that a word error rate names.
        partial: whether some utterance had no hypothesis and was left out.
    """

    identity: ClaimIdentity
    value: float
    unit: str
    written: str
    file: str
    line: int
    counts: WordCounts | None = None
    decoding: str = ""
    partial: bool = False
