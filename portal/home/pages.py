"""What a member finds at home: the work that is under way, what comes next, and for the operator how the parts do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Window
from django.http import Http404
from django.utils import timezone

from evaluation.app.audio_measures.selectors import compare_systems
from listening.app.results.selectors import list_shown_analyses
from listening.app.studies.selectors import studies_for
from portal.accounts.models import User
from portal.accounts.selectors import lacks_second_factor, operators, waiting
from portal.challenges.job_pages.selectors import jobs_for, listed_jobs_for
from portal.challenges.models import Edition
from portal.challenges.rules import registration_phase, submission_phase
from portal.challenges.selectors import corpora_for, editions_for
from portal.corpora.selectors import summaries
from portal.home.next_steps import (
    edition_path,
    invitation_steps,
    look_at_failures,
    newest_submissions,
    next_steps,
    operator_steps,
    outline_path,
    registration_steps,
    select_organized,
    team_steps,
    teams_with_data,
    waiting_people_step,
)
from portal.jobs.checks import check_all_beside
from portal.jobs.models import ACTIVE_STATES, Actor, Job, JobState
from portal.jobs.pages import group_jobs
from portal.jobs.selectors import queue_states, with_estimates
from portal.leaderboard.pages import leaderboard_summary
from portal.leaderboard.selectors import leaderboard_for
from portal.submissions.models import Submission, Upload
from portal.submissions.pages import UNDER_WAY, address_of_page
from portal.submissions.resumable_uploads import UNFINISHED
from portal.submissions.selectors import find_shown, listed_systems_for, submissions_for, uploads_for
from portal.systems.tables import latest_systems_table
from portal.teams.models import Team
from portal.teams.selectors import list_invitations_of, managed_teams_for, teams_for

SHOWN = 8
FAILURES_CONCERN_FOR = timedelta(days=7)
# Of the jobs that import something, the parameters that say what they import and from what.
IMPORTS = {"import-corpus": ("name", "folder"), "import-ratings": ("study", "file")}


def visitor_page(user: Any) -> dict[str, Any]:
    """Return the listed editions, those with a published leaderboard first, and the newest of these leaderboards."""
    now = timezone.now()
    listed = editions_for(user).filter(archived_at=None)
    editions = list(listed.order_by(F("published_at").desc(nulls_last=True), "-created_at")[:SHOWN])
    phases = [(edition, registration_phase(edition, now), submission_phase(edition, now)) for edition in editions]
    page: dict[str, Any] = {"editions": phases, "is_new": not operators().exists()}
    if editions and editions[0].published_at is not None:
        page["board"] = _newest_board(user, editions[0])
        page["heard"] = [one.study for one in list_shown_analyses(user, editions[0]) if one.is_published]
    return page


def _newest_board(user: Any, edition: Edition) -> dict[str, Any] | None:
    """Return what a published leaderboard says first; None where it cannot be shown."""
    try:
        leaderboard = leaderboard_for(user, edition.name)
    except Http404:  # its recipe cannot be read any more
        return None
    return None if leaderboard.is_empty else leaderboard_summary(leaderboard)


def home_page(user: Any) -> dict[str, Any]:
    """Return the parts of the home page that this member's roles call for."""
    now = timezone.now()
    teams = list(teams_for(user).filter(memberships__user=user).order_by("-created_at")[:SHOWN])
    organized = list(select_organized(user)[:SHOWN])
    archived = list(user.organized_editions.exclude(archived_at=None).order_by("-archived_at")[:SHOWN])
    uploads = list(_unfinished_uploads(user, now))
    page: dict[str, Any] = {
        "teams": teams,
        "steps": list(team_steps(teams, newest_submissions(teams), teams_with_data(user, teams), uploads, now)),
        "archived": archived,
        "paths": [edition_path(edition, now) for edition in organized],
        "uploads": [(upload, address_of_page(upload)) for upload in uploads],
        "submissions": list(_own_submissions(user)),
        "lacks_second_factor": lacks_second_factor(user),
        "waiting_teams": list(managed_teams_for(user).filter(state=Team.State.WAITING).order_by("created_at")[:SHOWN]),
    }
    if not (teams or organized or archived or user.is_organizer or user.is_staff):
        page |= visitor_page(user)
        invitations = list(list_invitations_of(user, now))
        invited = {one.team.edition_id for one in invitations}
        others = [edition for edition, *_ in page["editions"] if edition.pk not in invited]
        page["steps"] = [*invitation_steps(invitations), *registration_steps(others, now)]
    if user.is_organizer and (failed := open_failures(user, now)):
        page["steps"].append(look_at_failures(failed))
    # Only what a team does next and what failed come before the next step of an edition.
    led = sorted((path for path in page["paths"] if path.next), key=lambda path: not path.next.is_due)
    page["main"] = led[0].edition if led and not page["steps"] else None
    if user.is_organizer or user.is_staff:
        active = listed_jobs_for(user).filter(state__in=ACTIVE_STATES).order_by("state", "created_at")
        jobs: Any = with_estimates(active.annotate(under_way=Window(Count("pk")))[:SHOWN])
        page |= {"jobs": jobs, "job_groups": group_jobs(jobs), "jobs_under_way": jobs[0].under_way if jobs else 0}
    if user.is_organizer:
        corpora, systems = summaries(corpora_for(user).filter(archived_at=None)), list(listed_systems_for(user))
        baselines = [system for system in systems if system.edition_id is None]
        pitch = compare_systems(find_shown(baselines[:SHOWN]))
        page |= {
            "summaries": corpora,
            "systems": latest_systems_table((system, pitch.get(system.pk)) for system in baselines[:SHOWN])
            if baselines
            else None,
            "more_systems": len(systems) > len(baselines[:SHOWN]),
        }
        page["own_tests"] = list(studies_for(user).filter(edition=None, archived_at=None)[:SHOWN])
        page["outline"] = () if organized or archived else outline_path(has_corpus=bool(corpora))
        page["steps"] += next_steps(corpora, [*organized, *archived], page["own_tests"])
    if user.is_staff:
        queues = queue_states()
        checks = check_all_beside(queues)
        if any(checks.values()) or not user.is_organizer:  # who organises, too, looks at Operations for what is well
            page |= {"queues": queues, "checks": checks}
        page["steps"] = [*waiting_people_step(waiting().count()), *page["steps"]]
        page["steps"] += operator_steps(
            has_organizer=user.is_organizer or User.objects.filter(is_organizer=True).exists()
        )
    return page


