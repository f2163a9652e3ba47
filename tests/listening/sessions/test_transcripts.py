"""What is taken of what an evaluator writes down."""

import pytest

from common.errors import ProblemsError
from listening.app.sessions.payloads import LONGEST, Value, validate_text


def find_problems(given):
    with pytest.raises(ProblemsError) as raised:
        validate_text(given)
    return raised.value.problems


@pytest.mark.parametrize("text", ["  Two  spaces, and: SIGNS!\n", "क्षि"])
def test_the_raw_text_is_kept_as_it_was_typed(text):
    assert validate_text({"raw": text, "nothing": False}) == Value(text=text, data={"nothing": False})


def test_nothing_understood_is_an_answer_if_it_is_said():
    assert validate_text({"raw": " ", "nothing": True}) == Value(data={"nothing": True})


@pytest.mark.parametrize("text", ["", "\n\t"])
def test_an_empty_text_alone_is_no_answer(text):
    assert find_problems({"raw": text}) == ["Write what you heard, or say that you understood nothing."]


def test_a_text_and_nothing_understood_exclude_one_another():
    assert find_problems({"raw": "words", "nothing": True}) == [
        "You wrote something and said that you understood nothing. Please keep one of the two."
    ]


@pytest.mark.parametrize("sign", ["\x00", "\x85", "\ud800"])
def test_characters_that_nobody_can_type_are_refused(sign):
    assert find_problems({"raw": f"he{sign}said"}) == [
        "The text has characters that nobody can type, such as control characters."
    ]


def test_the_length_is_bounded():
    assert validate_text({"raw": "x" * LONGEST}).text == "x" * LONGEST
    assert find_problems({"raw": "x" * (LONGEST + 1)}) == ["The text has 1001 characters; at most 1000 are taken."]


@pytest.mark.parametrize("given", ["words", {"raw": 3}, {"raw": "x", "nothing": 1}])
def test_what_is_no_transcription_is_refused_with_one_sentence(given):
    assert find_problems(given) == ["This answer is not a transcription."]
