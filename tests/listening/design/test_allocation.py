"""Designs meet every constraint: the layout of 2022 by its published numbers, and any other numbers by properties."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.errors import ProblemsError
from listening.design import allocation
from listening.design.allocation import allocate
from listening.design.certificate import certify
from tests.listening.design.pools import designed_2022, layout_2022, make_pool, make_request


def of_block(request, design):
    known = {candidate.key: candidate for candidate in request.candidates}
    return [[known[key] for key in block] for block in design.blocks]


@pytest.mark.parametrize(
    ("systems", "distinct", "ratings", "totals", "twice"),
    [
        (11, 1144, {1, 2}, {122, 123}, 208),
        pytest.param(12, 1248, {1, 2}, {112, 113}, 104, marks=pytest.mark.slow),
        (13, 1352, {1}, {104}, 0),
    ],
)
def test_criterion_17_the_layout_of_2022(systems, distinct, ratings, totals, twice):
    """The numbers that the challenge of 2022 published, and those that follow from them, counted by hand here."""
    request, design = designed_2022(systems)

    blocks = of_block(request, design)
    assert [len(block) for block in blocks] == [52] * 52
    rated = Counter(trial.key for block in blocks for trial in block if trial.system)
    assert (len(rated), set(rated.values()), sum(count == 2 for count in rated.values())) == (distinct, ratings, twice)
    assert set(Counter(trial.system for block in blocks for trial in block if trial.system).values()) == totals
    originals = Counter(trial.key for block in blocks for trial in block if not trial.system)
    assert (len(originals), set(originals.values())) == (1352, {1})
    for block in blocks:
        for half in ([one for one in block if one.system], [one for one in block if not one.system]):
            assert len(half) == len({one.speaker for one in half}) == 26
            assert Counter(one.is_target for one in half) == {True: 13, False: 13}
            assert Counter(one.sex for one in half) == {"f": 13, "m": 13}
        assert len({one.source for one in block}) == len({one.enrolment for one in block}) == 52
        assert set(Counter(one.system for one in block if one.system).values()) <= {2, 3}
        assert len({one.system for one in block if one.system}) == systems
        assert not any(one.system == other.system for one, other in pairwise(block) if one.system)
        kinds = "".join("o" if one.is_original else "a" for one in block)
        assert "ooo" not in kinds
        assert "aaa" not in kinds
        assert all(kinds[start : start + 13].count("o") in (6, 7) for start in (0, 13, 26, 39))
        for one, other in ((1, 0), (2, 0), (2, 1)):
            assert all(
                window[one].speaker != window[other].speaker
                for window in zip(block, block[1:], block[2:], strict=False)
            )
    assert len({tuple(one.is_original for one in block) for block in blocks}) == 52, "no two meet the same pattern"
    certificate = certify(request, design)
    assert certificate.passes
    assert certificate.relaxed == ()


def test_criterion_17_fourteen_systems_need_more_evaluators_or_more_trials():
    with pytest.raises(ProblemsError) as error:
        layout_2022(14)
    assert error.value.problems == [
        "Coverage: 14 systems with 104 trials each are 1456, but 52 evaluators × 26 anonymised trials rate 1352."
        " 56 evaluators, 28 anonymised trials each (54 trials with 26 originals), 13 systems, or 96 trials of each"
        " system would do."
    ]


@pytest.mark.slow  # the largest study at full size
def test_300_evaluators_60_trials_20_systems():
    request = make_request(
        evaluators=300,
        trials=60,
        originals=30,
        systems=20,
        pool=make_pool(15, 15, 40, 20, tuple(f"S{n}" for n in range(20))),
    )
    design = allocate(request)
    certificate = certify(request, design)
    assert certificate.passes
    assert len(request.candidates) == 20 * 420 + 9000


def test_two_speakers_may_be_heard_next_to_each_other_and_the_certificate_says_so():
    relaxed = {"sources_may_repeat": True, "enrolments_may_repeat": True}
    request = make_request(
        evaluators=4, trials=8, originals=4, systems=2, pool=make_pool(2, 1, 9, 9), sexes_as_in_pool=True, **relaxed
    )
    certificate = certify(request, allocate(request))
    assert certificate.passes
    assert any("A speaker may be heard again after 1 place:" in sentence for sentence in certificate.relaxed)


@pytest.mark.parametrize(("originals", "systems"), [(0, 3), (8, 0)])
def test_originals_alone_and_no_originals(originals, systems):
    pool = make_pool(systems=("S0", "S1", "S2"))
    request = make_request(evaluators=5, trials=8, originals=originals, systems=systems, pool=pool)
    certificate = certify(request, allocate(request))
    assert certificate.passes
    assert certificate.relaxed[0].startswith("Up to 8 of a kind in a row")


NUMBERS = {
    "evaluators": st.integers(2, 10),
    "trials": st.integers(4, 16),
    "systems": st.integers(1, 5),
    "seed": st.integers(0, 2**32),
    "part": st.fractions(0, 1),
    "female": st.integers(2, 8),
    "male": st.integers(2, 8),
    "as_in_pool": st.booleans(),
}
NAMES = ("S0", "S1", "S2", "S3", "S4")


def drawn_request(*, part, female, male, trial, enrolment, as_in_pool, **numbers):
    originals = min(int(numbers["trials"] * part), numbers["trials"] - 1)
    pool = make_pool(female, male, trial, enrolment, tuple(f"S{n}" for n in range(numbers["systems"])))
    return make_request(originals=originals, pool=pool, sexes_as_in_pool=as_in_pool, **numbers)


TWO_BY_FOUR = {
    "evaluators": 2,
    "trials": 4,
    "systems": 5,
    "seed": 0,
    "part": Fraction(0),
    "female": 2,
    "male": 2,
    "as_in_pool": False,
}


@given(numbers=st.fixed_dictionaries(NUMBERS))
@example(numbers=TWO_BY_FOUR)
@example(numbers={**TWO_BY_FOUR, "female": 8, "male": 3, "as_in_pool": True, "seed": 2**32})
def test_any_request_with_many_utterances_has_a_passing_design(numbers):
    """With room for less than both classes of both sexes of each system it may be refused, with what would do."""
    try:
        request = drawn_request(trial=3 * numbers["trials"], enrolment=2 * numbers["trials"], **numbers)
        design = allocate(request)
    except ProblemsError as error:
        refused = error.problems
    else:
        refused = []
    if refused:
        originals = min(int(numbers["trials"] * numbers["part"]), numbers["trials"] - 1)
        ratings = numbers["evaluators"] * (numbers["trials"] - originals) // numbers["systems"]
        assert ratings in (0, 2, 3), refused
        assert all(" would " in sentence for sentence in refused)
        return
    certificate = certify(request, design)
    assert certificate.passes, [check.sentence for check in certificate.failures]
    assert not any("utterance" in sentence for sentence in certificate.relaxed)


def test_fewer_ratings_than_systems_are_refused_with_what_would_do():
    with pytest.raises(ProblemsError) as refused:
        make_request(evaluators=2, trials=4, originals=2, systems=5, pool=make_pool(2, 2, 12, 8, NAMES))
    assert refused.value.problems == [
        "Coverage: 5 systems with 1 trials each are 5, but 2 evaluators × 2 anonymised trials rate 4. 3 evaluators, "
        "3 anonymised trials each (5 trials with 2 originals), or 4 systems would do."
    ]
    for wanted in ({"evaluators": 3}, {"trials": 5}, {"systems": 4}):
        numbers = {"evaluators": 2, "trials": 4, "originals": 2, "systems": 5} | wanted
        request = make_request(pool=make_pool(2, 2, 12, 8, NAMES), **numbers)
        assert certify(request, allocate(request)).passes


@given(numbers=st.fixed_dictionaries({**NUMBERS, "trial": st.integers(1, 6), "enrolment": st.integers(1, 4)}))
def test_any_request_with_few_utterances_has_a_passing_design_or_a_refusal_with_what_would_do(numbers):
    try:
        request = drawn_request(**numbers)
        with patch.object(allocation, "_ATTEMPTS", 2):  # most have no design, and all attempts say no more than one
            design = allocate(request)
    except ProblemsError as error:
        sentences = error.problems
    else:
        assert certify(request, design).passes
        return
    assert sentences
    assert all(" would " in sentence or "Expected" in sentence for sentence in sentences)
