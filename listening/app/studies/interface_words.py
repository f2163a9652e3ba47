"""The words around a study's texts: buttons, hints, errors and shipped questions, in a language that ships none.

What is to be translated is what the French catalogue translates, and the questions that studies may ask before their
trials. Translations are kept as a text of the study (`StudyText.Kind.WORDS`); what is missing stays English. A sentence
that counts is translated once for each plural form of the language, by Django's rules, numbered from 1. Translations
are put into pages as they are, so signs that HTML or formatting would take for their own are refused. `speak` lets a
request speak a language of a study: the translation is an object of that request alone, so nothing is shared between
threads or studies.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from gettext import NullTranslations
from pathlib import Path

from django.utils.translation import deactivate, trans_real

from common.errors import ProblemsError
from listening.app.models import Study, StudyText
from listening.texts import SHIPPED_LANGUAGES, shipped_questionnaire

CATALOGUE = Path(__file__).parents[1] / "locale" / "fr" / "LC_MESSAGES" / "django.po"
LONGEST = 2000
PLACE = re.compile(r"%\(\w+\)[sd]|\{\w+\}")
COUNTED = frozenset({"%(n)d", "%(minutes)s", "%(months)s", "%(answered)s"})  # what a form of one number may leave out
REFUSED_SIGNS = {"<": "‹", ">": "›", "&": "a word for “and”", '"': "“ ” or another quotation mark"}
TRIED_NUMBERS = 121  # every rule of a plural shows all of its forms below it
MOST_NUMBERS = 5
Key = tuple[str, int]


@dataclass(frozen=True)
class Word:
    """What is translated as one: `source` names it, `english` is what stands there without a translation.

    Attributes:
        form: of the plural, from 1 on; 0 for what counts nothing.
        numbers: for which the form is used, some of them.
        is_single: whether that is one number alone.
    """

    source: str
    english: str
    form: int = 0
    numbers: str = ""
    is_single: bool = False

    @property
    def name(self) -> str:
        """Return the name of its field in a form."""
        return "word-" + hashlib.sha256(f"{self.source}\0{self.form}".encode()).hexdigest()[:12]

    @property
    def key(self) -> Key:
        return self.source, self.form


def ships_words(language: str) -> bool:
    """Return whether the pages of evaluators are shipped in this language."""
    return language.partition("-")[0] in SHIPPED_LANGUAGES


@cache
def list_words(language: str) -> tuple[Word, ...]:
    """Return everything to translate, in the order of the catalogue, then that of the questions."""
    found: list[Word] = []
    for one, many in _sources().items():
        found += _plural_words(one, many, language) if many else [Word(one, one)]
    return tuple(found)


@cache
def _sources() -> dict[str, str]:
    """Return each sentence with its plural, which is empty for most."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n\s*\n", CATALOGUE.read_text(encoding="utf-8")):
        parts: dict[str, str] = {}
        name = ""
        for line in entry.splitlines():
            head, _, rest = line.partition(" ")
            if line.startswith('"'):
                parts[name] += ast.literal_eval(line)
            elif head in ("msgid", "msgid_plural"):
                name = head
                parts[name] = ast.literal_eval(rest)
            elif not line.startswith("#"):
                name = head
                parts[name] = ""
        if parts.get("msgid"):
            found[parts["msgid"]] = parts.get("msgid_plural", "")
    for question in shipped_questionnaire():
        for one in (question, *question.get("choices", ())):
            found.setdefault(one["labels"]["en"], "")
    return found


def _plural_words(one: str, many: str, language: str) -> Iterator[Word]:
    plural = trans_real.translation(language).plural
    forms: dict[int, list[int]] = {}
    for number in range(TRIED_NUMBERS):
        forms.setdefault(int(plural(number)), []).append(number)
    for place in sorted(forms):
        numbers = forms[place]
        shown = ", ".join(map(str, numbers[:MOST_NUMBERS])) + ", …" * (len(numbers) > MOST_NUMBERS)
        yield Word(one, one if numbers == [1] else many, place + 1, shown, len(numbers) == 1)


# Checking -----------------------------------------------------------------------------------------


