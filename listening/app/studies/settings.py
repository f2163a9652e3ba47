"""What a study asks before its trials and where its evaluators come from, read from the study's JSON fields.

Each `parse_…` turns a stored field into a frozen dataclass. What an organizer writes is checked once, by the fields of
the form (`listening.app.studies.forms`) and, where it takes several of them, here.

    screening          {"sound": true, "headphones": "none|huggins|woods|both", "headphones_gate": "flag|gate",
                        "headphones_attempts": 2, "native_languages": ["en"], "gold_gate": "flag|gate",
                        "bandwidth": "none|flag|gate", "environment": "none|flag|gate", "normal_hearing": false}
    questionnaire      [{"name": "age", "kind": "choice|number|text|language", "labels": {"en": "Your age"},
                        "choices": [{"value": "18-29", "labels": {"en": "18 to 29"}}], "required": true}]
    platform_settings  {"parameters": {"person": …, "study": …, "session": …}, "codes": {"complete": …},
                        "confirm_by_api": false}

In forms questions are lines of a text, which `read_questions` takes and `write_questions` gives:

    Do you work with speech? // Travaillez-vous avec la parole ? = yes // oui; no // non
    How many hours a day do you listen to music? = number
    What should we know? (optional) = text

What stands behind ``//`` is the same in the next language of the study. Behind ``=`` stand ``number``, ``text``, or
at least two choices with semicolons between them. The name of a question in exports consists of its first words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from common.errors import ProblemsError
from listening.app.models import Study
from listening.texts import shipped_questionnaire

HEADPHONE_TESTS = {"none": (), "huggins": ("huggins",), "woods": ("woods",), "both": ("huggins", "woods")}
OPTIONAL_CHECKS = ("bandwidth", "environment")
QUESTION_KINDS = ("choice", "number", "text", "language")
NATIVE_LANGUAGE = "native_language"
HEADPHONES = "headphones"  # a question that a headphone check answers better
HEARING, HEARS_WELL = "hearing", "no"  # whether somebody knows of difficulties in hearing, and the answer “no”
OUTCOMES = ("complete", "screened-out", "failed-attention", "technical")
ATTEMPTS_AT_MOST = 5
QUESTIONS_AT_MOST = 30
CHOICES_AT_MOST = 40
CODE = re.compile(r"[A-Za-z0-9_-]{1,64}")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})?")
PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
# On an own link the organizers choose the ids: besides letters, digits and spaces what e-mail addresses and random ids
# may have.
OWN_SIGNS = "._-+@:~='’/"
LONGEST_OWN_ID = 120


class Problems(list[str]):
    """A sentence for everything that is wrong with what is read."""

    def unless(self, is_right: object, sentence: str) -> bool:
        """Add the sentence unless something is right; whether it is."""
        if not is_right:
            self.append(sentence)
        return bool(is_right)

    def refuse(self) -> None:
        """Raise `ProblemsError` with all of them, if there are any."""
        if self:
            raise ProblemsError(self)


@dataclass(frozen=True)
class Screening:
    """The tests before the trials, in the order of the form. A gate turns away who fails; a flag keeps the score."""

    sound: bool = True
    headphones: str = "none"
    headphones_gate: str = "flag"
    bandwidth: str = "none"
    environment: str = "none"
    headphones_attempts: int = 2
    native_languages: tuple[str, ...] = ()
    normal_hearing: bool = False
    gold_gate: str = "flag"

    @property
    def headphone_tests(self) -> tuple[str, ...]:
        """Return the headphone checks in the order of their asking."""
        return HEADPHONE_TESTS[self.headphones]

    @property
    def checks(self) -> tuple[str, ...]:
        """Return the checks after the sound test, in the order of their asking."""
        return (*self.headphone_tests, *(one for one in OPTIONAL_CHECKS if getattr(self, one) != "none"))

    @property
    def needed_questions(self) -> tuple[str, ...]:
        """Return the names of the questions by whose answers people are turned away."""
        needed = {NATIVE_LANGUAGE: self.native_languages, HEARING: self.normal_hearing}
        return tuple(name for name, is_needed in needed.items() if is_needed)

    def is_gate(self, check: str) -> bool:
        """Return whether who fails this check is turned away."""
        return check == "sound" or getattr(self, check, self.headphones_gate) == "gate"


@dataclass(frozen=True)
class AnswerChoice:
    """One answer to choose; `labels` by language."""

    value: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BackgroundQuestion:
    """A question of the questionnaire; `labels` by language."""

    name: str
    kind: str
    labels: Mapping[str, str]
    choices: tuple[AnswerChoice, ...] = ()
    is_required: bool = True


@dataclass(frozen=True)
class PlatformPlan:
    """Where evaluators come from. `parameters`: names in the address; `codes`: by outcome, where the study has them."""

    platform: str
    parameters: Mapping[str, str]
    codes: Mapping[str, str]
    confirm_by_api: bool = False


def label_in(labels: Mapping[str, str], language: str) -> str:
    """Return the label in this language, else the first one there is."""
    return labels.get(language) or next(iter(labels.values()), "")


# Screening ----------------------------------------------------------------------------------------

ONLY_IF_CHOSEN = (*OPTIONAL_CHECKS, "normal_hearing")  # are stored
# What a new study begins with.
DEFAULT_SCREENING: dict[str, Any] = {
    name: value
    for name, value in (asdict(Screening(headphones="huggins")) | {"native_languages": []}).items()
    if name not in ONLY_IF_CHOSEN
}


def parse_screening(given: Mapping[str, Any]) -> Screening:
    """Return the screening of a study; what is not given is as `Screening` says."""
    return Screening(**{**given, "native_languages": tuple(given.get("native_languages", ()))})


# Questionnaire ------------------------------------------------------------------------------------

DEFAULT_QUESTIONNAIRE = shipped_questionnaire()
SHIPPED_QUESTIONS = {one["name"]: one for one in DEFAULT_QUESTIONNAIRE}


def parse_questionnaire(
    given: Iterable[Mapping[str, Any]], *, screening: Screening | None = None
) -> tuple[BackgroundQuestion, ...]:
    """Return the questions of a study; what the screening needs to know is always among them, and nothing about
    headphones where it checks them.
    """
    found = list(map(_question, given))
    if screening and screening.headphone_tests:
        found = [one for one in found if one.name != HEADPHONES]
    for name in screening.needed_questions if screening else ():
        if all(one.name != name for one in found):
            found.append(_question(SHIPPED_QUESTIONS[name]))
        found = [replace(one, is_required=True) if one.name == name else one for one in found]
    return tuple(found)


def _question(given: Mapping[str, Any]) -> BackgroundQuestion:
    choices = tuple(AnswerChoice(**one) for one in given.get("choices", ()))
    return BackgroundQuestion(given["name"], given["kind"], given["labels"], choices, given.get("required", True))


# Platform -----------------------------------------------------------------------------------------

DEFAULT_PARAMETERS = {
    "own": {"person": "person", "study": "study", "session": "session"},
    "prolific": {"person": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"},
    # Mechanical Turk names its parameters itself.
    "mturk": {"person": "workerId", "study": "hitId", "session": "assignmentId"},
}


def parse_platform(study: Study) -> PlatformPlan:
    """Return where the evaluators of a study come from, by its `platform` and `platform_settings`.

    Raises:
        ProblemsError: names every field that cannot be used.
    """
    given, defaults, problems = study.platform_settings, DEFAULT_PARAMETERS[study.platform], Problems()
    is_prolific, confirms = study.platform == "prolific", given.get("confirm_by_api", False)
    parameters = defaults | given.get("parameters", {})
    for name, word in parameters.items():
        expected = f"The parameter for the {name}: expected a name such as {defaults[name]}, found {word!r}."
        problems.unless(PARAMETER.fullmatch(word), expected)
    are_own = study.platform != "mturk" or parameters == defaults
    problems.unless(
        are_own, "The parameters of the address: Mechanical Turk names them itself; leave them as they are."
    )
    problems.unless(not _twice(parameters.values()), "The parameters of the address: expected three different names.")
    codes = {name: code for name, code in given.get("codes", {}).items() if code}
    for name, code in codes.items():
        expected = f"The code for {name}: expected letters, digits, - and _, at most 64, found {code!r}."
        problems.unless(CODE.fullmatch(code), expected)
    made = "The completion codes: only Prolific's are set by hand; all others are made for each person."
    problems.unless(is_prolific or not codes, made)
    shown = "The code for complete: expected the completion code that Prolific shows for the study."
    problems.unless(not is_prolific or "complete" in codes, shown)
    problems.unless(not _twice(codes.values()), "The completion codes: expected a different code for each outcome.")
    problems.unless(is_prolific or not confirms, "Confirmation by API: only Prolific can confirm a submission.")
    problems.refuse()
    return PlatformPlan(study.platform, parameters, codes, confirms)


def _twice(values: Iterable[str]) -> list[str]:
    """Return those that are there more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


