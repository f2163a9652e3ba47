"""One check of a certificate: what was required, what was found, and one sentence that says both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from listening.design.plan import Bounds

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Check:
    """Attributes:
    name: short stable name of the constraint.
    passed: whether it is met everywhere.
    required, found: in words.
    sentence: both, with the first places where it is not met.
    """

    name: str
    passed: bool
    required: str
    found: str
    sentence: str


def check_faults(name: str, required: str, found: str, faults: Iterable[str]) -> Check:
    """A check that passes without faults; its sentence names the first ones."""
    listed = list(faults)
    start = f"{name[0].upper()}{name[1:]}: {required}; found {found}."
    if not listed:
        return Check(name, True, required, found, start)
    more = f"; and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return Check(name, False, required, found, f"{start} Not met: {'; '.join(listed[:_NAMED])}{more}.")


def check_counts(name: str, what: str, rows: Sequence[tuple[str, int, Bounds]]) -> Check:
    """A check of counts, each with its place and its bounds."""
    required = " or ".join(sorted({str(bounds) for _, _, bounds in rows}, key=_first_number)) or "nothing"
    counts = [count for _, count, _ in rows]
    found = str(Bounds(min(counts), max(counts))) if counts else "nothing"
    faults = [f"{place}: {count} instead of {bounds}" for place, count, bounds in rows if count not in bounds]
    return check_faults(name, f"{what}: {required}", found, faults)


def _first_number(words: str) -> tuple[int, str]:
    return int(words.split()[0]), words
