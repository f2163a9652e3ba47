"""Checks what is chosen for a listening test of one's own recordings, or of systems that are compared, by one form.

A page shows some of its fields, and the file of a test has those of `TABLES`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from common.errors import ProblemsError
from listening.app.models import LOUDNESS, Study, StudyText
from listening.app.questions.forms import LONGEST_QUESTION, LONGEST_WORDS, RESULT_WORDS
from listening.app.recordings.services import PRESETS, USUAL_PRESET, OwnTest, find_original_problems
from listening.app.studies.forms import (
    CHANNELS,
    LONGEST_TEXT,
    PARAMETERS,
    RATES,
    SAVED,
    SECTIONS,
    SOUND,
    StudyFields,
    StudyNameField,
    propose_practice,
    radios,
)
from listening.app.studies.interface_words import read_words, ships_words, write_words
from listening.app.studies.rules import CONSENT_FIELDS
from listening.app.studies.selectors import free_study_name
from listening.app.studies.services import find_unfit_questions
from listening.app.studies.settings import LANGUAGE
from listening.questions import AskedQuestion, list_question_problems, load_preset, parse_question
from listening.stimuli.anchors import ANCHORS_HZ
from listening.stimuli.making import Loudness
from listening.texts import SHIPPED_LANGUAGES
from portal.core.fields import LineField, validate_line

# By table the fields of a file; "" for those in front of the first table. Questions and texts have tables of their own.
TABLES: dict[str, tuple[str, ...]] = {
    "": ("title", "name", "preset", "original", "references", "against", "anchors", "edition", "systems", "data_sets"),
    "sound": SOUND,
    "sessions": (
        *("evaluators", "trials_per_evaluator", "items_at_most", "practice_trials", "gold_trials"),
        *("half_width", "most_evaluators", "pages", "orders", "seed", "plays_at_most", "role_play", "languages"),
        *("pay_per_hour", "currency", "lease_minutes", "places_per_network"),
    ),
    "consent": CONSENT_FIELDS,
    "screening": SECTIONS["before"][1],
    "platform": ("platform", *PARAMETERS.values(), "confirm_by_api"),
}
ANCHORS = [
    ("", "Both for MUSHRA, else none"),
    ("3500", "3.5 kHz"),
    ("7000", "7 kHz"),
    ("3500 7000", "3.5 and 7 kHz"),
    ("none", "None"),
]
OF_TEST = {one.name for one in fields(OwnTest)}


class NamesField(LineField):
    """Takes names with commas between them, or a list of them."""

    def clean(self, value: Any) -> Any:
        names = value if isinstance(value, list) else super().clean(value).split(",")
        if not all(isinstance(one, str) for one in names):
            raise ValidationError("Expected a list of names.")
        for one in names:
            validate_line(one)
        return tuple(filter(None, map(str.strip, names)))


class AnchorsField(forms.ChoiceField):
    """Takes frequencies of anchors in Hz as one of `ANCHORS`, or as a list."""

    def clean(self, value: Any) -> Any:
        if isinstance(value, list):
            value = " ".join(sorted(map(str, value))) or "none"
        return tuple(int(hz) for hz in super().clean(value).split() if hz != "none")


class AskedField(forms.Field):
    """Takes the questions of a test, a table for each as presets have them."""

    def clean(self, value: Any) -> tuple[AskedQuestion, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise ValidationError("questions: expected tables [[questions]].")
        questions, problems = [], list[str]()
        for number, table in enumerate(value, 1):
            try:
                questions.append(parse_question(table, f"[[questions]] {number}"))
            except ProblemsError as error:
                problems += error.problems
        problems = problems or list_question_problems(questions)
        if problems := problems or [*chain.from_iterable(map(_find_unfit_words, questions))]:
            raise ValidationError(problems)
        return tuple(questions)


def _find_unfit_words(one: AskedQuestion) -> Iterator[str]:
    """Yield what the page of questions would not take of the words of a question."""
    if unknown := sorted(one.results.keys() - RESULT_WORDS.keys()):
        yield f"{one.key}: results have {', '.join(RESULT_WORDS)}, found {', '.join(unknown)}."
    for language, words in one.wording.items():
        if not LANGUAGE.fullmatch(language.lower()):
            yield f"{one.key}: expected a language such as en, found {language[:60]!r}."
        if len(words.question) > LONGEST_QUESTION:
            yield f"{one.key}: a question has at most {LONGEST_QUESTION} characters, found {len(words.question):,}."
        longest = max(map(len, (words.hint, "\n".join(words.labels), words.instructions, words.consent)))
        if longest > LONGEST_WORDS:
            yield f"{one.key}: its other words have at most {LONGEST_WORDS:,} characters each, found {longest:,}."


class TextsField(forms.Field):
    """Takes texts for evaluators that differ from those that are shipped: by kind a table with each language."""

    def clean(self, value: Any) -> dict[tuple[str, str], str]:
        found = {}
        try:
            for kind, texts in (value or {}).items():
                for language, text in texts.items():
                    where = f"[texts.{StudyText.Kind(kind).value}] {language}"
                    if kind == StudyText.Kind.WORDS and ships_words(language):
                        raise ProblemsError([f"{where}: the words of this language are shipped. Leave it out."])
                    if kind == StudyText.Kind.WORDS:
                        found[kind, language] = write_words(read_words(text, where, language))
                        continue
                    found[kind, language] = text.strip()
                    if len(text) > LONGEST_TEXT:
                        raise ProblemsError([f"{where}: expected at most {LONGEST_TEXT:,} characters."])
        except ProblemsError as error:
            raise ValidationError(error.problems) from None
        except (AttributeError, TypeError, ValueError):
            known = ", ".join(StudyText.Kind.values)
            raise ValidationError(f"[texts]: expected tables {known}, each of texts by language.") from None
        return found


class ChosenTestForm(StudyFields):
    """Takes a test of which only the title has to be given; what is left out is not among the values.

    Attributes:
        needed: those that cannot be left out.
        given: the values of a valid form.
    """

    shown: Sequence[str] = (*chain.from_iterable(TABLES.values()), "asked", "texts")
    needed: Collection[str] = ("title",)
    study = Study(languages=list(SHIPPED_LANGUAGES))

    name = StudyNameField("Part of the address of its pages. Empty: made of the title.")
    preset = radios(
        "What is asked",
        [(one.name, f"{one.title}: {one.about}") for one in map(load_preset, PRESETS)],
        "The wording can be changed afterwards.",
        "Choose what is asked.",
        initial=USUAL_PRESET,
    )
    asked = AskedField()
    texts = TextsField()
    edition = LineField(max_length=60)
    systems = NamesField()  # type: ignore[assignment]
    data_sets = NamesField()  # type: ignore[assignment]
    original = LineField(
        label="Original",
        max_length=40,
        help_text="The condition with which the others are compared, such as clean. DCR and MUSHRA play it as the "
        "reference, and once more among the others without saying so. Empty: none.",
    )
    anchors = AnchorsField(
        label="Anchors",
        choices=ANCHORS,
        help_text="Further conditions that the portal makes: the original without what lies above 3.5 or 7 kHz "
        "(ITU-R BS.1534-3), as far as the sampling rate allows.",
        error_messages={"invalid_choice": f"Expected frequencies in Hz, of {', '.join(map(str, ANCHORS_HZ))}."},
    )
    references = NamesField(
        label="References",
        help_text="Further conditions that are references, with commas between them. Empty: none.",
    )
    against = LineField(  # type: ignore[assignment]
        label="Compared with",
        max_length=40,
        help_text="Of AB, CCR and ABX: the condition with which each other is compared. Empty: each with each other.",
    )
    rate_hz = forms.TypedChoiceField(
        label="Sampling rate", choices=[("", "As most recordings have"), *RATES], coerce=int, empty_value=None
    )
    channels = forms.TypedChoiceField(
        label="Channels", choices=[("", "Stereo if a recording is"), *CHANNELS], coerce=int, empty_value=None
    )
    loudness = radios(
        "Loudness", LOUDNESS, "What is equal in all recordings.", "Choose it.", initial=Loudness.PROGRAMME
    )

    def __init__(self, data: Any = None, files: Any = None, **more: Any) -> None:
        super().__init__(data, files, **more)
        self.given: dict[str, Any] = {}
        propose_practice(self)
        for name, field in self.fields.items():
            field.required = name in self.needed
            if isinstance(field, forms.ChoiceField) and not isinstance(field, AnchorsField):
                known = ", ".join(str(value) for value, _ in list(field.choices) if value != "")  # type: ignore[arg-type]
                field.error_messages["invalid_choice"] = f"Expected one of {known}, found %(value)s."

    def clean(self) -> dict[str, Any]:
        self.given = given = {
            name: value for name, value in super().clean().items() if self.data.get(name) not in (None, "")
        }
        self.clean_settings(given)
        languages = given.get("languages") or self.study.languages
        if unknown := sorted({language for _, language in given.get("texts", ()) if language not in languages}):
            self.add_error("texts", f"[texts]: the test has no language {', '.join(unknown)}. Add it to languages.")
        if not self.errors.keys() & {"asked", "preset"}:
            asked = given.get("asked") or load_preset(given.get("preset", USUAL_PRESET)).questions
            self.clean_numbers(given, asked=asked, has_own_recordings=not given.get("edition"))
        if not self.errors:
            chosen = self.choose()
            for field, problems in (
                (None, find_unfit_questions(chosen.asked, is_own=not chosen.edition)),
                ("original", [] if chosen.edition else [*find_original_problems(chosen)]),
            ):
                if problems:
                    self.add_error(field, problems)
        return self.cleaned_data

    def choose(self) -> OwnTest:
        """Return what a valid form chooses."""
        given = {"preset": USUAL_PRESET} | self.given
        given["name"] = given.get("name") or free_study_name(given["title"])
        given.setdefault("asked", load_preset(given["preset"]).questions)
        of_study = {name: given[name] for name in SAVED if name in given}
        of_test = {name: given[name] for name in OF_TEST if name in given}
        return OwnTest(study=of_study, sent=self.sent, **of_test)

    @property
    def sent(self) -> dict[str, Any]:
        """Return what was sent of its fields, of which the same form can be made again."""
        return {name: self.data[name] for name in self.fields if name in self.data}
