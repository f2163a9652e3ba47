"""The tables of jobs, of the queues they wait in, and of the workers that run them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from django.utils.html import format_html, format_html_join

from common.memory import format_size
from common.tables import Cell, Column, Group, Row, Table, number_columns, plain_table
from portal.core.labels import MISSING, as_facts, count_severities, duration, moment_cell
from portal.jobs.kinds import describe_kind
from portal.jobs.models import Job, JobState
from portal.jobs.selectors import Ended, QueueState
from portal.jobs.workers import Capacity, Worker

# Parameters and results that are keys of rows, of stored files and of code, which tell a reader nothing, or a number
# that another page shows with its meaning.
KEYS = {
    *("analysis", "besides", "content", "edition", "engine", "kind", "members", "number", "part"),
    *("own_eer", "recipe", "rule", "run", "sha256", "study", "submission", "team", "test", "upload", "url"),
}
COLUMNS = (
    Column("job", "Job", kind="text"),
    Column("state", "State"),
    Column("progress", "Progress", kind="text"),
    Column("created", "Created (UTC)"),
    Column("took", "Took", kind="num"),
)


def jobs_table(jobs: Iterable[Job], titles: Mapping[str, str] | None = None) -> Table:
    """Jobs as `with_estimates` gives them, under what they are for where that differs.

    Args:
        titles: of the editions, by their names; None for one group without a heading.
    """
    groups: dict[str, list[Row]] = {}
    for job in jobs:
        groups.setdefault("" if titles is None else find_purpose(job, titles), []).append(_job_row(job))
    made = tuple(Group(tuple(rows), band=purpose if len(groups) > 1 else "") for purpose, rows in groups.items())
    return Table(COLUMNS, made, "Jobs", caption="Jobs", is_caption_hidden=True)


def find_purpose(job: Job, titles: Mapping[str, str]) -> str:
    """What a job is for, in words."""
    if job.edition:
        return titles.get(job.edition, job.edition)
    return f"Corpus {job.corpus}" if job.corpus else "The portal"


def job_facts(job: Job) -> list[tuple[str, str]]:
    """What a job was started with, as (label, value) pairs; an archive by the name that it was uploaded with."""
    told = _without_keys(job.parameters)
    if "upload" in job.parameters:
        told = {"archive": told.pop("folder")} | told
    if "lines" in told:
        told["text"] = " ".join(told.pop("lines"))
    return as_facts(told)


def result_facts(job: Job) -> list[tuple[str, str]]:
    """What came of a job, as (label, value) pairs."""
    return as_facts(_without_keys(job.result))


def _without_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in KEYS}


def _job_row(job: Job) -> Row:
    link = format_html('<a id="job-{}" href="{}">{}</a>', job.pk, job.get_absolute_url(), job.title)
    took = duration(job.took) if job.has_ended and job.started_at else ""  # type: ignore[attr-defined]
    state = Cell(job.get_state_display(), badge=job.state)
    return Row(
        (
            Cell(job.title, drawing=link),
            state,
            _progress(job),
            moment_cell(job.created_at, "%Y-%m-%d %H:%M"),
            Cell(took),
        )
    )


def _progress(job: Job) -> Cell:
    if job.state == JobState.RUNNING:
        how_far = f" {job.done:,} of {job.total:,}" if job.total else ""
        return Cell(f"{job.stage or 'Starting'}{how_far}", aside=job.estimate)  # type: ignore[attr-defined]
    if job.state == JobState.WAITING:
        return Cell(aside=job.wait)  # type: ignore[attr-defined]
    return Cell(count_severities(job.problems))


def _links(jobs: Iterable[Job]) -> str:
    """Jobs by their titles; empty for none."""
    return format_html_join(", ", '<a href="{}">{}</a>', ((job.get_absolute_url(), job.title) for job in jobs))


def queues_table(queues: Iterable[QueueState]) -> Table:
    """How each queue stands."""
    columns = [Column("queue", "Queue"), *number_columns("Workers", "Running", "Waiting", "Oldest has waited")]
    rows: list[list[Cell | str]] = [
        [
            Cell(queue.title[:1].upper() + queue.title[1:], aside=f"({queue.name})"),
            _count_workers(queue.living),
            f"{queue.running}",
            f"{queue.waiting}",
            duration(queue.oldest_waiting),
        ]
        for queue in queues
    ]
    return plain_table("Jobs in each queue", columns, rows, caption="Jobs in each queue", is_caption_hidden=True)


def _count_workers(workers: Sequence[Worker]) -> str:
    """How many there are, and where they are fewer than the jobs that they run at a time, how many these are."""
    places = sum(worker.capacity.processes for worker in workers)
    return f"{len(workers)}" if places <= len(workers) else f"{len(workers)}, for {places} jobs at a time"


def _files_cell(worker: Worker) -> Cell:
    """When a worker last read what the web server wrote."""
    if worker.files_problem:
        return Cell("not readable", marks=("silent",), title=worker.files_problem)
    return Cell(f"{duration(worker.files_age)} ago" if worker.files_age is not None else "not yet")


def workers_table(queues: Iterable[QueueState]) -> Table:
    """Each worker once, whatever queues it serves."""
    workers = {worker.name: worker for worker in chain.from_iterable(queue.workers for queue in queues)}
    columns = [Column("worker", "Worker"), Column("queues", "Queues"), *number_columns("Jobs at a time")]
    columns += [
        Column("machine", "Machine", kind="text"),
        Column("runs", "Runs", kind="text"),
        Column("contact", "Last contact"),
        Column("files", "Files read"),
    ]
    rows: list[list[Cell | str]] = [
        [
            name,
            ", ".join(worker.queues),
            f"{worker.capacity.processes}",
            _describe_machine(worker.capacity),
            Cell("nothing", drawing=format_html("<span>{}</span>", _links(worker.jobs)) if worker.jobs else ""),
            Cell(f"{duration(worker.silence)} ago", marks=("silent",) if worker.is_silent else ()),
            _files_cell(worker),
        ]
        for name, worker in workers.items()
    ]
    name = "Living workers"
    return plain_table(name, columns, rows, caption=name, is_caption_hidden=True, missing=MISSING)


def ended_table(ended: Iterable[Ended]) -> Table:
    """The jobs that ended, by kind: how many, how long those that succeeded took, the most memory that one held."""
    kinds: dict[str, dict[str, Ended]] = {}
    for one in ended:
        kinds.setdefault(one.kind, {})[one.state] = one
    states = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
    heads = [*(state.label.capitalize() for state in states), "Mean duration", "Most memory"]
    rows = []
    for kind, found in kinds.items():
        done, memory = found.get(JobState.SUCCEEDED), max(one.memory_bytes for one in found.values())
        title = describe_kind(kind)
        rows.append(
            [
                f"{title[:1].upper()}{title[1:]}",
                *(f"{found[state].count:,}" if state in found else "0" for state in states),
                duration(done.seconds / done.count) if done else "",
                format_size(memory) if memory else "",
            ]
        )
    name = "Jobs that ended"
    columns = [Column("kind", "Kind", kind="text"), *number_columns(*heads)]
    return plain_table(name, columns, sorted(rows), caption=name, is_caption_hidden=True, missing=MISSING)


def _describe_machine(capacity: Capacity) -> Cell:
    """Its cores, memory and graphics card, and which engines it has."""
    words = [f"{capacity.cores} core{'' if capacity.cores == 1 else 's'}"]
    if capacity.memory_bytes is not None:
        words.append(format_size(capacity.memory_bytes))
    if capacity.card:
        size = f" ({format_size(capacity.card_memory_bytes)})" if capacity.card_memory_bytes else ""
        words.append(f"{capacity.card}{size}")
    return Cell(", ".join(words), aside=", ".join(capacity.engines or ()))
