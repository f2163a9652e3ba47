"""A 2020 or 2022 result file once it was read, and what its numbers have to do with each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evaluation.formats.claims import Claim, ClaimIdentity, Speech
from evaluation.formats.expected_results import ResultKind
from evaluation.formats.problems import Problem
from evaluation.formats.result_lines import Entry

RETRAINED_MODEL, ORIGINAL_MODEL = "user_asr_eval_anon", "asr_eval"


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file that was read.

    Attributes:
        name: the file as its owner knows it.
        edition: such as ``2022``.
        entries: every line that was understood, in file order, repeated ones included.
        claims: the numbers of the expected lines, in file order; of a repeated line the first one.
        repeated: the numbers of the repetitions.
        lines: number of lines.
        problems: everything that could be seen from this file alone.
    """

    name: str
    edition: str
    kind: ResultKind
    entries: tuple[Entry, ...]
    claims: tuple[Claim, ...]
    repeated: tuple[Claim, ...]
    lines: int
    problems: tuple[Problem, ...]


def path_training(path: str) -> Speech | None:
    """The speech that the recognizer of a decoding path was trained on; None where the path does not say."""
    if RETRAINED_MODEL in path.split("/"):
        return Speech.ANONYMISED
    return Speech.ORIGINAL if ORIGINAL_MODEL in path.split("/") else None


def is_member(identity: ClaimIdentity, average: ClaimIdentity) -> bool:
    """Whether a number is of the kind that an average is over, whatever the data set."""
    alike = replace(identity, data_set=average.data_set, gender=average.gender)
    return alike == average and not identity.data_set.startswith("average_")
