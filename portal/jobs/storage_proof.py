"""A worker's proof that it reads what the web server wrote: at its start, and every minute in a thread of its own.

The loop that takes messages reads the rows and passes them on, so that a store of files that is slow to answer holds up
no heartbeat, and no thread but the loop's has a connection to the database. While the proof fails the worker's
processes take no job: the rows wait for a worker that can.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.core.clock import read_clock
from portal.core.storage_probes import EVERY_S, Probe, find_probes, find_problem

AGAIN_S = 10.0  # while it fails
TRIES = 3  # a file may be written anew between its row and its reading
# Shared between a worker and its child processes, which are forked after this module was imported.
_failing = multiprocessing.RawValue("b", 0)
log = logging.getLogger(__name__)


@dataclass
class _Proof:
    due_at: float = 0.0
    failures: int = 0
    problem: str = ""
    at: datetime | None = None  # of the last reading that succeeded
    thread: threading.Thread | None = None


_proof = _Proof()


def is_failing() -> bool:
    """Whether this worker does not read what the web server wrote."""
    return bool(_failing.value)


def prove_at_start() -> None:
    """Read what the web servers wrote before any job is taken; nothing is proven where none has written yet."""
    for _ in range(TRIES):
        _read(find_probes(), read_clock())
        if not _proof.failures:
            return
        time.sleep(1)


def prove_when_due() -> None:
    """Begin a reading where one is due; to be called with every heartbeat."""
    if time.monotonic() < _proof.due_at or (_proof.thread and _proof.thread.is_alive()):
        return
    _proof.thread = threading.Thread(target=_read, args=(find_probes(), read_clock()), name="proof", daemon=True)
    _proof.thread.start()


def describe() -> dict[str, Any]:
    """For the heartbeat: when the worker last read what the web server wrote, and why it does not now."""
    return {"files_at": _proof.at.isoformat() if _proof.at else "", "files_problem": _proof.problem}


def _read(probes: list[Probe], now: datetime) -> None:
    try:
        found = find_problem(probes, now)
    except Exception as error:
        found = f"This worker does not read the portal's files: {error}"
    if not found:
        if _proof.problem:
            log.warning("This worker reads the portal's files again.")
        _proof.failures, _proof.problem, _failing.value = 0, "", 0
        _proof.at = now if probes else None
        _proof.due_at = time.monotonic() + (EVERY_S if probes else AGAIN_S)
        return
    _proof.failures += 1
    _proof.due_at = time.monotonic() + AGAIN_S
    if _proof.failures >= TRIES or "PORTAL_SECRET_KEY" in found:
        if found.partition(":")[0] != _proof.problem.partition(":")[0]:
            log.error("%s", found)
        _proof.problem, _failing.value = found, 1
