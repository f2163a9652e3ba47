"""More blocks for a design that exists: what was rated least comes first, so that all blocks together stay balanced."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from listening.design.feasibility import validate_request
from listening.design.filling import fill_blocks
from listening.design.groups import Integers, groups_of
from listening.design.ordering import Progress, order_blocks
from listening.design.plan import Design, DesignError, DesignRequest, Extension, Requirements, required

FEW_TRIALS = 500  # of the added blocks together: looking for a way costs little
BEGINNINGS = 5


def extend(
    request: DesignRequest, design: Design, *, blocks: int, seed: int, progress: Progress | None = None
) -> Design:
    """The whole design with `blocks` more: the old blocks first, as they were, then the new ones.

    Args:
        request: of the design as it was launched; earlier extensions stand in the design.
        seed: of the added blocks; kept in the design's extensions.

    Raises:
        DesignError: fewer than one block, a design of other trials, or no allocation that stays balanced.
    """
    validate_request(request)
    known = {candidate.key: candidate for candidate in request.candidates}
    strange = sorted({key for block in design.blocks for key in block} - set(known))
    if blocks < 1 or strange:
        problems = [f"Expected at least 1 block to add, found {blocks}."] if blocks < 1 else []
        problems += [f"Expected a design of the trials asked for, found {', '.join(strange[:3])}."] if strange else []
        raise DesignError(problems)
    earlier = [[known[key] for key in block] for block in design.blocks]
    rated = Counter(key for block in design.blocks for key in block)
    already = np.array([rated[candidate.key] for candidate in request.candidates], dtype=np.int64)
    whole = replace(request, evaluators=len(design.blocks) + blocks)
    needs = required(whole)
    filled, random = _filled(whole, needs, blocks, already, seed)
    new = [[request.candidates[number] for number in session] for session in random.permutation(filled)]
    ordered = order_blocks(whole, needs, new, earlier, random, progress, len(design.extensions) + 1)
    return replace(
        design,
        blocks=(*design.blocks, *(tuple(trial.key for trial in block) for block in ordered)),
        extensions=(*design.extensions, Extension(blocks, seed)),
    )


def _filled(
    whole: DesignRequest, needs: Requirements, blocks: int, already: Integers, seed: int
) -> tuple[Integers, np.random.Generator]:
    """The new blocks and the generator that goes on; where few have no way from one beginning, others are tried."""
    beginnings = BEGINNINGS if blocks * whole.trials <= FEW_TRIALS else 1
    for beginning in range(beginnings):
        random = np.random.default_rng([seed, beginning] if beginning else seed)
        try:
            return fill_blocks(whole, groups_of(whole, needs), blocks, already, random), random
        except DesignError:
            if beginning == beginnings - 1:
                raise
    raise AssertionError("There is always a first beginning.")
