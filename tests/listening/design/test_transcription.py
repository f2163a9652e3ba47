"""Plans of transcriptions: what they promise, what they refuse, and that the checker finds what is wrong with one."""

from dataclasses import replace

import pytest

from common.errors import ProblemsError
from listening.design.unrated import TranscriptionRequest, plan_transcription
from listening.design.unrated_certificate import certify_transcription
from tests.listening.design.test_boards import make_pool


def make_request(evaluators=6, trials=12, originals=4, systems=("x", "y"), pool=None, sentences=None, seed=2022):
    pool = make_pool(systems=systems) if pool is None else pool
    sentences = {one.key: one.key for one in pool} if sentences is None else sentences
    return TranscriptionRequest(evaluators, trials, originals, systems, pool, seed, sentences)


def failed(request, plan):
    return {check.name for check in certify_transcription(request, plan).checks if not check.passed}


@pytest.mark.parametrize(
    ("evaluators", "trials", "originals", "systems", "women", "men"),
    [
        (24, 30, 10, 6, 16, 13),
        (6, 12, 4, 2, 5, 5),
        (7, 9, 0, 3, 4, 0),
        (1, 1, 0, 1, 1, 1),
    ],
)
def test_plan_passes_the_checker(evaluators, trials, originals, systems, women, men):
    names = tuple("abcdef"[:systems])
    request = make_request(evaluators, trials, originals, names, make_pool(women, men, systems=names))
    certificate = certify_transcription(request, plan_transcription(request))
    assert [check.sentence for check in certificate.failures] == []


def test_utterances_without_words_are_left_out():
    pool = make_pool()
    sentences = {one.key: "" if one.key.endswith(("t0", "t1")) else one.key for one in pool}
    plan = plan_transcription(make_request(pool=pool, sentences=sentences))
    assert not {one.utterance[-2:] for block in plan.blocks for one in block} & {"t0", "t1"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"evaluators": 0}, "Expected at least one evaluator and one trial each, found 0 and 12."),
        ({"originals": 13}, "Expected 0 to 12 originals for each evaluator, found 13."),
        ({"sentences": {}}, "found 0 (none)"),
        ({"pool": make_pool(2, 1, trials=5)}, "At most 10 trials for each evaluator would do"),
    ],
)
def test_infeasible_request_says_what_would_do(change, words):
    with pytest.raises(ProblemsError) as raised:
        plan_transcription(replace(make_request(), **change))
    assert words in " ".join(raised.value.problems)


def test_what_would_do_does():
    pool = make_pool(2, 1, trials=5)
    request = make_request(trials=10, pool=pool)
    assert certify_transcription(request, plan_transcription(request)).passes


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("evaluators and trials", lambda block: block[:-1]),
        ("utterances", lambda block: (replace(block[0], utterance="nobody-t1"), *block[1:])),
        ("originals", lambda block: tuple(replace(one, system="x") for one in block)),
        ("no recording twice", lambda block: (block[1], *block[1:])),
        ("no sentence twice", lambda block: (block[1], *block[1:])),
        ("systems of an evaluator", lambda block: tuple(replace(one, system=one.system and "x") for one in block)),
        ("systems", lambda block: tuple(replace(one, system=one.system and "x") for one in block)),
        ("systems apart", lambda block: tuple(sorted(block, key=lambda one: one.system))),
        ("speakers apart", lambda block: tuple(sorted(block, key=lambda one: one.speaker))),
        ("sexes", lambda block: tuple(replace(one, sex="f") for one in block)),
        ("originals along the session", lambda block: tuple(sorted(block, key=lambda one: one.system))),
    ],
)
def test_checker_finds_what_was_spoilt(name, spoil):
    pool = make_pool(2, 2)
    request = make_request(pool=pool)
    plan = plan_transcription(request)
    assert failed(request, plan) == set()
    assert name in failed(request, replace(plan, blocks=(spoil(plan.blocks[0]), *plan.blocks[1:])))


def test_checker_finds_an_utterance_that_is_always_heard_in_one_form():
    pool = make_pool(2, 2, trials=3)
    request = make_request(12, 12, 4, pool=pool)
    plan = plan_transcription(request)
    first = plan.blocks[0]
    assert failed(request, replace(plan, blocks=(first,) * 12)) == {"forms of an utterance"}
