"""Compare what was found with what is frozen; all differences are listed, not only the first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

RELATIVE, NEAR_ZERO = 1e-5, 1e-9  # processors differ
# Pitch is shifted in float32, whose last digits depend on the processor: some samples round to the integer beside, and
# attackers trained on a few utterances multiply that. Seen between two machines: up to 5 %.
SHIFTED, SHIFTED_RELATIVE, SHIFTED_NEAR_ZERO = ("demo-pitch-shift", "demo-t02-"), 0.1, 1e-4
LONGEST = 200  # characters of a value
NAMING = 5  # fields


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each difference: where it is, what was expected, what was found.

    Numbers with a fraction may differ by 1e-5 of their size, near zero by 1e-9; those of the systems that shift pitch
    by a tenth, near zero by 1e-4. Whole numbers and texts, so ranks, letters and counts, may not differ.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in dict.fromkeys([*expected, *found]):
            if key not in found:
                yield f"{path} › {key}: expected {_short(expected[key])}, found nothing"
            elif key not in expected:
                yield f"{path} › {key}: expected nothing, found {_short(found[key])}"
            else:
                yield from differences(expected[key], found[key], f"{path} › {key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) == len(found):
            for number, (one, other) in enumerate(zip(expected, found, strict=True), 1):
                yield from differences(one, other, f"{path} › {_name(number, one)}")
        else:
            yield f"{path}: expected {len(expected)} entries, found {len(found)}"
            yield from (f"{path}: expected {_short(one)}, found nothing" for one in expected if one not in found)
            yield from (f"{path}: expected nothing, found {_short(one)}" for one in found if one not in expected)
    elif not _agree(expected, found, path):
        yield f"{path}: expected {_short(expected)}, found {_short(found)}"


def _name(number: int, entry: Any) -> str:
    """Return how an entry of a list is called: by its number, and by the words among its first fields."""
    words = (
        [one for one in list(entry.values())[:NAMING] if isinstance(one, str) and one]
        if isinstance(entry, dict)
        else []
    )
    return f"{number} ({', '.join(words)})" if words else str(number)


def _agree(expected: Any, found: Any, path: str) -> bool:
    if {type(expected), type(found)} <= {int, float} and float in {type(expected), type(found)}:
        both_nan = math.isnan(expected) and math.isnan(found)
        is_shifted = any(name in path for name in SHIFTED)
        relative, near_zero = (SHIFTED_RELATIVE, SHIFTED_NEAR_ZERO) if is_shifted else (RELATIVE, NEAR_ZERO)
        return both_nan or math.isclose(expected, found, rel_tol=relative, abs_tol=near_zero)
    return type(expected) is type(found) and bool(expected == found)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
