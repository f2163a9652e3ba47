"""The kinds of jobs. An app registers each of its kinds in `handlers.py`, found by Django's start-up.

A handler takes the `JobContext` of its job, keeps what it finished in the database and may be called again for the same
job at any time: it then continues with what is missing. Heavy libraries are imported inside handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evaluation.formats.problems import Problem
from portal.jobs.models import Actor, Queue

if TYPE_CHECKING:
    from portal.jobs.runner import JobContext

Handler = Callable[["JobContext"], dict[str, Any] | None]


@dataclass(frozen=True)
class Kind:
    name: str
    title: str
    queue: Queue
    handler: Handler


class JobFailure(Exception):  # noqa: N818 - an outcome with a sentence, not a defect
    """A handler ends its job as failed: what failed, who must act, what to do, and each fault found."""

    def __init__(self, sentence: str, *, actor: Actor, remedy: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(sentence)
        self.actor = actor
        self.remedy = remedy
        self.problems = list(problems)


@dataclass
class _Registry:
    kinds: dict[str, Kind] = field(default_factory=dict)


_registry = _Registry()


def job_kind(name: str, *, title: str, queue: Queue) -> Callable[[Handler], Handler]:
    """Register the decorated function as the body of jobs of this kind."""

    def register(handler: Handler) -> Handler:
        _registry.kinds[name] = Kind(name=name, title=title, queue=queue, handler=handler)
        return handler

    return register


def get_kind(name: str) -> Kind:
    """The kind of this name.

    Raises:
        JobFailure: no installed app has such a kind.
    """
    try:
        return _registry.kinds[name]
    except KeyError:
        raise JobFailure(
            f"No part of the portal knows jobs of the kind {name!r}; known are {', '.join(sorted(_registry.kinds))}.",
            actor=Actor.OPERATOR,
            remedy="Run the same version of the portal in the web server and in every worker.",
        ) from None
