"""The checker finds every broken constraint: designs that break one, and only one, fail that check and no other."""

import json
from dataclasses import replace
from functools import partial
from itertools import chain, islice, permutations, product
from random import Random

import pytest

from listening.design.allocation import allocate
from listening.design.certificate import certify, compute_digest
from listening.design.requirements import Extension
from tests.listening.design.pools import make_pool, make_request, with_block, with_candidate

TRIES, SEEDS = 8000, 12


@pytest.fixture(scope="module")
def request_():
    return make_request(evaluators=5, trials=10, originals=5, systems=2, per_system=8)


@pytest.fixture(scope="module")
def design(request_):
    return allocate(request_)


def failures(request, design):
    return [check.name for check in certify(request, design).failures]


def first_failing_alone(request, name, edits, seed=0):
    """The first edited design that fails this check and no other; the designs of more seeds where one gives none."""
    designs = (allocate(replace(request, seed=seed + more)) for more in range(SEEDS))
    for tried in islice(chain.from_iterable(edits(request, design) for design in designs), TRIES):
        if failures(request, tried) == [name]:
            return tried
    raise AssertionError(f"No design was found that fails {name} alone.")


def moved(request, design):
    """The design with ever more exchanges of places that break nothing, each followed by one that may."""
    random = Random(1)
    for _ in range(TRIES // SEEDS):
        number = random.randrange(len(design.blocks))
        block = list(design.blocks[number])
        one, other = random.sample(range(len(block)), 2)
        block[one], block[other] = block[other], block[one]
        tried = with_block(design, number, block)
        yield tried
        if not failures(request, tried):
            design = tried


def replaced(*equal, differing):
    """The design with one trial replaced by another, equal in some attributes and different in one."""

    def designs(request, design):
        known = {candidate.key: candidate for candidate in request.candidates}
        tries = list(product(range(len(design.blocks)), range(request.trials), request.candidates))
        for number, place, new in Random(1).sample(tries, len(tries)):
            block = list(design.blocks[number])
            old = known[block[place]]
            is_fit = all(getattr(new, one) == getattr(old, one) for one in equal)
            if is_fit and new.key not in block and getattr(new, differing) != getattr(old, differing):
                block[place] = new.key
                yield with_block(design, number, block)

    return designs


def doubled(request, design):
    """A trial takes the place of another one of its system, sex and class in its own block."""
    known = {candidate.key: candidate for candidate in request.candidates}
    for number, block in enumerate(design.blocks):
        for out, into in permutations(block, 2):
            one, other = known[out], known[into]
            if (one.system, one.sex, one.is_target) == (other.system, other.sex, other.is_target):
                yield with_block(design, number, [into if key == out else key for key in block])


def exchanged(request, design, *, must_repeat):
    """Two blocks exchange trials alike in system, sex and class, so that one of them has an attribute twice."""
    known = {candidate.key: candidate for candidate in request.candidates}
    for first, second in permutations(range(len(design.blocks)), 2):
        had = {getattr(known[key], must_repeat) for key in design.blocks[first]}
        for one, other in product(range(request.trials), repeat=2):
            out, into = known[design.blocks[first][one]], known[design.blocks[second][other]]
            if (out.system, out.sex, out.is_target) != (into.system, into.sex, into.is_target):
                continue
            if getattr(into, must_repeat) not in had - {getattr(out, must_repeat)}:
                continue
            blocks = [list(design.blocks[first]), list(design.blocks[second])]
            blocks[0][one], blocks[1][other] = into.key, out.key
            yield with_block(with_block(design, first, blocks[0]), second, blocks[1])


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("runs", moved),
        ("speaker distance", moved),
        ("neighbours", moved),
        ("quarters by kind", moved),
        ("quarters by class", moved),
        ("positions", moved),
        ("evenness", replaced("system", "is_target", "sex", differing="key")),
        ("system totals", replaced("is_original", "is_target", "sex", differing="system")),
        ("originals", replaced(differing="is_original")),
        ("sexes", replaced("system", differing="sex")),
        ("speakers", partial(exchanged, must_repeat="speaker")),
    ],
)
def test_criterion_17_a_design_that_breaks_one_rule_fails_that_check_alone(request_, name, edits):
    broken = first_failing_alone(request_, name, edits)

    certificate = certify(request_, broken)

    assert [check.name for check in certificate.failures] == [name]
    assert not certificate.passes
    assert "Not met: " in certificate.failures[0].sentence


@pytest.mark.parametrize(
    ("name", "edits", "words"),
    [
        ("systems", replaced("is_original", "is_target", "sex", differing="system"), " 4 instead of 2 to 3"),
        ("classes", replaced("system", differing="is_target"), " instead of 4"),
    ],
)
def test_criterion_17_a_wrong_total_of_right_classes_of_systems_fails_alone(name, edits, words):
    """Each system may be heard once or twice in a class: not all of these together are right."""
    request = make_request(evaluators=5, trials=12, originals=4, systems=3)
    assert words in certify(request, first_failing_alone(request, name, edits)).failures[0].sentence


