"""The workers: each leaves a heartbeat that says which queues it serves and what its machine has.

A worker writes its sign every `JOB_HEARTBEAT_S` from its own loop, where it also takes jobs; without one for
`JOB_LOST_AFTER_S` it counts as silent, and an hour later it is forgotten. Sizes are in bytes.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q, QuerySet

from common.cores import count_cores
from common.memory import total_bytes
from portal.core.clock import read_clock
from portal.core.health import write_heartbeat
from portal.core.models import Heartbeat
from portal.jobs.kinds import find_engines, kinds_beyond
from portal.jobs.models import Job, JobState, Queue

KIND = "worker"
CARDS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
FORGOTTEN_AFTER = timedelta(hours=1)
THREADS_AT_MOST = 8
# Up to so many cores each job may use all of them: what runs beside it is little.
FEW_CORES = 4
# What the system and other programs keep of a machine's memory.
KEPT_SHARE = 0.1
_SHOW_CARD = ("nvidia-smi", "--query-gpu=memory.total,name", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Capacity:
    """What the machine of a worker has for its jobs. None: not known.

    Attributes:
        processes: how many jobs run at a time.
        memory_bytes: of the machine, or of its container.
        card: name of the graphics card; empty without one.
        engines: names of those that can run.
    """

    processes: int = 1
    cores: int = 1
    memory_bytes: int | None = None
    card: str = ""
    card_memory_bytes: int | None = None
    engines: tuple[str, ...] | None = None

    @property
    def share_bytes(self) -> int | None:
        """Return memory that one job may take."""
        if settings.JOB_MEMORY_MB:
            return int(settings.JOB_MEMORY_MB) * 10**6
        return None if self.memory_bytes is None else int(self.memory_bytes * (1 - KEPT_SHARE)) // self.processes

    def kinds_beyond(self, queue: str) -> list[str]:
        """Return the kinds of jobs that need more in this queue than this machine has."""
        return kinds_beyond(
            cores=self.cores,
            memory_bytes=self.share_bytes,
            card_memory_bytes=(self.card_memory_bytes if self.card else 0) if queue == Queue.GPU else None,
        )

    def can_take(self, queue: str, kind: str, engine: str) -> bool:
        """Return whether a job of this queue and kind that needs this engine can run here."""
        has_engine = not engine or self.engines is None or engine in self.engines
        return has_engine and kind not in self.kinds_beyond(queue)


@dataclass
class _Process:
    worker: str = ""
    capacity: Capacity | None = None


_process = _Process()


def become_worker(processes: int = 1) -> str:
    """Make this process, and those that it forks from now on, a worker; its name."""
    _process.worker = f"{socket.gethostname()} {os.getpid()}"
    _process.capacity = measure_capacity(processes)
    return _process.worker


def this_worker() -> str:
    """Return the worker that this process belongs to; empty in a shell or the web server."""
    return _process.worker


def this_capacity() -> Capacity | None:
    """Return what the machine of this worker has; None in a shell or the web server, where everything may run."""
    return _process.capacity


def measure_capacity(processes: int) -> Capacity:
    """Return what this machine has for a worker that runs so many jobs at a time."""
    card, card_memory_bytes = _find_card()
    return Capacity(processes, count_cores(), total_bytes(), card, card_memory_bytes, tuple(find_engines()))


def count_threads() -> int:
    """Return how many threads a job of this process may use: as many as there are cores, shared with jobs beside it."""
    cores, capacity = count_cores(), this_capacity()
    if capacity is not None and cores > FEW_CORES:
        cores = max(1, cores // capacity.processes)
    return min(THREADS_AT_MOST, cores)


def write_worker_heartbeat(queues: Iterable[str], processes: int, *, look_again: bool = False) -> None:
    """Tell that this worker lives.

    Args:
        look_again: whether to look which engines can run, such as after models were fetched.
    """
    capacity = this_capacity() or measure_capacity(processes)
    if look_again:
        capacity = replace(capacity, engines=tuple(find_engines()))
    _process.capacity = capacity = replace(capacity, processes=processes)
    write_heartbeat(this_worker(), kind=KIND, queues=sorted(queues), **asdict(capacity))


def sign_off() -> None:
    """This worker ends in order and need not be missed."""
    Heartbeat.objects.filter(kind=KIND, name=this_worker()).delete()


def forget_silent(now: datetime) -> None:
    """Drop the workers that have been silent for long."""
    Heartbeat.objects.filter(kind=KIND, at__lt=now - FORGOTTEN_AFTER).delete()


def _find_alive(now: datetime) -> QuerySet[Heartbeat]:
    return Heartbeat.objects.filter(kind=KIND, at__gte=now - timedelta(seconds=settings.JOB_LOST_AFTER_S))


def served_queues(now: datetime) -> frozenset[str]:
    """Return the queues that a living worker serves."""
    return frozenset(queue for heartbeat in _find_alive(now) for queue in heartbeat.details["queues"])


def lacking(missing: Mapping[str, str]) -> dict[str, str]:
    """Return what keeps engines from running anywhere: a sentence for each name; empty where this machine or a worker
    has it.

    Args:
        missing: what each lacks on this machine, which may be one that runs no jobs.
    """
    if not any(missing.values()):
        return dict(missing)
    had = {name for heartbeat in _find_alive(read_clock()) for name in heartbeat.details.get("engines") or ()}
    return {name: "" if name in had else sentence for name, sentence in missing.items()}


def has_card(now: datetime, kind: str = "") -> bool:
    """Return whether a living worker serves the queue of graphics cards and has one, with room for jobs of this
    kind."""
    return any(
        Queue.GPU in heartbeat.details["queues"]
        and heartbeat.details.get("card")
        and (not kind or _read_capacity(heartbeat).can_take(Queue.GPU, kind, ""))
        for heartbeat in _find_alive(now)
    )


def sees_card() -> bool:
    """Return whether this machine shows a graphics card for computing, of NVIDIA or AMD; nothing is loaded to know
    it."""
    return any(Path(name).exists() for name in CARDS)


def _find_card() -> tuple[str, int | None]:
    """Return the first graphics card of this machine and its memory, where that can be told."""
    if not sees_card():
        return "", None
    with suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
        shown = subprocess.run(_SHOW_CARD, capture_output=True, text=True, timeout=20, check=True).stdout  # noqa: S603
        memory, name = shown.splitlines()[0].split(", ", 1)
        return name.strip(), int(memory) << 20
    return "graphics card", None


@dataclass(frozen=True)
class Worker:
    """A worker and what it does.

    Attributes:
        queues: in the order of `Queue`.
        capacity: of its machine, and how many jobs it runs at a time.
        is_taking: it began or ended a job not long ago, so that what waits has its turn.
    """

    name: str
    queues: list[str]
    capacity: Capacity
    silence: timedelta
    is_silent: bool
    jobs: list[Job]
    is_taking: bool

    @property
    def has_room(self) -> bool:
        return len(self.jobs) < self.capacity.processes


def known_workers(now: datetime) -> list[Worker]:
    """Return the workers by name, silent ones among them."""
    jobs, taking = defaultdict(list), set[str]()
    patience = timedelta(seconds=settings.JOB_LOST_AFTER_S)
    recent = Q(state=JobState.RUNNING) | Q(finished_at__gt=now - patience)
    for job in Job.objects.filter(recent).exclude(worker="").defer("problems", "result").order_by("started_at"):
        if job.state == JobState.RUNNING:
            jobs[job.worker].append(job)
        if (job.finished_at or job.started_at or now - patience) > now - patience:
            taking.add(job.worker)
    return [
        Worker(
            name=heartbeat.name,
            queues=[queue.value for queue in Queue if queue in heartbeat.details["queues"]],
            capacity=_read_capacity(heartbeat),
            silence=max(now - heartbeat.at, timedelta()),
            is_silent=now - heartbeat.at > patience,
            jobs=jobs[heartbeat.name],
            is_taking=heartbeat.name in taking,
        )
        for heartbeat in Heartbeat.objects.filter(kind=KIND, at__gte=now - FORGOTTEN_AFTER).order_by("name")
    ]


def _read_capacity(heartbeat: Heartbeat) -> Capacity:
    """As the worker told it; one of another version may tell less."""
    told = {name: heartbeat.details[name] for name in Capacity.__dataclass_fields__ if name in heartbeat.details}
    engines = told.get("engines")
    return Capacity(**told | {"engines": None if engines is None else tuple(engines)})
