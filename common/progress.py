"""How a long piece of work says how far it is: a function that is called often, and that may raise to end the work."""

from __future__ import annotations

import time
from collections.abc import Callable

Count = Callable[[int, int], None]  # done, total
Progress = Callable[[str, int, int], None]  # stage, done, total


def ignore_progress(*_: object) -> None:
    """Tells nobody."""


def sparse_progress(tell: Progress, every_s: float = 0.2) -> Progress:
    """Return the same, but not more often than so: the first and the last of each stage are always told."""
    told: tuple[str, float] = ("", 0.0)

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        if stage != told[0] or done >= total or now - told[1] >= every_s:
            told = stage, now
            tell(stage, done, total)

    return progress
