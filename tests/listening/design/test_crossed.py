"""Designs in which every condition has every item: what they promise, on many sizes, and what the checker sees."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import pytest

from common.errors import ProblemsError
from listening.design.crossed import CrossedRequest, certify_crossed, plan_crossed


def make_request(evaluators=6, trials=6, conditions=3, items=4, seed=1):
    names = tuple(f"c{number}" for number in range(conditions)), tuple(f"i{number}" for number in range(items))
    return CrossedRequest(evaluators, trials, *names, seed)


def sizes():
    for evaluators, conditions, items in product((1, 5, 8), (1, 2, 4), (1, 2, 5, 12)):
        whole = conditions * items
        yield from (make_request(evaluators, trials, conditions, items) for trials in {1, min(items, 3), items, whole})


def test_designs_of_many_sizes_pass_their_certificate():
    for request in sizes():
        certificate = certify_crossed(request, plan_crossed(request))
        assert certificate.passes, (request, [check.sentence for check in certificate.failures])


def test_every_stimulus_is_heard_equally_often():
    for request in sizes():
        heard = Counter(one for block in plan_crossed(request).blocks for one in block)
        counts = [heard[one] for one in product(request.conditions, request.items)]
        assert max(counts) - min(counts) <= 1, request


def test_session_meets_an_item_in_as_few_conditions_as_numbers_allow():
    for request in sizes():
        for block in plan_crossed(request).blocks:
            assert len(set(block)) == request.trials
            said = Counter(item for _, item in block)
            assert max(said.values()) == -(-request.trials // len(request.items))


def test_no_item_follows_itself():
    for request in sizes():
        if len(request.items) > 1:
            for block in plan_crossed(request).blocks:
                assert all(before[1] != after[1] for before, after in pairwise(block)), request


def test_conditions_stand_at_every_place_about_equally_often():
    request = make_request(evaluators=12, trials=12, conditions=3, items=4)
    blocks = plan_crossed(request).blocks
    for place in range(12):
        counts = Counter(block[place][0] for block in blocks)
        assert all(2 <= counts[condition] <= 6 for condition in request.conditions), (place, counts)


def test_more_evaluators_leave_the_blocks_before_them():
    request = make_request()
    longer = replace(request, evaluators=9)
    assert plan_crossed(longer).blocks[:6] == plan_crossed(request).blocks
    assert certify_crossed(longer, plan_crossed(longer)).passes


def test_equal_seeds_give_equal_designs_and_others_do_not():
    request = make_request()
    assert plan_crossed(request) == plan_crossed(request)
    assert plan_crossed(request).blocks != plan_crossed(replace(request, seed=2)).blocks


def test_more_trials_than_recordings_are_refused():
    with pytest.raises(ProblemsError, match="give at most 12 trials for each evaluator, found 13"):
        plan_crossed(make_request(trials=13))


@pytest.mark.parametrize(
    ("check", "spoil"),
    [
        ("blocks", lambda blocks: blocks[:-1]),
        ("recording once", lambda blocks: ((blocks[0][0], blocks[0][0], *blocks[0][2:]), *blocks[1:])),
        ("evenness", lambda blocks: (blocks[0], *blocks[:-1])),
        ("neighbours", lambda blocks: (tuple(sorted(blocks[0], key=lambda one: one[1])), *blocks[1:])),
    ],
)
def test_checker_names_what_is_not_met(check, spoil):
    request = make_request(evaluators=7, trials=11)
    plan = plan_crossed(request)
    certificate = certify_crossed(request, replace(plan, blocks=tuple(spoil(plan.blocks))))
    assert check in [one.name for one in certificate.failures]


def test_certificate_says_which_rules_do_not_apply():
    request = make_request()
    relaxed = " ".join(certify_crossed(request, plan_crossed(request)).relaxed)
    assert "targets and non-targets" in relaxed
    assert "sexes" in relaxed
