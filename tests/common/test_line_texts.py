"""Names and titles: a sign that only hides something is found, one that spells a word is not."""

import unicodedata

import pytest

from common.line_texts import find_hidden_character, fold_line, number_line


@pytest.mark.parametrize(
    "text",
    [
        "نیم\u200cفاصله پژوه",  # Persian, as it is typed
        # a Latin word with a Persian ending
        "क्\u200dष",  # Devanagari half form
        # Sinhala
        "ন্\u200d",  # Bengali, at the end of a word
        "👩\u200d🔬 team",
        "Zoë Müller-0001",
    ],
)
def test_joiners_that_spell_words_are_part_of_a_line(text):
    assert find_hidden_character(text) == ""


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("pass\u200cword", "U+200C"),
        ("\u200cفاصله", "U+200C"),
        ("a\u200db", "U+200D"),
        ("zero\u200bwidth", "U+200B"),
        ("سلام\u202eدنیا", "U+202E"),
        ("Ada\x1b[31m", "U+001B"),
    ],
)
def test_signs_that_only_hide_something_are_found(text, hidden):
    assert find_hidden_character(text) == hidden


@pytest.mark.parametrize(
    "other", ["autumn  CHALLENGE é", "Autumn Challenge E\u0301", " Autumn\u00a0Challenge É ", "Ａutumn Challenge é"]
)
def test_lines_that_look_alike_are_equal(other):
    assert fold_line(other) == fold_line(unicodedata.normalize("NFC", "Autumn Challenge é"))


def test_line_that_is_taken_gets_the_next_number():
    assert number_line("Test", ["test", "TEST (2)"], longest=20) == "Test (3)"
    assert number_line("a" * 30, ["a" * 20], longest=20) == "a" * 14 + " (2)"
