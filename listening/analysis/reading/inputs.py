"""What an analysis starts from: its settings, and ratings, boards, transcripts and objective measures in columns.

Conventions: `listener` is the person (all sessions of one person are one listener), as a keyed hash or any other token;
`system` is ``original`` for unprotected speech; text columns are numpy arrays of ``str`` (empty where unknown), numbers
of float64 (NaN where unknown), flags of bool. Rows stand in the order in which they were given by each session.

`sort_rows` gives the rows of a study one order, so that the order of a file's lines changes no digit of any result.
Sums of the same numbers in another order differ in the last digit, and what is fitted or drawn from them in more.
Answers of a session stand by their position; where that is not known, by what was presented. An answer itself never
decides: of two ratings of one item, the lower one would always seem to be the first. They stay as they were given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from common.arrays import Flags, Floats, Ints, Texts
from common.errors import ProblemsError
from listening.analysis.tables import DICTIONARY
from listening.questions import FIRST_PRESET, AskedQuestion, load_preset

if TYPE_CHECKING:
    from pandas import DataFrame

Normalisation = Literal["rank01/avg", "midrank"]
Correction = Literal["holm", "bh"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Attributes:
    normalisation: named and versioned formula of `normalisation`.
    resamples: draws of the listener-cluster bootstrap.
    permutations: of permutation tests and chance lines.
    level: nominal coverage of intervals.
    correction: of p-values over all pairs of systems.
    seed: of every draw.
    least_clusters: with fewer listeners there are points and no interval.
    partial_trials, partial_of_each_kind: scored trials, and of them of original and of anonymised speech, that a
        session which was not finished needs to enter normalised scores; below it counts for raw scores only.
    """

    normalisation: Normalisation = "rank01/avg"
    resamples: int = 2000
    permutations: int = 1000
    level: float = 0.95
    correction: Correction = "holm"
    seed: int = 2022
    least_clusters: int = 10
    partial_trials: int = 20
    partial_of_each_kind: int = 8

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def parse_settings(given: Mapping[str, Any]) -> Settings:
    """Return settings from data, with the usual value where nothing is given.

    Raises:
        ProblemsError: names everything that is unknown or out of range.
    """
    known = {one.name for one in fields(Settings)}
    problems = [
        f"There is no setting named {name!r}; there are {', '.join(sorted(known))}."
        for name in given
        if name not in known
    ]
    values = {name: value for name, value in given.items() if name in known}
    usual = Settings().as_data()
    for name, value in values.items():
        kind = type(usual[name])
        is_right = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
        if not is_right:
            problems.append(f"Expected {name} to be like {usual[name]!r}, found {value!r}.")
    if not problems:
        problems = _out_of_range(Settings(**values))
    if problems:
        raise ProblemsError(problems)
    return Settings(**values)


def _out_of_range(chosen: Settings) -> list[str]:
    problems = []
    for name, about in DICTIONARY["settings"].items():
        value = getattr(chosen, name)
        if "choices" in about and value not in about["choices"]:
            problems.append(f"Expected {name} as {' or '.join(about['choices'])}, found {value!r}.")
        elif "lowest" in about and not about["lowest"] <= value <= about["highest"]:
            problems.append(f"Expected {name} from {about['lowest']} to {about['highest']}, found {value}.")
    return problems


Scale = Mapping[str, tuple[float, float]]  # lowest and highest rating by task
ORIGINAL = "original"
DTYPES: Mapping[str, type[Any]] = {"Texts": np.str_, "Ints": np.int64, "Floats": np.float64, "Flags": np.bool_}
SCORED, PRACTICE, GOLD, BRIDGE = "scored", "practice", "gold", "bridge"
# Tasks in which voices are compared, where nothing else is known of what was asked.
COMPARING = frozenset(one.key for one in load_preset(FIRST_PRESET).questions if one.compares_voices)


@dataclass(frozen=True, eq=False)
class InputColumns:
    """Columns of equal length."""

    @classmethod
    def make(cls, columns: Any) -> Self:
        """Return columns, by their names, as arrays of the kinds that they are to have."""
        return cls(*(np.array(columns[one.name], DTYPES[str(one.type)]) for one in fields(cls)))

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Any]]) -> Self:
        """Return rows, whose cells stand in the order of the columns, as these."""
        columns = zip(*rows, strict=True) if rows else ([] for _ in fields(cls))
        return cls.make(dict(zip([one.name for one in fields(cls)], columns, strict=True)))

    def __len__(self) -> int:
        return int(getattr(self, fields(self)[0].name).size)

    def rows(self, chosen: Flags | Ints) -> Any:
        """Return the same columns with the chosen rows: a mask, or their numbers."""
        return type(self)(*(getattr(self, one.name)[chosen] for one in fields(self)))


