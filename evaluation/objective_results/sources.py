"""What the numbers of a submission are computed from: its own files, and what only the organizer holds.

What comes from the organizer's corpus is a function of a data set of the recipe: nothing is read that no file of the
submission asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.problems import Problem, ProblemList
from evaluation.attackers.back_ends import BackEnd
from evaluation.formats.results import AttackModel, NumberIdentity, ReportedNumber, Speech
from evaluation.formats.scores import TrialTable
from evaluation.metrics.bootstrap import Replicates, SpeakerDraws, draw_speakers
from evaluation.objective_results.recomputation import MeasuredTest, RecomputedNumber, agrees, unlike
from evaluation.objective_results.results.folders import SystemResults
from evaluation.objective_results.results.results_2022 import make_reported_number
from evaluation.objective_results.values import Basis, Number
from evaluation.protocols.recipes import DataSet, Recipe, Track

Vector = NDArray[np.float32]
Vectors = Mapping[str, Vector]  # of some utterances, by name
VectorSource = Callable[[str, Speech], Vectors]  # of a data set in one form
Scorer = Callable[[Mapping[str, NDArray[np.float32]], Vectors, Sequence[tuple[str, str]]], NDArray[np.floating]]

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class UtteranceValues:
    """A measure of the utterances of a data set, measured on the audio.

    Attributes:
        values: shape (utterances,).
        speakers: of each utterance.
        expected: utterances that the data set has; fewer pitch correlations are no measure of the set.
    """

    values: Sequence[float]
    speakers: Sequence[str]
    expected: int


def _nothing(_: DataSet) -> None:
    return None


def _no_names(_: object) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Sources:
    """What the organizer holds of an edition.

    Attributes:
        read_trials: the trials of a data set; None where the corpus has no list of it.
        find_speakers: utterance → speaker of a trial set; empty where not known, then there are no intervals.
        find_references: utterance → transcript of a recognition set; empty where not known.
        pitch: pitch correlations by data set, of those whose audio was measured.
        audio: further measures of the audio, whose mean is a number; of a sample, too.
        partial_voices: why the similarity matrices of a trial set are those of a part of it, by its name.
        scores_required, audio_required: whether a reported number may not stand for a number of these.
    """

    recipe: Recipe
    track: Track
    read_trials: Callable[[DataSet], TrialTable | None] = _nothing
    find_speakers: Callable[[DataSet], Mapping[str, str]] = _no_names
    find_references: Callable[[DataSet], Mapping[str, str]] = _no_names
    pitch: Mapping[str, UtteranceValues] = field(default_factory=dict)
    audio: Mapping[NumberIdentity, UtteranceValues] = field(default_factory=dict)
    partial_voices: Mapping[str, str] = field(default_factory=dict)
    scores_required: bool = False
    audio_required: bool = False


@dataclass
class Work:
    """What is known so far while the numbers of one submission are computed.

    Attributes:
        folder: where its documents lie.
        system: what was read from them.
        kept: takes each measured test, to store its scores.
        progress: stage, done, total.
        replicates: resampled values of numbers that have an interval, in their unit.
        reasons: why a number is missing or not to be relied on.
        unlike: of each number that is reported otherwise, in however many places, what is to be said.
    """

    folder: Path
    system: SystemResults
    sources: Sources
    kept: Callable[[MeasuredTest], None]
    progress: Callable[[str, int, int], None]
    numbers: dict[NumberIdentity, Number] = field(default_factory=dict)
    replicates: dict[NumberIdentity, Replicates] = field(default_factory=dict)
    reasons: dict[NumberIdentity, str] = field(default_factory=dict)
    unlike: dict[NumberIdentity, Problem] = field(default_factory=dict)
    problems: ProblemList = field(default_factory=ProblemList)
    _reported: dict[NumberIdentity, list[ReportedNumber]] = field(default_factory=dict)
    _draws: dict[tuple[str, ...], SpeakerDraws] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for reported in (*self.system.reported_numbers, *self.system.repeated):
            self._reported.setdefault(reported.identity, []).append(reported)

    @property
    def recipe(self) -> Recipe:
        return self.sources.recipe

    def find_reported(self, identity: NumberIdentity) -> Sequence[ReportedNumber]:
        """Return every place where a number is reported."""
        return self._reported.get(identity, ())

    def reported(self) -> Iterator[tuple[NumberIdentity, ReportedNumber]]:
        """Yield every reported number with the first place where it stands."""
        for identity, reported_numbers in self._reported.items():
            yield identity, reported_numbers[0]

    def add(
        self,
        identity: NumberIdentity,
        value: float,
        basis: Basis,
        n: int,
        *,
        spread: float | None = None,
        replicates: Replicates | None = None,
        agree: Callable[[ReportedNumber, float], bool] = agrees,
        source: tuple[str, str] | None = None,
    ) -> list[ReportedNumber]:
        """Add a recomputed number with the reported one beside it.

        Returns the first reported number that differs, if there is one.

        A number that is added again, from a better source, replaces the one before and what was said of it.

        Args:
            agree: whether a reported number is the value in print.
            source: what the number was recomputed from, and the code of the problem that a reported one differs.
        """
        reported_numbers = list(self.find_reported(identity))
        differing = [reported for reported in reported_numbers if not agree(reported, value)]
        shown = next(iter([*differing, *reported_numbers]), None)
        low, high = interval(replicates)
        if replicates is not None:
            self.replicates[identity] = replicates
        self.numbers[identity] = Number(
            identity,
            value,
            basis,
            n,
            spread,
            low,
            high,
            reported=shown.value if shown else None,
            reported_text=shown.written if shown else "",
            reported_in=place(shown) if shown else "",
            agrees=not differing if reported_numbers else None,
        )
        self.unlike.pop(identity, None)
        if differing and source:
            written = make_reported_number(identity, value).written
            self.unlike[identity] = unlike(RecomputedNumber(differing[0], source[0], value, written), source[1])
        return differing[:1]

    def draws(self, speakers: Sequence[str]) -> SpeakerDraws | None:
        """Return the resamples of these speakers, the same for every system and test; None of fewer than two."""
        names = tuple(sorted(set(speakers)))
        if len(names) < 2:
            return None
        if names not in self._draws:
            self._draws[names] = draw_speakers(names, RESAMPLES)
        return self._draws[names]


def interval(replicates: Replicates | None) -> tuple[float | None, float | None]:
    """Return limits of the 95 % interval; none where it cannot be estimated."""
    found = replicates.find_interval() if replicates is not None else None
    return (None, None) if found is None else (found.lower, found.upper)


def place(reported: ReportedNumber) -> str:
    """Return where a reported number stands."""
    return f"{reported.file}, line {reported.line}"


@dataclass(frozen=True)
class Attacker:
    """Who attacks, with what.

    Attributes:
        name: as in the folder of its scores.
        training: the speech that it was trained on; what it may call itself follows from it.
        vectors: of each data set, original and anonymised.
        speakers: utterance → speaker of a data set.
        score: scores of pairs of model and utterance; a model is the vectors of its utterances, shape (n, d).
        trials: the trial sets that it attacks.
        genders: speaker → ``f`` or ``m`` of a data set; empty where they are not known.
        attacks: those that it makes; all that its training allows where none is named.
        knows_voices: whether its vectors are those of voices, so that G_VD and the extras mean something.
        back_end: that compares the voices of single utterances; by cosine where None.
    """

    name: str
    training: Speech
    vectors: VectorSource
    speakers: Callable[[str], Mapping[str, str]]
    score: Scorer
    trials: Sequence[DataSet]
    genders: Callable[[str], Mapping[str, str]] = _no_names
    attacks: Sequence[AttackModel] = ()
    knows_voices: bool = True
    back_end: BackEnd | None = None
