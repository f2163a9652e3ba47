"""How English numbers in digits can be read aloud: every usual reading, for whoever compares what was heard with words.

"1905" may have been said as "nineteen oh five", "nineteen hundred and five" or "one thousand nine hundred and five";
a listener who types digits has understood any of them. Libraries that spell numbers out give one reading of each kind
and none of the mixed ones, so what is needed here would still have to be written around them.

Conventions: small letters, no hyphens, one tuple of words a reading, the plain cardinal or ordinal first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Words = tuple[str, ...]

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ("", "thousand", "million", "billion")
_IRREGULAR = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_MOST_DIGITS = 12  # longer ones are no quantities: they are read digit by digit
NUMBER = re.compile(r"(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?(?P<ending>st|nd|rd|th|s)?")


def number_readings(text: str) -> tuple[Words, ...]:
    """Readings of a number such as ``21``, ``1,905``, ``3.14``, ``2nd`` or ``1980s``; each once.

    Raises:
        ValueError: no such number.

    Example:
        >>> number_readings("105")[:3]
        (('one', 'hundred', 'and', 'five'), ('one', 'hundred', 'five'), ('a', 'hundred', 'and', 'five'))
    """
    found = NUMBER.fullmatch(text)
    if not found:
        raise ValueError(f"Expected a number in digits, found {text!r}.")
    digits, ending = found["whole"].replace(",", ""), found["ending"] or ""
    readings = list(_as_quantity(digits, is_year="," not in found["whole"]))
    if not ending or not readings:
        readings += _one_by_one(digits) if len(digits) > 1 else ()
    if found["decimals"]:
        readings = [(*words, "point", *after) for words in readings for after in _one_by_one(found["decimals"])]
    if ending == "s":
        readings = [(*words[:-1], _plural(words[-1])) for words in readings]
    elif ending:
        readings = [(*words[:-1], ordinal(words[-1])) for words in readings]
    return tuple(dict.fromkeys(readings))


def ordinal(word: str) -> str:
    """The ordinal of the last word of a number: ``twenty`` gives ``twentieth``."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    return f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th"


def _as_quantity(digits: str, *, is_year: bool) -> Iterator[Words]:
    """Of digits without signs: as a cardinal, and in pairs as years and rooms are read; none of ``007``."""
    if len(digits) > _MOST_DIGITS or (digits != "0" and digits[0] == "0"):
        return
    number = int(digits)
    for joined in (True, False):
        words = _cardinal(number, with_and=joined)
        yield words
        if words[0] == "one" and len(words) > 1:
            yield ("a", *words[1:])
    if is_year and len(digits) in (3, 4):
        yield from _in_pairs(number)


def _in_pairs(number: int) -> Iterator[Words]:
    """``1905`` as nineteen oh five, ``2500`` as twenty five hundred, ``250`` as two fifty; nothing of ``2000``."""
    left, right = divmod(number, 100)
    before, after = _below_hundred(left), _below_hundred(right)
    has_hundreds = number >= 1000 and left % 10 > 0  # nobody says twenty hundred
    if right >= 10:
        yield (*before, *after)
    elif right:
        yield (*before, "oh", *after)
    elif has_hundreds:
        yield (*before, "hundred")
    if right and has_hundreds:
        yield (*before, "hundred", "and", *after)
        yield (*before, "hundred", *after)


def _cardinal(number: int, *, with_and: bool) -> Words:
    if number < 20:
        return (_SMALL[number],)
    words: list[str] = []
    for scale in reversed(range(len(_SCALES))):
        part = number // 1000**scale % 1000
        if not part:
            continue
        hundreds, rest = divmod(part, 100)
        if hundreds:
            words += [_SMALL[hundreds], "hundred"]
        if rest and words and with_and and (hundreds or not scale):
            words.append("and")
        words += _below_hundred(rest) if rest else ()
        if scale:
            words.append(_SCALES[scale])
    return tuple(words)


def _below_hundred(number: int) -> Words:
    if number < 20:
        return (_SMALL[number],)
    tens, ones = divmod(number, 10)
    return (_TENS[tens], _SMALL[ones]) if ones else (_TENS[tens],)


def _one_by_one(digits: str) -> list[Words]:
    """Digit by digit, zeros as such and as the letter."""
    words = tuple(_SMALL[int(digit)] for digit in digits)
    return [words, tuple("oh" if word == "zero" else word for word in words)]


def _plural(word: str) -> str:
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("x") else f"{word}s"
