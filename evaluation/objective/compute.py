"""Every objective number of a submission, from its documents and what the organizer holds.

From scores, counts, hypotheses, matrices and audio what follows from them; of the rest the claims, marked as such; then
the averages of the edition. What is claimed and does not agree, and what is missing, is said in words.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluation.formats.claims import ClaimIdentity, Gender
from evaluation.formats.problems import Problem, Severity
from evaluation.formats.recomputation import MeasuredTest, RecomputedNumber, unlike
from evaluation.formats.result_checks import BASELINE_TOLERANCE
from evaluation.formats.results import SystemResults
from evaluation.formats.results_2022 import new_claim
from evaluation.metrics.bootstrap import Replicates, bootstrap_mean
from evaluation.objective.averages import add_averages
from evaluation.objective.detection import add_detection
from evaluation.objective.similarity import add_similarity
from evaluation.objective.sources import PitchOfSet, Sources, Work, place
from evaluation.objective.values import (
    AVERAGE,
    DETECTION,
    Basis,
    Missing,
    Number,
    number_words,
    published_value,
    required_numbers,
)
from evaluation.objective.words import add_words

PITCH, PITCH_STD, PITCH_ESTIMATOR = "pitch_correlation", "pitch_correlation_std", "praat"


@dataclass(frozen=True)
class Objective:
    """What was computed of a submission.

    Attributes:
        replicates: resampled values of the numbers with an interval, for paired comparisons of systems.
        missing: what the recipe asks for and is not there or not to be relied on.
        problems: claims that do not agree, and what could not be used.
    """

    numbers: Mapping[ClaimIdentity, Number]
    replicates: Mapping[ClaimIdentity, Replicates]
    missing: tuple[Missing, ...]
    problems: tuple[Problem, ...]

    @property
    def disagreements(self) -> int:
        """How many numbers are claimed otherwise."""
        return sum(number.agrees is False for number in self.numbers.values())


def _keep_nothing(test: MeasuredTest) -> None:
    pass


def _say_nothing(stage: str, done: int, total: int) -> None:
    pass


def compute_objective(
    folder: Path, system: SystemResults | None, sources: Sources, *,
    kept: Callable[[MeasuredTest], None] = _keep_nothing, progress: Callable[[str, int, int], None] = _say_nothing,
) -> Objective:  # fmt: skip
    """Compute everything that the documents in a folder and the organizer's sources give.

    Args:
        folder: the documents of one submission, laid out as it sent them.
        system: what was read from them; None of a submission without results.
        kept: takes each measured verification test.
        progress: is told stage, done, total.
    """
    work = Work(folder, system or SystemResults("", "", (), (), (), (), ()), sources, kept, progress)
    add_detection(work)
    progress("Counting words", 0, 0)
    add_words(work)
    add_similarity(work)
    _add_pitch(work)
    _add_claims(work)
    progress("Averaging", 0, 0)
    add_averages(work)
    work.problems.keep(work.unlike.values())
    work.problems.keep(_unlike_published(work))
    return Objective(work.numbers, work.replicates, tuple(_missing(work)), work.problems.report())


def _add_pitch(work: Work) -> None:
    for data_set, pitch in work.sources.pitch.items():
        one = work.recipe.data_sets.get(data_set)
        if one is None:
            continue
        identity = ClaimIdentity(data_set, Gender(one.gender), PITCH, PITCH_ESTIMATOR)
        if not pitch.values or len(pitch.values) < pitch.expected:
            work.reasons[identity] = (
                f"only {len(pitch.values)} of {pitch.expected} utterances of {data_set} have a pitch correlation"
            )
        if pitch.values:
            _add_pitch_of(work, identity, pitch)


def _add_pitch_of(work: Work, identity: ClaimIdentity, pitch: PitchOfSet) -> None:
    mean, spread = statistics.fmean(pitch.values), statistics.pstdev(pitch.values)
    draws = work.draws(pitch.speakers)
    replicates = bootstrap_mean(pitch.values, pitch.speakers, draws) if draws else None
    found = work.add(identity, mean, Basis.AUDIO, len(pitch.values), spread=spread, replicates=replicates)
    deviation = ClaimIdentity(identity.data_set, identity.gender, PITCH_STD, PITCH_ESTIMATOR)
    found += work.add(deviation, spread, Basis.AUDIO, len(pitch.values))
    for claim in found:
        value = mean if claim.identity == identity else spread
        written = new_claim(claim.identity, value).written
        work.unlike[claim.identity] = unlike(RecomputedNumber(claim, "the audio", value, written), "unlike-audio")


def _add_claims(work: Work) -> None:
    """What is claimed and could not be recomputed, apart from averages: these follow from their data sets."""
    for identity, claim in work.claimed():
        if identity in work.numbers or identity.data_set.startswith(AVERAGE):
            continue
        if not math.isfinite(claim.value):
            work.reasons[identity] = f"“{claim.written}” in {place(claim)} is no number"
            continue
        size = claim.counts.words if claim.counts else 0
        work.numbers[identity] = Number(
            identity, claim.value, Basis.CLAIM, size,
            claimed=claim.value, claimed_text=claim.written, claimed_in=place(claim),
        )  # fmt: skip


def _unlike_published(work: Work) -> Iterator[Problem]:
    """Numbers of original speech with the original models that are not about the published ones."""
    for number in work.numbers.values():
        published = published_value(work.recipe, number)
        if published is None or abs(number.value - published) <= BASELINE_TOLERANCE + 1e-9:
            continue
        metric = number.metric
        expected = (
            f"about {published:g} % as published for {metric.label} of {number.identity.data_set}, original speech"
        )
        remedy = "Check models and data: this number does not depend on the anonymiser."
        found = f"{number.value:.{metric.decimals}f} %"
        where = number.claimed_in or "the scores of the submission"
        yield Problem("unlike-published", where, expected, found, remedy, Severity.WARNING)


def _missing(work: Work) -> Iterator[Missing]:
    """What the recipe asks for and is not there, or is there and cannot be relied on."""
    sources = work.sources
    for identity, is_ranked in required_numbers(work.recipe, sources.track):
        number = work.numbers.get(identity)
        reason = work.reasons.get(identity, "")
        if number is None:
            yield Missing(number_words(identity), reason or "nothing that was handed in gives it", is_ranked)
        elif reason:
            yield Missing(number_words(identity), reason, is_ranked)
        elif number.basis is Basis.CLAIM and identity.metric in DETECTION and sources.scores_required:
            reason = "it is claimed, but there are no scores or no official trials to recompute it from"
            yield Missing(number_words(identity), reason, is_ranked)
        elif number.basis is Basis.CLAIM and identity.metric == PITCH and sources.audio_required:
            reason = "it is claimed, but the audio to recompute it from was not measured"
            yield Missing(number_words(identity), reason, is_ranked)
