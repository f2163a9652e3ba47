"""What a member finds at home: the work that is under way, what comes next, and for the operator how the parts do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from evaluation.metrics.pitch import MINIMUM_OF_2022
from evaluation.selectors import compare_systems
from portal.challenges.selectors import CorpusSummary, corpora_for, summaries
from portal.core.health import check_all
from portal.jobs.models import Job, State
from portal.jobs.selectors import jobs_for, queue_states, with_estimates
from portal.submissions.models import System
from portal.submissions.selectors import systems_for

SHOWN = 8
FAILURES_CONCERN_FOR = timedelta(days=7)


@dataclass(frozen=True)
class NextStep:
    """Something this person could do now, with the page where it is done."""

    title: str
    text: str
    action: str
    url: str


def home_page(user: Any) -> dict[str, Any]:
    """The parts of the home page that this member's roles call for."""
    page: dict[str, Any] = {}
    if user.is_organizer or user.is_staff:
        active = jobs_for(user).filter(state__in=[State.RUNNING, State.WAITING]).order_by("state", "created_at")
        page |= {"jobs": with_estimates(active[:SHOWN]), "jobs_under_way": active.count()}
    if user.is_organizer:
        corpora, systems = summaries(corpora_for(user)), list(systems_for(user).order_by("-created_at"))
        pitch = compare_systems(systems[:SHOWN])
        page |= {
            "summaries": corpora,
            "systems": [(system, pitch.get(system.pk)) for system in systems[:SHOWN]],
            "more_systems": len(systems) > SHOWN,
            "minimum": MINIMUM_OF_2022,
            "steps": list(next_steps(corpora, systems, open_failures(user, timezone.now()))),
        }
    if user.is_staff:
        page |= {"queues": queue_states(), "checks": check_all()}
    return page


def open_failures(user: Any, now: datetime) -> list[Job]:
    """The failed jobs that still concern somebody, newest first.

    Not the older ones, nor the import of a corpus that a later import of the same name has mended.
    """
    recent = jobs_for(user).filter(finished_at__gt=now - FAILURES_CONCERN_FOR)
    imports = recent.filter(kind="import-corpus", state=State.SUCCEEDED, finished_at__isnull=False)
    imported = dict(imports.order_by("finished_at").values_list("parameters__name", "finished_at"))
    failed = recent.filter(state=State.FAILED).defer("problems", "result").order_by(F("finished_at").desc(), "pk")
    return [job for job in failed if not _is_mended(job, imported)]


def _is_mended(job: Job, imported: dict[str, Any]) -> bool:
    later = imported.get(job.parameters.get("name", "")) if job.kind == "import-corpus" else None
    return later is not None and job.finished_at is not None and later > job.finished_at


def next_steps(corpora: list[CorpusSummary], systems: list[System], failed: list[Job]) -> Iterator[NextStep]:
    """What an organizer does next: first what is broken, then what is missing."""
    if failed:
        yield _look_at_failures(failed)
    if not corpora:
        yield NextStep(
            title="Import your first corpus",
            text="Everything starts with original speech: a folder on the server with recordings, speakers and "
            "transcripts. The import checks every file and reports everything at once.",
            action="Import a corpus",
            url=reverse("corpora:import"),
        )
    anonymised = {system.corpus_id for system in systems}
    for summary in corpora:
        if not summary.with_audio:
            yield _add_audio(summary)
        elif summary.corpus.pk not in anonymised:
            yield _run_an_anonymiser(summary)


def _look_at_failures(failed: list[Job]) -> NextStep:
    newest, several = failed[0], len(failed) > 1
    return NextStep(
        title=f"{len(failed)} jobs failed" if several else f"“{newest.title}” failed",
        text="Each says what was wrong, who must act and what to do." if several else newest.failure,
        action="See the failed jobs" if several else "See the job",
        url=f"{reverse('jobs:list')}?state=failed" if several else newest.get_absolute_url(),
    )


def _add_audio(summary: CorpusSummary) -> NextStep:
    corpus = summary.corpus
    wanted = urlencode({"name": corpus.name, "folder": corpus.source, "layout": corpus.layout})
    return NextStep(
        title=f"Add the audio of {corpus.name}",
        text="Only its lists are here. Import it again under the same name, with the folder of its recordings.",
        action="Import the audio",
        url=f"{reverse('corpora:import')}?{wanted}",
    )


def _run_an_anonymiser(summary: CorpusSummary) -> NextStep:
    name = summary.corpus.name
    return NextStep(
        title=f"Anonymise {name}",
        text="No system has anonymised it yet; the measures follow by themselves.",
        action="Run an anonymiser",
        url=reverse("systems:new", args=[name]),
    )
