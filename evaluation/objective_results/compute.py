"""Every objective number of a submission, from its documents and what the organizer holds.

**What is computed** (`compute_objective`): from scores, counts, hypotheses, matrices and audio what follows from them;
of the rest the reported numbers, marked; then the averages of the edition. What is reported and does not agree, and
what is missing, is said in words.

**Averages** (`add_averages`) come from the numbers of their data sets, with the reported averages beside them. EERs,
pitch and voice enter as they were recomputed, unrounded, for a limit is decided by them; a reported average agrees
where it is the weighted sum of the printed values, as the official script adds them up, or of the unrounded ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.problems import Problem, Severity
from common.progress import Progress, ignore_progress
from evaluation.formats.results import AVERAGE_DECIMALS, Gender, NumberIdentity, ReportedNumber
from evaluation.metrics.averages import weighted_average
from evaluation.metrics.bootstrap import Replicates, bootstrap_mean, weighted_sum
from evaluation.metrics.catalogue import find_metric
from evaluation.objective_results import values
from evaluation.objective_results.detection import PRINTED, add_detection, add_similarity
from evaluation.objective_results.recomputation import MeasuredTest
from evaluation.objective_results.results.checks import is_unlike, published_values
from evaluation.objective_results.results.folders import SystemResults
from evaluation.objective_results.results.results_2022 import make_reported_number, parse_number
from evaluation.objective_results.sources import Sources, UtteranceValues, Work, place
from evaluation.objective_results.track_averages import list_averages, list_identities, member_of
from evaluation.objective_results.word_errors import add_words

_ROUNDING = 0.5 * 10**-AVERAGE_DECIMALS + 1e-9


def add_averages(work: Work) -> None:
    """Every average of the track for each attack model or speech whose data sets are all there."""
    for average in list_averages(work.sources.track):
        for split, weights in average.weights.items():
            for identity in list_identities(work.recipe, average, split):
                members = [work.numbers.get(member_of(work.recipe, identity, name)) for name in weights]
                _add(work, identity, dict(weights), members)


def _add(work: Work, identity: NumberIdentity, weights: dict[str, float], members: list[values.Number | None]) -> None:
    present = [member for member in members if member is not None]
    try:
        value = weighted_average([(one.identity.data_set, one.value) for one in present], weights).value
        printed = weighted_average([(one.identity.data_set, _printed(one)) for one in present], weights).value
    except InputError:
        return  # what is missing is said number by number
    basis = values.Basis.VALUES if all(one.is_recomputed for one in present) else values.Basis.REPORTED
    replicates = _replicates(work, weights, present)

    def agree(reported: ReportedNumber, _: float) -> bool:
        return bool(min(abs(reported.value - printed), abs(reported.value - value)) <= _ROUNDING)

    for reported in work.add(identity, value, basis, len(present), replicates=replicates, agree=agree):
        work.unlike[identity] = _unlike(reported, printed)


def _printed(number: values.Number) -> float:
    """Return a value as the official scripts print it."""
    identity = number.identity
    if (identity.metric, identity.estimator) not in PRINTED:
        return number.value
    return parse_number(make_reported_number(identity, number.value).written)


def _replicates(work: Work, weights: dict[str, float], members: list[values.Number]) -> Replicates | None:
    """Return the resampled average; none where a member has no interval."""
    parts = [(weights[one.identity.data_set], work.replicates.get(one.identity)) for one in members]
    known = [(weight, replicates) for weight, replicates in parts if replicates is not None]
    return weighted_sum(known) if len(known) == len(parts) else None


def _unlike(reported: ReportedNumber, value: float) -> Problem:
    identity = reported.identity
    metric = find_metric(identity.metric, identity.estimator)
    attack = f", {identity.attack_model}" if identity.attack_model else ""
    expected = f"{value:.{AVERAGE_DECIMALS}f} for the average {metric.label} of {identity.data_set}{attack}"
    remedy = "Average the numbers of one run by the weights of the edition."
    return Problem("unlike-average", reported.file, expected, f"“{reported.written}”", remedy, line=reported.line)


PITCH, PITCH_STD, PITCH_ESTIMATOR = "pitch_correlation", "pitch_correlation_std", "praat"
PITCH_SOURCE = "the audio", "unlike-audio"


@dataclass(frozen=True)
class Objective:
    """What was computed of a submission.

    Attributes:
        replicates: resampled values of the numbers with an interval, for paired comparisons of systems.
        missing: what the recipe asks for and is not there or not to be relied on.
        problems: reported numbers that do not agree, and what could not be used.
    """

    numbers: Mapping[NumberIdentity, values.Number]
    replicates: Mapping[NumberIdentity, Replicates]
    missing: tuple[values.MissingNumber, ...]
    problems: tuple[Problem, ...]

    @property
    def disagreements(self) -> int:
        """Return how many numbers are reported otherwise."""
        return sum(number.agrees is False for number in self.numbers.values())


def compute_objective(
    folder: Path,
    system: SystemResults | None,
    sources: Sources,
    *,
    kept: Callable[[MeasuredTest], None] = ignore_progress,
    progress: Progress = ignore_progress,
) -> Objective:
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
    _add_audio(work)
    _add_reported(work)
    progress("Averaging", 0, 0)
    add_averages(work)
    work.problems.keep(work.unlike.values())
    work.problems.keep(_unlike_published(work))
    return Objective(work.numbers, work.replicates, tuple(_missing(work)), work.problems.report())


def put_beside(portal: Objective, teams: Objective, sources: Sources) -> Objective:
    """Return the portal's numbers, those of the team beside them as reported ones.

    What both have from the same audio stays one number. Another attacker or recogniser has no reason to
    agree, so nothing is said of that. What the portal did not compute and no ranking needs is kept as reported.
    """
    numbers = dict(portal.numbers)
    needed = {identity for identity, _ in values.required_numbers(sources.recipe, sources.track)}
    for identity, other in teams.numbers.items():
        own = portal.numbers.get(identity)
        if own is not None and own.basis is values.Basis.AUDIO:
            numbers[identity] = other
        elif own is not None:
            numbers[identity] = replace(own, **_as_reported(other))
        elif identity not in needed and not other.is_average:
            numbers[identity] = replace(other, basis=values.Basis.REPORTED, low=None, high=None, **_as_reported(other))
    return replace(portal, numbers=numbers, problems=(*portal.problems, *teams.problems))


def _as_reported(number: values.Number) -> dict[str, Any]:
    """Return a number of the team as what is reported of another: as its files state it, else as its scores give it."""
    if number.reported is not None:
        return {"reported": number.reported, "reported_text": number.reported_text, "reported_in": number.reported_in}
    text = f"{number.value:.{number.metric.decimals}f}"
    return {"reported": number.value, "reported_text": text, "reported_in": values.BASES[number.basis]}


def _add_pitch(work: Work) -> None:
    for data_set, pitch in work.sources.pitch.items():
        one = work.recipe.data_sets.get(data_set)
        if one is None:
            continue
        identity = NumberIdentity(data_set, Gender(one.gender), PITCH, PITCH_ESTIMATOR)
        if not pitch.values or len(pitch.values) < pitch.expected:
            work.reasons[identity] = (
                f"only {len(pitch.values)} of {pitch.expected} utterances of {data_set} have a pitch correlation"
            )
        else:
            _add_set_pitch(work, identity, pitch)


def _add_set_pitch(work: Work, identity: NumberIdentity, pitch: UtteranceValues) -> None:
    mean, spread = statistics.fmean(pitch.values), statistics.pstdev(pitch.values)
    draws = work.draws(pitch.speakers)
    replicates = bootstrap_mean(pitch.values, pitch.speakers, draws) if draws else None
    n = len(pitch.values)
    work.add(identity, mean, values.Basis.AUDIO, n, spread=spread, replicates=replicates, source=PITCH_SOURCE)
    deviation = NumberIdentity(identity.data_set, identity.gender, PITCH_STD, PITCH_ESTIMATOR)
    work.add(deviation, spread, values.Basis.AUDIO, n, source=PITCH_SOURCE)


def _add_audio(work: Work) -> None:
    """Means of further measures, with intervals over speakers."""
    for identity, found in work.sources.audio.items():
        draws = work.draws(found.speakers)
        replicates = bootstrap_mean(found.values, found.speakers, draws) if draws else None
        mean, n = statistics.fmean(found.values), len(found.values)
        work.add(identity, mean, values.Basis.AUDIO, n, replicates=replicates, source=PITCH_SOURCE)


def _add_reported(work: Work) -> None:
    """What is reported and could not be recomputed, apart from averages: these follow from their data sets."""
    for identity, reported in work.reported():
        if identity in work.numbers or identity in work.reasons or identity.data_set.startswith(values.AVERAGE):
            continue
        if not math.isfinite(reported.value):
            work.reasons[identity] = f"“{reported.written}” in {place(reported)} is no number"
            continue
        size = reported.counts.words if reported.counts else 0
        work.numbers[identity] = values.Number(
            identity,
            reported.value,
            values.Basis.REPORTED,
            size,
            reported=reported.value,
            reported_text=reported.written,
            reported_in=place(reported),
        )


def _unlike_published(work: Work) -> Iterator[Problem]:
    """Yield numbers of original speech with the original models that are not about the published ones."""
    for number in work.numbers.values():
        published = published_values(work.recipe, number.identity)
        if not is_unlike(number.value, published):
            continue
        metric = number.metric
        expected = (
            f"about {published[0]:g} % as published for {metric.label} of {number.identity.data_set}, original speech"
        )
        remedy = "Check models and data: this number does not depend on the anonymiser."
        found = f"{number.value:.{metric.decimals}f} %"
        where = number.reported_in or "the scores of the submission"
        yield Problem("unlike-published", where, expected, found, remedy, Severity.WARNING)


def _missing(work: Work) -> Iterator[values.MissingNumber]:
    """Yield what the recipe asks for and is not there, or is there and cannot be relied on."""
    sources = work.sources
    for identity, is_ranked in values.required_numbers(work.recipe, sources.track):
        number = work.numbers.get(identity)
        reason = work.reasons.get(identity, "")
        if number is None:
            yield values.MissingNumber(values.number_words(identity), reason or values.NOT_COMPUTED, is_ranked)
        elif reason:
            yield values.MissingNumber(values.number_words(identity), reason, is_ranked)
        elif number.basis is values.Basis.REPORTED and identity.metric in values.DETECTION and sources.scores_required:
            yield values.MissingNumber(values.number_words(identity), values.NOT_RECOMPUTED, is_ranked)
        elif number.basis is values.Basis.REPORTED and identity.metric == PITCH and sources.audio_required:
            yield values.MissingNumber(values.number_words(identity), values.NOT_MEASURED, is_ranked)
