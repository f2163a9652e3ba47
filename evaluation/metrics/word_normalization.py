"""What becomes of a text before its words are compared: rules with a name, so that a rate says how it was counted.

A rule is applied to reference and hypothesis alike. The challenge changes a text once, when its data are prepared;
recognisers that write as people do (capitals, marks, digits, “Mr.”) need more, or correct words count as errors.
A change of a rule is a new rule under a new name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from common.errors import InputError
from evaluation.metrics.number_words import spell_numbers
from evaluation.metrics.word_errors import normalise_transcript

_BRACKETS = {"[": "]", "(": ")", "<": ">"}
_OPENING = re.compile(r"[\[(<]")
_APOSTROPHES = str.maketrans("’‘ʼ`´", "'''''")
_SHORT_FORMS = {
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
    "messrs": "messieurs",
    "prof": "professor",
    "capt": "captain",
    "gen": "general",
    "col": "colonel",
    "lieut": "lieutenant",
    "sgt": "sergeant",
    "rev": "reverend",
    "vs": "versus",
    "etc": "et cetera",
}
_TITLES = re.compile(rf"\b({'|'.join(_SHORT_FORMS)})\.?(?![\w'])")
_SAINT = re.compile(r"\bst\.?(?=\s+[a-z])")
_SIGNS = {"&": " and ", "%": " per cent ", "+": " plus ", "=": " equals "}
_NOT_A_WORD = re.compile(r"[^a-z' ]+")
_EDGE_APOSTROPHE = re.compile(r"(?<!\w)'+|'+(?!\w)")
# A character with its marks: Chinese, Japanese, Thai, Lao, Tibetan, Burmese, Khmer.
_UNDIVIDED = re.compile(
    "[\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff]"
    "[\u0300-\u036f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u0f90-\u0fbc"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3\u3099\u309a]*"
)
_LOOSE_APOSTROPHE = re.compile(r"(?<![a-z])'+|'+(?![a-z])")


@dataclass(frozen=True)
class TextRule:
    """How texts are made comparable.

    Attributes:
        name: as in commands and reports; never used again for another rule.
        title: for people.
        description: what it does, in one or two sentences.
        normalise: the rule.
    """

    name: str
    title: str
    description: str
    normalise: Callable[[str], str]


def written_english(text: str) -> str:
    """Return words in capitals from English as people write it.

    Annotations in brackets go, accents go, numbers are spelt, titles and signs become words, hyphens and every other
    mark become spaces; apostrophes stay inside words. Spellings (“colour”, “color”) and compounds stay as they are.

    >>> written_english("Mr. Smith’s 2nd café—[music] it's 5%!")
    "MISTER SMITH'S SECOND CAFE IT'S FIVE PER CENT"
    """
    text = unicodedata.normalize("NFKD", _drop_annotations(text.translate(_APOSTROPHES)))
    text = "".join(sign for sign in text if not unicodedata.combining(sign)).lower()
    text = spell_numbers(text)
    text = _TITLES.sub(lambda found: _SHORT_FORMS[found[1]], text)
    text = _SAINT.sub("saint", text)
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    text = _NOT_A_WORD.sub(" ", text)
    return " ".join(_LOOSE_APOSTROPHE.sub("", text).split()).upper()


def _drop_annotations(text: str) -> str:
    """Return a blank for each pair of brackets with what is in it; a bracket that nothing closes stays."""
    kept, start = [], 0
    last = {opening: text.rfind(closing) for opening, closing in _BRACKETS.items()}
    for found in _OPENING.finditer(text):
        if start <= found.start() < last[found[0]]:
            kept.append(text[start : found.start()])
            start = text.index(_BRACKETS[found[0]], found.end()) + 1
    return " ".join([*kept, text[start:]])


def written(text: str) -> str:
    """Return words in capitals from any language as people write it; characters where a script puts no space between
    words.

    >>> written("Zwölf Boxkämpfer – l’été, [Musik] ÇA!"), written("今日は、いい天気。")
    ("ZWÖLF BOXKÄMPFER L'ÉTÉ ÇA", '今 日 は い い 天 気')
    """
    text = unicodedata.normalize("NFC", _drop_annotations(unicodedata.normalize("NFKC", text.translate(_APOSTROPHES))))
    text = "".join(sign if sign == "'" or unicodedata.category(sign)[0] in "LMN" else " " for sign in text)
    text = _UNDIVIDED.sub(r" \g<0> ", text)
    return " ".join(_EDGE_APOSTROPHE.sub("", text).split()).upper()


CHALLENGE_2022 = TextRule(
    "vpc-2022",
    "as the 2022 challenge prepares its data",
    "The marks , ! ? . become spaces and letters capitals; nothing else. For recognisers that write plain words.",
    normalise_transcript,
)
WRITTEN_ENGLISH = TextRule(
    "written-english-1",
    "English as people write it, in plain words",
    "Besides the 2022 rule: numbers are spelt, titles and signs become words, hyphens and all other marks become "
    "spaces, accents and annotations in brackets go. For recognisers that write capitals, marks and digits.",
    written_english,
)
WRITTEN = TextRule(
    "written-1",
    "as people write it in any language, in plain words",
    "Annotations in brackets go, every mark but the apostrophe becomes a space, letters with their accents become "
    "capitals; numbers stay digits. Scripts that put no space between words (Chinese, Japanese, Thai, Lao, Khmer, "
    "Burmese, Tibetan) are divided into characters, so that the rate is one of characters.",
    written,
)
RULES: dict[str, TextRule] = {rule.name: rule for rule in (CHALLENGE_2022, WRITTEN_ENGLISH, WRITTEN)}


def rule_for(languages: Iterable[str]) -> TextRule:
    """Return the rule for what recognisers write in these languages: one for all, so that their rates can be
    averaged."""
    return WRITTEN_ENGLISH if set(languages) <= {"en"} else WRITTEN


def find_rule(name: str) -> TextRule:
    """Return the rule of a name.

    Raises:
        InputError: there is none; names those that there are.
    """
    if name not in RULES:
        raise InputError(f"Expected a rule for texts among {', '.join(RULES)}, found “{name}”.")
    return RULES[name]
