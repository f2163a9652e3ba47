"""Jobs as pages read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import (
    Case,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    Max,
    Min,
    Q,
    Sum,
    When,
    prefetch_related_objects,
)

from portal.core.clock import read_clock
from portal.core.labels import time_left
from portal.core.maintenance import is_seen
from portal.jobs.kinds import describe_kind
from portal.jobs.models import ACTIVE_STATES, Job, JobState, Queue
from portal.jobs.rules import is_ready, remaining_time
from portal.jobs.turns import find_teams_at_limit
from portal.jobs.workers import Worker, known_workers

DELETION = "delete"  # what it deletes has no organizers any more who might see it
STARVED_AFTER = timedelta(minutes=2)


def list_things_being_deleted() -> set[tuple[str, int]]:
    """Return what jobs under way delete, as in ``("challenges.edition", 3)``."""
    active = Job.objects.filter(kind=DELETION, state__in=ACTIVE_STATES)
    return {(found["thing"], found["number"]) for found in active.values_list("parameters", flat=True)}


def share_done(jobs: Sequence[Job]) -> float:
    """Return how much of some jobs is done, 0 to 1: each counts the same, one that runs by its own progress."""
    done = sum(
        1.0 if job.has_ended else (job.percent or 0) / 100 if job.state == JobState.RUNNING else 0 for job in jobs
    )
    return done / len(jobs) if jobs else 0.0


@dataclass(frozen=True, kw_only=True)
class JobsProgress:
    """How far some jobs are, which are `with_estimates` and in the order of their work.

    Attributes:
        estimate: how long all of them still need, in words.
        is_part: whether jobs are left out that have pages of their own.
    """

    jobs: list[Job]
    estimate: str = ""
    is_part: bool = False

    @property
    def parts(self) -> list[Job]:
        """Return the jobs whose progress is shown."""
        return self.jobs

    @property
    def is_active(self) -> bool:
        return any(not job.has_ended for job in self.jobs)

    @property
    def ended(self) -> int:
        return sum(job.has_ended for job in self.parts)

    @property
    def percent(self) -> int:
        return int(100 * share_done(self.parts))

    @property
    def failed(self) -> list[Job]:
        return [job for job in self.parts if job.state == JobState.FAILED]

    @property
    def cancelled(self) -> int:
        return sum(job.state == JobState.CANCELLED for job in self.parts)

    @property
    def running(self) -> list[Job]:
        return [job for job in self.parts if job.state == JobState.RUNNING]

    @property
    def wait(self) -> str:
        """Return what the next part waits for."""
        return next((job.wait for job in self.parts if job.state == JobState.WAITING), "")  # type: ignore[attr-defined]


def with_estimates(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs, each with `remaining`, how long its stage still needs, `estimate`, the same in words, `took`,
    and `wait`, what it waits for in a sentence.

    The clock is read only where a job runs or waits. `remaining` and `took` are timedeltas or None.
    """
    found = list(jobs)
    now = read_clock() if any(not job.has_ended for job in found) else None
    waits = _explain_waits([job for job in found if job.state == JobState.WAITING], now)
    for job in found:
        job.wait = waits.get(job.pk, "")  # type: ignore[attr-defined]
        job.remaining = remaining_time(job, now) if now else None  # type: ignore[attr-defined]
        job.estimate = time_left(job.remaining)  # type: ignore[attr-defined]
        job.took = job.finished_at - job.started_at if job.finished_at and job.started_at else None  # type: ignore[attr-defined]
    return found


def _explain_waits(jobs: list[Job], now: datetime | None) -> dict[Any, str]:
    """Return what each of these jobs waits for: another job, a worker that is busy with jobs of some kinds, or any
    worker."""
    prefetch_related_objects([job for job in jobs if job.after_id], "after")
    ready = [job for job in jobs if is_ready(job)]
    waits = {job.pk: f"Waits until “{job.after.title}” has ended." for job in jobs if job.after and job not in ready}
    if not ready:
        return waits
    if is_seen():
        return waits | {job.pk: "Waits for the end of maintenance mode." for job in ready}
    living = [worker for worker in known_workers(now or read_clock()) if not worker.is_silent]
    full = find_teams_at_limit()
    for queue, team, kind, engine in {_needs(job) for job in ready}:
        serving = [worker for worker in living if queue in worker.queues]
        able = [worker for worker in serving if worker.capacity.can_take(queue, kind, engine)]
        if serving and not able:
            sentence = explain_unable(kind, engine)
        else:
            sentence = explain_queue(queue, able, is_team_at_limit=(queue, team) in full, has_team=team != 0)
        waits |= {job.pk: sentence for job in ready if _needs(job) == (queue, team, kind, engine)}
    return waits


def _needs(job: Job) -> tuple[str, int, str, str]:
    return job.queue, job.team, job.kind, job.engine


def explain_unable(kind: str, engine: str) -> str:
    """Return why no worker of its queue takes a job, and what to do."""
    if engine:
        return f"No running worker has the engine “{engine}”, or the memory for it. The operator has to add it to one."
    return (
        f"No running worker has the memory or cores that “{describe_kind(kind)}” needs. The operator has to start one "
        "on a larger machine, or with fewer jobs at a time."
    )


