"""What a study asks before its trials and where its evaluators come from, read from the study's JSON fields.

Each `parse_…` turns what an organizer's form or a stored field holds into a frozen dataclass, or raises `ProblemsError`
with every problem at once. Nothing below this door checks these fields again.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from common.errors import ProblemsError
from listening.app.models import Study
from listening.texts import shipped_questionnaire

HEADPHONE_TESTS = {"none": (), "huggins": ("huggins",), "woods": ("woods",), "both": ("huggins", "woods")}
GATES = ("flag", "gate")
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
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
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
    """The tests before the trials. A gate turns away who fails; a flag lets them go on and keeps the score."""

    sound: bool = True
    headphones: str = "none"
    headphones_gate: str = "flag"
    headphones_attempts: int = 2
    native_languages: tuple[str, ...] = ()
    gold_gate: str = "flag"
    bandwidth: str = "none"
    environment: str = "none"
    normal_hearing: bool = False

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
    """A question of the questionnaire; `labels` by language. `lowest` and `highest` bound a number."""

    name: str
    kind: str
    labels: Mapping[str, str]
    choices: tuple[AnswerChoice, ...] = ()
    is_required: bool = True
    lowest: int = 0
    highest: int = 1_000_000


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


# Fields --------------------------------------------------------------------------------------------

Check = tuple[Callable[[Any], bool], str]  # whether a value can be used, and what is expected of one
TRUTH: Check = (lambda value: isinstance(value, bool), "true or false")
OBJECT: Check = (lambda value: isinstance(value, Mapping), "an object")


def whole(lowest: int, highest: int) -> Check:
    return lambda value: type(value) is int and lowest <= value <= highest, f"a whole number, {lowest} to {highest}"


def one_of(*known: Any) -> Check:
    return lambda value: value in known and type(value) in map(type, known), f"one of {', '.join(map(str, known))}"


def matching(pattern: re.Pattern[str], words: str) -> Check:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None, words


def _are_languages(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and all(isinstance(one, str) and len(one) <= 8 for one in value)
    return is_list and all(map(LANGUAGE.fullmatch, value)) and len(value) == len(set(value))


LANGUAGES: Check = (_are_languages, "a list of codes of languages such as en or fr, each once")


def check_fields(given: Any, table: Mapping[str, Check], where: str, problems: Problems) -> dict[str, Any]:
    """Return the fields that can be used; every other one becomes a problem.

    Args:
        where: what stands before the name of a field in a sentence.
    """
    if not isinstance(given, Mapping):
        problems.append(f"{where.rstrip(' ,')}: expected an object, found {str(given)[:60]!r}.")
        return {}
    found = {}
    for name, value in given.items():
        if name not in table:
            problems.append(f"{where}{str(name)[:60]}: there is no such field; there are: {', '.join(table)}.")
            continue
        is_right, expected = table[name]
        if is_right(value):
            found[name] = value
        else:
            problems.append(f"{where}{name}: expected {expected}, found {str(value)[:60]!r}.")
    return found


# Screening ----------------------------------------------------------------------------------------

SCREENING: Mapping[str, Check] = {
    "sound": TRUTH,
    "headphones": one_of(*HEADPHONE_TESTS),
    "headphones_gate": one_of(*GATES),
    **dict.fromkeys(OPTIONAL_CHECKS, one_of("none", *GATES)),
    "headphones_attempts": whole(1, ATTEMPTS_AT_MOST),
    "native_languages": LANGUAGES,
    "normal_hearing": TRUTH,
    "gold_gate": one_of(*GATES),
}
ONLY_IF_CHOSEN = (*OPTIONAL_CHECKS, "normal_hearing")  # are stored
# What a new study begins with.
DEFAULT_SCREENING: dict[str, Any] = {
    name: value
    for name, value in (asdict(Screening(headphones="huggins")) | {"native_languages": []}).items()
    if name not in ONLY_IF_CHOSEN
}


def parse_screening(given: Any) -> Screening:
    """Return the screening of a study; what is not given is as `Screening` says.

    Raises:
        ProblemsError: names every field that cannot be used.
    """
    problems = Problems()
    found = check_fields(given, SCREENING, "The screening, ", problems)
    problems.refuse()
    return Screening(**found | {"native_languages": tuple(found.get("native_languages", ()))})


# Questionnaire ------------------------------------------------------------------------------------

DEFAULT_QUESTIONNAIRE = shipped_questionnaire()
SHIPPED_QUESTIONS = {one["name"]: one for one in DEFAULT_QUESTIONNAIRE}
_LABELS: Check = (
    lambda value: (
        isinstance(value, Mapping)
        and bool(value)
        and all(
            isinstance(code, str) and LANGUAGE.fullmatch(code) and isinstance(label, str) and label.strip()
            for code, label in value.items()
        )
    ),
    "labels by language, such as en: Your age",
)
_ANY_NUMBER: Check = (lambda value: type(value) is int, "a whole number")
_OF_QUESTION: Mapping[str, Check] = {
    "name": matching(NAME, "small letters, digits and _"),
    "kind": one_of(*QUESTION_KINDS),
    "labels": _LABELS,
    "choices": (
        lambda value: isinstance(value, list | tuple) and len(value) <= CHOICES_AT_MOST,
        f"a list of at most {CHOICES_AT_MOST} choices",
    ),
    "required": TRUTH,
    "lowest": _ANY_NUMBER,
    "highest": _ANY_NUMBER,
}
_OF_CHOICE: Mapping[str, Check] = {
    "value": (lambda value: isinstance(value, str) and 0 < len(value) <= 60, "a text of 1 to 60 characters"),
    "labels": _LABELS,
}


def parse_questionnaire(given: Any, *, screening: Screening | None = None) -> tuple[BackgroundQuestion, ...]:
    """Return the questions of a study; what the screening needs to know is always among them, and nothing about
    headphones where it checks them.

    Raises:
        ProblemsError: names every question that cannot be asked.
    """
    if not isinstance(given, list | tuple):
        raise ProblemsError([f"The questionnaire: expected a list of questions, found {str(given)[:60]!r}."])
    problems = Problems()
    too_many = f"The questionnaire: expected at most {QUESTIONS_AT_MOST} questions, found {len(given)}."
    problems.unless(len(given) <= QUESTIONS_AT_MOST, too_many)
    read = [_question(one, f"Question {place}", problems) for place, one in enumerate(given[:QUESTIONS_AT_MOST], 1)]
    found = [one for one in read if one]
    problems += [f"Question {name!r}: there are two of this name." for name in _twice(one.name for one in found)]
    is_asked_rightly = all(one.kind == "language" for one in found if one.name == NATIVE_LANGUAGE)
    kept_for = f"Question {NATIVE_LANGUAGE!r}: expected the kind 'language', which this name is kept for."
    problems.unless(is_asked_rightly, kept_for)
    problems.refuse()
    if screening and screening.headphone_tests:
        found = [one for one in found if one.name != HEADPHONES]
    for name in screening.needed_questions if screening else ():
        if all(one.name != name for one in found):
            found += filter(None, [_question(SHIPPED_QUESTIONS[name], name, problems)])
        found = [replace(one, is_required=True) if one.name == name else one for one in found]
    return tuple(found)


def _question(given: Any, where: str, problems: Problems) -> BackgroundQuestion | None:
    before = len(problems)
    needed = dict.fromkeys(("name", "kind", "labels")) if isinstance(given, Mapping) else {}
    read = check_fields(needed | given if needed else given, _OF_QUESTION, f"{where}, ", problems)
    choices = [
        check_fields(one, _OF_CHOICE, f"{where}, choice {place}, ", problems)
        for place, one in enumerate(read.pop("choices", ()), 1)
    ]
    values = [one["value"] for one in choices if "value" in one]
    problems += [f"{where}: there are two choices {value!r}." for value in _twice(values)]
    are_enough = read.get("kind") != "choice" or len(choices) >= 2
    problems.unless(are_enough, f"{where}: expected at least two choices, found {len(choices)}.")
    read["is_required"] = read.pop("required", True)
    lowest, highest = (read.get(name, getattr(BackgroundQuestion, name)) for name in ("lowest", "highest"))
    in_order = f"{where}: expected a lowest answer below the highest, found {lowest} and {highest}."
    problems.unless(lowest <= highest, in_order)
    if len(problems) > before:
        return None
    answers = tuple(AnswerChoice(one["value"], _labels(one["labels"])) for one in choices)
    return BackgroundQuestion(**read | {"labels": _labels(read["labels"]), "choices": answers})


def _labels(given: Mapping[str, str]) -> dict[str, str]:
    return {code: label.strip()[:300] for code, label in given.items()}


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
    if study.platform not in DEFAULT_PARAMETERS:
        raise ProblemsError([f"The platform: expected {', '.join(DEFAULT_PARAMETERS)}, found {study.platform!r}."])
    problems = Problems()
    read = check_fields(study.platform_settings, _OF_PLATFORM, "The settings of the platform, ", problems)
    parameters = _parameters(study.platform, read.get("parameters", {}), problems)
    codes = _codes(study.platform, read.get("codes", {}), problems)
    confirm = read.get("confirm_by_api", False)
    may_confirm = not confirm or study.platform == "prolific"
    problems.unless(may_confirm, "Confirmation by API: only Prolific can confirm a submission.")
    problems.refuse()
    return PlatformPlan(study.platform, parameters, codes, confirm)


_OF_PLATFORM: Mapping[str, Check] = {"parameters": OBJECT, "codes": OBJECT, "confirm_by_api": TRUTH}


def _parameters(platform: str, given: Mapping[str, Any], problems: Problems) -> dict[str, str]:
    defaults, where = DEFAULT_PARAMETERS[platform], "The parameters of the address"
    table = {name: matching(PARAMETER, f"a name such as {usual}") for name, usual in defaults.items()}
    found = defaults | check_fields(given, table, "The parameter for the ", problems)
    is_own = platform != "mturk" or found == defaults
    problems.unless(is_own, f"{where}: Mechanical Turk names them itself; leave them as they are.")
    problems.unless(not _twice(found.values()), f"{where}: expected three different names.")
    return found


def _codes(platform: str, given: Mapping[str, Any], problems: Problems) -> dict[str, str]:
    where, is_prolific = "The completion codes", platform == "prolific"
    table = dict.fromkeys(OUTCOMES, matching(CODE, "letters, digits, - and _, at most 64"))
    filled = {name: value for name, value in given.items() if value != ""}
    codes = check_fields(filled, table, "The code for ", problems)
    made = f"{where}: only Prolific's are set by hand; all others are made for each person."
    problems.unless(is_prolific or not filled, made)
    shown = "The code for complete: expected the completion code that Prolific shows for the study."
    problems.unless(not is_prolific or "complete" in filled, shown)
    problems.unless(not _twice(codes.values()), f"{where}: expected a different code for each outcome.")
    return codes


def _twice(values: Iterable[str]) -> list[str]:
    """Return those that are there more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


# Questions as lines of a text ---------------------------------------------------------------------

OPTIONAL = "(optional)"
LONGEST_NAME = 40


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
        made = [{"value": next(iter(one.values()))[:60], "labels": one} for one in choices]
        found.append(question | {"kind": "choice", "choices": made})
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
    parts = [part.strip() for part in words.split("//")]
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