def find_problem(word: Word, translation: str) -> str:
    """Return why a translation cannot be taken, as a sentence; empty where it can."""
    if len(translation) > LONGEST:
        return f"Expected at most {LONGEST} characters, found {len(translation)}."
    wanted, found = set(PLACE.findall(word.english)), set(PLACE.findall(translation))
    lost = wanted - found - (COUNTED if word.is_single else set())
    if lost:
        return f"{_named(lost)} must stand in the translation as it is: something is filled in there."
    if found - wanted:
        return f"{_named(found - wanted)} is not in the English words, so nothing is filled in there. Leave it out."
    for sign, instead in REFUSED_SIGNS.items():
        if sign in translation:
            return f"Expected words without {sign}, which pages take for their own. Write {instead} instead."
    bare = PLACE.sub("", translation)
    return "Expected % in %(…) alone, found another one. Write a word for it instead." if "%" in bare else ""


def _named(places: set[str]) -> str:
    return " and ".join(sorted(places))


# Stored text --------------------------------------------------------------------------------------


def write_words(translations: Mapping[Key, str]) -> str:
    """Return the text that keeps translations: a JSON array of source, form and translation, one to a line."""
    rows = [[*key, translation] for key, translation in sorted(translations.items()) if translation]
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]" if rows else ""


def read_words(text: str, name: str, language: str) -> dict[Key, str]:
    """Return the translations that a text keeps.

    Args:
        name: of the text, for its problems.

    Raises:
        ProblemsError: everything that is wrong.
    """
    try:
        found = {(str(source), int(form)): str(translation) for source, form, translation in json.loads(text)}
    except (TypeError, ValueError) as error:
        raise ProblemsError([f"{name}: expected a JSON array of [source, form, translation] ({error})."]) from None
    known = {word.key: word for word in list_words(language)}
    problems = []
    for (source, form), translation in found.items():
        word = known.get((source, form))
        told = find_problem(word, translation) if word else "That is not among the words of the portal."
        problems += [f"{name}, “{source[:60]}”, form {form}: {told}"] if told else []
    if problems:
        raise ProblemsError(problems)
    return found


# Speaking -----------------------------------------------------------------------------------------


def translations_of(study: Study, language: str) -> dict[Key, str]:
    """Return the newest translations of a study in a language, of words that the portal still has."""
    kept = study.texts.filter(kind=StudyText.Kind.WORDS, language=language).order_by("-version")
    text = kept.values_list("text", flat=True).first()
    known = {word.key for word in list_words(language)}
    return {(source, form): said for source, form, said in json.loads(text or "[]") if (source, form) in known}


def count_missing(study: Study, language: str) -> tuple[int, int]:
    """Return how many words are not translated, and how many there are."""
    words = list_words(language)
    return len(words) - len(translations_of(study, language)), len(words)


class StudyTranslation(NullTranslations):
    """What a study says in a language of its own words; messages of Django in that language beside them."""

    def __init__(self, study: Study, language: str) -> None:
        super().__init__()
        self._study, self._language = study, language
        self._django = trans_real.translation(language)
        self._words: dict[Key, str] | None = None

    def _find(self, source: str, form: int) -> str:
        if self._words is None:  # most answers of an evaluator need no word
            self._words = translations_of(self._study, self._language)
        return self._words.get((source, form), "")

    def gettext(self, message: str) -> str:
        if message in _sources():
            return self._find(message, 0) or message
        return str(self._django.gettext(message))

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        if msgid1 in _sources():
            return self._find(msgid1, int(self._django.plural(n)) + 1) or (msgid1 if n == 1 else msgid2)
        return str(self._django.ngettext(msgid1, msgid2, n))

    def language(self) -> str:
        """Return the language, as Django asks its own translations for it."""
        return self._language

    def to_language(self) -> str:
        """Return the language, as Django asks its own translations for it."""
        return self._language


@contextmanager
def speak(study: Study | None, language: str) -> Iterator[None]:
    """Let what is said within be said in a language of a study, in the study's own words where none are shipped."""
    if study is None or ships_words(language):
        spoken: NullTranslations = trans_real.translation(language)
    else:
        spoken = StudyTranslation(study, language)
    active = trans_real._active  # type: ignore[attr-defined] # Django's place for the translation of a thread or coroutine
    before = getattr(active, "value", None)
    active.value = spoken
    try:
        yield
    finally:
        if before is None:
            deactivate()
        else:
            active.value = before
