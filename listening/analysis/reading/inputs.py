"""What an analysis starts from, in columns of equal length: ratings, boards, transcripts, and objective measures.

Conventions: `listener` is the person (all sessions of one person are one listener), as a keyed hash or any other token;
`system` is ``original`` for unprotected speech; text columns are numpy arrays of ``str`` (empty where unknown), numbers
of float64 (NaN where unknown), flags of bool. Rows stand in the order in which they were given by each session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

ORIGINAL = "original"
RATED = ("verifiability", "naturalness", "intelligibility")
SCORED, PRACTICE, GOLD, BRIDGE = "scored", "practice", "gold", "bridge"

Texts = NDArray[np.str_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns of equal length."""

    def __len__(self) -> int:
        return int(getattr(self, fields(self)[0].name).size)

    def rows(self, chosen: Flags | Ints) -> Any:
        """The same columns with the chosen rows: a mask, or their numbers."""
        return type(self)(*(getattr(self, one.name)[chosen] for one in fields(self)))


@dataclass(frozen=True, eq=False)
class Ratings(_Columns):
    """One row a rating.

    Attributes:
        listener, session: who, and in which visit.
        task: one of `RATED`.
        system: `ORIGINAL` or a name.
        is_target: 1 where both samples are of one speaker, 0 where not, -1 where no voices are compared.
        item: what was presented; equal for everybody who rated it.
        utterance, speaker, gender: of sample A (gender ``f``, ``m`` or empty). `enrolment`: sample B, empty without.
        rating: on the scale of the study.
        position: of the trial in its session, from 1; 0 unknown.
        purpose: `SCORED`, `BRIDGE`, `GOLD` or `PRACTICE`; only scored ones enter scores.
        is_finished: whether the session was.
        excluded: why the session is left out by a standing rule; empty where it counts.
    """

    listener: Texts
    session: Texts
    task: Texts
    system: Texts
    is_target: Ints
    item: Texts
    utterance: Texts
    enrolment: Texts
    speaker: Texts
    gender: Texts
    rating: Floats
    position: Ints
    purpose: Texts
    is_finished: Flags
    excluded: Texts


@dataclass(frozen=True, eq=False)
class Placements(_Columns):
    """One row a sample placed on a board.

    Attributes:
        board: what was presented together; equal for everybody who had it.
        slot: of the sample on it.
        x, y: in [0, 1]; y is NaN on boards of one dimension.
        group: as drawn by the listener, empty where none are drawn. `declared`: how many speakers the listener counted.
    """

    listener: Texts
    session: Texts
    board: Texts
    slot: Texts
    system: Texts
    utterance: Texts
    speaker: Texts
    x: Floats
    y: Floats
    group: Texts
    declared: Ints
    excluded: Texts


@dataclass(frozen=True, eq=False)
class Transcripts(_Columns):
    """One row a transcript: `text` as typed, `reference` what was said; `nothing`: the listener said so."""

    listener: Texts
    session: Texts
    item: Texts
    system: Texts
    utterance: Texts
    speaker: Texts
    text: Texts
    reference: Texts
    nothing: Flags
    excluded: Texts


@dataclass(frozen=True, eq=False)
class Objective(_Columns):
    """One row an utterance of a system: what was computed on it.

    Attributes:
        errors, words: word errors of the recogniser and words of the reference; NaN where not known.
        pitch_correlation: in [-1, 1].
    """

    system: Texts
    utterance: Texts
    errors: Floats
    words: Floats
    pitch_correlation: Floats


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """Which study this is.

    Attributes:
        form: ``rating``, ``linkability`` or ``transcription``.
        tasks: in the order of asking.
        scale: lowest and highest rating by task.
        labels: what a system is called on pages, by its name; itself where missing.
        design: seed, fingerprint and version of the design, and whatever else makes the study reproducible.
    """

    name: str
    title: str
    form: str
    tasks: tuple[str, ...]
    scale: Mapping[str, tuple[float, float]]
    is_simulated: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    design: Mapping[str, Any] = field(default_factory=dict)
    attribution: str = ""

    def as_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "form": self.form,
            "tasks": list(self.tasks),
            "scale": {task: list(ends) for task, ends in self.scale.items()},
            "is_simulated": self.is_simulated,
            "labels": dict(self.labels),
            "design": dict(self.design),
            "attribution": self.attribution,
        }


@dataclass(frozen=True, eq=False)
class Inputs:
    """A study as it is analysed. `exclusions`: rule, session, reason, whether it stands: for the reader of a bundle."""

    study: StudyFacts
    ratings: Ratings | None = None
    placements: Placements | None = None
    transcripts: Transcripts | None = None
    objective: Objective | None = None
    exclusions: tuple[tuple[str, str, str, bool], ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)  # what evaluators read, by "kind-language-version.md"


@dataclass(frozen=True, eq=False)
class Scored:
    """The ratings that count for one kind of scores, and their scores. Made by `scoring`; sections only read it.

    Attributes:
        kind: ``raw`` or ``normalised``.
        ratings: scored ones of sessions that count.
        score: shape (ratings,), the rating, or its normalised rank in [0, 1].
        listener: shape (ratings,), number of the listener in `listeners`.
        listeners: names, sorted.
        scale: lowest and highest score by task.
    """

    kind: str
    ratings: Ratings
    score: Floats
    listener: Ints
    listeners: Texts
    scale: Mapping[str, tuple[float, float]]

    @property
    def tasks(self) -> list[str]:
        """In the order of `RATED`."""
        return [task for task in RATED if (self.ratings.task == task).any()]

    def systems(self, task: str) -> list[str]:
        """The original first, then by name."""
        names = np.unique(self.ratings.system[self.ratings.task == task]).tolist()
        return sorted(names, key=lambda name: (name != ORIGINAL, name))
