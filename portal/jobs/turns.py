"""Which job a worker takes next, and how many of one team run at a time."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Case, Count, Exists, F, OuterRef, Q, Subquery, When
from django.db.models.functions import Coalesce

from portal.core.maintenance import KIND as MAINTENANCE
from portal.core.models import Heartbeat
from portal.jobs.kinds import kinds_that_come_first
from portal.jobs.models import Job, JobState
from portal.jobs.workers import Capacity


def find_next(queue: str, capacity: Capacity | None = None) -> Any:
    """Return the job of a queue that starts next, by its key; None where none may start, as during maintenance. One
    query.

    Args:
        capacity: of the machine that asks, which gets no job that needs more or another engine; None for any.

    First come the kinds for which people wait. Then teams take turns: the one with the fewest running jobs, and of
    these the one whose last job began longest ago. Of a team it is the job that waits longest. `PORTAL_JOBS_PER_TEAM`
    limits how many of one team run.
    """
    ours = Job.objects.filter(queue=OuterRef("queue"), team=OuterRef("team")).order_by()
    running = ours.filter(state=JobState.RUNNING).values("team").annotate(count=Count("pk")).values("count")
    served = ours.filter(started_at__isnull=False).order_by("-started_at").values("started_at")[:1]
    # What a caller is going to run itself was not sent.
    ready = Job.objects.filter(Q(sent_at=None) | Q(times_sent__gt=0), queue=queue, state=JobState.WAITING)
    ready = ready.filter(Q(after=None) | Q(after__state=JobState.SUCCEEDED), cancel_requested_at=None)
    ready = ready.exclude(Exists(Heartbeat.objects.filter(kind=MAINTENANCE)))
    if capacity is not None:
        ready = ready.exclude(kind__in=capacity.kinds_beyond(queue))
        if capacity.engines is not None:
            ready = ready.filter(engine__in=("", *capacity.engines))
    ready = ready.annotate(
        turn=Case(When(kind__in=kinds_that_come_first(), then=0), default=1),
        running=Coalesce(Subquery(running), 0),
        served=Subquery(served),
    )
    if settings.JOBS_PER_TEAM:
        ready = ready.filter(Q(team=0) | Q(running__lt=settings.JOBS_PER_TEAM))
    order = ("turn", "running", F("served").asc(nulls_first=True), "waiting_since", "created_at")
    return ready.order_by(*order).values_list("pk", flat=True).first()


def find_teams_at_limit() -> set[tuple[str, int]]:
    """Return queues and teams of which no other job may start now (`find_next`); no query where no limit is set."""
    if not settings.JOBS_PER_TEAM:
        return set()
    running = Job.objects.filter(state=JobState.RUNNING).exclude(team=0).order_by().values("queue", "team")
    full = running.annotate(count=Count("pk")).filter(count__gte=settings.JOBS_PER_TEAM)
    return set(full.values_list("queue", "team"))
