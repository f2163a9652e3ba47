"""What a member finds at home: the work that is under way, what comes next, and for the operator how the parts do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from evaluation.app.measures.selectors import compare_systems
from portal.accounts.selectors import lacks_second_factor, operators
from portal.challenges.models import Edition
from portal.challenges.rules import Phase, registration_phase, submission_phase, submission_problem
from portal.challenges.selectors import CorpusSummary, corpora_for, editions_for, summaries
from portal.core.counting import count_rows
from portal.core.health import check_all
from portal.editions.pages import NextStep
from portal.jobs.models import Job, State
from portal.jobs.selectors import jobs_for, queue_states, with_estimates
from portal.submissions.models import Submission, System, Upload
from portal.submissions.pages import address_of_page
from portal.submissions.selectors import submissions_for, systems_for, uploads_for
from portal.submissions.uploads import UNFINISHED
from portal.systems.tables import latest_systems_table
from portal.teams.models import Team
from portal.teams.selectors import managed_teams_for, teams_for

SHOWN = 8
FAILURES_CONCERN_FOR = timedelta(days=7)


@dataclass(frozen=True)
class EditionLine:
    """A listed edition: what is open in it now, and whether its leaderboard can be seen."""

    edition: Edition
    registration: Phase
    submissions: Phase

    @property
    def sentence(self) -> str:
        if self.registration is Phase.OPEN and self.submissions is Phase.OPEN:
            return "registration and submissions open"
        if self.registration is Phase.OPEN:
            return "registration open"
        if self.submissions in {Phase.OPEN, Phase.LATE}:
            return f"submissions {self.submissions}"
        return "not open yet" if Phase.BEFORE in {self.registration, self.submissions} else "closed"


def visitor_page(user: Any) -> dict[str, Any]:
    """The listed editions, those with a published leaderboard first, for whoever comes without an account."""
    now = timezone.now()
    editions = editions_for(user).order_by(F("published_at").desc(nulls_last=True), "-created_at")[:SHOWN]
    lines = (EditionLine(one, registration_phase(one, now), submission_phase(one, now)) for one in editions)
    return {"editions": list(lines), "is_new": not operators().exists()}


def home_page(user: Any) -> dict[str, Any]:
    """The parts of the home page that this member's roles call for."""
    own = submissions_for(user).order_by("-created_at", "-pk")
    now = timezone.now()
    page: dict[str, Any] = {
        "teams": list(_team_lines(user, now)),
        "uploads": [(upload, address_of_page(upload)) for upload in _unfinished_uploads(user, now)],
        "organized": list(_organized_editions(user)),
        "submissions": list(own.filter(_under_way() | Q(system__team__memberships__user=user))[:SHOWN]),
        "lacks_second_factor": lacks_second_factor(user),
        "waiting_teams": list(managed_teams_for(user).filter(state=Team.State.WAITING).order_by("created_at")[:SHOWN]),
    }
    if not (page["teams"] or page["organized"] or user.is_organizer or user.is_staff):
        page |= visitor_page(user)
    if user.is_organizer or user.is_staff:
        active = jobs_for(user).filter(state__in=[State.RUNNING, State.WAITING]).order_by("state", "created_at")
        page |= {"jobs": with_estimates(active[:SHOWN]), "jobs_under_way": active.count()}
    if user.is_organizer:
        corpora, systems = summaries(corpora_for(user)), list(systems_for(user).order_by("-created_at"))
        baselines = [system for system in systems if system.edition_id is None]
        pitch = compare_systems(baselines[:SHOWN])
        page |= {
            "summaries": corpora,
            "systems": latest_systems_table((system, pitch.get(system.pk)) for system in baselines[:SHOWN])
            if baselines
            else None,
            "more_systems": len(systems) > len(baselines[:SHOWN]),
            "steps": list(next_steps(corpora, systems, open_failures(user, now))),
        }
    if user.is_staff:
        page |= {"queues": queue_states(), "checks": check_all()}
    return page


