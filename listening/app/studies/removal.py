"""How listening tests are put away, and what of others stays while one of them rests on it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from listening.app.models import Analysis, Answer, Participant, Session, Stimulus, Study, StudySystem
from listening.app.studies import rules
from portal.challenges.models import Edition
from portal.core.removal import Kind, declare_kind, declare_rows, declare_rule
from portal.submissions.models import Submission, System


def _organized_studies(user: Any) -> QuerySet[Study]:
    rows = Study.objects.select_related("edition")
    return rows if user.is_staff else rows.filter(edition__organizers=user)


def _system_problem(system: System) -> str:
    return _heard_problem(StudySystem.objects.filter(submission__system=system))


def _submission_problem(submission: Submission) -> str:
    return _heard_problem(submission.studies.all())


def _heard_problem(heard: Any) -> str:
    return rules.heard_problem(list(heard.order_by("study__name").values_list("study__title", flat=True).distinct()))


def _edition_problem(edition: Edition) -> str:
    for study in edition.studies.order_by("name"):
        if problem := rules.study_removal_problem(study):
            return f"The listening test “{study}”: {problem}"
    return ""


declare_rows(Study, "listening tests", files=("imported",))
declare_rows(Stimulus, "stimuli", files=("file",))
declare_rows(Participant, "evaluators")
declare_rows(Session, "sessions")
declare_rows(Answer, "answers")
declare_rows(Analysis, "analyses", files=("inputs", "results", "figures", "leftovers"))
declare_rule(Study, rules.study_removal_problem)
declare_rule(System, _system_problem)
declare_rule(Submission, _submission_problem)
declare_rule(Edition, _edition_problem)
declare_kind(
    Kind(
        name="studies",
        word="listening test",
        model=Study,
        owned=_organized_studies,
        edit=lambda study: reverse("studies:edit", args=[study.name]),
        archiving_problem=rules.study_archiving_problem,
        edition=lambda study: str(study.edition.name),
    )
)