def _own_submissions(user: Any) -> QuerySet[Submission]:
    """Return the newest ones that are under way, or of one's teams."""
    shown = Q(state__in=UNDER_WAY) | Q(system__team__in=user.memberships.values("team"))
    return submissions_for(user).filter(shown).order_by("-created_at", "-pk")[:SHOWN]


def _unfinished_uploads(user: Any, now: datetime) -> QuerySet[Upload]:
    """Return what one, or somebody of one's teams, has begun to send and can go on with."""
    own = Q(created_by=user) | Q(team__in=user.memberships.values("team"))
    return uploads_for(user).filter(own, state__in=UNFINISHED, expires_at__gt=now).order_by("-created_at")[:SHOWN]


def open_failures(user: Any, now: datetime) -> list[Job]:
    """Return the failed jobs that still concern somebody, newest first.

    Not the older ones, nor an import after which one of the same name or the same files succeeded, nor what others
    started and only an operator can act on.
    """
    recent = jobs_for(user).filter(finished_at__gt=now - FAILURES_CONCERN_FOR)
    imports = recent.filter(kind__in=IMPORTS, state=JobState.SUCCEEDED).order_by("finished_at")
    found = imports.values_list("kind", "parameters", "finished_at")
    imported = {one: at for kind, parameters, at in found if at for one in _things_imported(kind, parameters)}
    own = Q() if user.is_staff else Q(created_by=user) | ~Q(failure_actor=Actor.OPERATOR)
    failed = (
        recent.filter(own, state=JobState.FAILED).defer("problems", "result").order_by(F("finished_at").desc(), "pk")
    )
    return [job for job in failed if not _is_fixed(job, imported)]


def _things_imported(kind: str, parameters: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what a job imports, and from what: its kind, the parameter and its value."""
    return [(kind, one, parameters[one]) for one in IMPORTS.get(kind, ()) if one in parameters]


def _is_fixed(job: Job, imported: Mapping[tuple[str, str, str], datetime]) -> bool:
    later = [imported[one] for one in _things_imported(job.kind, job.parameters) if one in imported]
    return job.finished_at is not None and any(at > job.finished_at for at in later)
