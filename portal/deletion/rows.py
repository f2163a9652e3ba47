"""Which rows go with others that are deleted, as `on_delete` of the models says, and which rows forbid it.

They are counted by queries, because `NestedObjects` of Django's admin loads each of them (`docs/decisions.md`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from django.apps import apps
from django.db.models import CASCADE, PROTECT, RESTRICT, ForeignKey, Model, Q, QuerySet

from anonymization.app.models import AnonymizationRun, NetworkTraining
from evaluation.app.models import EvaluationRun
from listening.app.models import Analysis, Answer, Participant, Session, Stimulus, Study
from listening.app.studies.services import DESIGN_JOB, PREPARATION_JOB
from portal.challenges.models import Corpus, DataFile, DataSet, Edition, Speaker, TrialList, Utterance
from portal.jobs.models import Job
from portal.submissions.models import SharedPart, Submission, SubmittedDocument, SubmittedFile, System
from portal.submissions.selectors import OF_ENGINES
from portal.teams.models import DataAcceptance, Invitation, Membership, Team

Rows = dict[type[Model], QuerySet[Any]]
KEYS_AT_ONCE = 500
BLOCKERS_AT_MOST = 20
# What rows are to a reader. Others are deleted as well, and not counted.
WORDS: dict[type[Model], str] = {
    Team: "teams",
    Membership: "memberships",
    Invitation: "invitations",
    DataAcceptance: "acceptances of the terms of the data",
    System: "systems",
    Submission: "submissions",
    SubmittedFile: "anonymised recordings",
    SubmittedDocument: "documents",
    SharedPart: "shared samples and descriptions",
    AnonymizationRun: "anonymisation runs",
    EvaluationRun: "evaluation runs",
    Study: "listening tests",
    Stimulus: "stimuli",
    Participant: "evaluators",
    Session: "sessions",
    Answer: "answers",
    Analysis: "analyses",
    Speaker: "speakers",
    Utterance: "utterances",
    DataSet: "data sets",
    TrialList: "trial lists",
    DataFile: "files to download",
    NetworkTraining: "trainings of networks",
}
# Jobs of these kinds name a row in this parameter.
JOBS_OF: dict[type[Model], tuple[str, tuple[str, ...]]] = {
    Team: ("team", ("send-notice",)),
    Submission: ("submission", ("intake",)),
    EvaluationRun: ("run", OF_ENGINES),
    Study: ("study", (DESIGN_JOB, PREPARATION_JOB)),
    Analysis: ("analysis", ("analyse-study",)),
}


def find_rows(things: QuerySet[Any]) -> Rows:
    """Return the rows that are deleted with some of one model: theirs first, and each before those that rest on it.

    Few rows are held by their keys and many by a query, which finds nothing any more once what it rests on is gone.
    """
    found: Rows = {things.model: things}
    for model in _order_models():
        rests = Q()
        for field in _foreign_keys(model, CASCADE):
            if field.related_model in found and model is not things.model:
                rests |= Q(**{f"{field.name}__in": found[field.related_model].order_by().values("pk")})
        if not rests:
            continue
        rows = model._default_manager.filter(rests).order_by()
        keys = list(rows.values_list("pk", flat=True)[: KEYS_AT_ONCE + 1])
        if keys:
            found[model] = rows if len(keys) > KEYS_AT_ONCE else model._default_manager.filter(pk__in=keys)
    return found


def find_blockers(rows: Rows) -> list[Model]:
    """Return rows that would stay and protect these by `PROTECT` or `RESTRICT`; not all where there are many."""
    found: list[Model] = []
    for model in _order_models():
        for field in _foreign_keys(model, PROTECT, RESTRICT):
            if field.related_model in rows:
                protecting = model._default_manager.filter(
                    **{f"{field.name}__in": rows[field.related_model].order_by().values("pk")}
                )
                going = rows[model].order_by().values("pk") if model in rows else []
                found += protecting.exclude(pk__in=going)[:BLOCKERS_AT_MOST]
    return found


def find_jobs(rows: Rows) -> QuerySet[Job]:
    """Return the jobs of rows: those that they name, that name them, and all of an edition or a corpus."""
    wanted = Q(pk__in=[])
    for model, found in rows.items():
        keys = found.order_by()
        for field in _foreign_keys(model):
            if field.related_model is Job:
                wanted |= Q(pk__in=keys.values(field.attname))
        if model in JOBS_OF:
            parameter, kinds = JOBS_OF[model]
            wanted |= Q(kind__in=kinds, **{f"parameters__{parameter}__in": list(keys.values_list("pk", flat=True))})
    if Edition in rows:
        wanted |= Q(edition__in=rows[Edition].order_by().values("name"))
    if Corpus in rows:
        wanted |= Q(edition="", corpus__in=rows[Corpus].order_by().values("name"))
    return Job.objects.filter(wanted)


def count_rows(rows: Rows) -> int:
    return sum(found.count() for found in rows.values())


def count_named(rows: Rows) -> dict[str, int]:
    """Return how many rows there are by what they are to a reader."""
    counts = {words: rows[model].count() for model, words in WORDS.items() if model in rows}
    return {words: count for words, count in counts.items() if count}


@cache
def _order_models() -> list[type[Model]]:
    """Return all models, each after those that its rows cannot be without."""
    cascades = {model: {key.related_model for key in _foreign_keys(model, CASCADE)} for model in apps.get_models()}
    order: TopologicalSorter[Any] = TopologicalSorter()
    for model, targets in cascades.items():
        protected = {key.related_model for key in _foreign_keys(model, PROTECT, RESTRICT)}
        order.add(model, *targets - {model}, *(one for one in protected - {model} if model not in cascades[one]))
    return list(order.static_order())


def _foreign_keys(model: type[Model], *on_delete: Any) -> Iterator[ForeignKey[Any, Any]]:
    """Return the foreign keys of a model with one of these values of `on_delete`; all where none is given."""
    for field in model._meta.concrete_fields:
        if isinstance(field, ForeignKey) and (not on_delete or field.remote_field.on_delete in on_delete):
            yield field
