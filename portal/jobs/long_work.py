"""What a job that works for hours has of its machine: threads of torch, and a folder that outlives its process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from portal.jobs.workers import count_threads


def threads() -> int:
    """How many threads a job may use: as the portal was told, or its share of the cores."""
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
    """The folder of a job, with what a killed process left of it; removed when the work has ended, kept by an error.

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


def remove_folders(place: str, list_held: Callable[[], Collection[str]]) -> None:
    """Remove the folders of a place whose owner nobody names any more; arguments as of `working_folder`."""
    found = list(_place(place).iterdir()) if _place(place).is_dir() else []
    held = list_held() if found else ()  # afterwards: what is there now was begun before
    for folder in found:
        if folder.name.partition("-")[0] not in held:
            shutil.rmtree(folder, ignore_errors=True)


def _place(name: str) -> Path:
    return Path(settings.DATA_DIR) / name
