"""Names and numbers as figures print them, and as they name figures and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from itertools import count as numbers_from
from typing import Any

from common.rounding import fixed
from common.tables import Value

LONGEST_NAME = 15
LONGEST_SLUG = 80
_LONGEST_GROUP = 10
_KEPT_END = 6
# What the typeface of PDF and PNG has for certain: Latin, Greek and Cyrillic.
_LAST_LETTER = 0x52F


def number(value: Value, digits: int = 2) -> str:
    """Write a number with a true minus sign, rounded as tables round it; a dash where there is none."""
    return fixed(value, digits) if isinstance(value, (int, float)) else "–"


def percent(value: Value, digits: int = 1) -> str:
    """Return a share in per cent, without the sign."""
    return number(100 * value, digits) if isinstance(value, (int, float)) else "–"


def count(value: int) -> str:
    """Write a number with thousands separated."""
    return f"{value:,}"


def interval(row: Mapping[str, Any], name: str, write: Callable[[Value], str], level: str = "") -> str:
    """Write the interval of a column behind its value, in brackets, with its level if given; empty without one."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "" if low is None else f" ({level}{write(low)} to {write(high)})"


def slug(name: str) -> str:
    """Return a name as it may stand in an address and, with what is put around it, as the name of a file."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:LONGEST_SLUG] or "unnamed"


def find_free(name: str, taken: Collection[str], first: int = 2) -> str:
    """Return the name, or where it is taken the first of ``name-2``, ``name-3``… that is not."""
    return next(one for one in chain([name], (f"{name}-{again}" for again in numbers_from(first))) if one not in taken)


def sentence(words: str) -> str:
    """Return words with a capital letter."""
    return words[:1].upper() + words[1:]


def listed(items: Sequence[str], *, first: int = 4, last: int = 2) -> str:
    """Return all items, or of many the first and the last ones."""
    if len(items) <= first + last + 1:
        return "; ".join(items)
    left_out = len(items) - first - last
    return "; ".join([*items[:first], f"{left_out} more", *items[-last:]])


def short_names(labels: Mapping[str, str]) -> dict[str, str]:
    """Return each system's label as it fits beside a figure: short, printable, and different for different systems.

    Args:
        labels: by the names of systems.

    Example:
        >>> short_names({"a": "T11-p1", "b": "An anonymiser with a long name"})
        {'a': 'T11-p1', 'b': 'An anony…g name'}
    """
    taken: set[str] = set()
    short: dict[str, str] = {}
    for name, label in labels.items():
        drawable = (one for one in (label, name) if one and one.isprintable() and ord(max(one)) <= _LAST_LETTER)
        printable = next(drawable, "")
        text = _cut(printable) if printable else f"system {len(short) + 1}"
        again = 2
        while text in taken:
            text = f"{_cut(printable)[: LONGEST_NAME - 3]}~{again}"
            again += 1
        taken.add(text)
        short[name] = text
    return short


def short_group(letters: str | None) -> str:
    """Return the letters of a group with runs joined, ``abcdf`` as ``a–d f``, cut where they are still many."""
    letters = letters or ""
    parts = letters.split() if " " in letters else list(letters)
    runs: list[list[str]] = []
    for part in parts:
        before = runs[-1][-1] if runs else ""
        if len(part) == len(before) == 1 and ord(part) == ord(before) + 1:
            runs[-1].append(part)
        else:
            runs.append([part])
    joined = " ".join("".join(run) if len(run) < 4 else f"{run[0]}–{run[-1]}" for run in runs)
    return joined if len(joined) <= _LONGEST_GROUP else joined[: _LONGEST_GROUP - 1].rstrip("– ") + "…"


def _cut(text: str) -> str:
    if len(text) <= LONGEST_NAME:
        return text
    return text[: LONGEST_NAME - _KEPT_END - 1].rstrip() + "…" + text[-_KEPT_END:].lstrip()
