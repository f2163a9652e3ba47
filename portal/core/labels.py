"""How durations, numbers and reports read on a page: pure functions, used by selectors and by the template tags.

Conventions: durations in seconds or as timedelta; a value that is missing reads as an en dash.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf.locale import LANG_INFO

from common.problems import Problem, ProblemGroup, Severity, group_problems
from common.rounding import fixed
from common.tables import Cell

MISSING = "–"
SHOWN_OF_A_GROUP = 50
# How `common.packages` and the store of models say what helps.
REMEDY = re.compile(r"\. (?:Install|Fetch) (?:it|them) with “(?P<command>[^“”]*)”[^.]*")


def name_language(code: str) -> str:
    """Return a language of a recipe in English, such as ``French``; its code where nobody named it."""
    known: Mapping[str, Any] = LANG_INFO.get("zh-hans" if code in ("cn", "zh") else code, {})
    return str(known.get("name", code)).removeprefix("Simplified ")


def moment_cell(at: datetime, form: str = "%Y-%m-%d", link: str = "") -> Cell:
    """Return a time in a table, in UTC; to the second for a program, as the filter `moment` writes it in pages."""
    return Cell(f"{at:{form}}", moment=at.isoformat(timespec="seconds"), link=link)


@dataclass(frozen=True)
class Missing:
    """What cannot run here for one reason: names of it, the reason, and the command that helps, which may be empty."""

    names: list[str]
    reason: str
    command: str = ""


def group_missing(lacks: Iterable[tuple[str, str]]) -> list[Missing]:
    """Return what cannot run here by its reason, in the order in which the reasons come.

    Args:
        lacks: title, and the sentence that says what is missing; empty where nothing is.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for title, sentence in lacks:
        if sentence:
            found = REMEDY.search(sentence)
            reason = REMEDY.sub("", sentence).strip().rstrip(".").removeprefix(f"{title} ")
            groups.setdefault((reason, found["command"] if found else ""), []).append(title)
    return [
        Missing(titles if len(titles) == 1 else list(dict.fromkeys(title.partition(" (")[0] for title in titles)), *why)
        for why, titles in groups.items()
    ]


def duration(length: float | timedelta | None) -> str:
    """Such as ``under 0.1 s``, ``3.2 s``, ``48 s``, ``4 min 5 s``, ``3 h 12 min``, ``2 d 4 h``."""
    if length is None:
        return MISSING
    seconds = length.total_seconds() if isinstance(length, timedelta) else float(length)
    if seconds < 0.05:
        return "under 0.1 s" if seconds > 0 else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, smaller_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit} {rest} {smaller_unit}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def time_left(length: timedelta | None) -> str:
    """Return an estimate, no finer than it can be: ``about 20 s left``, ``about 3 min left``; empty when unknown."""
    return "" if length is None else f"{roughly(length.total_seconds())} left"


def roughly(seconds: float) -> str:
    """Return a length of time that is only estimated: ``a few seconds``, ``about 20 s``, ``about 3 min``, ``about 2
    h``."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 58:
        return f"about {5 * round(seconds / 5)} s"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min"
    return f"about {round(seconds / 3600)} h"


def decimals(value: float | None, digits: int) -> str:
    """Return a number with so many digits after the point and a true minus sign."""
    return MISSING if value is None else fixed(value, digits)


SYMBOLS = {"alpha": "α"}


def symbol(name: str) -> str:
    """Return a parameter as the papers write it: ``α`` for ``alpha``; a name without a symbol stays."""
    return SYMBOLS.get(name, name)


def group_stored_problems(problems: Iterable[Mapping[str, Any]]) -> list[ProblemGroup[Problem]]:
    """Group problems that are stored with a job by cause, the worst and the most frequent first."""
    groups = group_problems((Problem(**problem) for problem in problems), SHOWN_OF_A_GROUP)
    return sorted(groups, key=lambda group: (list(Severity).index(group.severity), -group.count, group.title))


def count_severities(problems: Iterable[Mapping[str, Any]]) -> str:
    """Such as ``2 errors, 1 warning, 14 notes``."""
    totals: Counter[str] = Counter()
    for problem in problems:
        totals[problem["severity"]] += problem.get("count", 1)
    counts = ((severity, totals[severity]) for severity in Severity)
    return ", ".join(f"{n} {severity}{'' if n == 1 else 's'}" for severity, n in counts if n)


# What the end of a name says of its number; the first that fits.
UNITS: Mapping[str, Callable[[float], str]] = {
    "_per_s": lambda value: f"{value:g} per s",
    "_s": duration,
    "_hz": lambda value: f"{value:,} Hz",
    "_dbov": lambda value: f"{decimals(value, 1)} dBov",
}


def as_facts(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a small JSON object as (label, value) pairs; objects inside it are opened.

    What is empty or false is left out, and so are lists of objects: rows of a table that another page shows. What an
    object inside it names stays as it is written: the names of data sets.
    """
    facts: list[tuple[str, str]] = []
    for key, value in values.items():
        label = _title(key)
        if isinstance(value, Mapping):
            facts += [(f"{label}: {name}", text) for name, one in value.items() for _, text in as_facts({name: one})]
        elif value is True:
            facts.append((_title(key.removeprefix("is_")), "yes"))
        elif isinstance(value, list) and value and not isinstance(value[0], Mapping):
            facts.append((label, ", ".join(map(str, value))))
        elif unit := next((one for one in UNITS if key.endswith(one) and isinstance(value, int | float)), ""):
            facts.append((_title(key.removesuffix(unit)), UNITS[unit](value)))
        elif not isinstance(value, list) and value is not False and value not in ("", None, []):
            facts.append((label, f"{value:,}" if isinstance(value, int) else str(value)))
    return facts


def _title(code: str) -> str:
    words = code.replace("-", " ").replace("_", " ")
    return words[:1].upper() + words[1:]
