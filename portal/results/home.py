"""What a member finds at home: the work that is under way, what comes next, and for the operator how the parts do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from portal.challenges.selectors import CorpusSummary, corpora_for, summaries
from portal.core.health import check_all
from portal.jobs.models import Job, State
from portal.jobs.selectors import jobs_for, queue_states, with_estimates
from portal.submissions.models import System
from portal.submissions.selectors import systems_for

SHOWN = 8


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
        failed = jobs_for(user).filter(state=State.FAILED)
        page |= {"summaries": corpora, "systems": systems[:SHOWN], "more_systems": len(systems) > SHOWN}
        page["steps"] = list(next_steps(corpora, systems, failed.first(), failed.count()))
    if user.is_staff:
        page |= {"queues": queue_states(), "checks": check_all()}
    return page


def next_steps(
    corpora: list[CorpusSummary], systems: list[System], failed: Job | None, failures: int
) -> Iterator[NextStep]:
    """What an organizer does next: first what is broken, then what is missing."""
    if failed is not None:
        yield _look_at_failures(failed, failures)
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
            yield _run_a_baseline(summary)


def _look_at_failures(failed: Job, failures: int) -> NextStep:
    several = failures > 1
    return NextStep(
        title=f"{failures} jobs failed" if several else f"“{failed.title}” failed",
        text="Each says what was wrong, who must act and what to do." if several else failed.failure,
        action="See the failed jobs" if several else "See the job",
        url=f"{reverse('jobs:list')}?state=failed" if several else failed.get_absolute_url(),
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


def _run_a_baseline(summary: CorpusSummary) -> NextStep:
    name = summary.corpus.name
    return NextStep(
        title=f"Anonymise {name}",
        text=f"Run a baseline anonymiser over {name}; its measures follow by themselves.",
        action="Run a baseline",
        url=reverse("systems:new", args=[name]),
    )
