"""What is taken of a board that an evaluator sends, and what is not."""

import pytest

from common.errors import ProblemsError
from listening.app.sessions.payloads import MOVES_AT_MOST, validate_board

SLOTS = ["1", "2", "3"]


def board(dimensions=2, groups=""):
    """Three samples, each put down once, and the second one put somewhere else later."""
    first = {"1": [0.1, 0.2], "2": [0.5, 0.5], "3": [1, 0]}
    moves = [
        {"slot": slot, "ms": 1000 * place, "by": "drag", "from": None, "to": first[slot][:dimensions]}
        for place, slot in enumerate(SLOTS, 1)
    ]
    moves.append(
        {"slot": "2", "ms": 9000, "by": "keys", "from": [0.5, 0.5][:dimensions], "to": [0.55, 0.5][:dimensions]}
    )
    at = first | {"2": [0.55, 0.5]}
    samples = {slot: {"at": at[slot][:dimensions], "plays": 2} for slot in SLOTS}
    for slot, group in zip(SLOTS, groups, strict=False):
        samples[slot]["group"] = group
    return {"speakers": 2, "samples": samples, "moves": moves, "left_out": 0}


def check(given, *, dimensions=2, has_groups=False):
    return validate_board(given, slots=SLOTS, dimensions=dimensions, has_groups=has_groups)


def find_problems(given, **how):
    with pytest.raises(ProblemsError) as raised:
        check(given, **how)
    return raised.value.problems


def changed(path, value, **how):
    """A board of which one part is another."""
    given = board(**how)
    *way, last = path
    part = given
    for name in way:
        part = part[name]
    part[last] = value
    return given


def test_a_whole_board_is_kept_with_first_and_last_place_and_times_of_each_sample():
    assert check(board()) == {
        "speakers": 2,
        "samples": {
            "1": {"at": [0.1, 0.2], "group": "", "plays": 2, "moves": 1}
            | {"first": [0.1, 0.2], "first_ms": 1000, "last_ms": 1000},
            "2": {"at": [0.55, 0.5], "group": "", "plays": 2, "moves": 2}
            | {"first": [0.5, 0.5], "first_ms": 2000, "last_ms": 9000},
            "3": {"at": [1.0, 0.0], "group": "", "plays": 2, "moves": 1}
            | {"first": [1.0, 0.0], "first_ms": 3000, "last_ms": 3000},
        },
        "moves": board()["moves"],
        "left_out": 0,
    }


def test_a_line_has_one_coordinate():
    assert check(board(dimensions=1), dimensions=1)["samples"]["2"]["at"] == [0.55]
    assert find_problems(board(dimensions=2), dimensions=1)
    assert find_problems(board(dimensions=1), dimensions=2)


def test_everything_that_is_missing_is_told_at_once():
    given = board()
    del given["samples"]["1"], given["samples"]["3"]
    given["samples"]["2"]["plays"] = 0
    given["speakers"] = None
    assert find_problems(given) == [
        "Samples 1, 3 are not placed yet.",
        "Sample 2 has not been listened to yet.",
        "Say how many different speakers you hear: a whole number from 1 to 3.",
    ]


@pytest.mark.parametrize("value", [-0.001, "0.5", float("nan")])
def test_a_coordinate_lies_from_0_to_1(value):
    assert find_problems(changed(["samples", "1", "at"], [0.1, value])) == ["Sample 1 has no position on the board."]


@pytest.mark.parametrize("value", [4, True])
def test_speakers_are_a_whole_number_of_at_most_the_samples(value):
    assert find_problems(changed(["speakers"], value)) == [
        "Say how many different speakers you hear: a whole number from 1 to 3."
    ]


def test_a_sample_of_another_board_is_refused():
    assert find_problems(changed(["samples", "9"], {"at": [0, 0], "plays": 1})) == [
        "The answer names samples that are not part of this board."
    ]


@pytest.mark.parametrize(
    "move",
    [
        None,
        {"slot": "9", "ms": 1, "by": "drag", "from": None, "to": [0, 0]},
        {"slot": "1", "ms": -1, "by": "drag", "from": None, "to": [0, 0]},
        {"slot": "1", "ms": 1, "by": "throw", "from": None, "to": [0, 0]},
        {"slot": ["1"], "ms": 1, "by": "drag", "from": None, "to": [0, 0]},
        {"slot": "1", "ms": 1, "by": "drag", "from": None, "to": [0]},
    ],
)
def test_a_move_that_cannot_be_is_refused(move):
    assert find_problems(changed(["moves", 0], move)) == ["The record of moves cannot be read."]


def test_moves_stand_in_the_order_of_time():
    given = board()
    given["moves"].reverse()
    assert find_problems(given) == ["The record of moves cannot be read."]


def test_the_record_of_moves_must_lead_to_where_the_samples_lie():
    assert find_problems(changed(["samples", "1", "at"], [0.9, 0.9])) == [
        "The record of moves does not match the positions of the samples."
    ]
    assert find_problems(changed(["moves"], [])) == ["The record of moves does not match the positions of the samples."]


def test_a_record_that_is_not_whole_says_how_much_it_left_out():
    given = changed(["left_out"], 7)
    given["moves"] = given["moves"][:3]
    kept = check(given)
    assert kept["left_out"] == 7
    assert kept["samples"]["2"]["at"] == [0.55, 0.5]
    assert find_problems(changed(["left_out"], -1)) == ["The number of moves left out is not a whole number."]


def test_moves_are_bounded():
    given = board()
    given["moves"] = [given["moves"][0]] * (MOVES_AT_MOST + 1)
    assert find_problems(given) == ["The record of moves is missing or too long."]


def test_groups_are_letters_as_many_as_there_are_speakers():
    kept = check(board(groups="ABA"), has_groups=True)
    assert [sample["group"] for sample in kept["samples"].values()] == ["A", "B", "A"]
    assert find_problems(board(groups="ABC"), has_groups=True) == [
        "You formed 3 groups, but say that you hear 2 speakers."
    ]
    assert find_problems(board(groups="AB"), has_groups=True) == ["Sample 3 belongs to no group yet."]


def test_no_groups_are_taken_where_none_are_drawn():
    assert find_problems(board(groups="A")) == ["This study does not ask for groups."]


@pytest.mark.parametrize("given", [None, {"samples": []}])
def test_what_is_no_board_is_refused_with_one_sentence(given):
    assert find_problems(given) == ["This answer is not a board."]
