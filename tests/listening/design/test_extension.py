"""Blocks that are added keep all blocks together balanced; trials that are not scored stand apart from each other."""

from collections import Counter
from itertools import pairwise

import pytest

from common.errors import ProblemsError
from listening.design.allocation import allocate, extend
from listening.design.certificate import certify
from listening.design.ordering import insert_controls
from listening.design.requirements import Extension
from tests.listening.design.pools import designed_2022, make_pool, make_request

GOLD, BRIDGE, PRACTICE = ("gold-1", "gold-2"), ("bridge-1", "bridge-2", "bridge-3"), ("practice-1", "practice-2")


@pytest.fixture(scope="module")
def request_():
    return make_request(evaluators=6, trials=12, originals=6, systems=3)


@pytest.fixture(scope="module")
def design(request_):
    return allocate(request_)


def test_added_blocks_keep_the_whole_balanced():
    names = tuple(f"S{number}" for number in range(5))
    request = make_request(12, 20, 10, systems=5, seed=2022, pool=make_pool(10, 10, 20, 8, names))
    design = allocate(request)
    for blocks, seed in ((3, 5), (8, 6)):
        before, design = design, extend(request, design, blocks=blocks, seed=seed)
        assert design.blocks[: len(before.blocks)] == before.blocks
        assert certify(request, design).passes
    assert design.extensions == (Extension(3, 5), Extension(8, 6))
    rated = Counter(key for block in design.blocks for key in block)
    system = {candidate.key: candidate.system for candidate in request.candidates}
    totals = Counter(system[key] for key in rated.elements() if system[key])
    assert len(design.blocks) == 12 + 11
    assert max(totals.values()) - min(totals.values()) <= 1
    assert set(rated.values()) <= {1, 2}


def test_one_block_can_be_added(request_, design):
    assert certify(request_, extend(request_, design, blocks=1, seed=2)).passes


def test_nothing_can_be_added_to_a_design_of_other_trials(request_, design):
    with pytest.raises(ProblemsError, match="at least 1 block"):
        extend(request_, design, blocks=0, seed=1)
    with pytest.raises(ProblemsError, match="trials asked for"):
        extend(make_request(seed=99), design, blocks=1, seed=1)


def test_controls_stand_apart_and_practice_first(request_, design):
    blocks = insert_controls(design, practice=PRACTICE, gold=GOLD, bridge=BRIDGE, seed=4)
    inserted = {*GOLD, *BRIDGE}
    for before, after in zip(design.blocks, blocks, strict=True):
        assert after[:2] == PRACTICE
        assert tuple(key for key in after[2:] if key not in inserted) == before
        assert Counter(key for key in after if key in inserted) == dict.fromkeys(inserted, 1)
        assert not any(one in inserted and other in inserted for one, other in pairwise(after))


def test_controls_stand_at_every_place_about_equally_often():
    _, design = designed_2022(13)
    blocks = insert_controls(design, practice=PRACTICE, gold=[f"g{n}" for n in range(6)], bridge=(), seed=4)
    taken = Counter(place for block in blocks for place, key in enumerate(block) if key.startswith("g"))
    places = range(2, 2 + 52 + 6)
    fair = 52 * 6 / len(places)
    assert [place for place in places if abs(taken[place] - fair) >= 3] == []


def test_more_controls_than_places_are_refused(design):
    with pytest.raises(ProblemsError, match=r"found 11 places\. 11 of them, or 13 scored trials, would do"):
        insert_controls(design, practice=(), gold=[f"gold-{n}" for n in range(12)], bridge=(), seed=1)
    assert len(insert_controls(design, practice=(), gold=[f"g{n}" for n in range(11)], bridge=(), seed=1)[0]) == 23


def test_a_scored_trial_is_no_control(design):
    with pytest.raises(ProblemsError, match="occur once and are not scored"):
        insert_controls(design, practice=(), gold=[design.blocks[0][0]], bridge=(), seed=1)
    with pytest.raises(ProblemsError, match="occur once"):
        insert_controls(design, practice=["a"], gold=["a"], bridge=(), seed=1)
