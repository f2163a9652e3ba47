"""Lines of text that people type, such as names and titles: signs that only hide something, lines that look alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import chain, count

JOINERS = "\u200c\u200d"  # zero width non-joiner and joiner
# Scripts that write words with joiners, by the first word of their letters' Unicode names.
_JOINED_SCRIPTS = frozenset(
    (
        *("ADLAM", "ARABIC", "BALINESE", "BENGALI", "DEVANAGARI", "GUJARATI", "GURMUKHI", "HANIFI", "JAVANESE"),
        *("KANNADA", "KHMER", "MALAYALAM", "MANDAIC", "MONGOLIAN", "MYANMAR", "NKO", "ORIYA", "SINHALA", "SUNDANESE"),
        *("SYRIAC", "TAMIL", "TELUGU", "TIBETAN"),
    )
)
_VIRAMA = 9  # combining class of the sign after which a joiner chooses the form of the consonant


def find_hidden_character(text: str) -> str:
    """Return the first sign that nobody sees, such as ``U+200B``; "" where there is none.

    A joiner between the letters of a script that uses it is part of its spelling, as is one between emoji.

    >>> find_hidden_character("نیم\u200cفاصله"), find_hidden_character("pass\u200cword")
    ('', 'U+200C')
    """
    if text.isprintable():
        return ""
    for place, sign in enumerate(text):
        if not sign.isprintable() and not (sign in JOINERS and _is_spelled(text[:place], sign, text[place + 1 :])):
            return f"U+{ord(sign):04X}"
    return ""


def line_problem(text: str) -> str:
    """Return the sentence for a line that holds a sign that nobody sees; "" where it holds none."""
    hidden = find_hidden_character(text)
    return f"Use letters, digits and signs only; found the invisible character {hidden}." if hidden else ""


def fold_line(text: str) -> str:
    """Return the same for lines that look alike: Unicode form, capitals, spaces and joiners make no difference."""
    visible = "".join(sign for sign in unicodedata.normalize("NFKC", text) if sign not in JOINERS)
    return " ".join(unicodedata.normalize("NFKC", visible.casefold()).split())


def number_line(line: str, taken: Iterable[str], *, longest: int) -> str:
    """Return the line, with a number behind it where one of `taken` looks like it."""
    folded = {fold_line(one) for one in taken}
    numbered = (f"{line[: longest - 6]} ({number})" for number in count(2))
    return next(one for one in chain((line[:longest],), numbered) if fold_line(one) not in folded)


def _is_spelled(before: str, joiner: str, after: str) -> bool:
    """Return whether a joiner stands where words or emoji are written with it."""
    left, right = before[-1:], after[:1]
    if left and unicodedata.combining(left) == _VIRAMA:
        return True
    if not left or not right:
        return False
    if unicodedata.category(right) == "So":
        return joiner == "\u200d" and unicodedata.category(left) in ("So", "Sk", "Mn")
    neighbours = (left, right)
    return all(unicodedata.category(sign)[0] in "LMN" for sign in neighbours) and any(
        unicodedata.name(sign, "").partition(" ")[0] in _JOINED_SCRIPTS for sign in neighbours
    )