def _team_lines(user: Any, now: datetime) -> Iterator[tuple[Team, str]]:
    """One's teams, the newest first, each with why it cannot submit now, or ""."""
    for team in teams_for(user).filter(memberships__user=user).order_by("-created_at")[:SHOWN]:
        yield team, submission_problem(team.edition, now)


def _unfinished_uploads(user: Any, now: datetime) -> QuerySet[Upload]:
    """What one, or somebody of one's teams, has begun to send and can go on with."""
    own = Q(created_by=user) | Q(team__in=user.memberships.values("team"))
    return uploads_for(user).filter(own, state__in=UNFINISHED, expires_at__gt=now).order_by("-created_at")[:SHOWN]


def _organized_editions(user: Any) -> QuerySet[Edition]:
    """The editions that one organises, with `waiting` teams and submissions `under_way` counted."""
    waiting = count_rows(Team.objects.filter(state=Team.State.WAITING), "edition")
    under_way = count_rows(Submission.objects.filter(_under_way()), "system__edition")
    found = user.organized_editions.annotate(waiting=waiting, under_way=under_way)
    return found.order_by("-created_at", "-pk")[:SHOWN]


def _under_way() -> Q:
    return Q(state__in=[Submission.State.RECEIVED, Submission.State.CHECKING, Submission.State.EVALUATING])


def open_failures(user: Any, now: datetime) -> list[Job]:
    """The failed jobs that still concern somebody, newest first.

    Not the older ones, nor the import of a corpus that a later import of the same name has fixed.
    """
    recent = jobs_for(user).filter(finished_at__gt=now - FAILURES_CONCERN_FOR)
    imports = recent.filter(kind="import-corpus", state=State.SUCCEEDED, finished_at__isnull=False)
    imported = dict(imports.order_by("finished_at").values_list("parameters__name", "finished_at"))
    failed = recent.filter(state=State.FAILED).defer("problems", "result").order_by(F("finished_at").desc(), "pk")
    return [job for job in failed if not _is_fixed(job, imported)]


def _is_fixed(job: Job, imported: dict[str, Any]) -> bool:
    later = imported.get(job.parameters.get("name", "")) if job.kind == "import-corpus" else None
    return later is not None and job.finished_at is not None and later > job.finished_at


def next_steps(corpora: list[CorpusSummary], systems: list[System], failed: list[Job]) -> Iterator[NextStep]:
    """What an organizer does next: first what is broken, then what is missing."""
    if failed:
        yield _look_at_failures(failed)
    if not corpora:
        text = (
            "Everything starts with original speech: a folder on the server with recordings, speakers and "
            "transcripts. The import checks every file and reports everything at once."
        )
        yield NextStep("Import your first corpus", text, "Import a corpus", reverse("corpora:import"))
    anonymised = {system.corpus_id for system in systems}
    for summary in corpora:
        if not summary.with_audio:
            yield _add_audio(summary)
        elif summary.corpus.pk not in anonymised:
            yield _run_an_anonymiser(summary)


def _look_at_failures(failed: list[Job]) -> NextStep:
    newest = failed[0]
    if len(failed) == 1:
        return NextStep(f"“{newest.title}” failed", newest.failure, "See the job", newest.get_absolute_url())
    text = "Each says what was wrong, who must act and what to do."
    return NextStep(f"{len(failed)} jobs failed", text, "See the failed jobs", f"{reverse('jobs:list')}?state=failed")


def _add_audio(summary: CorpusSummary) -> NextStep:
    corpus = summary.corpus
    wanted = urlencode({"name": corpus.name, "folder": corpus.source, "layout": corpus.layout})
    text = "Only its lists are here. Import it again under the same name, with the folder of its recordings."
    address = f"{reverse('corpora:import')}?{wanted}"
    return NextStep(f"Add the audio of {corpus.name}", text, "Import the audio", address)


def _run_an_anonymiser(summary: CorpusSummary) -> NextStep:
    name = summary.corpus.name
    text = "No system has anonymised it yet; the measures follow by themselves."
    return NextStep(f"Anonymise {name}", text, "Run an anonymiser", reverse("systems:new", args=[name]))
