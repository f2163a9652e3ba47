"""What the numbers of a submission are computed from: its own files, and what only the organizer holds.

What comes from the organizer's corpus is a function of a data set of the recipe: nothing is read that no file of the
submission asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evaluation.formats.claims import Claim, ClaimIdentity
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem
from evaluation.formats.recomputation import MeasuredTest, agrees
from evaluation.formats.results import SystemResults
from evaluation.formats.scores import TrialTable
from evaluation.metrics.bootstrap import Replicates, SpeakerDraws, draw_speakers
from evaluation.objective.values import Basis, Number
from evaluation.protocols.recipes import DataSet, Recipe, Track

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class PitchOfSet:
    """Pitch correlations of the utterances of a data set, measured on the audio.

    Attributes:
        values: shape (utterances,).
        speakers: of each utterance.
        expected: utterances that the data set has; fewer values are no measure of the set.
    """

    values: Sequence[float]
    speakers: Sequence[str]
    expected: int


def _nothing(_: DataSet) -> None:
    return None


def _no_texts(_: DataSet) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Sources:
    """What the organizer holds of an edition.

    Attributes:
        trials: the trials of a data set; None where the corpus has no list of it.
        speakers: utterance → speaker of a trial set; empty where not known, then there are no intervals.
        references: utterance → transcript of a recognition set; empty where not known.
        pitch: pitch correlations by data set, of those whose audio was measured.
        scores_required, audio_required: whether a claim may not stand for a number of these.
    """

    recipe: Recipe
    track: Track
    trials: Callable[[DataSet], TrialTable | None] = _nothing
    speakers: Callable[[DataSet], Mapping[str, str]] = _no_texts
    references: Callable[[DataSet], Mapping[str, str]] = _no_texts
    pitch: Mapping[str, PitchOfSet] = field(default_factory=dict)
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
        unlike: of each number that is claimed otherwise, in however many places, what is to be said.
    """

    folder: Path
    system: SystemResults
    sources: Sources
    kept: Callable[[MeasuredTest], None]
    progress: Callable[[str, int, int], None]
    numbers: dict[ClaimIdentity, Number] = field(default_factory=dict)
    replicates: dict[ClaimIdentity, Replicates] = field(default_factory=dict)
    reasons: dict[ClaimIdentity, str] = field(default_factory=dict)
    unlike: dict[ClaimIdentity, Problem] = field(default_factory=dict)
    problems: ProblemList = field(default_factory=ProblemList)
    _claims: dict[ClaimIdentity, list[Claim]] = field(default_factory=dict)
    _draws: dict[tuple[str, ...], SpeakerDraws] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for claim in (*self.system.claims, *self.system.repeated):
            self._claims.setdefault(claim.identity, []).append(claim)

    @property
    def recipe(self) -> Recipe:
        return self.sources.recipe

    def claims_of(self, identity: ClaimIdentity) -> Sequence[Claim]:
        """Every place where a number is claimed."""
        return self._claims.get(identity, ())

    def claimed(self) -> Iterator[tuple[ClaimIdentity, Claim]]:
        """Every claimed number with the first place where it stands."""
        for identity, claims in self._claims.items():
            yield identity, claims[0]

    def add(
        self, identity: ClaimIdentity, value: float, basis: Basis, n: int, *, spread: float | None = None,
        replicates: Replicates | None = None, agree: Callable[[Claim, float], bool] = agrees,
    ) -> list[Claim]:  # fmt: skip
        """Add a recomputed number with its claim beside it; the first claim that is another number, if there is one.

        A number that is added again, from a better source, replaces the one before and what was said of it.

        Args:
            agree: whether a claim is the value in print.
        """
        claims = list(self.claims_of(identity))
        unlike = [claim for claim in claims if not agree(claim, value)]
        shown = next(iter([*unlike, *claims]), None)
        low, high = interval(replicates)
        if replicates is not None:
            self.replicates[identity] = replicates
        self.numbers[identity] = Number(
            identity, value, basis, n, spread, low, high,
            claimed=shown.value if shown else None,
            claimed_text=shown.written if shown else "",
            claimed_in=place(shown) if shown else "",
            agrees=not unlike if claims else None,
        )  # fmt: skip
        self.unlike.pop(identity, None)
        return unlike[:1]

    def draws(self, speakers: Sequence[str]) -> SpeakerDraws | None:
        """The resamples of these speakers, the same for every system and test; None of fewer than two."""
        names = tuple(sorted(set(speakers)))
        if len(names) < 2:
            return None
        if names not in self._draws:
            seed = [ord(letter) for letter in " ".join(names)]
            self._draws[names] = draw_speakers(names, RESAMPLES, np.random.default_rng(seed))
        return self._draws[names]


def interval(replicates: Replicates | None) -> tuple[float | None, float | None]:
    """Limits of the 95 % interval; none where the measure is not defined in at least two resamples."""
    if replicates is None or np.count_nonzero(np.isfinite(replicates.resampled)) < 2:
        return None, None
    found = replicates.interval()
    return found.lower, found.upper


def place(claim: Claim) -> str:
    """Where a claim stands."""
    return f"{claim.file}, line {claim.line}"
