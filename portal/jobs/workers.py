"""The workers: each leaves a heartbeat that names the queues it serves, so that a dead one is seen.

A worker writes its sign every `JOB_HEARTBEAT_S` from its own loop, where it also takes jobs; without one for
`JOB_LOST_AFTER_S` it counts as silent, and an hour later it is forgotten.
"""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from portal.core.health import beat
from portal.core.models import Pulse
from portal.jobs.models import Job, Queue, State

KIND = "worker"
CARDS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
FORGOTTEN_AFTER = timedelta(hours=1)


@dataclass
class _Process:
    worker: str = ""


_process = _Process()


def become_worker() -> str:
    """Make this process, and those that it forks from now on, a worker; its name."""
    _process.worker = f"{socket.gethostname()} {os.getpid()}"
    return _process.worker


def this_worker() -> str:
    """The worker that this process belongs to; empty in a shell or the web server."""
    return _process.worker


def leave_sign(queues: Iterable[str], processes: int) -> None:
    """Tell that this worker lives."""
    beat(this_worker(), kind=KIND, queues=sorted(queues), processes=processes, has_card=_finds_card())


def sign_off() -> None:
    """This worker ends in order and need not be missed."""
    Pulse.objects.filter(kind=KIND, name=this_worker()).delete()


def forget_silent(now: datetime) -> None:
    """Drop the workers that have been silent for long."""
    Pulse.objects.filter(kind=KIND, at__lt=now - FORGOTTEN_AFTER).delete()


def served_queues(now: datetime) -> frozenset[str]:
    """The queues that a living worker serves."""
    alive = Pulse.objects.filter(kind=KIND, at__gte=now - timedelta(seconds=settings.JOB_LOST_AFTER_S))
    return frozenset(queue for pulse in alive for queue in pulse.details["queues"])


def has_card(now: datetime) -> bool:
    """Whether a living worker serves the queue of graphics cards and has one."""
    alive = Pulse.objects.filter(kind=KIND, at__gte=now - timedelta(seconds=settings.JOB_LOST_AFTER_S))
    return any(Queue.GPU in pulse.details["queues"] and pulse.details.get("has_card", False) for pulse in alive)


def _finds_card() -> bool:
    """Whether this machine shows a graphics card for computing, of NVIDIA or AMD; nothing is loaded to know it."""
    return any(Path(name).exists() for name in CARDS)


@dataclass(frozen=True)
class Worker:
    """A worker and what it does.

    Attributes:
        queues: in the order of `Queue`.
        processes: how many jobs it runs at a time.
        is_taking: it began or ended a job not long ago, so that what waits has its turn.
    """

    name: str
    queues: list[str]
    processes: int
    silence: timedelta
    is_silent: bool
    jobs: list[Job]
    is_taking: bool

    @property
    def has_room(self) -> bool:
        return len(self.jobs) < self.processes


def known_workers(now: datetime) -> list[Worker]:
    """The workers by name, silent ones among them."""
    jobs, taking = defaultdict(list), set[str]()
    patience = timedelta(seconds=settings.JOB_LOST_AFTER_S)
    recent = Q(state=State.RUNNING) | Q(finished_at__gt=now - patience)
    for job in Job.objects.filter(recent).exclude(worker="").defer("problems", "result").order_by("started_at"):
        if job.state == State.RUNNING:
            jobs[job.worker].append(job)
        if (job.finished_at or job.started_at or now - patience) > now - patience:
            taking.add(job.worker)
    return [
        Worker(
            name=pulse.name,
            queues=[queue.value for queue in Queue if queue in pulse.details["queues"]],
            processes=pulse.details["processes"],
            silence=max(now - pulse.at, timedelta()),
            is_silent=now - pulse.at > patience,
            jobs=jobs[pulse.name],
            is_taking=pulse.name in taking,
        )
        for pulse in Pulse.objects.filter(kind=KIND, at__gte=now - FORGOTTEN_AFTER).order_by("name")
    ]
