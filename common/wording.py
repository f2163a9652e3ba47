"""Counts and lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, one: str, several: str = "") -> str:
    """``1 listener``, ``1,200 listeners``."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def name_some(names: Sequence[str], most: int = 3) -> str:
    """So many of the names, and how many more there are: ``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says; its kind where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
