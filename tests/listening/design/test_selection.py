"""Candidates are balanced and come from the whole pool; a pool that cannot carry the study is refused with numbers."""

from collections import Counter
from dataclasses import replace

import pytest

from common.errors import ProblemsError
from listening.design.selection import choose_candidates
from tests.listening.design.pools import make_pool

NUMBERS = {"systems": ("S0", "S1"), "evaluators": 6, "trials": 12, "originals": 6, "seed": 1}


def choose(pool, **changes):
    return choose_candidates(pool, **{**NUMBERS, **changes})


def refusal(pool, **changes):
    with pytest.raises(ProblemsError) as error:
        choose(pool, **changes)
    return error.value.problems


def test_every_system_gets_the_same_balanced_pairs():
    found = choose(make_pool())
    pairs = {system: {(one.source, one.enrolment) for one in found if one.system == system} for system in ("S0", "S1")}
    assert pairs["S0"] == pairs["S1"]
    for system in ("S0", "S1", ""):
        counts = Counter((one.sex, one.is_target) for one in found if one.system == system)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_pairs_are_of_one_sex_and_called_what_they_are():
    whose = {one.key: one for one in make_pool()}
    for one in choose(make_pool()):
        assert whose[one.source].sex == whose[one.enrolment].sex == one.sex
        assert (whose[one.enrolment].speaker == one.speaker) == one.is_target
        assert (whose[one.source].role, whose[one.enrolment].role) == ("trial", "enrolment")


def test_originals_come_first_from_utterances_that_no_system_is_heard_with():
    found = choose(make_pool(trial=12))
    assert not {one.source for one in found if one.system} & {one.source for one in found if not one.system}


def test_speakers_are_used_evenly():
    counts = Counter(one.speaker for one in choose(make_pool()) if not one.system)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(counts) == 10


def test_only_utterances_that_every_system_has_are_anonymised():
    pool = [replace(one, systems=frozenset(["S0"])) if one.key.endswith("-0") else one for one in make_pool()]
    assert not any(one.source.endswith("-0") for one in choose(pool) if one.system)
    assert any(one.source.endswith("-0") for one in choose(pool) if not one.system)


def test_a_system_without_utterances_is_named():
    assert refusal(make_pool(), systems=("S0", "S9")) == [
        "Expected anonymised trial utterances of every system, found none of S9."
    ]


def test_one_sex_is_refused_unless_asked_for():
    (problem, *_) = refusal(make_pool(female=0))
    assert "Expected female speakers" in problem
    assert "sexes as in the pool, would do" in problem
    assert {one.sex for one in choose(make_pool(female=0), sexes_as_in_pool=True)} == {"m"}


def test_too_few_utterances_are_refused_with_numbers_that_do():
    problems = refusal(make_pool(2, 2, 2, 5))
    assert problems == [
        "Repeats: 12 trials of one evaluator need 12 different trial utterances, found 8. 8 trials per evaluator, 4"
        " more trial utterances, or trial utterances that may repeat would do."
    ]
    assert choose(make_pool(2, 2, 2, 5), sources_may_repeat=True)
