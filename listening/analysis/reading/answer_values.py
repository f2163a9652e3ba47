"""Which answers a question takes, by its kind.

| kind | question | answers |
| --- | --- | --- |
| ``mos`` | one recording on a scale (ACR, DCR, own) | a number on the scale, 1 to 5 where none is given |
| ``mushra`` | several at once on sliders | 0 to 100 |
| ``ccr`` | how much better B is than A | −3 to 3 |
| ``ab`` | which is preferred | ``A``, ``B``, ``=`` |
| ``abx`` | which one X is | ``A`` or ``B`` as truth says, or ``right`` and ``wrong`` |
| ``choice`` | one of several labels | a label |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from listening.analysis.reading.text_tables import parse_number

KINDS = ("mos", "ccr", "ab", "abx", "mushra", "choice")
NUMERIC_KINDS = frozenset({"mos", "ccr", "mushra"})
PAIRED_KINDS = frozenset({"ccr", "ab", "abx"})
RIGHT, WRONG = "right", "wrong"
_SCALES = {"mos": (1.0, 5.0), "ccr": (-3.0, 3.0), "mushra": (0.0, 100.0)}
_WORDS = {"ab": ("A", "B", "="), "abx": ("A", "B", RIGHT, WRONG)}


def find_scale(about: Mapping[str, Any]) -> tuple[float, float]:
    """Return lowest and highest answer of a question whose answers are numbers.

    Example:
        >>> find_scale({"kind": "ccr"})
        (-3.0, 3.0)
    """
    low, high = about.get("scale") or _SCALES[about["kind"]]
    return float(low), float(high)


def is_allowed(value: str, about: Mapping[str, Any]) -> bool:
    """Return whether a question takes an answer.

    Example:
        >>> is_allowed("=", {"kind": "ab"}), is_allowed("4", {"kind": "ccr"}), is_allowed("happy", {"kind": "choice"})
        (True, False, True)
    """
    kind = about["kind"]
    if kind in NUMERIC_KINDS:
        low, high = find_scale(about)
        return (number := parse_number(value)) is not None and low <= number <= high
    return value in _WORDS.get(kind, (value or None,))


def say_allowed(about: Mapping[str, Any]) -> str:
    """Return the answers that a question takes in words."""
    kind = about["kind"]
    if kind in NUMERIC_KINDS:
        low, high = find_scale(about)
        return f"a number from {low:g} to {high:g}"
    return f"one of {', '.join(_WORDS[kind])}" if kind in _WORDS else "a label"


def find_question_problem(about: Any) -> str:
    """Return what is wrong with the description of a question, as what was expected; empty where nothing is."""
    if not isinstance(about, dict) or about.get("kind") not in KINDS:
        return f"a kind among {', '.join(KINDS)}"
    if "scale" in about:
        scale = about["scale"]
        are_numbers = isinstance(scale, list) and len(scale) == 2 and all(type(end) in (int, float) for end in scale)
        if not are_numbers or not scale[0] < scale[1]:
            return "a lower and a higher number as scale"
    if not all(isinstance(about.get(name, ""), str) for name in ("reference", "anchor")):
        return "names of conditions as reference and anchor"
    return ""
