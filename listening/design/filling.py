"""Which candidates each block holds, before their order: dealt evenly by flow, then repaired by swaps.

The flow meets every bound of systems, sexes, speakers and utterances of a half exactly, and those of classes except
where an odd number of trials of a system comes to an evaluator; swaps bring these right, and utterances across halves.
"""

from __future__ import annotations

import numpy as np

from listening.design.dealing import deal_ratings
from listening.design.division import divide
from listening.design.groups import CLASS, ENROLMENT, SEX, SOURCE, SPEAKER, SYSTEM, Groups, Integers
from listening.design.plan import DesignError, DesignRequest
from listening.design.swapping import swap_until_right

_ATTEMPTS, _LARGE = 8, 1000  # trials; from there on a third of the attempts, which take seconds each


def fill_blocks(
    request: DesignRequest, groups: Groups, blocks: int, already: Integers, random: np.random.Generator
) -> Integers:
    """Candidates by number in each of `blocks` new blocks, shape (blocks, trials), the originals first.

    Args:
        already: shape (candidates,), how often each is rated in earlier blocks.

    Raises:
        DesignError: no way was found; says what would give it more room.
    """
    found = ""
    attempts = _ATTEMPTS if blocks * request.trials < _LARGE else _ATTEMPTS // 3
    for _ in range(attempts):
        ratings = deal_ratings(request, groups, blocks, already, random)
        if isinstance(ratings, str):
            found = found or ratings
            continue
        sessions = np.concatenate(
            [_half(request, groups, ratings, blocks, random, original=original) for original in (True, False)], axis=1
        )
        wrong = swap_until_right(sessions, request.originals, groups, random)
        if not wrong:
            return sessions
        found = wrong
    raise DesignError([_nothing_found(request, blocks, attempts, found)])


def _half(
    request: DesignRequest,
    groups: Groups,
    ratings: Integers,
    blocks: int,
    random: np.random.Generator,
    *,
    original: bool,
) -> Integers:
    """One half of all blocks, shape (blocks, trials of the half)."""
    of_half = np.array([candidate.is_original == original for candidate in request.candidates], dtype=np.bool_)
    rated = np.repeat(np.flatnonzero(of_half), ratings[of_half])
    trials = request.originals if original else request.anonymised
    if not trials:
        return np.zeros((blocks, 0), dtype=np.int64)
    member = groups.member[rated]
    left = [CLASS, ENROLMENT] if original else [SYSTEM, CLASS]
    of_block = divide([member[:, k] for k in left], [member[:, k] for k in (SEX, SPEAKER, SOURCE)], blocks, random)
    return rated[np.argsort(of_block, kind="stable")].reshape(blocks, trials)


def _nothing_found(request: DesignRequest, blocks: int, attempts: int, found: str) -> str:
    """What is known of a request that passes every count but for which the search ended without a design."""
    return (
        f"No allocation was found in {attempts} attempts for {blocks} sessions of {request.trials} trials: in the best"
        f" one {found}. The rules that a session meets no utterance twice and has its share of systems, classes, sexes"
        f" and speakers leave too little room together. More utterances of each speaker, fewer than {request.trials}"
        " trials for each evaluator, more evaluators, or a rule that may give way (utterances may repeat, sexes as in"
        " the pool) would give it; another seed may find a way, too."
    )
