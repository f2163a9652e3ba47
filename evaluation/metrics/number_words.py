"""Numbers written in digits, as English words: recognisers and listeners write “1815”, readers say “eighteen fifteen”.

Two uses: `spell_numbers` puts the most likely reading into a text, `number_readings` gives every usual reading of one
number, to compare what was written with words. Single numbers come from `num2words`; the mixed readings
(pairs as in years, digit by digit, “a hundred”) are built on top of it.

Conventions: words in small letters, without hyphens; `spell_numbers` writes no “and” inside of a number and reads
numbers of four digits from 1100 to 1999 and from 2010 to 2099 as years, all others as quantities. What is ambiguous in
print stays a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

Words = tuple[str, ...]

NUMBER = re.compile(r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?(?P<ending>st|nd|rd|th|s)?")
_MOST_DIGITS_SPELT, _MOST_DIGITS_HEARD = 15, 12  # longer ones are no quantities: they are read digit by digit
_UNITS = {"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros")}
# An amount that something like a decimal follows ends before its last comma, if it has one.
_MONEY = re.compile(
    r"(?P<unit>[$£€])\s?(?:(?P<amount>\d[\d,]*+)(?:\.(?P<cents>\d\d))?(?![\d.]*\d)|(?P<part>\d[\d,]*)(?=,))"
    r"(?:\s+(?P<size>hundred|thousand|million|billion))?"
)
_TIME = re.compile(r"\b(\d{1,2}):([0-5]\d)\b")
_GROUPED = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
_PLURAL = re.compile(r"\b(\d+)'?s\b")
_DECIMAL = re.compile(r"\b(\d+)\.(\d+)\b")
_DIGITS = re.compile(r"\d+")


def spell_numbers(text: str) -> str:
    """Put every number of a text in words: money, times of day, ordinals, decades, decimals, years and quantities.

    >>> spell_numbers("in 1815 the 2nd of 1,200 men paid £5 at 10:30")
    'in eighteen fifteen the second of one thousand two hundred men paid five pounds at ten thirty'
    """
    text = _MONEY.sub(_spell_money, text)
    text = _GROUPED.sub(lambda found: _spell_quantity(found[0].replace(",", "")), text)
    text = _TIME.sub(_spell_time, text)
    text = _ORDINAL.sub(lambda found: make_ordinal(_spell(found[1])), text)
    text = _PLURAL.sub(lambda found: _make_plural(_spell(found[1])), text)
    text = _DECIMAL.sub(lambda found: f"{_spell(found[1])} point {_spell_digits(found[2])}", text)
    text = _DIGITS.sub(lambda found: f" {_spell(found[0])} ", text)
    return " ".join(text.split())


def number_readings(text: str) -> tuple[Words, ...]:
    """Give each usual reading of a number such as ``21``, ``1,905``, ``3.14``, ``2nd`` or ``1980s`` once.

    "1905" may have been said as "nineteen oh five", "nineteen hundred and five" or "one thousand nine hundred and
    five"; a listener who types digits has understood any of them.

    Returns:
        One tuple of words a reading, the plain cardinal or ordinal first.

    Raises:
        ValueError: no such number.

    >>> number_readings("105")[:3]
    (('one', 'hundred', 'and', 'five'), ('one', 'hundred', 'five'), ('a', 'hundred', 'and', 'five'))
    """
    found = NUMBER.fullmatch(text)
    if not found:
        raise ValueError(f"Expected a number in digits, found {text!r}.")
    digits, ending = found["whole"].replace(",", ""), found["ending"] or ""
    readings = list(_quantity_readings(digits, may_be_year="," not in found["whole"]))
    if not ending or not readings:
        readings += _digit_readings(digits) if len(digits) > 1 else ()
    if found["decimals"]:
        readings = [f"{words} point {after}" for words in readings for after in _digit_readings(found["decimals"])]
    if ending:
        readings = list(map(_make_plural if ending == "s" else make_ordinal, readings))
    return tuple(tuple(words.split()) for words in dict.fromkeys(readings))


@lru_cache(maxsize=10_000)
def spell_cardinal(number: int, *, with_and: bool = False) -> str:
    """Put a quantity in words.

    >>> spell_cardinal(80_019), spell_cardinal(80_019, with_and=True)
    ('eighty thousand nineteen', 'eighty thousand and nineteen')
    """
    from num2words import num2words

    return " ".join(word for word in re.findall("[a-z]+", num2words(number)) if with_and or word != "and")


@cache
def _ordinals() -> dict[str, str]:
    """By the cardinal, of the numbers of one word."""
    from num2words import num2words

    numbers = (*range(21), *range(30, 100, 10))
    return {spell_cardinal(number): num2words(number, to="ordinal") for number in numbers}


def make_ordinal(words: str) -> str:
    """Make the last word of a number an ordinal: ``twenty five`` gives ``twenty fifth``."""
    *first, last = words.split()
    return " ".join([*first, _ordinals().get(last, f"{last}th")])


def _make_plural(words: str) -> str:
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"


def _spell(digits: str) -> str:
    is_year = len(digits) == 4 and ("1100" <= digits <= "1999" or "2010" <= digits <= "2099")
    return next(_pair_readings(int(digits))) if is_year else _spell_quantity(digits)


def _spell_quantity(digits: str) -> str:
    """Digits as a number; one by one where they begin with 0 or are too many to be named."""
    if len(digits) > _MOST_DIGITS_SPELT or (len(digits) > 1 and digits[0] == "0"):
        return _spell_digits(digits)
    return spell_cardinal(int(digits))


def _spell_digits(digits: str) -> str:
    return " ".join(spell_cardinal(int(digit)) for digit in digits)


def _spell_money(found: re.Match[str]) -> str:
    amount, size = (found["amount"] or found["part"]).replace(",", ""), found["size"]
    one, many = _UNITS[found["unit"]]
    words = f"{_spell_quantity(amount)} {size}" if size else _spell_quantity(amount)
    unit = one if amount == "1" and not size else many
    cents = f" and {spell_cardinal(int(found['cents']))}" if int(found["cents"] or 0) else ""
    return f" {words} {unit}{cents} "


def _spell_time(found: re.Match[str]) -> str:
    hour, minute = int(found[1]), int(found[2])
    if minute == 0:
        return f"{spell_cardinal(hour)} o'clock"
    return f"{spell_cardinal(hour)} {'oh ' if minute < 10 else ''}{spell_cardinal(minute)}"


def _quantity_readings(digits: str, *, may_be_year: bool) -> Iterator[str]:
    """Of digits without signs: as a cardinal, and in pairs as years and rooms are read; none of ``007``."""
    if len(digits) > _MOST_DIGITS_HEARD or (digits != "0" and digits[0] == "0"):
        return
    for with_and in (True, False):
        words = spell_cardinal(int(digits), with_and=with_and)
        yield words
        if words.startswith("one "):
            yield f"a {words.removeprefix('one ')}"
    if may_be_year and len(digits) in (3, 4):
        yield from _pair_readings(int(digits))


def _pair_readings(number: int) -> Iterator[str]:
    """``1905`` as nineteen oh five, ``2500`` as twenty five hundred, ``250`` as two fifty; nothing of ``2000``."""
    left, right = divmod(number, 100)
    before, after = spell_cardinal(left), spell_cardinal(right)
    has_hundreds = number >= 1000 and left % 10 > 0  # nobody says twenty hundred
    if right:
        yield f"{before} {after}" if right >= 10 else f"{before} oh {after}"
    elif has_hundreds:
        yield f"{before} hundred"
    if right and has_hundreds:
        yield f"{before} hundred and {after}"
        yield f"{before} hundred {after}"


def _digit_readings(digits: str) -> list[str]:
    """Digit by digit, zeros as such and as the letter."""
    words = _spell_digits(digits)
    return [words, words.replace("zero", "oh")]
