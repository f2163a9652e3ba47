"""The scheduler's round: takes jobs back from processes that died and sends what the queue has lost.

It needs nothing but the rows, so it repairs a lost queue, a killed worker and a message that never arrived alike.
Several schedulers may run at once: each change is conditional.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.core.clock import read_clock
from portal.core.health import beat
from portal.core.maintenance import find_maintenance
from portal.jobs import services, workers
from portal.jobs.models import Actor, Job, State
from portal.jobs.retries import Limits, Verdict, judge_running
from portal.jobs.rules import is_ready, must_send
from portal.jobs.runner import timed_out

log = logging.getLogger(__name__)


def sweep(now: datetime | None = None) -> int:
    """One round; returns how many jobs it had to touch. During maintenance it sends none."""
    now = now or read_clock()
    running = Job.objects.filter(state=State.RUNNING).values_list("pk", flat=True)
    touched = sum(_take_back(pk, now) for pk in list(running))
    workers.forget_silent(now)
    beat("scheduler")
    if find_maintenance() is not None:
        return touched
    services.leave_card(now)
    busy = set(Job.objects.filter(state=State.RUNNING).values_list("queue", flat=True))
    for job in Job.objects.filter(state=State.WAITING).select_related("after").order_by("waiting_since"):
        if job.after is not None and job.after.state in {State.FAILED, State.CANCELLED}:
            services.settle_followers(job.after)
            touched += 1
        elif is_ready(job) and must_send(job, queue_is_idle=job.queue not in busy, now=now):
            if not services.send(job):
                break  # the queue is down; each further try would cost its time-out
            touched += 1
    return touched


@transaction.atomic
def _take_back(pk: Any, now: datetime) -> bool:
    # Read again under the lock: the job may have given a heartbeat or ended while this round waited for it.
    job = Job.objects.select_for_update().filter(pk=pk, state=State.RUNNING).first()
    if job is None:
        return False
    limits = Limits(
        lost_after=timedelta(seconds=settings.JOB_LOST_AFTER_S), hard_limit=timedelta(seconds=settings.JOB_HARD_LIMIT_S)
    )
    verdict = judge_running(job, limits, now)
    if verdict is Verdict.ALIVE:
        return False
    if verdict is Verdict.TRY_AGAIN:
        return services.release_job(job, "Its process stopped responding; the job waits for another.")
    if verdict is Verdict.CANCEL:
        return services.finish_job(job, State.CANCELLED, failure="Cancelled; what was finished is kept.")
    if verdict is Verdict.TIMED_OUT:
        return services.finish_job(job, State.FAILED, **timed_out(settings.JOB_HARD_LIMIT_S))
    return services.finish_job(
        job,
        State.FAILED,
        failure=f"The worker's process died {job.attempt} times while it ran this job, "
        f"last at “{job.stage or 'start'}”.",
        actor=Actor.OPERATOR,
        remedy="Look for lack of memory on the worker's machine; then run it again: what was finished is kept.",
    )
