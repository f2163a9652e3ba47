import pytest

from evaluation.metrics.number_words import make_ordinal, number_readings


def said(text):
    return [" ".join(words) for words in number_readings(text)]


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("0", "zero"),
        ("21", "twenty one"),
        ("101", "one hundred and one"),
        ("1001", "one thousand and one"),
        ("12345", "twelve thousand three hundred and forty five"),
        ("2000000015", "two billion and fifteen"),
        ("300,000", "three hundred thousand"),
        ("3.14", "three point one four"),
        ("1st", "first"),
        ("5th", "fifth"),
        ("12th", "twelfth"),
        ("21st", "twenty first"),
        ("90s", "nineties"),
        ("6s", "sixes"),
    ],
)
def test_first_reading_is_the_plain_one(digits, words):
    assert said(digits)[0] == words


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("1905", "nineteen oh five"),
        ("1905", "nineteen hundred and five"),
        ("1905", "one thousand nine hundred and five"),
        ("1987", "nineteen eighty seven"),
        ("2020", "twenty twenty"),
        ("2005", "two thousand five"),
        ("250", "two fifty"),
        ("100", "a hundred"),
        ("1980s", "nineteen eighties"),
        ("007", "oh oh seven"),
    ],
)
def test_other_usual_readings_are_known(digits, words):
    assert words in said(digits)


@pytest.mark.parametrize(
    ("digits", "words"),
    [("2020", "twenty hundred and twenty"), ("30th", "three zeroth"), ("1,905", "nineteen oh five")],
)
def test_what_nobody_says_is_no_reading(digits, words):
    assert words not in said(digits)


def test_long_digits_are_read_one_by_one():
    assert said("12345678901230")[0].split()[:3] == ["one", "two", "three"]
    assert len(number_readings("12345678901230")[0]) == 14


@pytest.mark.parametrize("text", ["", "1,23,4"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="Expected a number in digits"):
        number_readings(text)


def test_ordinals_of_words():
    assert [make_ordinal(word) for word in ("thirty", "hundred", "four", "two")] == [
        "thirtieth",
        "hundredth",
        "fourth",
        "second",
    ]
