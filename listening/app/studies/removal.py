"""How listening tests are put away, and what of others stays while one of them rests on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Model, Q, QuerySet
from django.urls import reverse

from listening.app.models import Analysis, Answer, Condition, Participant, Session, Stimulus, Study
from listening.app.studies import rules
from listening.app.studies.selectors import studies_for, was_published
from listening.app.studies.services import DESIGN_JOB, PREPARATION_JOB, rename_study
from portal.challenges.models import Edition
from portal.core.removal import (
    RemovableKind,
    Rows,
    declare_guard,
    declare_kind,
    declare_owned,
    declare_rows,
    declare_rule,
)
from portal.jobs.models import Job


def _organized_studies(user: Any) -> QuerySet[Study]:
    return Study.objects.select_related("edition") if user.is_staff else studies_for(user)


def _guard(model: type[Model]) -> Callable[[Rows], str]:
    """Say that rows of a listening test stay as long as the test does."""

    def heard_problem(rows: Rows) -> str:
        going = rows[Study].order_by().values("pk") if Study in rows else []
        heard = rows[model].exclude(study__in=going).order_by("study__name")
        found = heard.values_list("study__title", "study__state").distinct()
        return rules.heard_problem([(title, state == Study.State.DRAFT) for title, state in found])

    return heard_problem


def _study_problem(study: Study) -> str:
    return rules.study_removal_problem(study, was_published=was_published(study))


def _edition_problem(edition: Edition) -> str:
    for study in edition.studies.order_by("name"):
        if problem := _study_problem(study):
            return f"The listening test “{study}”: {problem}"
    return ""


def _jobs(studies: list[Any]) -> Q:
    """Match those of earlier designs, stimuli and analyses, too, which no row names any more."""
    analyses = list(Analysis.objects.filter(study__in=studies).values_list("pk", flat=True))
    of_study = Q(kind__in=[DESIGN_JOB, PREPARATION_JOB], parameters__study__in=studies)
    return of_study | Q(kind="analyse-study", parameters__analysis__in=analyses)


declare_owned(Job, by=Study, find=_jobs)
declare_rows(Study, "listening tests", files=("imported",))
declare_rows(Stimulus, "stimuli", files=("file", "upload"))
declare_rows(Participant, "evaluators")
declare_rows(Session, "sessions")
declare_rows(Answer, "answers")
declare_rows(Analysis, "analyses", files=("inputs", "results", "figures", "leftovers"))
declare_rule(Study, _study_problem)
declare_guard(Condition, _guard(Condition))
declare_guard(Stimulus, _guard(Stimulus))
declare_rule(Edition, _edition_problem)
declare_kind(
    RemovableKind(
        name="studies",
        word="listening test",
        model=Study,
        owned=_organized_studies,
        edit=lambda study: reverse("studies:edit", args=[study.name]),
        name_problem=rules.name_problem,
        names=lambda _: {"title": "Title"},
        rename=rename_study,
        archiving_problem=rules.study_archiving_problem,
        archiving_note=rules.note_on_archiving,
        edition=lambda study: study.edition,
        trail=lambda _: [("Listening tests", reverse("studies:list"))],
    )
)
