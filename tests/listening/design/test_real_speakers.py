"""The layout of 2022 on the speakers and utterances of real corpora, where every system has all trial utterances."""

import csv
from collections import Counter, defaultdict

import pytest

from listening.design.allocation import allocate
from listening.design.certificate import certify
from listening.design.requirements import DesignRequest, PoolUtterance, compute_requirements
from listening.design.selection import choose_candidates
from tests.official import GOLDEN


def pool_of(systems):
    """Of each of 27 speakers, every other utterance is enrolment."""
    with (GOLDEN / "speech" / "utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["corpus"].endswith("-pool")]
    met = defaultdict(int)
    pool = []
    for row in rows:
        met[row["speaker"]] += 1
        is_trial = met[row["speaker"]] % 2 == 0
        role, held = ("trial", frozenset(systems)) if is_trial else ("enrolment", frozenset())
        pool.append(PoolUtterance(row["utterance_id"], row["speaker"], row["gender"].lower(), role, held))
    return pool


# One of three, each of which is searched for long.
@pytest.mark.parametrize("count", [*(pytest.param(count, marks=pytest.mark.slow) for count in (11, 12)), 13])
def test_criterion_17_2022_layout_on_27_real_speakers_needs_no_rule_to_give_way(count):
    systems = tuple(f"system-{number:02d}" for number in range(count))
    pool = pool_of(systems)
    assert len({one.speaker for one in pool}) == 27
    candidates = choose_candidates(pool, systems=systems, evaluators=52, trials=52, originals=26, seed=2022)
    request = DesignRequest(52, 52, 26, systems, candidates, 2022)
    certificate = certify(request, allocate(request))
    assert [check.sentence for check in certificate.checks if not check.passed] == []
    assert certificate.passes
    assert compute_requirements(request).relaxed == ()
    sizes = Counter(one.system for one in candidates)
    assert sizes == dict.fromkeys(systems, 104) | {"": 52 * 26}
