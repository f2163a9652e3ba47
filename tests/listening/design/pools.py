"""Pools of utterances and requests of any size for the tests of designs."""

from dataclasses import replace
from functools import cache

from listening.design.allocation import allocate
from listening.design.requirements import Candidate, Design, DesignRequest, PoolUtterance
from listening.design.selection import choose_candidates


def make_pool(female=5, male=5, trial=7, enrolment=5, systems=("S0", "S1")):
    """So many speakers of each sex, each with so many utterances of both roles, which every system has."""
    speakers = [(f"f{n}", "f") for n in range(female)] + [(f"m{n}", "m") for n in range(male)]
    return [
        PoolUtterance(
            f"{speaker}-{role}-{n}", speaker, sex, role, frozenset(systems) if role == "trial" else frozenset()
        )
        for speaker, sex in speakers
        for role, count in (("trial", trial), ("enrolment", enrolment))
        for n in range(count)
    ]


def make_request(evaluators=6, trials=12, originals=6, systems=3, seed=7, pool=None, per_system=None, **relaxed):
    names = tuple(f"S{number}" for number in range(systems))
    pool = make_pool(systems=names) if pool is None else pool
    numbers = {"evaluators": evaluators, "trials": trials, "originals": originals, "systems": names, "seed": seed}
    candidates = choose_candidates(pool, trials_per_system=per_system, **numbers, **relaxed)
    return DesignRequest(candidates=candidates, **numbers, **relaxed)


def layout_2022(systems):
    """26 speakers, 13 of each sex, each with 2 target and 2 non-target trials of every system and 52 originals."""
    names = tuple(f"S{number}" for number in range(systems))
    return make_request(
        evaluators=52, trials=52, originals=26, systems=systems, seed=2022, pool=make_pool(13, 13, 40, 12, names)
    )


@cache
def designed_2022(systems):
    """That layout and its design, which takes seconds."""
    request = layout_2022(systems)
    return request, allocate(request)


def with_block(design: Design, number: int, block) -> Design:
    """The same design with one block exchanged."""
    blocks = list(design.blocks)
    blocks[number] = tuple(block)
    return replace(design, blocks=tuple(blocks))


def with_candidate(request: DesignRequest, candidate: Candidate) -> DesignRequest:
    return replace(request, candidates=(*request.candidates, candidate))