@pytest.mark.parametrize(("name", "what"), [("trial utterances", "source"), ("enrolment utterances", "enrolment")])
def test_criterion_17_a_repeated_utterance_fails_its_check_alone(name, what):
    request = make_request(evaluators=8, trials=12, originals=6, systems=2, pool=make_pool(3, 3, 4, 3))
    broken = first_failing_alone(request, name, partial(exchanged, must_repeat=what))
    assert "2 times" in certify(request, broken).failures[0].sentence


def test_criterion_17_a_trial_that_nobody_rates_fails_coverage_alone(request_, design):
    found = [
        certify(with_candidate(request_, replace(one, key="never heard")), design).failures
        for one in request_.candidates
    ]
    alone = [checks[0] for checks in found if [check.name for check in checks] == ["coverage"]]
    assert "never heard is never rated" in alone[0].sentence


def test_two_trials_of_one_name_fail_alone(request_, design):
    twice = [with_candidate(request_, one) for one in request_.candidates if not one.is_original]
    assert ["names"] in [failures(request, design) for request in twice]


def test_an_unknown_trial_fails_alone(request_, design):
    broken = with_block(design, 2, [*design.blocks[2], "of another study"])
    certificate = certify(request_, broken)
    assert [check.name for check in certificate.failures] == ["blocks"]
    assert "evaluator 3 meets unknown of another study" in certificate.failures[0].sentence


def test_a_design_without_blocks_fails_and_does_not_raise(request_, design):
    assert "blocks" in failures(request_, replace(design, blocks=()))
    assert "blocks" in failures(request_, replace(design, blocks=((), (), *design.blocks[2:])))


@pytest.mark.parametrize(
    "change",
    [
        {"originals": 99},
        {"evaluators": 0},
        {"systems": ("S0", "S1", "S1")},
        {"candidates": ()},
    ],
)
def test_a_request_that_makes_no_sense_never_passes(request_, design, change):
    certificate = certify(replace(request_, **change), design)
    assert not certificate.passes
    assert certificate.failures[0].name == "request"


def test_blocks_of_an_extension_that_are_not_there_fail(request_, design):
    assert "blocks" in failures(request_, replace(design, extensions=(Extension(2, 1),)))


def test_unbalanced_sexes_fail_alone_unless_they_are_as_in_the_pool():
    request = make_request(evaluators=5, trials=10, originals=5, systems=2, pool=make_pool(3, 6), sexes_as_in_pool=True)
    design = allocate(request)
    relaxed = certify(request, design)
    assert relaxed.passes
    assert relaxed.relaxed[0] == "Each sex has its share of the candidates, which need not be one half."
    assert failures(replace(request, sexes_as_in_pool=False), design) == ["sex balance"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda first, other: replace(other, enrolment=first.enrolment), "called non-target"),
        (lambda _, other: replace(other, enrolment=other.source), "compares an utterance with itself"),
    ],
)
def test_wrong_pairs_fail_alone(request_, design, change, words):
    first = next(one for one in request_.candidates if one.is_target and one.is_original)
    others = [one for one in request_.candidates if one.is_target is False and one.speaker == first.speaker]
    for other in others:
        candidates = tuple(change(first, one) if one is other else one for one in request_.candidates)
        certificate = certify(replace(request_, candidates=candidates), design)
        if [check.name for check in certificate.failures] == ["pairs"]:
            assert words in certificate.failures[0].sentence
            return
    raise AssertionError("The wrong pair was not found.")


def test_a_pair_of_two_sexes_fails():
    request = make_request()
    male = next(one.enrolment for one in request.candidates if one.is_target and one.sex == "m")
    female = next(one for one in request.candidates if one.is_target is False and one.sex == "f")
    candidates = tuple(replace(one, enrolment=male) if one is female else one for one in request.candidates)
    certificate = certify(replace(request, candidates=candidates), allocate(request))
    assert "pairs" in [check.name for check in certificate.failures]
    assert any("two sexes" in check.sentence for check in certificate.failures)


def test_criterion_17_the_certificate_is_the_same_whenever_it_is_made(request_, design):
    first = json.dumps(certify(request_, design).as_json(), sort_keys=True)
    again = json.dumps(certify(request_, allocate(request_)).as_json(), sort_keys=True)
    assert first == again
    assert json.loads(first)["seed"] == request_.seed


def test_the_fingerprint_tells_any_change(request_, design):
    fingerprint = compute_digest(request_, design)
    assert len(fingerprint) == 64
    assert compute_digest(replace(request_, enrolments_may_repeat=True), design) != fingerprint
    assert compute_digest(request_, with_block(design, 0, reversed(design.blocks[0]))) != fingerprint
