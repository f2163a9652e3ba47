"""Reads the objective numbers of submissions for pages, board and API: of each its newest finished run, nothing else.

Two queries whatever the number of submissions. What a run could not compute, and why, stands in its job's result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q

from evaluation.figures.histogram import MINIMUM_PITCH_CORRELATION, Threshold
from evaluation.formats.claims import ClaimIdentity, Gender, Speech
from evaluation.metrics.catalogue import PITCH_CORRELATION
from evaluation.models import EvaluationRun, MetricValue, ScoreSet
from evaluation.objective.values import (
    AVERAGE,
    Basis,
    Missing,
    Number,
    ObjectiveValues,
    number_words,
    required_numbers,
)
from evaluation.protocols.recipes import Recipe, Track
from portal.challenges.models import Edition
from portal.jobs.models import State
from portal.submissions.models import Submission

COLUMNS = (
    "run_id", "data_set", "gender", "metric", "estimator", "training", "enrolment", "speech", "value", "basis", "n",
    "spread", "low", "high", "claimed", "claimed_text", "claimed_in", "agrees",
)  # fmt: skip
GENDERS = {
    MetricValue.Gender.ALL.value: Gender.ALL,
    MetricValue.Gender.FEMALE.value: Gender.FEMALE,
    MetricValue.Gender.MALE.value: Gender.MALE,
    MetricValue.Gender.MIXED.value: Gender.MIXED,
}
NOT_EVALUATED = "the submission has not been evaluated yet"
NOT_COMPUTED = "nothing that was handed in gives it"


class Extent(StrEnum):
    """How much of a submission's numbers to read."""

    RANKED = "ranked"  # averages, and the data sets of gates
    ALL = "all"


def track_of(edition: Edition) -> Track:
    """The track of the edition's recipe that it runs."""
    recipe = edition.recipe
    return recipe.tracks[edition.track] if edition.track else recipe.track


def pitch_minimum(edition: Edition | None) -> Threshold | None:
    """What an edition asks of the pitch correlation, as a figure names it; that of 2022 for files of no edition."""
    if edition is None:
        return MINIMUM_PITCH_CORRELATION
    ranking = track_of(edition).ranking
    gate = next((one for one in ranking.gates if one.metric == PITCH_CORRELATION.key), None) if ranking else None
    if gate is None:
        return None
    return Threshold(gate.minimum, "minimum" if edition.recipe_text else f"{edition.recipe.edition} minimum")


def objective_run(submission: Submission, as_of: datetime | None = None) -> EvaluationRun | None:
    """The newest finished objective run of a submission, or the newest that had finished by a time."""
    return newest_runs([submission.pk], as_of).get(submission.pk)


def newest_runs(submissions: Iterable[int], as_of: datetime | None = None) -> dict[int, EvaluationRun]:
    """`objective_run` of each submission that has one, by primary key, in one query."""
    runs = EvaluationRun.objects.filter(
        submission__in=list(submissions), kind=EvaluationRun.Kind.OBJECTIVE, job__state=State.SUCCEEDED
    )
    if as_of is not None:
        runs = runs.filter(job__finished_at__lte=as_of)
    related = runs.select_related("job", "submission__system__edition").defer("job__problems", "job__parameters")
    return {run.submission_id: run for run in related.order_by("pk")}


def objective_values(
    submissions: Iterable[Submission], *, extent: Extent = Extent.ALL, as_of: datetime | None = None
) -> dict[int, ObjectiveValues]:
    """The numbers of every submission given, by primary key, in two queries whatever their number.

    Args:
        submissions: each with its system and edition at hand (`select_related("system__edition")`).
        extent: what a board ranks by, or everything.
        as_of: what had been computed by then; None for now.
    """
    given = list(submissions)
    runs = newest_runs([one.pk for one in given], as_of)
    editions = {one.system.edition_id: one.system.edition for one in given if one.system.edition_id}
    numbers = numbers_of(list(runs.values()), _needed(editions.values()) if extent is Extent.RANKED else Q())
    required = {pk: _required(edition) for pk, edition in editions.items() if edition}
    found = {}
    for submission in given:
        run = runs.get(submission.pk)
        of_run = numbers.get(run.pk, {}) if run else {}
        found[submission.pk] = ObjectiveValues(
            submission=submission.pk,
            run=run.pk if run else None,
            measured_at=run.job.finished_at if run and run.job else None,
            numbers=of_run,
            missing=_missing(run, required.get(submission.system.edition_id or 0, ()), of_run, extent),
        )
    return found


def values_of_submission(submission: Submission) -> ObjectiveValues:
    """All objective numbers of one submission."""
    return objective_values([submission])[submission.pk]


def score_sets_of(values: ObjectiveValues) -> list[ScoreSet]:
    """The verification tests whose scores are kept."""
    return list(ScoreSet.objects.filter(run=values.run)) if values.run else []


def _needed(editions: Iterable[Edition | None]) -> Q:
    """Averages, and every data set of a gate's metric."""
    wanted = Q(data_set__startswith=AVERAGE)
    for edition in editions:
        ranking = track_of(edition).ranking if edition else None
        for gate in ranking.gates if ranking else ():
            names = {name for group in gate.groups for name in group}
            wanted |= Q(metric=gate.metric, estimator=gate.estimator, data_set__in=names)
    return wanted


def numbers_of(runs: list[EvaluationRun], wanted: Q | None = None) -> dict[int, dict[ClaimIdentity, Number]]:
    """All numbers of some runs, or those wanted, by primary key of the run, in one query."""
    found: dict[int, dict[ClaimIdentity, Number]] = {}
    if runs:
        rows = MetricValue.objects.filter(wanted or Q(), run__in=[run.pk for run in runs])
        for row in rows.order_by("pk").values_list(*COLUMNS):
            number = _number(row)
            found.setdefault(row[0], {})[number.identity] = number
    return found


def _number(row: tuple[Any, ...]) -> Number:
    (_, data_set, gender, metric, estimator, training, enrolment, speech, value, basis, n, spread, low, high, claimed,
     claimed_text, claimed_in, agrees) = row  # fmt: skip
    identity = ClaimIdentity(
        data_set, GENDERS[gender], metric, estimator, Speech(training) if training else None,
        Speech(enrolment) if enrolment else None, Speech(speech) if speech else Speech.ANONYMISED,
    )  # fmt: skip
    return Number(identity, value, Basis(basis), n, spread, low, high, claimed, claimed_text, claimed_in, agrees)


def _required(edition: Edition) -> tuple[tuple[ClaimIdentity, bool], ...]:
    recipe: Recipe = edition.recipe
    return tuple(required_numbers(recipe, track_of(edition)))


def _missing(
    run: EvaluationRun | None,
    required: Iterable[tuple[ClaimIdentity, bool]],
    numbers: Mapping[ClaimIdentity, Number],
    extent: Extent,
) -> tuple[Missing, ...]:
    """From the result of the run's job where it says so, else what is not among the numbers.

    Of the numbers of a ranking alone the single ones are not at hand; there the job's word is enough.
    """
    if run is None:
        return tuple(Missing(number_words(one), NOT_EVALUATED, is_ranked) for one, is_ranked in required)
    said = run.job.result.get("missing") if run.job else None
    if said is not None:
        return tuple(Missing(one["what"], one["reason"], one["is_ranked"]) for one in said)
    if extent is Extent.RANKED:
        return ()
    absent = ((one, is_ranked) for one, is_ranked in required if one not in numbers)
    return tuple(Missing(number_words(one), NOT_COMPUTED, is_ranked) for one, is_ranked in absent)
