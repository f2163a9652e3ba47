"""Trials that are not scored: practice before the others, gold and bridge trials among them.

Every block meets all of them. Gold and bridge trials stand between scored ones, never next to each other, one in each
part of the session of equal length; which one, and where in its part, differs from block to block. What is inserted
parts neighbours and joins none, so the rules of order stay met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from listening.design.plan import Design, DesignError


def insert_controls(
    design: Design, *, practice: Sequence[str], gold: Sequence[str], bridge: Sequence[str], seed: int
) -> tuple[tuple[str, ...], ...]:
    """All keys of each block in the order of hearing.

    Raises:
        DesignError: a key occurs twice, or the blocks are too short to keep gold and bridge trials apart.
    """
    _validate(design, [*practice, *gold, *bridge], len(gold) + len(bridge))
    random = np.random.default_rng(seed)
    controls = [str(key) for key in random.permutation(np.array([*gold, *bridge], dtype=object))]
    cycle = random.permutation(max(1, len(controls)))
    return tuple(
        (*practice, *_with_inserted(block, controls, int(cycle[number % cycle.size]), random))
        for number, block in enumerate(design.blocks)
    )


def _with_inserted(block: Sequence[str], controls: Sequence[str], shift: int, random: np.random.Generator) -> list[str]:
    """A control after one of the places of each part: the gaps between scored trials, cut into equal parts."""
    gaps = np.array_split(np.arange(1, len(block)), max(1, len(controls)))
    rotated = [*controls[shift:], *controls[:shift]]
    after = {int(random.choice(part)): key for part, key in zip(gaps, rotated, strict=False)}
    found: list[str] = []
    for place, key in enumerate(block):
        found += [after[place], key] if place in after else [key]
    return found


def _validate(design: Design, keys: Sequence[str], inserted: int) -> None:
    problems = []
    scored = {key for block in design.blocks for key in block}
    twice = [key for key, count in Counter(keys).items() if count > 1 or key in scored]
    if twice:
        problems.append(
            f"Expected practice, control and bridge trials that occur once and are not scored,"
            f" found {', '.join(twice[:3])}."
        )
    shortest = min((len(block) for block in design.blocks), default=0)
    if inserted > max(0, shortest - 1):
        problems.append(
            f"Expected room between {shortest} scored trials for {inserted} control and bridge trials that are never"
            f" next to each other, found {max(0, shortest - 1)} places. {max(0, shortest - 1)} of them, or"
            f" {inserted + 1} scored trials, would do."
        )
    if problems:
        raise DesignError(problems)
