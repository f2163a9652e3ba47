"""What the design of a large listening test costs beside one assignment problem of the same size.

Run from the root of the repository: ``python -m benchmarks.allocation``. Prints, for 300 evaluators with 60 trials each
of 20 systems, the seconds of choosing trials, allocating and ordering them, and certifying the design; and their ratio
to one `scipy.optimize.linear_sum_assignment` of 6,000 trials, a third of them, with random costs. Solving all 18,000
at once, which takes memory for 18,000² costs and knows no order, would cost about 30 times that.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
from scipy.optimize import linear_sum_assignment

from listening.design.allocation import allocate
from listening.design.certificate import certify
from listening.design.requirements import DesignRequest, PoolUtterance
from listening.design.selection import choose_candidates

EVALUATORS, TRIALS, ORIGINALS, SYSTEMS = 300, 60, 30, 20
ASSIGNED = 6000
BUDGET_S = 20.0
REPEATS = 3


def main() -> int:
    """Print the figures; the exit status is 1 where the design takes longer than its budget or does not pass."""
    costs = np.random.default_rng(1).random((ASSIGNED, ASSIGNED))
    assignment_s, chosen_s, allocated_s, certified_s, passes = np.inf, np.inf, np.inf, np.inf, True
    for seed in range(REPEATS):  # in turns, so that a busy machine slows both
        start = perf_counter()
        linear_sum_assignment(costs)
        assigned = perf_counter()
        request = make_request(seed)
        chosen = perf_counter()
        design = allocate(request)
        allocated = perf_counter()
        passes &= certify(request, design).passes
        certified_s = min(certified_s, perf_counter() - allocated)
        assignment_s, chosen_s = min(assignment_s, assigned - start), min(chosen_s, chosen - assigned)
        allocated_s = min(allocated_s, allocated - chosen)
    whole_s = chosen_s + allocated_s + certified_s
    print(
        f"{EVALUATORS} evaluators × {TRIALS} trials × {SYSTEMS} systems, {len(request.candidates):,} distinct trials: "
    )
    print(f"choosing {chosen_s:.2f} s, allocation and order {allocated_s:.2f} s, certificate {certified_s:.2f} s")
    print(
        f"one assignment of {ASSIGNED:,} trials {assignment_s:.2f} s, ratio of the whole {whole_s / assignment_s:.2f}"
    )
    print(f"every certificate passes: {'yes' if passes else 'NO'}; whole {whole_s:.1f} s (budget {BUDGET_S:.0f} s)")
    return int(whole_s > BUDGET_S or not passes)


def make_request(seed: int) -> DesignRequest:
    """30 speakers, each with 40 trial and 20 enrolment utterances."""
    systems = tuple(f"system-{number}" for number in range(SYSTEMS))
    pool = [
        PoolUtterance(
            f"{speaker}-{role}-{number}",
            str(speaker),
            "f" if speaker % 2 else "m",
            "trial" if role == "a" else "enrolment",
            frozenset(systems) if role == "a" else frozenset(),
        )
        for speaker in range(30)
        for role, count in (("a", 40), ("b", 20))
        for number in range(count)
    ]
    numbers = {"evaluators": EVALUATORS, "trials": TRIALS, "originals": ORIGINALS, "seed": seed}
    candidates = choose_candidates(pool, systems=systems, **numbers)
    return DesignRequest(systems=systems, candidates=candidates, **numbers)


if __name__ == "__main__":
    sys.exit(main())
