"""What the tables show of jobs, of those that ended, and of the workers that run them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpResponse

from portal.core.labels import as_facts
from portal.jobs.kinds import describe_kind
from portal.jobs.models import Job, JobState
from portal.jobs.selectors import Ended, QueueState
from portal.jobs.workers import Worker

HTMX_STOP_POLLING = 286
# Parameters and results that are keys of rows, of stored files and of code, which tell a reader nothing, or a number
# that another page shows with its meaning.
KEYS = {
    *("analysis", "besides", "content", "edition", "engine", "kind", "members", "number", "part"),
    *("own_eer", "recipe", "rule", "run", "sha256", "study", "submission", "team", "test", "upload", "url"),
}


def group_jobs(jobs: Iterable[Job], titles: Mapping[str, str] | None = None) -> list[tuple[str, list[Job]]]:
    """Return jobs as `with_estimates` gives them, under what they are for where that differs.

    Args:
        titles: of the editions, by their names; None for one group without a heading.
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault("" if titles is None else find_purpose(job, titles), []).append(job)
    return list(groups.items())


def find_purpose(job: Job, titles: Mapping[str, str]) -> str:
    """Return what a job is for, in words."""
    if job.edition:
        return titles.get(job.edition, job.edition)
    return f"Corpus {job.corpus}" if job.corpus else "The portal"


def job_facts(job: Job) -> list[tuple[str, str]]:
    """Return what a job was started with, as (label, value) pairs; an archive by the name that it was uploaded with."""
    told = _without_keys(job.parameters)
    if "upload" in job.parameters:
        told = {"archive": told.pop("folder")} | told
    if "lines" in told:
        told["text"] = " ".join(told.pop("lines"))
    return as_facts(told)


def result_facts(job: Job) -> list[tuple[str, str]]:
    """Return what came of a job, as (label, value) pairs."""
    return as_facts(_without_keys(job.result))


def _without_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in KEYS}


def group_ended(ended: Iterable[Ended]) -> list[dict[str, Any]]:
    """Return the jobs that ended, by kind: how many, how long those that succeeded took, the most memory of one."""
    kinds: dict[str, dict[str, Ended]] = {}
    for one in ended:
        kinds.setdefault(describe_kind(one.kind), {})[one.state] = one
    states = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
    return [
        {
            "kind": kind,
            "counts": [found[state].count if state in found else 0 for state in states],
            "mean_s": done.seconds / done.count if (done := found.get(JobState.SUCCEEDED)) else None,
            "memory_bytes": max(one.memory_bytes for one in found.values()),
        }
        for kind, found in sorted(kinds.items())
    ]


def list_workers(queues: Iterable[QueueState]) -> list[Worker]:
    """Return each worker once, whatever queues it serves."""
    return list({worker.name: worker for queue in queues for worker in queue.workers}.values())


def reload_page() -> HttpResponse:
    """Once all jobs have ended, htmx stops asking for the live part of a page and loads the whole page again."""
    return HttpResponse(status=HTMX_STOP_POLLING, headers={"HX-Refresh": "true"})
