"""Keeps a run from being started twice: while one is under way, another of its kind, engine and preset is refused,
or found where it is the very same."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Q

from common.errors import NotPossible
from evaluation.app.models import EvaluationRun
from evaluation.app.runs.kinds import name_preset
from evaluation.app.runs.selectors import list_jobs
from portal.jobs.models import ACTIVE_STATES
from portal.submissions.models import Submission


def require_no_other(run: EvaluationRun, title: str, data_sets: Collection[str] = ()) -> None:
    """Refuse a run of the same kind, engine and way of comparing as one over the submission that is under way.

    Raises:
        NotPossible: it is of other data sets.
    """
    for other in find_under_way(run):
        sentence = f"{title} is under way already; cancel it first, or wait for its numbers."
        others = {job.parameters["data_set"] for job in list_jobs(other) if "data_set" in job.parameters}
        is_same = others == set(data_sets) or not data_sets
        raise NotPossible(sentence, under_way=other if is_same else None)


def find_under_way(run: EvaluationRun) -> Any:
    """Return the runs of the same kind, engine and way of comparing over a submission that have not ended.

    The submission is locked: of two who press the button at once the second sees the run of the first.
    """
    Submission.objects.select_for_update().filter(pk=run.submission_id).first()
    same = EvaluationRun.objects.filter(submission=run.submission_id, kind=run.kind, engine=run.engine)
    under_way = same.filter(job__state__in=ACTIVE_STATES)
    if preset := name_preset(run):
        return under_way.filter(parameters__preset=preset)
    # A trained attacker has its own way of comparing in its name.
    usual = Q(parameters__preset="") | Q(parameters__preset__isnull=True) | Q(parameters__has_key="trained")
    return under_way.filter(usual)
