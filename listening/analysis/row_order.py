"""One order for the rows of a study, so that the order of a file's lines changes no digit of any result.

Sums of the same numbers in another order differ in the last digit, and what is fitted or drawn from them in more.
Answers of a session stand by their position; where that is not known, by what was presented. An answer itself never
decides: of two ratings of one item, the lower one would always seem to be the first. They stay as they were given.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from listening.analysis.inputs import Inputs, Objective, Placements, Ratings, Transcripts

_Part = TypeVar("_Part", Ratings, Placements, Transcripts, Objective)
_FIRST = ("listener", "session", "position", "board", "item", "system")
_ANSWERS = frozenset({"rating", "x", "y", "group", "declared", "text", "nothing"})


def in_one_order(inputs: Inputs) -> Inputs:
    """The same study with the rows of each part sorted by who, when and what; equal ones as they were."""
    return replace(
        inputs,
        ratings=None if inputs.ratings is None else _sorted(inputs.ratings),
        placements=None if inputs.placements is None else _sorted(inputs.placements),
        transcripts=None if inputs.transcripts is None else _sorted(inputs.transcripts),
        objective=None if inputs.objective is None else _sorted(inputs.objective),
    )


def _sorted(part: _Part) -> _Part:
    names = [field.name for field in fields(part)]
    by = [name for name in _FIRST if name in names]
    by += [name for name in names if name not in by and name not in _ANSWERS]
    rows: _Part = part.rows(np.lexsort([getattr(part, name) for name in reversed(by)]))
    return rows