def is_taken_elsewhere(job: Job, *, than: str) -> bool:
    """Return whether a living worker other than this one can run a job."""
    return any(
        job.queue in worker.queues and worker.capacity.can_take(job.queue, job.kind, job.engine)
        for worker in known_workers(read_clock())
        if worker.name != than and not worker.is_silent
    )


def explain_queue(
    queue: str, serving: Iterable[Worker], *, is_team_at_limit: bool = False, has_team: bool = False
) -> str:
    """Return why a job of a queue has to wait, by the living workers that serve it."""
    name = Queue(queue).label
    workers = list(serving)
    if not workers:
        return f"No running worker takes jobs of the queue “{name}”. The operator has to start one."
    if is_team_at_limit:
        return f"Waits until a job of this team has ended: at most {settings.JOBS_PER_TEAM} of a team run at a time."
    if any(worker.has_room for worker in workers):
        return "A worker has room and takes it in a moment."
    kinds = Counter(describe_kind(job.kind) for worker in workers for job in worker.jobs)
    busy = ", ".join(kind if count == 1 else f"{kind} ({count})" for kind, count in kinds.most_common())
    return f"Waits for a worker{'; teams take turns' if has_team else ''}. At work: {busy}."


@dataclass(frozen=True)
class QueueState:
    """How one queue stands; `is_starved` when something waits for long and nothing takes it.

    `oldest_waiting` is of the jobs that may start, which those of a team at its limit may not. `unable` says why no
    worker of the queue can run some of them, a sentence for each reason; they do not count there.
    """

    name: str
    title: str
    waiting: int
    running: int
    oldest_waiting: timedelta | None
    workers: list[Worker]
    unable: tuple[str, ...] = ()

    @property
    def living(self) -> list[Worker]:
        return [worker for worker in self.workers if not worker.is_silent]

    @property
    def places(self) -> int:
        """Return how many jobs its workers run at a time."""
        return sum(worker.capacity.processes for worker in self.living)

    @property
    def is_starved(self) -> bool:
        """A job waits for longer than `STARVED_AFTER`, and no running worker serves the queue, or one with room takes
        nothing: between two jobs each has room for a moment.
        """
        if self.oldest_waiting is None or self.oldest_waiting <= STARVED_AFTER:
            return False
        return not self.living or any(worker.has_room and not worker.is_taking for worker in self.living)


@dataclass(frozen=True)
class Ended:
    """How many jobs of a kind ended in a state, the seconds that their last attempts took together, and most memory."""

    kind: str
    state: str
    count: int
    seconds: float
    memory_bytes: int


def count_ended() -> list[Ended]:
    took = ExpressionWrapper(F("finished_at") - F("started_at"), DurationField())
    ended = Job.objects.filter(finished_at__isnull=False).order_by("kind", "state").values("kind", "state")
    rows = ended.annotate(count=Count("pk"), took=Sum(took), memory=Max("memory_bytes"))
    return [
        Ended(row["kind"], row["state"], row["count"], (row["took"] or timedelta()).total_seconds(), row["memory"])
        for row in rows
    ]


def queue_states(now: datetime | None = None) -> list[QueueState]:
    now = now or read_clock()
    ready = Q(state=JobState.WAITING) & (Q(after=None) | Q(after__state=JobState.SUCCEEDED))
    followed = When(after__finished_at__gt=F("waiting_since"), then=F("after__finished_at"))
    ready_since = Case(
        followed, default=F("waiting_since")
    )  # what follows a job waits for a worker once that has ended
    may_start = ready
    for queue, team in find_teams_at_limit():
        may_start &= ~Q(queue=queue, team=team)
    rows = Job.objects.filter(state__in=ACTIVE_STATES).order_by().values("queue", "kind", "engine")
    counted = rows.annotate(
        waiting=Count("pk", filter=ready),
        running=Count("pk", filter=Q(state=JobState.RUNNING)),
        since=Min(ready_since, filter=may_start),
    )
    found: list[dict[str, Any]] = [dict(row) for row in counted]
    workers = known_workers(now)
    return [_queue_state(queue, [row for row in found if row["queue"] == queue], workers, now) for queue in Queue]


def _queue_state(queue: Queue, rows: list[dict[str, Any]], workers: list[Worker], now: datetime) -> QueueState:
    """Return how a queue stands, by what its jobs need."""
    serving = [worker for worker in workers if queue.value in worker.queues]
    living = [worker.capacity for worker in serving if not worker.is_silent]
    is_able = [not living or any(one.can_take(queue, row["kind"], row["engine"]) for one in living) for row in rows]
    since = min((row["since"] for row, able in zip(rows, is_able, strict=True) if able and row["since"]), default=None)
    late = [row for row, able in zip(rows, is_able, strict=True) if not able and row["since"]]
    unable = {explain_unable(row["kind"], row["engine"]) for row in late if now - row["since"] > STARVED_AFTER}
    waiting, running = (sum(row[name] for row in rows) for name in ("waiting", "running"))
    oldest = now - since if since else None
    return QueueState(queue.value, str(queue.label), waiting, running, oldest, serving, tuple(sorted(unable)))
