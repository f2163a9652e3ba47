"""The place of a trial tells nothing of it that the rules of order do not tell in any order."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from listening.design import allocation, ordering
from listening.design.allocation import allocate
from listening.design.certificate import certify
from listening.design.order_rules import longest_run
from listening.design.places import bound_by_chance, find_kinds_by_place
from listening.design.requirements import Bounds, compute_requirements
from tests.listening.design.pools import designed_2022, layout_2022, make_pool, make_request
from tests.listening.design.random_orders import guess_right, sessions_of, shuffle_sessions


@pytest.fixture(scope="module")
def request_():
    return make_request(evaluators=40, trials=32, originals=16, systems=2, seed=3, pool=make_pool(8, 8, 40, 20))


@pytest.fixture(scope="module")
def design(request_):
    return allocate(request_)


def failures(request, design):
    return {check.name: check.sentence for check in certify(request, design).failures}


def unshuffled(request, needs, blocks, *others):
    return blocks


def test_criterion_26_a_place_tells_no_more_than_in_a_random_order_under_the_same_rules(request_, design):
    """With two systems, what fits alternates: filled place by place alone, four kinds of five are guessed."""
    assert all(points < 8 for points in count_more_points(request_, design, seed=1).values())


def count_more_points(request, design, seed):
    """How many points more are guessed than in random orders, on average of three, by label and kinds before."""
    sessions = sessions_of(request, design)
    random = [sessions]
    for number in range(3):
        random.append(shuffle_sessions(random[-1], sweeps=20, seed=seed + number))
    return {
        (what, before): 100 * guess_right(sessions, what, before)
        - 100 * sum(guess_right(one, what, before) for one in random[1:]) / 3
        for what, before in product(("kind", "class", "system"), (0, 2))
    }


def test_criterion_26_every_place_holds_both_kinds(request_, design):
    kinds = [Counter(bool(one.system) for one in place) for place in zip(*sessions_of(request_, design), strict=True)]
    assert all(10 <= counts[True] <= 30 for counts in kinds)


def test_criterion_26_the_certificate_of_an_order_that_tells_the_kind_says_so(request_, monkeypatch):
    monkeypatch.setattr(ordering, "shuffle_blocks", unshuffled)
    failed = failures(request_, allocate(request_))
    assert "guesses of kind" in failed
    assert " by the place" in failed["guesses of kind"].partition("Not met")[2]


def test_criterion_26_a_first_place_of_one_kind_fails(request_, design):
    """Sessions that end with an anonymised trial are turned round; the others that begin with an original left out."""
    known = {one.key: one for one in request_.candidates}
    turned = [block if known[block[0]].system else block[::-1] for block in design.blocks]
    failed = failures(request_, replace(design, blocks=tuple(block for block in turned if known[block[0]].system)))
    assert "place 1, original: 0 instead of" in failed["places by kind"]


def test_criterion_26_one_order_for_everybody_fails_for_kind_class_and_system(request_, design):
    failed = failures(request_, replace(design, blocks=design.blocks[:1] * len(design.blocks)))
    assert {f"{check} {what}" for check in ("places by", "guesses of") for what in ("kind", "class", "system")} <= set(
        failed
    )


@pytest.mark.slow  # twelve designs, and as many random orders
@pytest.mark.parametrize("systems", [11, 13, 20])
def test_criterion_26_place_tells_nothing_in_the_sizes_of_challenges(systems):
    """Four seeds each: guesses of held-out evaluators, on average at most two points above those of random orders."""
    more = Counter()
    for seed in range(1, 5):
        numbers = {"trials": 80, "originals": 40} if systems == 20 else {"trials": 52, "originals": 26}
        pool = make_pool(13, 13, 40, 12, tuple(f"S{n}" for n in range(systems)))
        request = make_request(evaluators=52, systems=systems, seed=seed, pool=pool, **numbers)
        design = allocate(request)
        assert certify(request, design).passes
        more.update(count_more_points(request, design, seed))
    assert all(points / 4 <= 2 for points in more.values()), more


@pytest.mark.parametrize(("systems", "heard"), [(11, {(1, 1), (1, 2), (2, 1)}), (13, {(1, 1)})])
def test_criterion_27_every_evaluator_hears_both_classes_of_every_system(systems, heard):
    request, design = designed_2022(systems)
    for session in sessions_of(request, design):
        counts = Counter((one.system, one.is_target) for one in session)
        assert {(counts[name, True], counts[name, False]) for name in request.systems} <= heard


def test_criterion_27_with_more_systems_than_trials_of_both_classes_none_is_heard_twice_in_one():
    names = tuple(f"S{n}" for n in range(20))
    request = make_request(evaluators=10, trials=52, originals=26, systems=20, pool=make_pool(13, 13, 40, 12, names))
    for session in sessions_of(request, allocate(request)):
        assert set(Counter((one.system, one.is_target) for one in session if one.system).values()) == {1}


def test_criterion_27_uneven_classes_of_a_system_fail_their_check_alone(monkeypatch):
    """Dealt as before: one system and evaluator of ten without targets, or without non-targets."""
    monkeypatch.setattr(
        allocation, "compute_requirements", lambda one: replace(compute_requirements(one), system_classes={})
    )
    request = layout_2022(11)
    failed = failures(request, allocate(request))
    assert list(failed) == ["classes of systems"]
    assert "0 instead of 1 to 2" in failed["classes of systems"]


@pytest.mark.parametrize(("originals", "run"), [(20, 2), (12, 3), (8, 4), (24, 3), (32, 32)])
def test_runs_may_be_longer_where_one_kind_is_far_more_frequent(originals, run):
    """With runs of two among twelve and twenty-four, nearly every second kind would be known before it is heard."""
    assert longest_run(originals, 36 - originals if originals < 32 else 0) == run


def test_kinds_under_rules_are_counted_by_hand():
    """Four places, one to a quarter, two originals: six orders, or two where none may follow itself."""
    kinds = find_kinds_by_place(4, 2, 2)
    assert kinds.originals == (0.5, 0.5, 0.5, 0.5)
    assert kinds.guessed[0] == 0.5
    assert kinds.guessed[1] == pytest.approx((3 + 4 + 4 + 4) / 24)
    assert find_kinds_by_place(4, 2, 1).guessed == (0.5, 0.875)
    assert find_kinds_by_place(6, 1, 2) is None


@pytest.mark.parametrize(
    ("number", "share", "bounds"),
    [(4, 0.5, Bounds(0, 4)), (52, 0.5, Bounds(7, 45)), (9, 0.0, Bounds(0, 0)), (9, 1.0, Bounds(9, 9))],
)
def test_bounds_of_chance(number, share, bounds):
    assert bound_by_chance(number, share) == bounds
