"""What a job that works for hours has of its machine: time, memory, torch, and a folder that outlives its process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from common.memory import available_bytes
from portal.core.clock import read_clock
from portal.core.labels import roughly
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job
from portal.jobs.runner import JobReleased
from portal.jobs.workers import count_threads
from speech.model_files.devices import Device, choose_device

_USED_SHARE = 0.9  # of the time that a job may take; what a part takes is known from those before, but not exactly


def threads() -> int:
    """Return how many threads a job may use: as the portal was told, or its share of the cores."""
    wanted: int = getattr(settings, "ANONYMIZER_THREADS", 0)
    return wanted or count_threads()


@contextmanager
def own_threads(most: int | None = None) -> Iterator[None]:
    """Let torch use as many threads as the portal gives a job, fewer where the network cannot keep more busy.

    Threads that wait for each other at every layer cost more than they bring, above all beside other work.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(threads(), most or threads())))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def working_folder(place: str, name: str, list_held: Callable[[], Collection[str]]) -> Iterator[Path]:
    """Yield the folder of a job, with what a killed process left of it; removed when the work has ended, kept by an
    error.

    Args:
        place: of all folders of such jobs, below that of the portal's data.
        name: of the folder; what stands before its first hyphen says whose it is.
        list_held: whose folders are needed still; those of all others are removed.
    """
    remove_folders(place, list_held)
    folder = _place(place) / name
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def choose_card(wish: bool | None, wanted_by: str, remedy: str) -> Device:
    """Choose where torch computes.

    Args:
        wish: whether a graphics card is needed; None where one is used if there is one.

    Raises:
        JobFailure: a card is needed, and this worker's torch finds none.
    """
    device: Device = "cpu" if wish is False else choose_device(("torch",))
    if wish and device == "cpu":
        raise JobFailure(
            f"{wanted_by} a graphics card, and this worker's torch finds none.",
            actor=Actor.OPERATOR,
            remedy=f"Let only workers with a graphics card serve the queue gpu, {remedy}",
        )
    return device


def require_memory(needed_bytes: float, what: str, remedy: str) -> None:
    """Refuse at once what cannot fit.

    Raises:
        JobFailure: this machine has less memory left.
    """
    there = available_bytes()
    if there is not None and needed_bytes > there:
        raise JobFailure(
            f"{what} needs about {needed_bytes / 2**30:.1f} GiB of memory; this machine has {there / 2**30:.1f} GiB "
            "left.",
            actor=Actor.OPERATOR,
            remedy=remedy,
        )


def measure_work(job: Job) -> float:
    """Return how long a job has run, in seconds."""
    assert job.started_at is not None  # noqa: S101 - it runs
    return (read_clock() - job.started_at).total_seconds()


def give_way(job: Job, next_s: float, going_on: str) -> None:
    """Go back to the queue where the next part of the work would take longer than the job may.

    Args:
        next_s: what the next part takes.
        going_on: what continues where.

    Raises:
        JobReleased
    """
    spent_s = measure_work(job)
    if spent_s + next_s > _USED_SHARE * settings.JOB_SOFT_LIMIT_S and spent_s >= next_s:
        raise JobReleased(f"A job may take {roughly(settings.JOB_SOFT_LIMIT_S)}: {going_on} when the job runs again.")


def remove_folders(place: str, list_held: Callable[[], Collection[str]]) -> None:
    """Remove the folders of a place whose owner nobody names any more; arguments as of `working_folder`."""
    found = list(_place(place).iterdir()) if _place(place).is_dir() else []
    held = list_held() if found else ()  # afterwards: what is there now was begun before
    for folder in found:
        if folder.name.partition("-")[0] not in held:
            shutil.rmtree(folder, ignore_errors=True)


def _place(name: str) -> Path:
    return Path(settings.DATA_DIR) / name
