"""How a long piece of work says how far it is: a function that is called often, and that may raise to end the work."""

from __future__ import annotations

from collections.abc import Callable

Count = Callable[[int, int], None]  # done, total
Progress = Callable[[str, int, int], None]  # stage, done, total


def ignore_progress(*_: object) -> None:
    """Tells nobody."""
