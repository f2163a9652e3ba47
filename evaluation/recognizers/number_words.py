"""Numbers written in digits, as English words: recognisers write “1815”, transcripts say “eighteen fifteen”.

Conventions: words in small letters, without hyphens and without “and”; numbers of four digits from 1100 to 1999 and
from 2010 to 2099 are read as years are, all others as quantities. What is ambiguous in print stays a guess.
"""

from __future__ import annotations

import re

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_GROUPS = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_MOST_DIGITS = 15
_UNITS = {"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros")}
_MONEY = re.compile(r"([$£€])\s?(\d[\d,]*)(?:\.(\d\d))?(?![\d.]*\d)(?:\s+(hundred|thousand|million|billion))?")
_TIME = re.compile(r"\b(\d{1,2}):([0-5]\d)\b")
_GROUPED = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
_PLURAL = re.compile(r"\b(\d+)'?s\b")
_DECIMAL = re.compile(r"\b(\d+)\.(\d+)\b")
_DIGITS = re.compile(r"\d+")


def spell_numbers(text: str) -> str:
    """Every number of a text in words: money, times of day, ordinals, decades, decimals, years and quantities.

    >>> spell_numbers("in 1815 the 2nd of 1,200 men paid £5 at 10:30")
    'in eighteen fifteen the second of one thousand two hundred men paid five pounds at ten thirty'
    """
    text = _MONEY.sub(_money, text)
    text = _GROUPED.sub(lambda found: _quantity(found[0].replace(",", "")), text)
    text = _TIME.sub(_time, text)
    text = _ORDINAL.sub(lambda found: _ordinal(_spell(found[1])), text)
    text = _PLURAL.sub(lambda found: _plural(_spell(found[1])), text)
    text = _DECIMAL.sub(lambda found: f"{_spell(found[1])} point {_one_by_one(found[2])}", text)
    text = _DIGITS.sub(lambda found: f" {_spell(found[0])} ", text)
    return " ".join(text.split())


def cardinal(number: int) -> str:
    """A quantity in words, from 0 to below 10¹⁵.

    >>> cardinal(80_019)
    'eighty thousand nineteen'
    """
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_TENS[tens]} {_ONES[ones]}" if ones else _TENS[tens]
    size, name = next(group for group in _GROUPS if number >= group[0])
    groups, rest = divmod(number, size)
    head = f"{cardinal(groups)} {name}"
    return f"{head} {cardinal(rest)}" if rest else head


def _spell(digits: str) -> str:
    is_year = len(digits) == 4 and ("1100" <= digits <= "1999" or "2010" <= digits <= "2099")
    return _year(int(digits)) if is_year else _quantity(digits)


def _quantity(digits: str) -> str:
    """Digits as a number; one by one where they begin with 0 or are too many to be named."""
    if len(digits) > _MOST_DIGITS or (len(digits) > 1 and digits[0] == "0"):
        return _one_by_one(digits)
    return cardinal(int(digits))


def _year(number: int) -> str:
    century, rest = divmod(number, 100)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def _one_by_one(digits: str) -> str:
    return " ".join(_ONES[int(digit)] for digit in digits)


def _ordinal(words: str) -> str:
    *first, last = words.split()
    usual = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return " ".join([*first, _ORDINALS.get(last, usual)])


def _plural(words: str) -> str:
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"


def _money(found: re.Match[str]) -> str:
    amount, size = found[2].replace(",", ""), found[4]
    one, many = _UNITS[found[1]]
    words = f"{_quantity(amount)} {size}" if size else _quantity(amount)
    unit = one if amount == "1" and not size else many
    cents = f" and {cardinal(int(found[3]))}" if found[3] and int(found[3]) else ""
    return f" {words} {unit}{cents} "


def _time(found: re.Match[str]) -> str:
    hour, minute = int(found[1]), int(found[2])
    if minute == 0:
        return f"{cardinal(hour)} o'clock"
    return f"{cardinal(hour)} {'oh ' if minute < 10 else ''}{cardinal(minute)}"
