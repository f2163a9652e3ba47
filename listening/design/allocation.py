"""The whole design of a request: which trials every evaluator meets, and in which order.

`allocate` checks the request, deals the trials (`filling`) and orders them (`ordering`); everything is drawn from the
request's seed, so the same request gives the same design. `listening.design.certificate` checks it on its own.
"""

from __future__ import annotations

import numpy as np

from listening.design.feasibility import validate_request
from listening.design.filling import fill_blocks
from listening.design.groups import groups_of
from listening.design.ordering import Progress, order_blocks
from listening.design.plan import VERSION, Design, DesignRequest, required


def allocate(request: DesignRequest, *, progress: Progress | None = None) -> Design:
    """A design that meets every constraint at the head of `listening.design.plan`.

    Args:
        progress: called with how many are done, of how many, and of what.

    Raises:
        DesignError: the request cannot be met; every reason, with the numbers that would do.
    """
    validate_request(request)
    needs = required(request)
    random = np.random.default_rng(request.seed)
    if progress is not None:
        progress(0, request.evaluators, "allocation")
    nothing = np.zeros(len(request.candidates), dtype=np.int64)
    filled = fill_blocks(request, groups_of(request, needs), request.evaluators, nothing, random)
    blocks = [[request.candidates[number] for number in session] for session in random.permutation(filled)]
    ordered = order_blocks(request, needs, blocks, [], random, progress)
    return Design(VERSION, request.seed, tuple(tuple(trial.key for trial in block) for block in ordered))
