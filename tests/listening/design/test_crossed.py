"""Designs in which every condition has every item: what they promise, on many sizes, and what the checker sees."""

from dataclasses import replace
from itertools import product

import pytest

from common.errors import ProblemsError
from listening.design.crossed import CrossedRequest, certify_crossed, plan_crossed
from listening.questions import Screen

SCREENS = ("single", "reference", "pair", "triple", "many")


def make_request(evaluators=6, trials=6, conditions=3, items=4, seed=1, screen="single", **more):
    """Return a request whose first condition is the original."""
    names = ("", *(f"c{number}" for number in range(1, conditions)))
    named = tuple(f"i{number}" for number in range(items))
    return CrossedRequest(evaluators, trials, names, named, seed, Screen(screen), **more)


def sizes(screens=SCREENS):
    for screen, evaluators, conditions, items in product(screens, (1, 5), (1, 2, 4), (1, 2, 5)):
        if conditions == 1 and screen not in ("single", "reference"):
            continue
        whole = len(make_request(conditions=conditions, screen=screen).versions) * items
        for trials in sorted({1, min(items, 3), items, whole}):
            yield make_request(evaluators, trials, conditions, items, screen=screen)


@pytest.mark.parametrize("screen", SCREENS)
def test_designs_of_many_sizes_pass_their_certificate(screen):
    for request in sizes([screen]):
        certificate = certify_crossed(request, plan_crossed(request))
        assert certificate.passes, (request, [check.sentence for check in certificate.failures])


@pytest.mark.parametrize("screen", ["pair", "triple"])
def test_each_condition_may_be_compared_with_one_alone(screen):
    request = make_request(conditions=4, screen=screen, trials=5, against="c2")
    certificate = certify_crossed(request, plan_crossed(request))
    assert certificate.passes
    assert request.versions == (("", "c2"), ("c1", "c2"), ("c2", "c3"))
    of_all = certify_crossed(request, plan_crossed(replace(request, against=None)))
    assert "which is not asked for" in " ".join(check.sentence for check in of_all.failures)


def test_right_answer_does_not_follow_from_the_answers_before():
    request = make_request(evaluators=40, trials=8, conditions=2, items=8, screen="triple")
    last = {tuple(x == a for (x, a, _), _ in block)[-4:] for block in plan_crossed(request).blocks}
    assert {half for half in last if half[:3] == (True, False, True)} == {
        (True, False, True, True),
        (True, False, True, False),
    }


@pytest.mark.parametrize("screen", SCREENS)
def test_more_evaluators_leave_the_blocks_before_them(screen):
    request = make_request(screen=screen, trials=4)
    longer = replace(request, evaluators=9)
    assert plan_crossed(longer).blocks[:6] == plan_crossed(request).blocks
    assert certify_crossed(longer, plan_crossed(longer)).passes


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"against": "c1"}, "Only AB, CCR and ABX compare with one condition alone: leave out c1."),
        ({"against": "c9", "screen": Screen.PAIR}, "expected one of the original, c1, c2, found c9."),
        ({"trials": 13}, "3 conditions of 4 recordings give at most 12 trials for each evaluator, found 13"),
        ({"trials": 5, "screen": "many"}, "all conditions of 4 recordings give at most 4 trials"),
        ({"conditions": 1, "screen": "pair"}, "expected at least 2, found 1"),
        ({"conditions": 13, "screen": "many"}, "expected at most 12, found 13"),
        ({"items": 0}, "no recording that every condition has"),
    ],
)
def test_numbers_that_cannot_be_are_refused(change, sentence):
    with pytest.raises(ProblemsError, match=sentence):
        plan_crossed(make_request(**{"trials": 4} | change))


@pytest.mark.parametrize("screen", ["reference", "many"])
def test_trials_with_a_reference_need_an_original(screen):
    request = replace(make_request(trials=2, screen=screen), conditions=("c1", "c2"))
    with pytest.raises(ProblemsError, match="no condition is the original"):
        plan_crossed(request)


# What the checker sees -----------------------------------------------------------------------------


def spoil(check, screen, change, *, trials=4, evaluators=8):
    """Return whether a check fails, and no check of the design as it was, once its blocks are changed."""
    request = make_request(evaluators=evaluators, trials=trials, screen=screen)
    plan = plan_crossed(request)
    assert certify_crossed(request, plan).passes
    spoilt = replace(plan, blocks=tuple(change([list(block) for block in plan.blocks])))
    return check in [one.name for one in certify_crossed(request, spoilt).failures]


def with_first(blocks, trial):
    return [[trial, *blocks[0][1:]], *blocks[1:]]


def turned(blocks):
    """Return all trials with the two last of their slots in the order of the alphabet."""
    return [[((*conditions[:-2], *sorted(conditions[-2:])), item) for conditions, item in block] for block in blocks]


@pytest.mark.parametrize("screen", SCREENS)
def test_checker_sees_a_block_that_is_missing(screen):
    assert spoil("blocks", screen, lambda blocks: blocks[:-1])


@pytest.mark.parametrize(
    ("screen", "conditions"),
    [
        ("single", ("stranger",)),
        ("reference", ("c1", "c2")),
        ("pair", ("c1", "c1")),
        ("triple", ("c1", "", "c2")),
        ("many", ("", "c1", "c1")),
    ],
)
def test_checker_sees_a_trial_of_other_slots_or_conditions(screen, conditions):
    assert spoil("blocks", screen, lambda blocks: with_first(blocks, (conditions, blocks[0][0][1])))


@pytest.mark.parametrize(
    ("check", "screen"),
    [("recording once", "single"), ("pair of recordings once", "pair"), ("item once", "many")],
)
def test_checker_sees_what_comes_twice_in_a_session_in_whichever_order(check, screen):
    again = lambda blocks: [[blocks[0][1], (blocks[0][1][0][::-1], blocks[0][1][1]), *blocks[0][2:]], *blocks[1:]]  # noqa: E731
    assert spoil(check, screen, again)


@pytest.mark.parametrize("screen", SCREENS)
def test_checker_sees_what_is_heard_too_often(screen):
    assert spoil("evenness", screen, lambda blocks: [blocks[0]] * len(blocks), trials=3)


def test_checker_sees_an_item_next_to_itself():
    together = lambda blocks: [sorted(block, key=lambda trial: trial[1]) for block in blocks]  # noqa: E731
    assert spoil("neighbours", "pair", together, trials=11)


def test_checker_sees_a_pair_that_always_comes_first():
    first = lambda blocks: [sorted(block, key=lambda trial: sorted(trial[0]) != ["c1", "c2"]) for block in blocks]  # noqa: E731
    assert spoil("places", "pair", first, trials=11, evaluators=40)


@pytest.mark.parametrize("screen", ["pair", "triple"])
def test_checker_sees_a_condition_that_is_always_a(screen):
    assert spoil("sides", screen, turned)


def test_checker_sees_a_session_in_which_a_is_always_x():
    always = lambda blocks: [[((a, a, b), item) for (_, a, b), item in blocks[0]], *blocks[1:]]  # noqa: E731
    request = make_request(evaluators=2, trials=60, conditions=2, items=60, screen="triple")
    plan = plan_crossed(request)
    spoilt = replace(plan, blocks=tuple(map(tuple, always(plan.blocks))))
    assert "right answers" in [one.name for one in certify_crossed(request, spoilt).failures]


def test_checker_sees_an_order_of_numbers_that_is_always_the_same():
    alike = lambda blocks: [[(tuple(sorted(conditions)), item) for conditions, item in block] for block in blocks]  # noqa: E731
    assert spoil("numbers", "many", alike)
