"""Transcripts and references as words that can be compared: what was understood counts, not how it was written.

English: case, punctuation, numbers in digits, contractions, titles, signs such as %, and spelling variants. Where one
way of writing can stand for several ways of saying (``1905``, ``he's``), all of them are kept as *readings*, and
`closest_words` takes of both sides those that agree best. Words written apart or together (``to day``, ``good-bye``)
are joined where the other side has them joined. Words that sound alike but are other words (``there``, ``their``) stay
errors, as do apostrophes left out where that makes another word (``were`` for ``we're``).
Other languages: case and punctuation only.

Conventions: small letters, words without apostrophes; deterministic, readings that are equally good in the order given.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from listening.analysis.number_words import NUMBER, number_readings
from listening.analysis.spelling_variants import british_spelling

Words = tuple[str, ...]
# What one piece of a text can stand for: at least one sequence of words each.
Readings = tuple[tuple[Words, ...], ...]

ENGLISH = "en"
_ROUNDS = 3
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ`´", "'"))
_MONEY = re.compile(r"([$£€])\s?(" + re.sub(r"\?P<\w+>", "?:", NUMBER.pattern) + r")")
_CURRENCIES = {"$": "dollars", "£": "pounds", "€": "euros"}
_SIGNS = {"&": " and ", "%": " percent ", "+": " plus ", "=": " equals ", "@": " at ", "°": " degrees "}
_PIECE = re.compile(NUMBER.pattern + r"|'?[^\W\d_]+(?:'[^\W\d_]+)*")
_TITLES: dict[str, tuple[Words, ...]] = {
    "mr": (("mister",),), "mrs": (("missus",), ("mistress",)), "dr": (("doctor",), ("drive",)),
    "st": (("saint",), ("street",)), "prof": (("professor",),), "jr": (("junior",),), "sr": (("senior",),),
    "capt": (("captain",),), "vs": (("versus",),), "etc": (("et", "cetera"), ("etcetera",)),
}  # fmt: skip
_WHOLE: dict[str, tuple[Words, ...]] = {
    "can't": (("can", "not"),), "won't": (("will", "not"),), "shan't": (("shall", "not"),), "cannot": (("can", "not"),),
    "ain't": (("aint",),), "let's": (("let", "us"), ("lets",)), "'tis": (("it", "is"),), "'twas": (("it", "was"),),
    "'em": (("them",),), "ma'am": (("maam",), ("madam",)), "gonna": (("going", "to"),), "wanna": (("want", "to"),),
    "gotta": (("got", "to"),), "gimme": (("give", "me"),), "lemme": (("let", "me"),),
}  # fmt: skip
_ENDINGS: tuple[tuple[str, tuple[Words, ...]], ...] = (
    ("n't", (("not",),)), ("'m", (("am",),)), ("'re", (("are",),)), ("'ve", (("have",),)),
    ("'ll", (("will",), ("shall",))),
)  # fmt: skip
# After these, 's and 'd are verbs; after others they are first of all a genitive, and a past tense as poets write it.
_BEFORE_VERBS = "i you he she it we they that this what who where there here how when why everything nothing something"
# Apostrophes are often left out; of these, what remains is no other word, or a rare one.
_OFTEN_WITHOUT = (
    "aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't needn't shan't shouldn't wasn't "
    "weren't wouldn't i'm i've you're you've you'll they're they've they'll we've it'll that's there's what's who's "
    "where's here's he's she's let's"
)


class ComparableWords(NamedTuple):
    """Words of what was said and of what was heard, in the readings with the fewest errors."""

    reference: Words
    heard: Words


def closest_words(reference: str, heard: str, language: str = ENGLISH) -> ComparableWords:
    """Both texts as words, read so that they differ least.

    Args:
        reference: what was said. `heard`: what somebody wrote down.
        language: code such as ``en`` or ``en-GB``; what is not English gets case and punctuation only.

    Example:
        >>> closest_words("IT WAS NINETEEN OH FIVE, THE COLOUR", "it was 1905 the color").heard
        ('it', 'was', 'nineteen', 'oh', 'five', 'the', 'colour')
    """
    said, written = readings_of(reference, language), readings_of(heard, language)
    first, second = [one[0] for one in said], [one[0] for one in written]
    for _ in range(_ROUNDS):  # a choice on one side can change what is best on the other
        before = [*first], [*second]
        _choose(written, second, partial(_errors_of_heard, reference=_flat(first)))
        _choose(said, first, partial(_share_not_heard, heard=_flat(second)))
        if (first, second) == before:
            break
    words = ComparableWords(_flat(first), _flat(second))
    return _joined_alike(words) if is_english(language) else words


def readings_of(text: str, language: str = ENGLISH) -> Readings:
    """Each piece of a text with what it can stand for, the plainest first; no pieces where no word is written."""
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).lower()
    if not is_english(language):
        return tuple(((word,),) for word in re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text)))
    text = _MONEY.sub(lambda found: f"{found[2]} {_CURRENCIES[found[1]]} ", text)
    for sign, words in _SIGNS.items():
        text = text.replace(sign, words)
    return tuple(_readings_of_piece(found[0]) for found in _PIECE.finditer(text))


def is_english(language: str) -> bool:
    return language.lower().replace("_", "-").split("-")[0] == ENGLISH


@functools.lru_cache(maxsize=50_000)
def _readings_of_piece(piece: str) -> tuple[Words, ...]:
    if piece[0].isdecimal():
        return number_readings(piece)
    written = _without_apostrophe().get(piece, piece)
    if written[0] == "'" and written not in _WHOLE:
        written = written[1:]  # an opening quotation mark
    return tuple(tuple(british_spelling(word) for word in words) for words in _readings_of_word(written))


def _readings_of_word(word: str) -> tuple[Words, ...]:
    """What a word in small letters stands for, contractions written out, other apostrophes dropped."""
    if word in _WHOLE or word in _TITLES:
        return _WHOLE.get(word) or _TITLES[word]
    for ending, meanings in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending):
            before = _readings_of_word(word.removesuffix(ending))
            return tuple((*host, *meaning) for host in before for meaning in meanings)
    host, ending = word[:-2], word[-2:]
    if ending not in ("'s", "'d") or not host:
        return ((word.replace("'", ""),),)
    plain, verbs = f"{host}s", ("is", "has")
    if ending == "'d":
        plain, verbs = f"{host}ed", ("would", "had")
    plainly, with_verb = (plain.replace("'", ""),), tuple((*_readings_of_word(host)[0], verb) for verb in verbs)
    return (*with_verb, plainly) if host in _BEFORE_VERBS.split() else (plainly, *with_verb)


@functools.cache
def _without_apostrophe() -> dict[str, str]:
    return {one.replace("'", ""): one for one in _OFTEN_WITHOUT.split()}


def _choose(readings: Readings, chosen: list[Words], loss: Callable[[Words, Words, Words], float]) -> None:
    """Take, piece by piece, the reading with the lowest loss between what stands before and after; or the first."""
    for place, possible in enumerate(readings):
        if len(possible) > 1:
            before, after = _flat(chosen[:place]), _flat(chosen[place + 1 :])
            losses = [loss(before, words, after) for words in possible]
            chosen[place] = possible[losses.index(min(losses))]


def _errors_of_heard(before: Words, words: Words, after: Words, *, reference: Words) -> float:
    return float(_distance(reference, (*before, *words, *after)))


def _share_not_heard(before: Words, words: Words, after: Words, *, heard: Words) -> float:
    """Of the words of a piece of the reference; by errors, the shortest reading of what nobody heard would be best."""
    from rapidfuzz.distance import LCSseq

    gained = LCSseq.similarity((*before, *words, *after), heard) - LCSseq.similarity((*before, *after), heard)
    return 1 - gained / len(words)


def _distance(reference: Words, heard: Words) -> int:
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(reference, heard))


def _joined_alike(words: ComparableWords) -> ComparableWords:
    """Neighbours that the other side writes as one word are joined, if that leaves fewer errors."""
    reference = _join(words.reference, frozenset(words.heard))
    heard = _join(words.heard, frozenset(reference))
    return ComparableWords(reference, heard) if _distance(reference, heard) < _distance(*words) else words


def _join(words: Words, known: frozenset[str]) -> Words:
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] + word in known:
            joined[-1] += word
        else:
            joined.append(word)
    return tuple(joined)


def _flat(parts: Sequence[Words]) -> Words:
    return tuple(chain.from_iterable(parts))
