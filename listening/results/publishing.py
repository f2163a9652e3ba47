"""Publishing what listeners said: everybody sees one analysis of a study, until it is taken back or another follows.

Results are published after the board of their edition, on whose systems they are, and only as the study is now: an
analysis that no longer fits its inputs is computed anew first. Public: `publish_results`, `unpublish_results`,
`publication_problems`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.urls import reverse

from listening.models import Study
from listening.results.selectors import current_analysis, is_outdated, running_job
from portal.accounts.notice_kinds import NoticeKind
from portal.core import audit
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission
from portal.teams.models import Team
from portal.teams.notices import notify_team

TOLD_ONCE_IN = timedelta(days=1)  # results that are taken back and published again are no news
ANOTHER = "There is a newer analysis than the one you looked at. Go back, look at its results, then publish them."
NOT_PUBLISHED = "The results are not published."


@transaction.atomic
def publish_results(*, study: Study, by: Any, now: datetime, seen: int | None = None) -> Study:
    """Show the newest analysis to everybody, and tell the teams whose systems were heard.

    Args:
        seen: the analysis that `by` decided to publish; another one is then refused.

    Raises:
        NotPossible: names everything that stands in the way.
    """
    study = _locked(study)
    if problems := publication_problems(study):
        raise NotPossible(" ".join(problems))
    before, analysis = study.published_analysis_id, current_analysis(study)
    if seen is not None and (analysis is None or analysis.pk != seen):
        raise NotPossible(ANOTHER)
    study.published_analysis, study.results_published_at = analysis, now
    study.save(update_fields=["published_analysis", "results_published_at"])
    teams = _teams_heard(study)
    audit.record(
        "study.results_published", study, actor=by, analysis=study.published_analysis_id, before=before,
        is_simulated=study.is_simulated, teams=[str(team) for team in teams],
    )  # fmt: skip
    for team in teams:
        _tell(team, study, now)
    return study


@transaction.atomic
def unpublish_results(*, study: Study, by: Any) -> Study:
    """Hide the results from all but the organizers.

    Raises:
        NotPossible: they are not published.
    """
    study = _locked(study)
    if study.results_published_at is None:
        raise NotPossible(NOT_PUBLISHED)
    since, analysis = study.results_published_at, study.published_analysis_id
    study.published_analysis, study.results_published_at = None, None
    study.save(update_fields=["published_analysis", "results_published_at"])
    audit.record("study.results_unpublished", study, actor=by, analysis=analysis, published_at=since.isoformat())
    return study


def publication_problems(study: Study) -> list[str]:
    """What keeps the newest analysis from being published, as sentences."""
    if study.state != Study.State.CLOSED:
        return ["The study is not closed, so its results are locked. Close it first."]
    problems, analysis = [], current_analysis(study)
    job = running_job(study)
    if job is not None and not job.has_ended:
        problems.append("The study is being analysed. Wait for the new figures.")
    elif analysis is None:
        problems.append("There is no finished analysis. Analyse the study first.")
    elif is_outdated(analysis, study):
        problems.append("The analysis no longer fits the study: what counts has changed. Analyse it again first.")
    elif study.results_published_at is not None and study.published_analysis_id == analysis.pk:
        problems.append("These results are published already.")
    if study.edition.published_at is None:
        problems.append(f"The board of {study.edition} is not published yet. Publish it first.")
    return problems


def _locked(study: Study) -> Study:
    return Study.objects.select_for_update(of=("self",)).select_related("edition").get(pk=study.pk)


def _teams_heard(study: Study) -> list[Team]:
    heard = study.systems.exclude(submission__state=Submission.State.WITHDRAWN).values("submission__system__team")
    return list(Team.objects.select_related("edition").filter(pk__in=heard).order_by("number", "name"))


def _tell(team: Team, study: Study, now: datetime) -> None:
    address = reverse("studies:results", args=[study.name])
    told = Job.objects.filter(kind="send-notice", created_at__gte=now - TOLD_ONCE_IN, parameters__team=team.pk)
    if told.filter(parameters__kind=str(NoticeKind.HEARD), parameters__url=address).exists():
        return
    simulated = " Its ratings are simulated: a program answered, no person." if study.is_simulated else ""
    notify_team(
        team=team,
        kind=NoticeKind.HEARD,
        subject="Results of a listening test are published",
        lines=[
            f"What listeners said in “{study}” is public now, with the systems of your team in it.{simulated}",
            "For your own systems you also see each utterance that was heard.",
        ],
        url=address,
    )
