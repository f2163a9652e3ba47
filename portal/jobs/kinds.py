"""The kinds of jobs. An app registers each of its kinds in a `handlers.py`, found when Django starts.

A handler takes the `JobContext` of its job, keeps what it finished in the database and may be called again for the same
job at any time: it then continues with what is missing. A kind may also say what follows when a job of it ends. Heavy
libraries are imported inside handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from common.problems import Problem
from portal.jobs.models import Actor, Job, Queue

Handler = Callable[[Any], dict[str, Any] | None]  # takes the `portal.jobs.runner.JobContext` of its job
EndHandler = Callable[[Job], None]
EngineFinder = Callable[[], Iterable[str]]
MB = 10**6


@dataclass(frozen=True)
class Obstacle:
    """Why an ended job cannot run again, a sentence; what an organizer does instead, and the page for it."""

    sentence: str
    remedy: str
    address: str


@dataclass(frozen=True)
class JobKind:
    """A kind of jobs.

    Attributes:
        cores: the fewest with which a worker takes it.
        memory_mb: what it usually takes at most, without which in its share no worker takes it (MB).
        card_memory_mb: memory of the graphics card that it takes in the queue of cards (MB).
        time_limit_s: after which it is asked to end, in seconds; None for `PORTAL_JOB_SOFT_LIMIT_S`.
        uses_card: it runs on a graphics card as well, and goes there where a worker has one unless it is told.
        comes_first: people wait for it, so that it starts before all others of its queue.
        on_end: called with each job of this kind in the transaction in which it succeeded, failed or was cancelled.
        on_again: called with each job of this kind in the transaction in which somebody lets it run again.
        find_obstacle: why an ended job cannot run again; None where it can.
    """

    name: str
    title: str
    queue: Queue
    handler: Handler
    on_end: EndHandler | None = None
    on_again: EndHandler | None = None
    cores: int = 1
    memory_mb: int = 500
    card_memory_mb: int = 0
    time_limit_s: int | None = None
    uses_card: bool = False
    comes_first: bool = False
    find_obstacle: Callable[[Job], Obstacle | None] | None = None


class JobFailure(Exception):  # noqa: N818 - an outcome with a sentence, not a defect
    """A handler ends its job as failed: what failed, who must act, what to do, and each problem found."""

    def __init__(self, sentence: str, *, actor: Actor, remedy: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(sentence)
        self.actor = actor
        self.remedy = remedy
        self.problems = list(problems)


_kinds: dict[str, JobKind] = {}
_engine_finders: list[EngineFinder] = []


def job_kind(name: str, *, title: str, queue: Queue, **more: Any) -> Callable[[Handler], Handler]:
    """Register the decorated function as the body of jobs of this `JobKind`; `more` are further fields of it."""

    def register(handler: Handler) -> Handler:
        _kinds[name] = JobKind(name, title, queue, handler, **more)
        return handler

    return register


def call_on_end(job: Job) -> None:
    """Do what its kind says follows the end of this job; nothing where no installed app knows the kind."""
    kind = _kinds.get(job.kind)
    if kind is not None and kind.on_end is not None:
        kind.on_end(job)


def call_on_again(job: Job) -> None:
    """Do what its kind says follows when somebody lets this job run again."""
    kind = _kinds.get(job.kind)
    if kind is not None and kind.on_again is not None:
        kind.on_again(job)


def find_obstacle(job: Job) -> Obstacle | None:
    """Return why an ended job cannot run again; None where it can."""
    kind = _kinds.get(job.kind)
    return kind.find_obstacle(job) if kind is not None and kind.find_obstacle is not None else None


def describe_kind(name: str) -> str:
    """Return what jobs of this kind are, within a sentence."""
    title = _kinds[name].title if name in _kinds else name
    return title[:1].lower() + title[1:]


def engine_finder(find: EngineFinder) -> EngineFinder:
    """Register the decorated function, which names the engines that can run on this machine."""
    _engine_finders.append(find)
    return find


def find_engines() -> list[str]:
    """Return the engines that can run on this machine, by name; nothing is loaded to know them."""
    return sorted({name for find in _engine_finders for name in find()})


def kinds_beyond(*, cores: int, memory_bytes: int | None, card_memory_bytes: int | None) -> list[str]:
    """Return the kinds that need more than this. A size that is not known is enough for all.

    Args:
        memory_bytes: for one job.
        card_memory_bytes: for jobs of the queue of cards; None for those of the others, too.
    """
    return [
        kind.name
        for kind in _kinds.values()
        if kind.cores > cores
        or (memory_bytes is not None and kind.memory_mb * MB > memory_bytes)
        or (card_memory_bytes is not None and kind.card_memory_mb * MB > card_memory_bytes)
    ]


def list_kinds() -> list[JobKind]:
    """Return all kinds, by their queues."""
    queues = list(Queue)
    return sorted(_kinds.values(), key=lambda kind: (queues.index(kind.queue), kind.name))


def kinds_that_come_first() -> list[str]:
    """Return those for which people wait."""
    return [kind.name for kind in _kinds.values() if kind.comes_first]


def get_kind(name: str) -> JobKind:
    """Return the kind of this name.

    Raises:
        JobFailure: no installed app has such a kind.
    """
    try:
        return _kinds[name]
    except KeyError:
        raise JobFailure(
            f"No part of the portal knows jobs of the kind {name!r}; known are {', '.join(sorted(_kinds))}.",
            actor=Actor.OPERATOR,
            remedy="Run the same version of the portal in the web server and in every worker.",
        ) from None