@dataclass(frozen=True, eq=False)
class Ratings(InputColumns):
    """One row a rating.

    Attributes:
        listener, session: who, and in which visit.
        task: key of the question.
        system: `ORIGINAL` or a name.
        is_target: 1 where both samples are of one speaker, 0 where not, -1 where no voices are compared.
        item: what was presented; equal for everybody who rated it.
        utterance, speaker, gender: of sample A (gender ``f``, ``m`` or empty). `enrolment`: sample B, empty without.
        rating: on the scale of the study.
        position: of the trial in its session, from 1; 0 unknown.
        purpose: `SCORED`, `BRIDGE`, `GOLD` or `PRACTICE`; only scored ones enter scores.
        is_finished: whether the session was.
        excluded: why the session is left out by a rule in force; empty where it counts.
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
class Placements(InputColumns):
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
class Transcripts(InputColumns):
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
class Answers(InputColumns):
    """One row a recording in an answer to a question of any kind: a rated one, or each of those that were compared.

    Attributes:
        question: what was asked; its kind is in `StudyFacts.answered`.
        item: what is said in the recording; equal for all conditions of it.
        condition: whose version of the recording it is.
        slot: where it was on the screen, such as ``A``, ``B`` and ``X``; empty where there was one.
        value: the answer, as text; of a comparison the same in each of its rows.
        order: in which recordings of the trial were first heard, from 1; 0 unknown.
        position: of the trial in its session, from 1; 0 unknown.
        truth: what a right answer would have been; empty where none is.
        excluded: why the session is left out by a rule in force; empty where it counts.
    """

    listener: Texts
    session: Texts
    question: Texts
    item: Texts
    condition: Texts
    slot: Texts
    value: Texts
    order: Ints
    position: Ints
    truth: Texts
    excluded: Texts

    def as_frame(self) -> DataFrame:
        """Return the same columns as a table of pandas."""
        from pandas import DataFrame

        return DataFrame({one.name: getattr(self, one.name) for one in fields(self)})


@dataclass(frozen=True, eq=False)
class ObjectiveRows(InputColumns):
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
        form: ``rating``, ``linkability``, ``transcription``, or ``answers`` where questions are of any kind.
        tasks: keys of the questions in the order of asking.
        scale: lowest and highest rating by task.
        labels: what a system is called on pages, by its name; itself where missing.
        questions: what was asked, with its wording.
        design: seed, fingerprint and version of the design, and whatever else makes the study reproducible: of MUSHRA
            which condition is the 7 kHz ``anchor``; of recordings of one's own what their ``original`` is called; of
            answers from elsewhere their ``questions``, see `answered`.
    """

    name: str
    title: str
    form: str
    tasks: tuple[str, ...]
    scale: Scale
    is_simulated: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    design: Mapping[str, Any] = field(default_factory=dict)
    attribution: str = ""
    questions: tuple[AskedQuestion, ...] = ()

    @property
    def comparing(self) -> frozenset[str]:
        """Return the tasks in which voices are compared."""
        return frozenset(one.key for one in self.questions if one.compares_voices) if self.questions else COMPARING

    @property
    def original(self) -> str:
        """Return what unprotected speech is called in answers and transcripts."""
        return str(self.design.get("original", ORIGINAL))

    @property
    def answered(self) -> Mapping[str, Mapping[str, Any]]:
        """Return by question the kind of its answers and what that needs to know (`answer_values`)."""
        usual = {"reference": self.original, "anchor": self.design.get("anchor", "")}
        asked = {one.key: {"kind": one.analysed_as, "scale": list(one.ends), **usual} for one in self.questions}
        return asked or self.design.get("questions", {})

    def as_data(self) -> dict[str, Any]:
        scale = {task: list(ends) for task, ends in self.scale.items()}
        questions = [one.as_data() for one in self.questions]
        return {**asdict(self), "tasks": list(self.tasks), "scale": scale, "questions": questions}


@dataclass(frozen=True, eq=False)
class Inputs:
    """A study as it is analysed. `exclusions`: rule, session, reason, whether it stands: for the reader of a bundle."""

    study: StudyFacts
    ratings: Ratings | None = None
    placements: Placements | None = None
    transcripts: Transcripts | None = None
    answers: Answers | None = None
    objective: ObjectiveRows | None = None
    exclusions: tuple[tuple[str, str, str, bool], ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)  # what evaluators read, by "kind-language-version.md"


RAW, NORMALISED = "raw", "normalised"  # kinds of scores


@dataclass(frozen=True, eq=False)
class Scored:
    """The ratings that count for one kind of scores, and their scores. Made by `scoring`; sections only read it.

    Attributes:
        kind: ``raw`` or ``normalised``.
        ratings: scored ones of sessions that count.
        score: shape (ratings,), the rating, or its normalised rank in [0, 1].
        listener: shape (ratings,), number of the listener in `listeners`.
        listeners: names, sorted.
        scale: lowest and highest score by task, in the order of asking.
        comparing: the tasks in which A was judged against B.
    """

    kind: str
    ratings: Ratings
    score: Floats
    listener: Ints
    listeners: Texts
    scale: Scale
    comparing: frozenset[str]

    @property
    def tasks(self) -> list[str]:
        """Return the tasks in the order of asking."""
        return [task for task in self.scale if (self.ratings.task == task).any()]

    def systems(self, task: str) -> list[str]:
        """Return the systems by name, the original first."""
        names = np.unique(self.ratings.system[self.ratings.task == task]).tolist()
        return sorted(names, key=lambda name: (name != ORIGINAL, name))


_Part = TypeVar("_Part", Ratings, Placements, Transcripts, Answers, ObjectiveRows)
_FIRST = ("listener", "session", "position", "board", "item", "system")
_ANSWERS = frozenset({"rating", "x", "y", "group", "declared", "text", "nothing", "value"})


def sort_rows(inputs: Inputs) -> Inputs:
    """Return the same study with the rows of each part sorted by who, when and what; equal ones as they were."""
    parts = {name: getattr(inputs, name) for name in ("ratings", "placements", "transcripts", "answers", "objective")}
    return replace(inputs, **{name: _sorted(part) for name, part in parts.items() if part is not None})


def _sorted(part: _Part) -> _Part:
    names = [field.name for field in fields(part)]
    by = [name for name in _FIRST if name in names]
    by += [name for name in names if name not in by and name not in _ANSWERS]
    rows: _Part = part.rows(np.lexsort([getattr(part, name) for name in reversed(by)]))
    return rows
