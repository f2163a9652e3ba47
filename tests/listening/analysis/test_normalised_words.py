import pytest

from listening.analysis.transcription.transcripts import (
    FUNCTION_WORDS,
    list_readings,
    match_words,
)


def are_alike(reference, heard, language="en"):
    words = match_words(reference, heard, language)
    return words.reference == words.heard


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("AFTER EARLY NIGHTFALL", "After early nightfall."),
        ("TWENTY ONE MEN", "21 men"),
        ("21 MEN", "twenty-one men"),
        ("IT WAS NINETEEN OH FIVE", "it was 1905"),
        ("THE NINETEEN EIGHTIES", "the 1980s"),
        ("FIVE DOLLARS AND TEN PERCENT", "$5 & 10 %"),
        ("THREE POINT ONE FOUR", "3.14"),
        ("DO NOT GO", "don’t go"),
        ("HE'S GONE", "he has gone"),
        ("I'D HAVE", "i would have"),
        ("I WOULD HAVE", "i'd've"),
        ("THEY WILL NOT", "they won't"),
        ("'TIS SO", "it is so"),
        ("JOHN IS HERE", "john's here"),
        ("THE KINGS' MEN", "the king's men"),
        ("MISTER SMITH", "Mr. Smith"),
        ("SAINT PAUL", "St. Paul"),
        ("THE COLOUR OF HONOUR", "the color of honor"),
        ("TO MORROW", "tomorrow"),
        ("", " ... "),
    ],
)
def test_what_is_written_another_way_is_alike(said, written):
    assert are_alike(said, written)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("THEIR HOUSE", "there house"),
        ("TWENTY ONE", "22"),
        ("NINETEEN OH FIVE", "1906"),
        ("HE IS", "he would"),
        ("CHECK", "cheque"),
    ],
)
def test_other_words_stay_different(said, written):
    assert not are_alike(said, written)


def test_reference_keeps_its_own_words_where_it_can():
    words = match_words("TWENTY ONE MEN DON'T COUNT", "nobody knows")
    assert words.reference == ("twenty", "one", "men", "do", "not", "count")
    for heard in ("", "no", "it was", "was he"):
        assert " ".join(match_words("IT WAS 1905", heard).reference[2:]) == "one thousand nine hundred and five"


def test_joining_needs_the_other_side_and_fewer_errors():
    assert match_words("A WAY", "a way").reference == ("a", "way")
    assert match_words("AWAY", "a way").heard == ("away",)
    assert match_words("GO A WAY", "go").reference == ("go", "a", "way")


@pytest.mark.parametrize("text", ["Don't mind Mr. O'Neill's 21st color, he'd say!", "It's 1905 & the traveler's gone."])
def test_normalising_again_changes_nothing(text):
    once = " ".join(word for piece in list_readings(text) for word in piece[0])
    assert " ".join(word for piece in list_readings(once) for word in piece[0]) == once


def test_other_languages_get_case_and_punctuation_only():
    assert are_alike("L'été, à Paris", "l’été à PARIS !", "fr")
    assert not are_alike("été", "ete", "fr")
    assert not are_alike("21", "twenty one", "fr")
    assert not are_alike("color", "colour", "fr")
    assert are_alike("e\u0301te\u0301", "été", "fr")  # one letter, or a letter and its accent


def test_function_words_are_as_normalised_and_no_content_words():
    for word in FUNCTION_WORDS:
        assert list_readings(word)[0][0] == (word,), word
    assert not FUNCTION_WORDS & {"one", "two", "house", "good", "said", "man", "go", "new"}


def test_digits_in_the_reference_are_read_as_they_were_heard():
    for heard in ("two thousand five", "two thousand and five", "twenty oh five", "2005"):
        assert are_alike("IN 2005", f"in {heard}")
    assert match_words("IN 1905", "in nineteen oh four").reference == ("in", "nineteen", "oh", "five")
