import pytest

from evaluation.metrics.number_words import make_ordinal, number_readings


def said(text):
    return [" ".join(words) for words in number_readings(text)]


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("0", "zero"),
        ("7", "seven"),
        ("13", "thirteen"),
        ("21", "twenty one"),
        ("40", "forty"),
        ("100", "one hundred"),
        ("101", "one hundred and one"),
        ("999", "nine hundred and ninety nine"),
        ("1000", "one thousand"),
        ("1001", "one thousand and one"),
        ("12345", "twelve thousand three hundred and forty five"),
        ("1000000", "one million"),
        ("2000000015", "two billion and fifteen"),
        ("300,000", "three hundred thousand"),
        ("3.14", "three point one four"),
        ("0.5", "zero point five"),
        ("1st", "first"),
        ("2nd", "second"),
        ("3rd", "third"),
        ("5th", "fifth"),
        ("8th", "eighth"),
        ("9th", "ninth"),
        ("12th", "twelfth"),
        ("20th", "twentieth"),
        ("21st", "twenty first"),
        ("100th", "one hundredth"),
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
        ("1905", "nineteen hundred five"),
        ("1905", "one thousand nine hundred and five"),
        ("1987", "nineteen eighty seven"),
        ("1900", "nineteen hundred"),
        ("2020", "twenty twenty"),
        ("2005", "two thousand five"),
        ("2005", "twenty oh five"),
        ("2500", "twenty five hundred"),
        ("250", "two fifty"),
        ("305", "three oh five"),
        ("100", "a hundred"),
        ("1500", "a thousand five hundred"),
        ("1980s", "nineteen eighties"),
        ("007", "oh oh seven"),
        ("42", "four two"),
        ("3.05", "three point oh five"),
    ],
)
def test_other_usual_readings_are_known(digits, words):
    assert words in said(digits)


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        ("2020", "twenty hundred and twenty"),
        ("30th", "three zeroth"),
        ("2000", "twenty hundred"),
        ("1,905", "nineteen oh five"),
    ],
)
def test_what_nobody_says_is_no_reading(digits, words):
    assert words not in said(digits)


def test_long_digits_are_read_one_by_one():
    assert said("12345678901230")[0].split()[:3] == ["one", "two", "three"]
    assert len(number_readings("12345678901230")[0]) == 14


@pytest.mark.parametrize("text", ["", "one", "1,23,4", "-3", "1st2"])
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
