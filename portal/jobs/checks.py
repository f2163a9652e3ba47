"""What the jobs tell the portal's health."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db import DatabaseError

from portal.core.health import check_all, health_check
from portal.core.labels import duration
from portal.core.maintenance import find_maintenance
from portal.jobs.selectors import QueueState, queue_states


@health_check("workers")
def check_workers() -> str | None:
    """Return whether jobs wait that nobody takes. A queue without a worker is no problem while nothing waits in it."""
    try:
        return explain_starved(queue_states())
    except DatabaseError:
        return "The database does not tell which workers live."


def check_all_beside(queues: Sequence[QueueState]) -> dict[str, str | None]:
    """Return every check by name, where the queues have been looked at already."""
    return check_all({"workers": explain_starved(queues)})


def explain_starved(queues: Iterable[QueueState]) -> str | None:
    """Return sentences on queues whose jobs nobody takes; None where there are none, or maintenance holds all of
    them."""
    known = list(queues)
    starved = [_sentence(queue) for queue in known if queue.is_starved]
    found = " ".join([*starved, *(sentence for queue in known for sentence in queue.unable)])
    return found if found and find_maintenance() is None else None


def _sentence(queue: QueueState) -> str:
    waiting = f"A job has waited for {duration(queue.oldest_waiting)} in the queue {queue.name}"
    if queue.living:
        return f"{waiting}, although {queue.living[0].name} serves it and has room. Start that worker again."
    silent = min(queue.workers, key=lambda worker: worker.silence, default=None)
    last = f"; the last one, {silent.name}, has been silent for {duration(silent.silence)}" if silent else ""
    return (
        f"{waiting}, which no running worker serves{last}. Start one: {settings.PROGRAM} worker --queues {queue.name}."
    )
