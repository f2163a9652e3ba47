"""Plans of boards: what they promise, what they refuse, and that the checker finds what is wrong with one."""

import json
from dataclasses import replace

import pytest

from common.errors import ProblemsError
from listening.design.boards import Board, BoardRequest, BoardSample, plan_boards
from listening.design.boards_certificate import certify_boards
from listening.design.requirements import PoolUtterance


def make_pool(women=5, men=5, *, enrolments=12, trials=14, systems=("x", "y")):
    """So many speakers, each with so many utterances of both roles; every system has anonymised every trial."""
    pool = []
    for sex, count in (("f", women), ("m", men)):
        for speaker in (f"{sex}{number}" for number in range(count)):
            pool += [PoolUtterance(f"{speaker}-e{n}", speaker, sex, "enrolment") for n in range(enrolments)]
            pool += [PoolUtterance(f"{speaker}-t{n}", speaker, sex, "trial", frozenset(systems)) for n in range(trials)]
    return tuple(pool)


def make_request(evaluators=6, boards=3, samples=12, systems=("x", "y"), pool=None, seed=2022):
    pool = make_pool(systems=systems) if pool is None else pool
    return BoardRequest(evaluators, boards, samples, systems, pool, seed)


def boards_of(plan):
    return [board for block in plan.blocks for board in block]


def failed(request, plan):
    return {check.name for check in certify_boards(request, plan).checks if not check.passed}


@pytest.mark.parametrize(("samples", "evaluators", "boards", "systems"), [(6, 1, 1, 1), (13, 10, 3, 3), (16, 5, 2, 4)])
def test_plan_passes_the_checker(samples, evaluators, boards, systems):
    request = make_request(evaluators, boards, samples, tuple("abcd"[:systems]))
    assert [check.sentence for check in certify_boards(request, plan_boards(request)).failures] == []


def test_same_seed_gives_the_same_plan_and_another_seed_another_one():
    one, same, other = (plan_boards(make_request(seed=seed)) for seed in (1, 1, 2))
    assert one == same
    assert one.blocks != other.blocks
    certificates = [certify_boards(make_request(seed=seed), plan).as_json() for seed, plan in ((1, one), (1, same))]
    assert certificates[0] == certificates[1]
    assert json.loads(json.dumps(certificates[0])) == certificates[0]
    assert len(certificates[0]["sha256"]) == 64


def test_boards_mix_sexes_only_where_one_sex_has_too_few_speakers():
    request = make_request(pool=make_pool(3, 1))
    certificate = certify_boards(request, plan_boards(request))
    assert certificate.passes
    assert certificate.relaxed == ("Boards mix sexes: one sex has too few speakers for boards of its own.",)
    assert certify_boards(make_request(), plan_boards(make_request())).relaxed == ()


def test_utterances_that_a_system_has_not_anonymised_are_left_out():
    pool = tuple(replace(one, systems=frozenset("x")) if one.key.endswith(("t0", "t1")) else one for one in make_pool())
    request = make_request(pool=pool)
    plan = plan_boards(request)
    assert not {s.utterance[-2:] for board in boards_of(plan) for s in board.samples if s.system} & {"t0", "t1"}
    assert certify_boards(request, plan).passes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": 5}, "Expected 6 to 16 samples on a board, found 5."),
        ({"evaluators": 0}, "Expected at least one evaluator and one board each, found 0 and 3."),
        ({"systems": ()}, "Expected at least one system, each named once."),
        ({"pool": ()}, "needs at least 3 speakers with 2 enrolment utterances"),
        ({"pool": make_pool(systems=("x",))}, "found 0."),
        ({"boards": 9}, "8 for each evaluator would do"),
    ],
)
def test_infeasible_request_says_what_would_do(change, words):
    request = replace(make_request(pool=make_pool(3, 3, enrolments=8, trials=8)), **change)
    with pytest.raises(ProblemsError) as raised:
        plan_boards(request)
    assert words in " ".join(raised.value.problems)


# The checker -------------------------------------------------------------------------------------------------


def changed(plan, change, block=0, place=0):
    """The plan with one board changed."""
    blocks = [list(boards) for boards in plan.blocks]
    blocks[block][place] = change(blocks[block][place])
    return replace(plan, blocks=tuple(tuple(boards) for boards in blocks))


def with_sample(board, number, **fields):
    samples = list(board.samples)
    samples[number] = replace(samples[number], **fields)
    return replace(board, samples=tuple(samples))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("evaluators and boards", lambda plan: replace(plan, blocks=plan.blocks[:-1])),
        ("samples", lambda plan: changed(plan, lambda board: with_sample(board, 0, utterance="nobody-e1"))),
        ("size of boards", lambda plan: changed(plan, lambda board: replace(board, samples=board.samples[1:]))),
        ("speakers of a board", lambda plan: changed(plan, one_speaker_for_all)),
        ("original and anonymised", lambda plan: changed(plan, all_originals)),
        ("no recording twice", lambda plan: changed(plan, first_sample_twice)),
        ("systems", lambda plan: replace(plan, blocks=tuple(map(only_of_x, plan.blocks)))),
        ("systems of an evaluator", lambda plan: replace(plan, blocks=(only_of_x(plan.blocks[0]), *plan.blocks[1:]))),
        ("systems apart", lambda plan: replace(plan, blocks=(only_of_x(plan.blocks[0]), *plan.blocks[1:]))),
        ("places of systems", lambda plan: replace(plan, blocks=tuple(map(x_first, plan.blocks)))),
        ("sexes", lambda plan: changed(plan, with_a_speaker_of_the_other_sex)),
        ("speakers", lambda plan: replace(plan, blocks=(plan.blocks[0],) * len(plan.blocks))),
    ],
)
def test_checker_finds_what_was_spoilt(name, spoil):
    request = make_request()
    plan = plan_boards(request)
    assert failed(request, plan) == set()
    assert name in failed(request, spoil(plan))


def one_speaker_for_all(board):
    return replace(board, samples=tuple(replace(sample, speaker="f0") for sample in board.samples))


def all_originals(board):
    return replace(board, samples=tuple(replace(sample, system="") for sample in board.samples))


def first_sample_twice(board):
    return replace(board, samples=(board.samples[0], board.samples[0], *board.samples[2:]))


def of_x(board):
    return Board(board.key, "x", tuple(replace(one, system=one.system and "x") for one in board.samples))


def only_of_x(block):
    return tuple(of_x(board) for board in block)


def x_first(block):
    return tuple(sorted(block, key=lambda board: board.system))


def with_a_speaker_of_the_other_sex(board):
    other = "m" if board.samples[0].speaker[0] == "f" else "f"
    name = board.samples[0].speaker
    swapped = [
        BoardSample(one.utterance.replace(name, f"{other}0"), f"{other}0", one.system) if one.speaker == name else one
        for one in board.samples
    ]
    return replace(board, samples=tuple(swapped))


def test_checker_finds_boards_that_mix_sexes_without_need():
    request = make_request(pool=make_pool(3, 1))
    mixed = plan_boards(request)
    assert "sexes" in failed(replace(request, pool=make_pool()), mixed)