# Questions as lines of a text ---------------------------------------------------------------------

OPTIONAL = "(optional)"
LONGEST_NAME, LONGEST_LABEL = 40, 300


def read_questions(text: str, *, languages: Sequence[str], taken: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return the questions of a text as the questionnaire of a study holds them.

    Args:
        taken: names that other questions have.

    Raises:
        ProblemsError: a sentence for each line that is no question.
    """
    problems, found, names = Problems(), [], set(taken)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        words, equals, answer = (part.strip() for part in line.rpartition("="))
        expected = f"Line {number}: expected a question, = and its answers, such as Do you sing? = yes; no."
        if not problems.unless(equals and words and answer, expected):
            continue
        labels = _read_labels(words.removesuffix(OPTIONAL), languages)
        question: dict[str, Any] = {"name": _name(labels, names), "labels": labels}
        question["required"] = not words.endswith(OPTIONAL)
        names.add(question["name"])
        if answer in QUESTION_KINDS[1:]:
            found.append(question | {"kind": answer})
            continue
        choices = [_read_labels(part.strip(), languages) for part in answer.split(";") if part.strip()]
        expected = f"Line {number}: expected number, text or at least two choices behind =, found {answer}."
        problems.unless(len(choices) >= 2, expected)
        # A choice is named by its words in the first language that has any.
        made: list[dict[str, Any]] = [{"value": next(iter(one.values()))[:60], "labels": one} for one in choices]
        many = f"Line {number}: expected at most {CHOICES_AT_MOST} choices, found {len(choices)}."
        problems.unless(len(choices) <= CHOICES_AT_MOST, many)
        same = _twice(one["value"] for one in made)
        problems.unless(not same, f"Line {number}: there are two choices {', '.join(same)}.")
        found.append(question | {"kind": "choice", "choices": made})
    most = f"Expected at most {QUESTIONS_AT_MOST} questions, found {len(found)}."
    problems.unless(len(found) <= QUESTIONS_AT_MOST, most)
    problems.refuse()
    return found


def write_questions(questions: Iterable[Mapping[str, Any]], *, languages: Sequence[str]) -> str:
    """Return the lines that `read_questions` makes these questions of."""
    lines = []
    for question in questions:
        optional = "" if question.get("required", True) else f" {OPTIONAL}"
        answer = question["kind"]
        if answer == "choice":
            answer = "; ".join(_joined(one["labels"], languages) for one in question["choices"])
        lines.append(f"{_joined(question['labels'], languages)}{optional} = {answer}")
    return "\n".join(lines)


def _read_labels(words: str, languages: Sequence[str]) -> dict[str, str]:
    parts = [part.strip()[:LONGEST_LABEL] for part in words.split("//")]
    return {language: part for language, part in zip(languages, parts, strict=False) if part} or {languages[0]: words}


def _joined(labels: Mapping[str, str], languages: Sequence[str]) -> str:
    return " // ".join(labels[language] for language in languages if language in labels)


def _name(labels: Mapping[str, str], taken: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", next(iter(labels.values())).lower()).strip("_")[: LONGEST_NAME - 4]
    base = plain if plain[:1].isalpha() else f"own_{plain}".rstrip("_")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name
