"""How systems and submissions are put away. What of them was heard or measured, the apps above declare themselves."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from portal.challenges.models import Edition
from portal.challenges.removal import edition_trail
from portal.challenges.selectors import was_published
from portal.core.removal import (
    RemovableKind,
    declare_kind,
    declare_owned,
    declare_rows,
    declare_rule,
)
from portal.jobs.models import Job
from portal.submissions import services
from portal.submissions.models import SharedPart, Submission, SubmittedDocument, SubmittedFile, System, Upload
from portal.submissions.rules import Relation, removal_problem
from portal.submissions.selectors import ACCEPTED
from portal.teams.models import Membership, Team


def system_trail(system: System) -> list[tuple[str, str]]:
    """Return the pages above those of a system."""
    return edition_trail(system.edition) if system.edition else [("Systems", reverse("systems:list"))]


def _own_systems(user: Any) -> QuerySet[System]:
    """Return the systems a person manages: who sees a corpus sees its baselines, but manages none of others."""
    rows = System.objects.select_related("edition", "corpus", "team")
    if user.is_staff:
        return rows
    of_corpora = Q(edition=None, team=None) & (Q(created_by=user) | Q(corpus__created_by=user))
    organized = user.organized_editions.values("pk")
    return rows.filter(Q(edition__in=organized) | of_corpora)


def _systems_of_teams(user: Any) -> QuerySet[System]:
    owned = user.memberships.filter(role=Membership.Role.OWNER).values("team")
    return System.objects.select_related("edition", "corpus", "team").filter(team__in=owned)


def _own_submissions(user: Any) -> QuerySet[Submission]:
    rows = Submission.objects.select_related("system__edition", "system__corpus", "system__team")
    return rows.filter(system__in=_own_systems(user).order_by().values("pk"))


def may_manage(user: Any, system: System, relation: Relation, *, is_owner: bool) -> bool:
    """Return whether somebody may rename a system, at least.

    Args:
        relation: what they are to it.
        is_owner: whether they own its team.
    """
    if user.is_staff or (relation is Relation.ORGANIZER and system.edition_id is not None):
        return True
    if relation is Relation.ORGANIZER:
        return user.pk in {system.created_by_id, system.corpus and system.corpus.created_by_id}
    return relation is Relation.TEAM and is_owner


def _note_on_archiving(system: System) -> str:
    if system.edition is None:
        return ""
    return "It stays on the leaderboard, among submissions and jobs, and in listening tests that have it."


def _submission_problem(submission: Submission) -> str:
    if heir := submission.heirs.order_by("version").first():
        return f"{heir} uses its files."
    return _system_problem(submission.system, only=submission)


def _system_problem(system: System, only: Submission | None = None) -> str:
    submissions = system.submissions.filter(state__in=ACCEPTED)
    return removal_problem(
        accepted=submissions.filter(pk=only.pk).count() if only else submissions.count(),
        is_of_team=system.team_id is not None,
        is_published=system.edition is not None and was_published(system.edition),
        archived="its system" if only else "it",
    )


def _team_problem(team: Team) -> str:
    accepted = Submission.objects.filter(system__team=team, state__in=ACCEPTED).count()
    return removal_problem(accepted=accepted, is_of_team=True, is_published=was_published(team.edition))


def _edition_problem(edition: Edition) -> str:
    of_teams = Submission.objects.filter(system__edition=edition, system__team__isnull=False, state__in=ACCEPTED)
    return removal_problem(accepted=of_teams.count(), is_of_team=True, is_published=False)


def _removed_with(submission: Submission) -> System | Submission:
    """Return what goes: a system without any submission has no page, and goes with its only one."""
    has_others = submission.system.submissions.exclude(pk=submission.pk).exists()
    return submission if has_others else submission.system


declare_owned(Upload)
declare_owned(Job, by=Submission, find=lambda keys: Q(kind="intake", parameters__submission__in=keys))
declare_rows(System, "systems")
declare_rows(Submission, "submissions", files=("report",))
declare_rows(SubmittedFile, "anonymised recordings", files=("audio",))
declare_rows(SubmittedDocument, "documents", files=("key",))
declare_rows(SharedPart, "shared samples and descriptions")
declare_rule(System, _system_problem)
declare_rule(Submission, _submission_problem)
declare_rule(Team, _team_problem)
declare_rule(Edition, _edition_problem)
declare_kind(
    RemovableKind(
        name="systems",
        word="system",
        model=System,
        owned=_own_systems,
        renamed=_systems_of_teams,
        names=lambda system: {"title": "Title"} | ({} if system.edition_id else {"name": "Short name"}),
        rename=services.rename_system,
        archiving_note=_note_on_archiving,
        edition=lambda system: system.edition,
        trail=system_trail,
    )
)
declare_kind(
    RemovableKind(
        name="submissions",
        word="submission",
        model=Submission,
        owned=_own_submissions,
        lookup="pk",
        root=_removed_with,
        archives=False,
        edition=lambda submission: submission.system.edition,
        trail=lambda submission: system_trail(submission.system),
    )
)
